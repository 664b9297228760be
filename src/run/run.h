/* Executes a plan on a device: places memory by the layout, binds each work item to addresses, drives the scheduler.
 * Decides nothing. Knows no files and no learning-rate schedules: those come in with each iteration.
 *
 * A run owns a thread, which drives scheduler and device while iterations are in flight. Its interface is a queue:
 * `begin` gives an iteration, `wait` its result, in order. Up to two iterations are in flight, so a caller that is busy
 * with something else for up to a step costs no lane its work. The calls of one run come from one thread at a time.
 * Nothing is allocated while iterations run. */
#ifndef AH_RUN_RUN_H
#define AH_RUN_RUN_H

#include "plan/layout.h"
#include "sched/drive.h"
#include "timeline/timeline.h"

struct ah_run;

/* How many iterations may be begun and not waited for. */
enum { AH_RUN_IN_FLIGHT = 2 };

/* Several ranks: what each may set when an iteration begins, and all see with its result. */
enum ah_run_flags { AH_RUN_STOP = 1, AH_RUN_SAVE = 2 };

/* What an iteration came to; with several ranks, of all of them. */
struct ah_run_result {
    int64_t iteration; /* 0-based since the run was made, evaluations not counted */
    double loss, grad_norm;
    double clip_factor; /* what the gradients were multiplied by; NaN: the norm was not finite, nothing was updated */
    int64_t now_ns;
    int64_t busy_ns[AH_LANE_COUNT]; /* how long each lane has worked since the run was made, by completed items */
    unsigned flags;                 /* several ranks: those that any of them set */
};

/* Takes the device region and host memory of the plan's layout; `clip` is the limit of the global gradient norm, 0:
 * none, and above 0 only with a partition whose step clips. The partition and the device must outlive the run.
 * AH_ESTALE: the plan was made for another device or number of ranks; AH_ENOMEM. */
int ah__run_new(struct ah_run **out, const struct ah_partition *partition, const struct ah_plan *plan,
                struct ah_dev *dev, double clip);
/* The same for inference in which attention keeps what it has seen: `partition` takes many tokens at once, `decoder`,
 * of the same model with struct ah_record_options.decodes, one. The plan's workspace is that of the neediest program of
 * both. */
int ah__run_new_decoding(struct ah_run **out, const struct ah_partition *partition, const struct ah_partition *decoder,
                         const struct ah_plan *plan, struct ah_dev *dev);
void ah__run_free(struct ah_run *run);

/* Begins an iteration; returns at once. The batch [ranks * micro-batches * batch, seq], with positions where the
 * partition is packed, is copied. Of several ranks each is given all of it and trains on its part, and all begin and
 * wait in the same order. `flags` are of enum ah_run_flags. AH_EINTERNAL when two are in flight; the run's failure. */
int ah__run_begin(struct ah_run *run, const struct ah_batch *batch, const struct ah_adam *adam, unsigned flags);
/* The oldest result that was not given yet: loss and norm are known, updates may still run. AH_EINTERNAL when none is
 * to come. After a failure, which is said once results that came before it are given, the run can only be freed. */
int ah__run_wait(struct ah_run *run, struct ah_run_result *result);
/* Waits until nothing is in flight; results stay for ah__run_wait. */
int ah__run_drain(struct ah_run *run);

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
/* The same in its own format, ah__kept_dtype of partition.h: a master in F32 whatever planes it lies in. */
int ah__run_load_raw(struct ah_run *run, int param, enum ah_run_state which, const void *bytes);
int ah__run_store_raw(struct ah_run *run, int param, enum ah_run_state which, void *bytes);
/* Gives rank 0 what it stores, until it calls ah__run_served with the status that this then returns. One rank alone: at
 * once. */
int ah__run_serve(struct ah_run *run);
int ah__run_served(struct ah_run *run, int status);
/* Fills all parameters by their init rules (counter-based: the same for every plan), moments with zero. */
int ah__run_init(struct ah_run *run, uint64_t seed);
/* The same of adapters alone. */
int ah__run_init_adapters(struct ah_run *run, uint64_t seed);

/* How long each lane has worked since the run was made. Only while drained. */
void ah__run_busy(int64_t busy_ns[AH_LANE_COUNT], const struct ah_run *run);

/* Host updates that ran before the norm was known and again after it. Only while drained. */
int64_t ah__run_updates_redone(const struct ah_run *run);

/* The first iterations of the last segment, which is what is trained between two drains; belongs to the run. Only while
 * drained. */
struct ah_timeline *ah__run_timeline(struct ah_run *run);
const struct ah_layout *ah__run_layout(const struct ah_run *run);

#endif
