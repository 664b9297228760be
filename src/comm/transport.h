/* What carries bytes between ranks, and nothing more: MPI in a shared object of its own, threads of one process in
 * tests. The order of sums and the shape of collectives are the group's (group.c), the same over every transport.
 *
 * It is the seam between the program and libautohete-mpi-KIND.so, which links to nothing of the library: it exports
 * autohete_transport(), and both sides are built from this header, which abi and size check. */
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
    void *buffer;  /* only read where it sends */
    int64_t bytes; /* the same on both sides; 0 is fine */
};

/* Messages of one channel do not meet those of another. */
enum ah_channel { AH_CHANNEL_WORK, AH_CHANNEL_END, AH_CHANNEL_COUNT };

struct ah_transport {
    unsigned abi, size;
    int rank, world_size;
    int neighbours;    /* ranks on this machine, this one among them: they share its memory */
    int local;         /* which of them this one is, from 0 */
    int share, shares; /* of those as many may run on the same cores as this one; which of them it is */
    void *context;
    /* Does all of them and returns when they are done. Messages between two ranks on one channel arrive in the order in
     * which they are given. `patience_s`: gives up after so long; 0: never. False: why not, one line; buffers are
     * not written any more. */
    bool (*exchange)(void *context, enum ah_channel channel, const struct ah_transfer *transfers, int count,
                     double patience_s, char why[AH_TRANSPORT_WHY]);
    /* Waits for nothing. False: exchange would be hopeless, for a rank has failed or is silent; why, one line. */
    bool (*look)(void *context, char why[AH_TRANSPORT_WHY]);
    /* The program is about to end, with this exit status. Not `together`: the other ranks are ended, too, and the call
     * may not return. */
    void (*end)(void *context, int status, bool together);
};

/* The one symbol. Null: no, and why. */
#define AH_TRANSPORT_SYMBOL "autohete_transport"
typedef const struct ah_transport *ah_transport_function(char why[AH_TRANSPORT_WHY]);

#endif
