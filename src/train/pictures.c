#include "train/pictures.h"

#include "base/file.h"
#include "base/format.h"
#include "report/curve.h"

/* steps of a segment that contains two iterations in steady state; bytes of a caption */
enum { SEGMENT_ENOUGH = 4, CAPTION_SIZE = 200 };

/* Writes the caption: "gpt2, 12 blocks, 10.8 M parameters, batch 8 x 256 in fp32, on cpu: ..., 2 threads, link 2.0
 * GB/s" */
static void caption_make(char text[CAPTION_SIZE], const struct ah_training *training)
{
    struct ah_dev_info info;
    const struct ah_settings *settings = &training->settings;
    char link[32] = "", micro[48] = "", params[32], types[AH_PARTITION_TYPES_SIZE];
    training->session->dev->ops->info(training->session->dev, &info);
    if (info.link_bytes_per_s)
        ah__snprintf(link, sizeof link, ", link %.3g GB/s", (double)info.link_bytes_per_s * 1e-9);
    if (settings->micro_batch != settings->batch)
        ah__snprintf(micro, sizeof micro, " by %lld", (long long)settings->micro_batch);
    ah__snprintf(text, CAPTION_SIZE, "%s, %d blocks, %s parameters; batch %lld%s x %lld tokens, %s; %s%s%s, %d %s%s",
                 ah_model_get(training->model)->name, training->session->partition->layers,
                 ah_count_format(params, sizeof params, ah__partition_params(training->session->partition)),
                 (long long)settings->batch, micro, (long long)settings->seq,
                 ah__partition_types(types, training->session->partition), info.name, info.model[0] ? ": " : "",
                 info.model, info.threads,
                 info.device_bytes   ? "multiprocessors"
                 : info.threads == 1 ? "thread"
                                     : "threads",
                 link);
}

/* Writes one file of the folder and frees `text`. */
static int file_write(const struct ah_training *training, const char *name, struct ah_buf *text)
{
    char *path;
    int status = text->status;
    if (status == AH_OK)
        status = ah__sprintf(&path, "%s/%s", training->out.dir, name);
    if (status == AH_OK) {
        status = ah__file_own(path);
        if (status == AH_OK)
            status = ah__file_write(path, text->text, text->length);
        ah__free(path);
    }
    ah__buf_free(text);
    return status;
}

static int timelines_save(const struct ah_training *training)
{
    char *json = NULL, *svg = NULL;
    int status = ah__sprintf(&json, "%s/timeline.json", training->out.dir);
    if (status == AH_OK)
        status = ah__sprintf(&svg, "%s/timeline.svg", training->out.dir);
    if (status == AH_OK)
        status = ah__file_own(json);
    if (status == AH_OK)
        status = ah__file_own(svg);
    if (status == AH_OK)
        status = ah__timeline_save_both(training->predicted, training->measured, json);
    if (status == AH_OK)
        status = ah_timeline_save_svg(training->predicted, training->measured,
                                      training->session->info.budget.device_bytes, svg);
    ah__free(json);
    ah__free(svg);
    return status;
}

static int loss_save(const struct ah_training *training)
{
    struct ah_curves curves;
    struct ah_buf buf = {0};
    char caption[CAPTION_SIZE];
    caption_make(caption, training);
    int status = ah__curves_load(&curves, training->out.dir);
    if (status == AH_OK) {
        ah__curves_loss(&buf, &curves, caption, ah_model_get(training->model)->vocab_size);
        status = file_write(training, "loss.svg", &buf);
    }
    ah__curves_fini(&curves);
    return status;
}

static void tell(const struct ah_training *training, const char *what, int status)
{
    if (status != AH_OK)
        ah__training_fault(training, "%s not saved: %s", what, ah_error());
}

static int keep(struct ah_training *training)
{
    struct ah_timeline *copy;
    char caption[CAPTION_SIZE];
    AH_TRY(ah__timeline_copy(&copy, ah__run_timeline(training->run)));
    ah_timeline_free(training->measured);
    training->measured = copy;
    caption_make(caption, training);
    ah__timeline_caption(training->predicted, caption);
    ah__timeline_caption(training->measured, caption);
    training->predicted->device_budget_bytes = training->measured->device_budget_bytes =
        training->session->info.budget.device_bytes;
    return timelines_save(training);
}

void ah__pictures_segment(struct ah_training *training, int64_t steps)
{
    if (!training->out.dir || steps <= training->longest_segment || training->longest_segment >= SEGMENT_ENOUGH)
        return;
    training->longest_segment = steps;
    tell(training, "the timeline is", keep(training));
}

void ah__pictures_end(struct ah_training *training)
{
    if (!training->out.dir || ah__loop_steps_timed(&training->loop) == 0)
        return;
    if (training->measured) {
        training->measured->step_ns = ah__loop_step_ns(&training->loop);
        training->measured->steps = ah__loop_steps_timed(&training->loop);
        tell(training, "the timeline is", timelines_save(training));
    }
    tell(training, "the picture of the loss is", loss_save(training));
}
