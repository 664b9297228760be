/* Collectives between the ranks of a training: operations of several devices on one buffer, and messages of their
 * programs between steps. Takes device or host memory of the same size on all ranks, gives it back gathered or summed.
 * Knows no plans and no lanes. A single rank is `self`; several are a group over a transport (transport.h).
 *
 * All ranks make the same calls in the same order. Calls of one group come from one thread at a time: a device's comm
 * lane while steps run, the program's own thread while nothing is in flight. Sums are taken in order of ranks, so that
 * all ranks have the same bits, whatever the timing. */
#ifndef AH_COMM_COMM_H
#define AH_COMM_COMM_H

#include "comm/transport.h"
#include "op/op.h"

/* A buffer that is gathered or reduced has `ranks` parts of part_count elements, in order of ranks. */
enum ah_collective {
    AH_ALL_GATHER, /* each rank gives its part, in place, and then has all parts */
    /* Each rank gives all parts and then has the sum of its own part, in place, added in fp32 in order of ranks; the
     * other parts are unchanged. */
    AH_REDUCE_SCATTER,
    AH_SUM_FLOATS, /* part_count floats of each rank become their sum, element by element; dtype AH_F32 */
    AH_SUM_DOUBLES /* the same for doubles; dtype is ignored */
};

struct ah_comm;
struct ah_comm_ops {
    /* Returns when this rank's buffer has the result. Allocates nothing. AH_EDEVICE. */
    int (*collective)(struct ah_comm *comm, enum ah_collective kind, void *buffer, int64_t part_count,
                      enum ah_dtype dtype);
    /* Copies `bytes` of rank `from` to rank `to`, or to all others for AH_ALL_RANKS; ranks that take no part return at
     * once. AH_EDEVICE. */
    int (*move)(struct ah_comm *comm, void *buffer, int64_t bytes, int from, int to);
    /* Checks without waiting that the other ranks are alive, for callers that wait for them elsewhere. AH_EDEVICE:
     * another rank has failed or is silent; this rank cannot go on, but is not the cause. */
    int (*look)(struct ah_comm *comm);
    /* Tells the others that this rank is done or has failed, and waits until they have done so, too, after a failure
     * for at most a few seconds. Returns the status of all: this rank's failure, or another rank's with its message if
     * that came first. *together: all ranks have answered. Only close may follow. */
    int (*end)(struct ah_comm *comm, int status, bool *together);
    void (*close)(struct ah_comm *comm);
};
enum { AH_ALL_RANKS = -1 };

/* The first member of every kind of communicator. */
struct ah_comm {
    const struct ah_comm_ops *ops;
    int rank, world_size;
    int neighbours;    /* ranks on this machine, among which its memory is divided */
    int local;         /* this rank's number among them; each has an accelerator of its own */
    int share, shares; /* this rank's number among the `shares` ranks that divide the same cores */
};

/* Returns the communicator of one rank alone, whose collectives have nothing to do. Not to be closed. */
struct ah_comm *ah__comm_self(void);

/* Makes a group of the ranks that a transport joins; the transport must outlive it and stays the caller's. Allocates
 * scratch for sums: AH_ENOMEM. Closed by its ops. */
int ah__comm_group(struct ah_comm **out, const struct ah_transport *transport);

/* Returns the communicator set for the calling thread, else the program's, else ah__comm_self(). */
struct ah_comm *ah__comm(void);
/* Set the communicator of the calling thread, for tests with ranks as threads, or of the whole program. Null: none. */
void ah__comm_of_thread(struct ah_comm *comm);
void ah__comm_of_program(struct ah_comm *comm);

/* ---- messages between programs ----------------------------------------------------------------------------------- */

/* Returns AH_OK if all ranks call it with AH_OK. Else every rank gets the status and the message of the lowest rank
 * that failed. Collective. */
int ah__comm_agree(struct ah_comm *comm, int status);
/* Sends the text of rank 0 to all ranks. Rank 0's stays the caller's and may be null: all then have null; the others
 * free theirs with ah__free. Collective. AH_ENOMEM on every rank if one is out of memory. */
int ah__comm_text(char **text, struct ah_comm *comm);
/* Sums the values element by element, in order of ranks. Collective. */
int ah__comm_sum(struct ah_comm *comm, double *values, int count);

#endif
