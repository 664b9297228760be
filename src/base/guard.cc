#include "base/guard.h"

#include <exception>
#include <new>

#include "base/status.h"

extern "C" int ah__guard_run(const char *what, void (*call)(void *context), void *context)
{
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
