/* The training loop, a step at a time: segments of steps between the points where something is evaluated or saved.
 *
 * Takes a run after `start` steps, returns steps with their losses, writes metrics. Two steps are in flight while the
 * caller waits, and one, unless a segment ends, while the caller does something else. Knows neither how a checkpoint is
 * written (`save` does) nor plans and memory. Nothing is allocated while steps run. */
#ifndef AH_TRAIN_LOOP_H
#define AH_TRAIN_LOOP_H

#include "data/mixture.h"
#include "run/run.h"
#include "train/metrics.h"
#include "train/settings.h"

struct ah_loop {
    /* Set by the caller before ah__loop_init; all must outlive the loop. */
    const struct ah_settings *settings;
    const struct ah_train_options *options; /* on_note and the stop flag are used */
    const struct ah_mixture *data;          /* null: the caller brings batches */
    const struct ah_metrics *metrics;       /* null: no metrics are written */
    int64_t start;                          /* steps done before this loop */
    double loss;                            /* loss of step `start`; NaN: unknown */
    double uniform_loss;                    /* loss of a uniform guess: ln(vocabulary) */
    /* Called with the steps done and the last loss while the run is drained; `last`: no step follows. Null: nothing is
     * saved. */
    int (*save)(int64_t step, double loss, bool last, void *context);
    /* Returns true if save would return at once: a checkpoint due by time waits for that. */
    bool (*save_ready)(void *context);
    /* Called after each segment, with its number of steps, while the run is drained and all that was due is saved. */
    int (*segment)(int64_t steps, void *context);
    void *context;

    /* Results. */
    int64_t step;       /* steps done in all: their results have come */
    double val_loss;    /* NaN: never evaluated */
    int64_t val_step;   /* step after which it was evaluated */
    int64_t learned;    /* targets that counted, in all steps of this loop */
    bool stopped;       /* the stop flag was set, on any rank */
    int64_t saved_step; /* last step that was given to save; -1: none */
    bool saved_last;    /* it was saved as the last step, so it is on disk */
    int64_t clipped_steps, skipped_steps;

    /* Private. */
    struct ah_dev *dev;   /* the clock */
    struct ah_comm *comm; /* the ranks that train together */
    struct ah_run *run;
    int64_t begun;                          /* steps begun in all */
    int64_t targets[AH_RUN_IN_FLIGHT];      /* targets that count in each step in flight, at its number modulo
                                             * AH_RUN_IN_FLIGHT */
    int64_t segment_start;                  /* steps done before this segment */
    struct ah_step ready[AH_RUN_IN_FLIGHT]; /* results that the caller has not taken yet, a ring */
    int ready_first, ready_count;
    int status;         /* a failure to report after the results in `ready` */
    int data_status;    /* failure of the data: there is no next batch */
    char message[1024]; /* message of `status` or `data_status` */
    int64_t last_ns;    /* time of the previous result, or of the segment's start */
    int64_t steps_timed;
    double smooth_ns; /* smoothed time of a step */
    int64_t *step_ns; /* the latest times of steps, a ring */
    int64_t step_ns_capacity;
    int64_t losses_wanted, losses_seen; /* a tenth of this loop's steps; steps whose loss was finite */
    double first_sum;                   /* sum of the first losses_wanted losses */
    float *losses;                      /* the latest losses_wanted finite losses, a ring */
    int64_t above_uniform;              /* steps in a row with a loss far above that of a uniform guess; -1: the caller
                                         * was told */
    int64_t busy_ns[AH_LANE_COUNT];     /* busy time of each lane at the last result */
    double lane_busy[AH_LANE_COUNT];
    int64_t saved_ns;    /* time when the last checkpoint was begun */
    bool save_due;       /* a checkpoint is due by time */
    struct ah_batch one; /* buffer for a batch of the data */
};

/* Allocates the loop's buffers. AH_ENOMEM. */
int ah__loop_init(struct ah_loop *loop, struct ah_dev *dev);
void ah__loop_fini(struct ah_loop *loop);

/* Gives `run` to the loop. metrics, save and segment are set. */
void ah__loop_start(struct ah_loop *loop, struct ah_run *run);

/* Takes the next step, on the training's own data; at the end of a segment evaluates and saves what is due. AH_EEND:
 * all steps are done, or the loop was told to stop; the last checkpoint was given to save. AH_ENUMERIC: a loss or a
 * gradient norm is not finite; nothing is saved. Data that can no longer be read end the loop like a stop, but with
 * their failure. */
int ah__loop_step(struct ah_loop *loop, struct ah_step *step);
/* Begins a step on a batch of the caller's, if fewer than two are outstanding. AH_EEND as above. */
int ah__loop_begin(struct ah_loop *loop, const struct ah_batch *batch);
/* Waits for the oldest step that was begun and gives its result. At least one is outstanding. */
int ah__loop_wait(struct ah_loop *loop, struct ah_step *step);
/* Returns the number of steps begun whose results were not given yet. */
int64_t ah__loop_outstanding(const struct ah_loop *loop);

/* Waits for the steps in flight; their results can still be taken. */
int ah__loop_drain(struct ah_loop *loop);
/* Drains, and gives the steps done to `save` as if they were the last. */
int ah__loop_save(struct ah_loop *loop);

/* Returns the median time of a step, in ns, after the first two (of all if there are no more), once the loop has ended;
 * 0: no step was run. */
int64_t ah__loop_step_ns(struct ah_loop *loop);
/* Returns the mean loss of the first or the last tenth of this loop's steps whose loss was finite, at most 1024; NaN:
 * there are fewer than ten, or the two overlap. */
double ah__loop_mean_loss(const struct ah_loop *loop, bool last);
/* Returns the number of steps that ah__loop_step_ns is the median of. */
int64_t ah__loop_steps_timed(const struct ah_loop *loop);

#endif
