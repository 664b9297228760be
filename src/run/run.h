/* Executes a plan on a device: places memory by the layout, binds each work item to addresses, drives the scheduler.
 * Decides nothing. Knows no files and no learning-rate schedules: those come in through hooks. */
#ifndef AH_RUN_RUN_H
#define AH_RUN_RUN_H

#include "plan/layout.h"
#include "sched/drive.h"
#include "timeline/timeline.h"

struct ah_run;

/* Several ranks: what each may tell the others along with a batch, and all hear with its result. */
enum ah_run_word { AH_RUN_STOP, AH_RUN_SAVE, AH_RUN_WORDS };

/* What an iteration came to; with several ranks, of all of them. */
struct ah_run_result {
    int64_t iteration;
    double loss, grad_norm;
    double clip_factor; /* what the gradients were multiplied by; NaN: the norm was not finite, nothing was updated */
    int64_t now_ns;
    bool words[AH_RUN_WORDS]; /* several ranks: which any of them said when the iteration began */
};

struct ah_run_hooks {
    /* Fills the arrays [ranks * micro-batches * batch, seq] of an iteration (0-based since ah__run_new), positions
     * where the partition is packed; called in order, once each. Of several ranks each is given all of it and trains on
     * its part. */
    int (*batch)(const struct ah_batch *to, int64_t iteration, void *context);
    /* The Adam constants of an iteration; called any number of times. */
    void (*adam)(struct ah_adam *out, int64_t iteration, void *context);
    /* Several ranks: whether this one says a word along with the iteration that begins. Null: never. */
    bool (*says)(enum ah_run_word word, void *context);
    double clip; /* limit of the global gradient norm; 0: none. Only with a partition whose step clips */
    /* An iteration's loss and global gradient norm are known (its updates may still run); in order. Nonzero: begin no
     * further iteration and return from ah__run_steps once drained, with AH_OK. With several ranks all must answer
     * alike, and a few more iterations begin: as many on all of them. */
    int (*result)(const struct ah_run_result *result, void *context);
    void *context;
};

/* Allocates the device region and host memory (nothing later does). With several ranks (ah__comm()) every call below
 * that trains, evaluates or stores is made by all of them. All arguments but hooks must outlive the run.
 * Parameters are zero until loaded. AH_EBUDGET cannot happen here: the plan was checked. */
int ah__run_new(struct ah_run **out, const struct ah_partition *partition, const struct ah_plan *plan,
                struct ah_dev *dev, const struct ah_run_hooks *hooks);
/* The same for inference in which attention keeps what it has seen: `partition` takes many tokens at once, `decoder`,
 * of the same model with struct ah_record_options.decodes, one. The plan's workspace is that of the neediest program of
 * both. */
int ah__run_new_decoding(struct ah_run **out, const struct ah_partition *partition, const struct ah_partition *decoder,
                         const struct ah_plan *plan, struct ah_dev *dev);
void ah__run_free(struct ah_run *run);

/* Trains `count` iterations (fewer when a hook stops it) and drains. *done: iterations completed by this call. */
int ah__run_steps(struct ah_run *run, int64_t count, int64_t *done);
/* Mean loss of one batch of a step's size (of all ranks), forward only; parameters untouched. Only while drained. */
int ah__run_eval(struct ah_run *run, const struct ah_batch *batch, double *loss);
/* Makes the logits of ids [batch, seq] by the head's inference program. Needs a partition with room for logits (struct
 * ah_step_options) and a plan whose staging holds vocab floats (any that keeps the embedding on the device). Only while
 * drained. */
int ah__run_infer(struct ah_run *run, const int32_t *ids);
/* A run with a decoder, of batch 1: keeps keys and values of positions 0 .. seq-1, of these ids; then the logits of a
 * token at a position behind others that were kept, which is kept too. Only while drained. */
int ah__run_prefill(struct ah_run *run, const int32_t *ids);
int ah__run_decode(struct ah_run *run, int32_t id, int32_t position);
/* Those of one row (0 .. batch*seq-1), vocab floats, of the last ah__run_infer; row 0 of the last ah__run_decode. */
int ah__run_logits(struct ah_run *run, int64_t row, float *logits);

enum ah_run_state { AH_RUN_PARAM, AH_RUN_MOMENT1, AH_RUN_MOMENT2, AH_RUN_STATES };
/* Copies a whole parameter's fp32 state in or out, wherever it lives. Only while drained. `values`: shape count floats.
 * Several ranks: each loads its part of what it is given. Rank 0 stores, and has all of it, while the others are in
 * ah__run_serve. */
int ah__run_load(struct ah_run *run, int param, enum ah_run_state which, const float *values);
int ah__run_store(struct ah_run *run, int param, enum ah_run_state which, float *values);
/* Gives rank 0 what it stores, until it calls ah__run_served with the status that this then returns. One rank alone: at
 * once. */
int ah__run_serve(struct ah_run *run);
int ah__run_served(struct ah_run *run, int status);
/* Fills all parameters by their init rules (counter-based: the same for every plan), moments with zero. */
int ah__run_init(struct ah_run *run, uint64_t seed);

/* For the batch hook: the iteration it gives is the last to begin, as if its result were nonzero. */
void ah__run_stop(struct ah_run *run);

/* How long each lane has worked since the run began, by completed items. May be called from hooks. */
void ah__run_busy(int64_t busy_ns[AH_LANE_COUNT], const struct ah_run *run);

/* Host updates that ran before the norm was known and again after it, since the run began. */
int64_t ah__run_updates_redone(const struct ah_run *run);

/* The first iterations of every ah__run_steps are recorded; belongs to the run. */
struct ah_timeline *ah__run_timeline(struct ah_run *run);
const struct ah_layout *ah__run_layout(const struct ah_run *run);

#endif
