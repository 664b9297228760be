/* Host memory in whole pages: all of it there before anybody uses it, whichever thread touched which part. */
#include "dev/host/pages.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

/* More than one thread's part, and no multiple of anything. */
static void every_page_is_there(void **state)
{
    enum { BYTES = (600 << 20) + 12345 };
    struct ah_pages pages;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = (BYTES + page - 1) / page;
    unsigned char *there = calloc(count, 1);
    assert_non_null(there);
    assert_ok(ah__pages_new(&pages, BYTES, "test"));
    assert_int_equal(mincore(pages.base, BYTES, there), 0);
    for (size_t i = 0; i < count; i++)
        if (!(there[i] & 1) || pages.base[i * page] != 0)
            fail_msg("page %zu of %zu is not there, or not zero", i, count);
    ah__pages_free(&pages);
    free(there);
}

AH_TEST_CASES("dev/host/pages", every_page_is_there)
