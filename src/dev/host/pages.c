#include "dev/host/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dev/host/cgroup.h"
#include "dev/host/job.h"
#include "dev/host/machine.h"

/* Large pages make the address translation of a big region cheap. */
static const size_t huge_bytes = (size_t)2 << 20;

/* Reads AUTOHETE_HOST_AVAILABLE, for machines whose memory grows when it is used; 0: not set. */
static int available_said(int64_t *bytes)
{
    const char *text = getenv("AUTOHETE_HOST_AVAILABLE");
    *bytes = 0;
    if (!text || (ah_size_parse(bytes, text) == AH_OK && *bytes > 0))
        return AH_OK;
    return ah__fail(AH_EINPUT, "AUTOHETE_HOST_AVAILABLE: found \"%.40s\", expected bytes such as 100G", text);
}

int64_t ah__pages_available(void)
{
    int64_t said;
    char text[64];
    long long kib = 0;
    if (available_said(&said) == AH_OK && said > 0)
        return said;
    if (!ah__host_line(text, sizeof text, "/proc/meminfo", "MemAvailable") || sscanf(text, "%lld kB", &kib) != 1)
        kib = INT64_MAX / 1024;
    int64_t machine = (int64_t)kib * 1024, granted = ah__cgroup_memory_left("");
    return granted < machine ? granted : machine;
}

/* A part of a region, and the job that touches it. */
struct touched {
    struct ah_job job;
    char *base;
    size_t bytes, page;
};

static int touch(void *context)
{
    struct touched *part = context;
#ifdef MADV_POPULATE_WRITE
    if (madvise(part->base, part->bytes, MADV_POPULATE_WRITE) == 0)
        return AH_OK;
#endif
    for (size_t at = 0; at < part->bytes; at += part->page)
        *(volatile char *)(part->base + at) = 0;
    return AH_OK;
}

/* Touches every page now, so that no step pays for it; with several threads, since one takes long to zero them. */
static void prefault(char *base, size_t bytes, size_t page)
{
    enum { MOST = 16 };
    static const size_t least = (size_t)256 << 20; /* least bytes for a thread */
    struct touched part[MOST] = {{.base = NULL}};
    size_t cores = (size_t)ah__host_cores(NULL), count = bytes / least + 1;
    count = count < cores ? count : cores;
    count = count < MOST ? count : MOST;
    size_t each = (bytes / count + huge_bytes - 1) / huge_bytes * huge_bytes;
    for (size_t i = 0; i < count; i++) {
        size_t from = i * each < bytes ? i * each : bytes, left = bytes - from;
        part[i].base = base + from;
        part[i].bytes = i + 1 < count && left > each ? each : left;
        part[i].page = page;
        if (i + 1 == count || !ah__job_start(&part[i].job, touch, &part[i]))
            (void)touch(&part[i]);
    }
    for (size_t i = 0; i < count; i++)
        (void)ah__job_wait(&part[i].job);
}

static int pages_refuse(int64_t bytes, int64_t available, const char *what)
{
    char need[32], have[32];
    return ah__fail(AH_ENOMEM, "%s: %s needed, %s available on this machine", what,
                    ah_size_format(need, sizeof need, bytes), ah_size_format(have, sizeof have, available));
}

int ah__pages_new(struct ah_pages *out, int64_t bytes, const char *what)
{
    if (bytes < 0)
        return ah__fail(AH_EINTERNAL, "%s: %lld bytes asked for", what, (long long)bytes);
    int64_t said;
    AH_TRY(available_said(&said));
    int64_t available = ah__pages_available();
    if (bytes > available)
        return pages_refuse(bytes, available, what);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = ((size_t)bytes + page - 1) / page * page;
    /* The whole mapping is inaccessible but for the requested pages: there is a guard of at least one page on either
     * side. */
    size_t mapped = usable + huge_bytes + 2 * page;
    char *mapping = mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED)
        return ah__fail(AH_ENOMEM, "%s: %lld bytes: %s", what, (long long)bytes, strerror(errno));
    char *base = (char *)(((uintptr_t)mapping + page + huge_bytes - 1) / huge_bytes * huge_bytes);
    if (usable && mprotect(base, usable, PROT_READ | PROT_WRITE) != 0) {
        munmap(mapping, mapped);
        return ah__fail(AH_ENOMEM, "%s: %lld bytes: %s", what, (long long)bytes, strerror(errno));
    }
    if (usable >= huge_bytes)
        (void)madvise(base, usable, MADV_HUGEPAGE);
    prefault(base, usable, page);
    *out = (struct ah_pages){.base = base, .bytes = bytes, .mapping = mapping, .mapped = mapped};
    return AH_OK;
}

void ah__pages_free(struct ah_pages *pages)
{
    if (pages->mapping)
        munmap(pages->mapping, pages->mapped);
    *pages = (struct ah_pages){0};
}
