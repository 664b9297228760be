#include "base/guard.h"

#include <atomic>
#include <exception>
#include <new>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif

#include "base/status.h"

/* Loads the stack unwinder now, while there is memory for it. An exception thrown through one of the C library's
 * functions, such as pthread_once, would load it then and end the process if that failed. */
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
