/* The training loop, a step at a time: segments of steps between the points where something is evaluated or saved.
 *
 * Takes a run that stands at `start` steps, gives steps and losses, writes metrics. Two steps are in flight while it
 * waits, and one, unless a segment ends, while the caller does something else. Does not know how a checkpoint is
 * written (that is the session's `save`), nor plans and memory. Nothing is allocated while steps run. */
#ifndef AH_TRAIN_LOOP_H
#define AH_TRAIN_LOOP_H

#include "data/mixture.h"
#include "run/run.h"
#include "train/metrics.h"
#include "train/settings.h"

struct ah_loop {
    /* The caller's, before ah__loop_init; all must outlive the loop. */
    const struct ah_settings *settings;
    const struct ah_train_options *options; /* its note and its stop flag */
    const struct ah_mixture *data;          /* null: batches are the caller's */
    const struct ah_metrics *metrics;       /* null: none are written */
    int64_t start;                          /* steps done before this loop */
    double loss;                            /* of step `start`; NaN: none */
    double uniform_loss;                    /* of a uniform guess: ln(vocabulary) */
    /* Called with the steps done and the last loss while the run is drained; `last`: nothing follows. Null: nothing is
     * saved. */
    int (*save)(int64_t step, double loss, bool last, void *context);
    /* Whether save would return at once: one that is due by time waits for that. */
    bool (*save_ready)(void *context);
    /* Called after each segment, what was due saved, with the steps it had, while the run is drained. */
    int (*segment)(int64_t steps, void *context);
    void *context;

    /* What came of it. */
    int64_t step;       /* steps done in all: whose results have come */
    double val_loss;    /* NaN: never evaluated */
    int64_t val_step;   /* that it was evaluated behind */
    int64_t learned;    /* targets that counted, in all steps of this loop */
    bool stopped;       /* by the stop flag, with several ranks of any of them */
    int64_t saved_step; /* the last that was given to save; -1: none */
    bool saved_last;    /* as the last, so it is on disk */
    int64_t clipped_steps, skipped_steps;

    /* Private. */
    struct ah_dev *dev;   /* the clock */
    struct ah_comm *comm; /* the ranks that train together */
    struct ah_run *run;
    int64_t begun;                          /* steps begun in all */
    int64_t targets[AH_RUN_IN_FLIGHT];      /* that count, of the steps in flight, by their numbers */
    int64_t segment_start;                  /* steps done before this segment */
    struct ah_step ready[AH_RUN_IN_FLIGHT]; /* results that came and were not given yet, a ring */
    int ready_first, ready_count;
    int status;         /* a failure behind what is ready */
    int data_status;    /* why there is no next batch */
    char message[1024]; /* of either */
    int64_t last_ns;    /* when the previous result, or the segment, came */
    int64_t steps_timed;
    double smooth_ns; /* smoothed time of a step */
    int64_t *step_ns; /* the latest times of steps, a ring */
    int64_t step_ns_capacity;
    int64_t losses_wanted, losses_seen; /* a tenth of this loop's steps; steps whose loss was finite */
    double first_sum;                   /* of the first losses_wanted losses */
    float *losses;                      /* the latest losses_wanted of them, a ring */
    int64_t above_uniform;              /* steps in a row with a loss far above a guess's; -1: that has been said */
    int64_t busy_ns[AH_LANE_COUNT];     /* of each lane, at the last result */
    double lane_busy[AH_LANE_COUNT];
    int64_t saved_ns;    /* when the last checkpoint was due */
    bool save_due;       /* by time */
    struct ah_batch one; /* a batch that is read */
};

/* Allocates what the loop needs. AH_ENOMEM. */
int ah__loop_init(struct ah_loop *loop, struct ah_dev *dev);
void ah__loop_fini(struct ah_loop *loop);

/* From here on `run` is the loop's to use. metrics, save and segment are set. */
void ah__loop_start(struct ah_loop *loop, struct ah_run *run);

/* One step further, with the training's own data; at the end of a segment it evaluates and saves what is due. AH_EEND:
 * all steps are done, or it was told to stop; the last checkpoint was given to save. AH_ENUMERIC where a loss or a
 * gradient norm is not finite; then nothing is saved. Data that cannot be read any more end it like a stop, but with
 * their failure. */
int ah__loop_step(struct ah_loop *loop, struct ah_step *step);
/* Begins a step on a batch of the caller's; fewer than two are outstanding. AH_EEND as above. */
int ah__loop_begin(struct ah_loop *loop, const struct ah_batch *batch);
/* The oldest step that was begun and not given yet: one is outstanding. */
int ah__loop_wait(struct ah_loop *loop, struct ah_step *step);
/* Steps begun and not given yet. */
int64_t ah__loop_outstanding(const struct ah_loop *loop);

/* Ends what is in flight; its steps stay to be given. */
int ah__loop_drain(struct ah_loop *loop);
/* The same, and gives the steps done to `save`, as if they were the last. */
int ah__loop_save(struct ah_loop *loop);

/* Once the loop has ended: median time of a step after the first two (of all when there are no more); 0: none was
 * run. */
int64_t ah__loop_step_ns(struct ah_loop *loop);
/* Mean loss of the first or the last tenth of the steps of this loop whose loss was finite, at most 1024; NaN where
 * there are fewer than ten, or the two overlap. */
double ah__loop_mean_loss(const struct ah_loop *loop, bool last);
/* Over how many steps. */
int64_t ah__loop_steps_timed(const struct ah_loop *loop);

#endif
