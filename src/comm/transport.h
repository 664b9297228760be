/* A transport carries bytes between ranks, and nothing more: MPI in a shared object of its own, threads of one process
 * in tests. The group (group.c) decides the order of sums and the shape of collectives, the same over every transport.
 *
 * It is the seam between the program and libautohete-mpi-KIND.so, which links to nothing of the library: it exports
 * autohete_transport(). Both sides are built from this header; `abi` and `size` check that it was the same one. */
#ifndef AH_COMM_TRANSPORT_H
#define AH_COMM_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

enum { AH_TRANSPORT_ABI = 3, AH_TRANSPORT_WHY = 256 };

/* One message between this rank and another. */
struct ah_transfer {
    int peer;
    bool receives; /* else sends */
    bool alarms;   /* sent on AH_CHANNEL_END: ranks that wait on another channel give up */
    void *buffer;  /* not written if this rank sends */
    int64_t bytes; /* the same on both sides; 0 is fine */
};

/* Messages of one channel do not mix with those of another. */
enum ah_channel { AH_CHANNEL_WORK, AH_CHANNEL_END, AH_CHANNEL_COUNT };

struct ah_transport {
    unsigned abi, size;
    int rank, world_size;
    int neighbours;    /* ranks on this machine, this one among them: they share its memory */
    int local;         /* this rank's number among them, from 0 */
    int share, shares; /* this rank's number among the `shares` ranks that may run on the same cores */
    void *context;
    /* Does all transfers and returns when they are done. Messages between two ranks on one channel arrive in the order
     * in which they are given. `patience_s`: seconds after which it gives up; 0: never. False: failed, with a line of
     * explanation in `why`; buffers are not written any more. */
    bool (*exchange)(void *context, enum ah_channel channel, const struct ah_transfer *transfers, int count,
                     double patience_s, char why[AH_TRANSPORT_WHY]);
    /* Returns false if an exchange would be hopeless, because a rank has failed or is silent, with a line in `why`.
     * Does not wait. */
    bool (*look)(void *context, char why[AH_TRANSPORT_WHY]);
    /* Ends the transport: the program is about to exit with this status. If not `together`, the other ranks are ended,
     * too, and the call may not return. */
    void (*end)(void *context, int status, bool together);
};

/* The library's only symbol. Null: failed, with the reason in `why`. */
#define AH_TRANSPORT_SYMBOL "autohete_transport"
typedef const struct ah_transport *ah_transport_function(char why[AH_TRANSPORT_WHY]);

#endif
