#include "plan/solver.h"

#include <signal.h>

#include "base/alloc.h"
#include "base/guard.h"

int ah__solver_run(void (*solve)(void *context), void *context)
{
    /* Some eight times what CBC takes, which asserts, or frees twice, when it is refused memory in the middle. */
    enum { ROOM_BYTES = 16 << 20 };
    AH_TRY(ah__room(ROOM_BYTES));
    /* CBC takes over SIGINT while it runs and returns it without its flags, or not at all when it throws; the program's
     * own handler is put back whole. */
    struct sigaction handler;
    sigaction(SIGINT, NULL, &handler);
    int status = ah__guard_run("linear program", solve, context);
    sigaction(SIGINT, &handler, NULL);
    return status;
}
