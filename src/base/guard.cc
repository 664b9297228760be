#include "base/guard.h"

#include <atomic>
#include <exception>
#include <new>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif

#include "base/status.h"

/* What is thrown through one of the C library's own functions, such as pthread_once, makes it load the unwinder, and
 * end the process when there is no memory for that: so it does now. */
static bool unwinder_load()
{
#if __has_include(<execinfo.h>)
    static std::atomic<bool> loaded;
    void *frame;
    if (!loaded)
        loaded = backtrace(&frame, 1) > 0;
    return loaded;
#else
    return true;
#endif
}

extern "C" int ah__guard_run(const char *what, void (*call)(void *context), void *context)
{
    if (!unwinder_load())
        return ah__fail(AH_ENOMEM, "%s: out of host memory", what);
    try {
        call(context);
        return AH_OK;
    } catch (const std::bad_alloc &) {
        return ah__fail(AH_ENOMEM, "%s: out of host memory", what);
    } catch (const std::exception &error) {
        return ah__fail(AH_EINTERNAL, "%s: %s", what, error.what());
    } catch (...) {
        return ah__fail(AH_EINTERNAL, "%s: failed without saying why", what);
    }
}
