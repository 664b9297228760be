#include "plan/solver.h"

#include <signal.h>

#include "base/alloc.h"
#include "base/guard.h"

int ah__solver_run(void (*solve)(void *context), void *context)
{
    /* About eight times the memory that CBC needs: it asserts, or frees twice, if memory is refused while it runs. */
    enum { ROOM_BYTES = 16 << 20 };
    AH_TRY(ah__room(ROOM_BYTES));
    /* CBC replaces the handler of SIGINT while it runs and restores it without its flags, or not at all if it throws.
     * The program's own handler is restored here. */
    struct sigaction handler;
    sigaction(SIGINT, NULL, &handler);
    int status = ah__guard_run("linear program", solve, context);
    sigaction(SIGINT, &handler, NULL);
    return status;
}
