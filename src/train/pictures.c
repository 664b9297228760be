#include "train/pictures.h"

#include "base/file.h"
#include "base/format.h"
#include "report/curve.h"

/* Enough for two iterations in full swing. */
enum { SEGMENT_ENOUGH = 4, CAPTION_SIZE = 200 };

/* "gpt2, 12 blocks, 10.8 M parameters, batch 8 x 256 in fp32, on cpu: ..., 2 threads, link 2.0 GB/s" */
static void caption_make(char text[CAPTION_SIZE], const struct ah_session *session)
{
    struct ah_dev_info info;
    const struct ah_settings *settings = &session->settings;
    char link[32] = "", micro[48] = "", params[32];
    session->dev->ops->info(session->dev, &info);
    if (info.link_bytes_per_s)
        ah__snprintf(link, sizeof link, ", link %.3g GB/s", (double)info.link_bytes_per_s * 1e-9);
    if (settings->micro_batch != settings->batch)
        ah__snprintf(micro, sizeof micro, " by %lld", (long long)settings->micro_batch);
    ah__snprintf(text, CAPTION_SIZE, "%s, %d blocks, %s parameters; batch %lld%s x %lld tokens, %s; %s%s%s, %d %s%s",
                 ah_model_get(session->model)->name, session->partition->layers,
                 ah_count_format(params, sizeof params, ah__partition_params(session->partition)),
                 (long long)settings->batch, micro, (long long)settings->seq, ah__dtype_word(settings->dtype),
                 info.name, info.model[0] ? ": " : "", info.model, info.threads,
                 info.device_bytes   ? "multiprocessors"
                 : info.threads == 1 ? "thread"
                                     : "threads",
                 link);
}

/* Writes one file of the folder; `text` is given up. */
static int file_write(const struct ah_session *session, const char *name, struct ah_buf *text)
{
    char *path;
    int status = text->status;
    if (status == AH_OK)
        status = ah__sprintf(&path, "%s/%s", session->out.dir, name);
    if (status == AH_OK) {
        status = ah__file_own(path);
        if (status == AH_OK)
            status = ah__file_write(path, text->text, text->length);
        ah__free(path);
    }
    ah__buf_free(text);
    return status;
}

static int timelines_save(const struct ah_session *session)
{
    char *json = NULL, *svg = NULL;
    int status = ah__sprintf(&json, "%s/timeline.json", session->out.dir);
    if (status == AH_OK)
        status = ah__sprintf(&svg, "%s/timeline.svg", session->out.dir);
    if (status == AH_OK)
        status = ah__file_own(json);
    if (status == AH_OK)
        status = ah__file_own(svg);
    if (status == AH_OK)
        status = ah__timeline_save_both(session->predicted, session->measured, json);
    if (status == AH_OK)
        status = ah_timeline_save_svg(session->predicted, session->measured, session->budget.device_bytes, svg);
    ah__free(json);
    ah__free(svg);
    return status;
}

static int loss_save(const struct ah_session *session)
{
    struct ah_curves curves;
    struct ah_buf buf = {0};
    char caption[CAPTION_SIZE];
    caption_make(caption, session);
    int status = ah__curves_load(&curves, session->out.dir);
    if (status == AH_OK) {
        ah__curves_loss(&buf, &curves, caption, ah_model_get(session->model)->vocab_size);
        status = file_write(session, "loss.svg", &buf);
    }
    ah__curves_fini(&curves);
    return status;
}

static void tell(const struct ah_session *session, const char *what, int status)
{
    if (status != AH_OK)
        ah__session_note(session, "%s not saved: %s", what, ah_error());
}

static int keep(struct ah_session *session)
{
    struct ah_timeline *copy;
    char caption[CAPTION_SIZE];
    AH_TRY(ah__timeline_copy(&copy, ah__run_timeline(session->run)));
    ah_timeline_free(session->measured);
    session->measured = copy;
    caption_make(caption, session);
    ah__timeline_caption(session->predicted, caption);
    ah__timeline_caption(session->measured, caption);
    session->predicted->device_budget_bytes = session->measured->device_budget_bytes = session->budget.device_bytes;
    return timelines_save(session);
}

void ah__pictures_segment(struct ah_session *session, int64_t steps)
{
    if (!session->out.dir || steps <= session->longest_segment || session->longest_segment >= SEGMENT_ENOUGH)
        return;
    session->longest_segment = steps;
    tell(session, "the timeline is", keep(session));
}

void ah__pictures_end(struct ah_session *session)
{
    if (!session->out.dir || ah__loop_steps_timed(&session->loop) == 0)
        return;
    if (session->measured) {
        session->measured->step_ns = ah__loop_step_ns(&session->loop);
        session->measured->steps = ah__loop_steps_timed(&session->loop);
        tell(session, "the timeline is", timelines_save(session));
    }
    tell(session, "the picture of the loss is", loss_save(session));
}
