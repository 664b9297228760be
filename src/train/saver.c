#include "train/saver.h"

#include "base/alloc.h"

/* Returns true if a checkpoint has this state of the parameter. */
static bool is_saved(const struct ah_saver *saver, int which, int param)
{
    const struct ah_param *p = &saver->partition->params[param];
    return !p->frozen || (which == AH_RUN_PARAM && !saver->state.settings.tuning.lora_rank);
}

/* Returns the bytes of a parameter's state in a copy, rounded up so that the next state is aligned for floats; 0: no
 * checkpoint has the state. */
static int64_t copied_bytes(const struct ah_saver *saver, int which, int param)
{
    const int64_t align = 8;
    int64_t count = ah__shape_count(&saver->partition->params[param].shape);
    int64_t bytes = ah__state_bytes(ah__kept_dtype(saver->partition, param, which), count);
    return is_saved(saver, which, param) ? (bytes + align - 1) / align * align : 0;
}

static int64_t *offset_at(const struct ah_saver *saver, int which, int param)
{
    return &saver->offsets[which * saver->partition->param_count + param];
}

int ah__saver_init(struct ah_saver *saver)
{
    int count = saver->partition->param_count;
    AH_TRY(ah__new(&saver->buffer, 2 * (size_t)ah__partition_largest(saver->partition), sizeof *saver->buffer));
    AH_TRY(ah__new(&saver->offsets, AH_RUN_STATES * (size_t)count, sizeof *saver->offsets));
    for (int which = 0; which < AH_RUN_STATES; which++)
        for (int p = 0; p < count; p++) {
            *offset_at(saver, which, p) = saver->bytes;
            saver->bytes += copied_bytes(saver, which, p);
        }
    return AH_OK;
}

void ah__saver_fini(struct ah_saver *saver)
{
    ah__job_wait(&saver->writing);
    ah__pages_free(&saver->copy);
    ah__free(saver->buffer);
    ah__free(saver->offsets);
    ah__free(saver->state.data_path);
    ah__free(saver->state.base);
    ah__free(saver->state.base_name);
    ah__free(saver->state.left);
    ah__mixture_marks_free(saver->state.sources, saver->state.source_count);
    *saver = (struct ah_saver){0};
}

static int64_t copy_bytes(const struct ah_saver *saver)
{
    return saver->bytes;
}

bool ah__saver_busy(struct ah_saver *saver)
{
    return ah__job_running(&saver->writing);
}

int ah__saver_wait(struct ah_saver *saver)
{
    int status = ah__job_wait(&saver->writing);
    ah__pages_free(&saver->copy); /* other programs can use the memory until the next checkpoint */
    return status;
}

/* ---- a copy ------------------------------------------------------------------------------------------------------ */

static char *place_of(const struct ah_saver *saver, int param, enum ah_run_state which)
{
    return saver->copy.base + *offset_at(saver, (int)which, param);
}

static int copy_get(const void **state, int param, enum ah_run_state which, void *buffer, void *context)
{
    (void)buffer;
    *state = place_of(context, param, which);
    return AH_OK;
}

static int copy_take(struct ah_saver *saver, struct ah_run *run)
{
    for (int which = 0; which < AH_RUN_STATES; which++)
        for (int p = 0; p < saver->partition->param_count; p++)
            if (is_saved(saver, which, p))
                AH_TRY(
                    ah__run_store_raw(run, p, (enum ah_run_state)which, place_of(saver, p, (enum ah_run_state)which)));
    return AH_OK;
}

/* Allocates a copy. False: there is not enough memory. */
static bool copy_new(struct ah_saver *saver)
{
    int64_t bytes = copy_bytes(saver);
    return bytes <= saver->copy_most_bytes && bytes <= ah__pages_available() / 2 &&
           ah__pages_new(&saver->copy, bytes, "checkpoint") == AH_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int write_states(struct ah_saver *saver, const struct ah_states *states)
{
    return ah__checkpoint_save(saver->dir, &saver->state, saver->model, saver->partition, states, saver->buffer);
}

static int write_copy(void *context)
{
    struct ah_states states = {copy_get, context};
    return write_states(context, &states);
}

static int write_run(struct ah_saver *saver, struct ah_run *run)
{
    struct ah_states states = ah__run_states_of(run);
    return write_states(saver, &states);
}

int ah__saver_save(struct ah_saver *saver, int64_t step, double loss, struct ah_run *run, bool wait)
{
    saver->state.step = step;
    saver->state.loss = loss;
    if (wait || !copy_new(saver))
        return write_run(saver, run);
    int status = copy_take(saver, run);
    if (status == AH_OK && ah__job_start(&saver->writing, write_copy, saver))
        return AH_OK;
    ah__pages_free(&saver->copy);
    return status == AH_OK ? write_run(saver, run) : status;
}
