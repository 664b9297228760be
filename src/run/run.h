/* Executes a plan on a device: places memory by the layout, binds each work item to addresses, drives the scheduler.
 * Decides nothing. Knows no files and no learning-rate schedules: their values come with each iteration.
 *
 * A run owns a thread, which drives scheduler and device while iterations are in flight. Its interface is a queue:
 * `begin` gives an iteration, `wait` its result, in order. Up to two iterations are in flight, so a caller that is busy
 * with something else for up to a step costs no lane its work. The calls of one run come from one thread at a time.
 * Nothing is allocated while iterations run. */
#ifndef AH_RUN_RUN_H
#define AH_RUN_RUN_H

#include "layout/layout.h"
#include "sched/drive.h"
#include "timeline/timeline.h"

struct ah_run;

/* The number of iterations that may be begun and not yet waited for. */
enum { AH_RUN_IN_FLIGHT = 2 };

/* Flags that each of several ranks may set when an iteration begins, and all ranks see with its result. */
enum ah_run_flags { AH_RUN_STOP = 1, AH_RUN_SAVE = 2 };

/* The result of an iteration; with several ranks, of all ranks together. */
struct ah_run_result {
    int64_t iteration; /* 0-based since the run was made, evaluations not counted */
    double loss, grad_norm;
    double clip_factor; /* factor of the gradients; NaN: the norm was not finite, nothing was updated */
    int64_t now_ns;
    int64_t busy_ns[AH_LANE_COUNT]; /* time that each lane has worked since the run was made, by completed items */
    unsigned flags;                 /* several ranks: flags that any rank set */
};

/* Makes a run. Allocates the device region and host memory of the plan's layout. `clip` is the limit of the global
 * gradient norm; 0: no limit. It is above 0 if, and only if, the partition's step clips. The partition and the device
 * must outlive the run. AH_ESTALE: the plan was made for another device or number of ranks; AH_ENOMEM. */
int ah__run_new(struct ah_run **out, const struct ah_partition *partition, const struct ah_plan *plan,
                struct ah_dev *dev, double clip);
/* Makes a run for inference with cached keys and values: `partition` takes many tokens at once; `decoder`, of the same
 * model with struct ah_record_options.decodes, one. The plan's workspace is the largest that a program of either
 * needs. */
int ah__run_new_decoding(struct ah_run **out, const struct ah_partition *partition, const struct ah_partition *decoder,
                         const struct ah_plan *plan, struct ah_dev *dev);
void ah__run_free(struct ah_run *run);

/* Begins an iteration; returns at once. The batch [ranks * micro-batches * batch, seq], with positions if the partition
 * is packed, is copied. With several ranks each gets the whole batch and trains on its part, and all begin and wait in
 * the same order. `flags` are of enum ah_run_flags. AH_EINTERNAL if two are in flight; the run's failure. */
int ah__run_begin(struct ah_run *run, const struct ah_batch *batch, const struct ah_adam *adam, unsigned flags);
/* Returns the oldest result not yet returned: loss and norm are known, updates may still run. AH_EINTERNAL if no result
 * is to come. A failure is returned after the results that came before it; then the run can only be freed. */
int ah__run_wait(struct ah_run *run, struct ah_run_result *result);
/* Waits until nothing is in flight; results stay for ah__run_wait. */
int ah__run_drain(struct ah_run *run);

/* Computes the mean loss of one batch of a step's size (of all ranks), forward only; parameters stay as they are. Only
 * while drained. */
int ah__run_eval(struct ah_run *run, const struct ah_batch *batch, double *loss);
/* Makes the logits of ids [batch, seq] by the head's inference program. Needs a partition with room for logits (struct
 * ah_step_options) and a plan whose staging holds vocab floats (any that keeps the embedding on the device). Only while
 * drained. */
int ah__run_infer(struct ah_run *run, const int32_t *ids);
/* For a run with a decoder, of batch 1. ah__run_prefill computes and caches keys and values of positions 0 .. seq-1 of
 * these ids. ah__run_decode computes the logits of a token at a position behind cached ones, and caches its keys and
 * values too. Only while drained. */
int ah__run_prefill(struct ah_run *run, const int32_t *ids);
int ah__run_decode(struct ah_run *run, int32_t id, int32_t position);
/* Copies the logits of one row (0 .. batch*seq-1) of the last ah__run_infer, or row 0 of the last ah__run_decode: vocab
 * floats. */
int ah__run_logits(struct ah_run *run, int64_t row, float *logits);

enum ah_run_state { AH_RUN_PARAM, AH_RUN_MOMENT1, AH_RUN_MOMENT2, AH_RUN_STATES };
/* Copies a whole parameter's fp32 state in or out, wherever it is stored. Only while drained. `values`: as many floats
 * as the parameter has elements. With several ranks, each loads its part of the values. Rank 0 stores, and gets all
 * parts, while the others are in ah__run_serve. */
int ah__run_load(struct ah_run *run, int param, enum ah_run_state which, const float *values);
int ah__run_store(struct ah_run *run, int param, enum ah_run_state which, float *values);
/* Does the same in the state's own format, ah__kept_dtype of partition.h: a master in F32 even if it is stored in two
 * planes. */
int ah__run_load_raw(struct ah_run *run, int param, enum ah_run_state which, const void *bytes);
int ah__run_store_raw(struct ah_run *run, int param, enum ah_run_state which, void *bytes);
/* ah__run_serve gives rank 0 the parts that it stores, until rank 0 calls ah__run_served; it returns the status given
 * there. With one rank it returns at once. */
int ah__run_serve(struct ah_run *run);
int ah__run_served(struct ah_run *run, int status);
/* Fills all parameters by their init rules (counter-based: the same for every plan), moments with zero. */
int ah__run_init(struct ah_run *run, uint64_t seed);
/* Does the same for adapters only. */
int ah__run_init_adapters(struct ah_run *run, uint64_t seed);

/* Returns the time that each lane has worked since the run was made. Only while drained. */
void ah__run_busy(int64_t busy_ns[AH_LANE_COUNT], const struct ah_run *run);

/* Returns the number of host updates that ran before the norm was known and again after it. Only while drained. */
int64_t ah__run_updates_redone(const struct ah_run *run);

/* Returns the first iterations of the last segment, the iterations between two drains; belongs to the run. Only while
 * drained. */
struct ah_timeline *ah__run_timeline(struct ah_run *run);
const struct ah_layout *ah__run_layout(const struct ah_run *run);

#endif
