/* Collectives between the ranks of a training: what several devices do with one buffer, and what their programs tell
 * each other between steps. Takes device or host memory that all ranks have alike, gives it back gathered or summed.
 * Knows no plans and no lanes. One rank is `self`; several are a group over a transport (transport.h).
 *
 * All ranks make the same calls in the same order. Calls of one group come from one thread at a time: a device's comm
 * lane while steps run, the program's own thread while nothing is in flight. Sums are taken in order of ranks, so that
 * all ranks have the same bits, whatever the timing. */
#ifndef AH_COMM_COMM_H
#define AH_COMM_COMM_H

#include "comm/transport.h"
#include "op/op.h"

/* A buffer that is gathered or reduced is `ranks` parts of part_count elements, in order of ranks. */
enum ah_collective {
    AH_ALL_GATHER, /* each rank brings its part, in place, and has all parts afterwards */
    /* Each rank brings all parts and has the sum of its own, in place, in fp32 in order of ranks; the others stay. */
    AH_REDUCE_SCATTER,
    AH_SUM_FLOATS, /* part_count floats of each rank become their sum, element by element; dtype AH_F32 */
    AH_SUM_DOUBLES /* the same of doubles, whatever dtype says */
};

struct ah_comm;
struct ah_comm_ops {
    /* Returns when this rank's buffer is as promised. Allocates nothing. AH_EDEVICE. */
    int (*collective)(struct ah_comm *comm, enum ah_collective kind, void *buffer, int64_t part_count,
                      enum ah_dtype dtype);
    /* `bytes` of rank `from` to rank `to`, or to all others for AH_ALL_RANKS; at once for ranks that have no part in
     * it. AH_EDEVICE. */
    int (*move)(struct ah_comm *comm, void *buffer, int64_t bytes, int from, int to);
    /* Whether the other ranks are still there, for those that wait for them elsewhere; waits for nothing. AH_EDEVICE:
     * one has failed or is silent, and this rank, which goes no further, has only lost it. */
    int (*look)(struct ah_comm *comm);
    /* This rank is done, or has failed: waits for the others to say so, too, after a failure for a few seconds at most.
     * Gives the status of all: its own failure, or another rank's with its message, where that came first. *together:
     * all have said it. Nothing follows but close. */
    int (*end)(struct ah_comm *comm, int status, bool *together);
    void (*close)(struct ah_comm *comm);
};
enum { AH_ALL_RANKS = -1 };

/* Every kind begins with this. */
struct ah_comm {
    const struct ah_comm_ops *ops;
    int rank, world_size;
    int neighbours;    /* this machine's memory is divided among so many ranks */
    int local;         /* which of these this one is: each has an accelerator of its own */
    int share, shares; /* and these cores among so many; which of them this one is */
};

/* One rank alone: every collective is done before it begins. Not to be closed. */
struct ah_comm *ah__comm_self(void);

/* A group of the ranks that a transport joins; the transport must outlive it and is the caller's. Scratch for sums is
 * allocated here: AH_ENOMEM. Closed by its ops. */
int ah__comm_group(struct ah_comm **out, const struct ah_transport *transport);

/* The ranks that the calling thread works for: those it was told of, else the program's, else itself alone. */
struct ah_comm *ah__comm(void);
/* Null: none. Of the calling thread alone, for tests that have ranks as threads; and of the whole program. */
void ah__comm_of_thread(struct ah_comm *comm);
void ah__comm_of_program(struct ah_comm *comm);

/* ---- what programs tell each other ------------------------------------------------------------------------------- */

/* Whether all ranks came so far with AH_OK. One rank's failure becomes everybody's: the status and the message of the
 * lowest rank that failed. Collective. */
int ah__comm_agree(struct ah_comm *comm, int status);
/* The text of rank 0 to all, which free theirs with ah__free; rank 0's stays the caller's and may be null: then all
 * have null. Collective. AH_ENOMEM on every rank where one has none. */
int ah__comm_text(char **text, struct ah_comm *comm);
/* Sums in order of ranks. Collective. */
int ah__comm_sum(struct ah_comm *comm, double *values, int count);

#endif
