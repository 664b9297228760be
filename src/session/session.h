/* The inside of a session, for the trainer: the interface of include/autohete/session.h, and the members that a run
 * needs. Takes options, makes model, graph, partition, device, profile and plan. Knows no data, no training steps. */
#ifndef AH_SESSION_SESSION_H
#define AH_SESSION_SESSION_H

#include "comm/comm.h"
#include "profile/profile.h"

struct ah_session {
    struct ah_session_options options;
    struct ah_session_info info;
    struct ah_comm *comm; /* the ranks that work together; with `hardware` only this process */
    enum ah_dtype dtype, master, moments;
    const struct ah_model *model;
    struct ah_model *own_model;   /* null: the caller gave the model */
    struct ah_hardware *hardware; /* null: a device is used */
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_dev *dev;
    struct ah_profile *profile;
    struct ah_plan plan; /* layers 0: not made yet */
};

/* Parses the words of options.master and .moments; null: the type stays as it is. compute is the dtype. AH_EINPUT names
 * the fault. */
int ah__states_parse(enum ah_dtype *master, enum ah_dtype *moments, enum ah_dtype compute, const char *master_word,
                     const char *moments_word);

/* Returns the step that the session's options describe (reach.c). */
struct ah_micro_batch_options ah__session_step(const struct ah_session *session);

#endif
