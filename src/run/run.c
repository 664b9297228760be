#include <string.h>

#include "dev/clip.h"
#include "plan/config.h"
#include "plan/predict.h"
#include "run/internal.h"

enum { TIMELINE_ITERATIONS = 12 };

static int run_memory(struct ah_run *run)
{
    AH_TRY(run->dev->ops->device_memory(run->dev, run->layout->device_bytes, &run->device));
    return run->dev->ops->host_memory(run->dev, run->layout->host_bytes, &run->host);
}

/* Of the neediest program. */
static int64_t workspace_bytes(const struct ah_run *run)
{
    int64_t bytes = run->programs.workspace_bytes, decoder = run->decoder_programs.workspace_bytes;
    return bytes > decoder ? bytes : decoder;
}

/* Inference is every rank's own. */
static int ranks_init(struct ah_run *run)
{
    int ranks = ah__step_ranks(run->partition);
    size_t tokens = (size_t)ranks * (size_t)ah__step_tokens(run->partition);
    run->comm = ranks > 1 ? ah__comm() : ah__comm_self();
    if (run->comm->world_size != ranks || ah__world_size(&run->plan.switches) != ranks)
        return ah__fail(AH_ESTALE, "plan: found %d ranks, a model for %d, expected %d",
                        ah__world_size(&run->plan.switches), ranks, run->comm->world_size);
    if (ranks == 1)
        return AH_OK;
    AH_TRY(ah__new(&run->all.ids, tokens, sizeof *run->all.ids));
    AH_TRY(ah__new(&run->all.targets, tokens, sizeof *run->all.targets));
    return run->partition->packed ? ah__new(&run->all.positions, tokens, sizeof *run->all.positions) : AH_OK;
}

static int run_init(struct ah_run *run)
{
    struct ah_sched_config config;
    ah__sched_config_of(&config, &run->plan.switches, run->partition, ah__policy_find(run->plan.policy));
    if (run->partition->step.clips != (run->hooks.clip > 0))
        return ah__fail(AH_EINTERNAL, "run: found a clipping limit of %g, expected %s as the partition was made for",
                        run->hooks.clip, run->partition->step.clips ? "one above 0" : "0");
    if (config.casts && config.policy->delay > 0)
        return ah__fail(AH_EINPUT,
                        "policy: found %s, expected a synchronous one to train in %s: parameters would be "
                        "fetched while gradients arrive in their place",
                        config.policy->name, ah__dtype_name(run->partition->compute));
    AH_TRY(ranks_init(run));
    AH_TRY(ah__bound_programs_init(&run->programs, run->partition, run->dev));
    if (run->decoder)
        AH_TRY(ah__bound_programs_init(&run->decoder_programs, run->decoder, run->dev));
    if (workspace_bytes(run) != run->plan.workspace_bytes)
        return ah__fail(AH_ESTALE,
                        "plan: found %lld bytes of device workspace, expected %lld: it was made for another device",
                        (long long)run->plan.workspace_bytes, (long long)workspace_bytes(run));
    AH_TRY(ah__layout_new(&run->layout, run->partition, &run->plan.switches, run->plan.workspace_bytes));
    AH_TRY(ah__sched_new(&run->sched, &config));
    AH_TRY(ah__timeline_new(&run->timeline, run->plan.switches.layers, config.switches.chunks, TIMELINE_ITERATIONS));
    ah__timeline_describe(run->timeline, run->partition, &run->plan, false);
    return run_memory(run);
}

/* Whether the decoder's programs may run where the others do: the same parameters and caches, and nothing larger. */
static bool decoder_fits(const struct ah_partition *decoder, const struct ah_partition *partition)
{
    bool fits = decoder->group_count == partition->group_count && decoder->step.infers && partition->step.infers &&
                ah__partition_work_bytes(decoder) <= partition->work_bytes_least;
    for (int g = 0; fits && g < partition->group_count; g++)
        fits = decoder->groups[g].count == partition->groups[g].count;
    for (int class = 0; fits && class < AH_CLASS_COUNT; class ++) {
        const struct ah_code *one = &decoder->code[class], *all = &partition->code[class];
        fits = one->cache_bytes == all->cache_bytes && one->input_bytes <= all->input_bytes &&
               one->output_bytes <= all->output_bytes;
    }
    return fits;
}

static int run_new(struct ah_run **out, const struct ah_run *made_of)
{
    struct ah_run *run;
    AH_TRY(ah__new(&run, 1, sizeof *run));
    *run = *made_of;
    int status = run_init(run);
    if (status == AH_OK)
        *out = run;
    else
        ah__run_free(run);
    return status;
}

int ah__run_new(struct ah_run **out, const struct ah_partition *partition, const struct ah_plan *plan,
                struct ah_dev *dev, const struct ah_run_hooks *hooks)
{
    return run_new(out, &(struct ah_run){.partition = partition, .plan = *plan, .dev = dev, .hooks = *hooks});
}

int ah__run_new_decoding(struct ah_run **out, const struct ah_partition *partition, const struct ah_partition *decoder,
                         const struct ah_plan *plan, struct ah_dev *dev)
{
    if (!decoder_fits(decoder, partition))
        return ah__fail(AH_EINTERNAL, "run: found a decoder of another model, expected the same one token at a time");
    return run_new(out, &(struct ah_run){.partition = partition, .decoder = decoder, .plan = *plan, .dev = dev});
}

void ah__run_free(struct ah_run *run)
{
    if (!run)
        return;
    run->dev->ops->memory_release(run->dev);
    ah_timeline_free(run->timeline);
    ah__sched_free(run->sched);
    ah__layout_free(run->layout);
    ah__bound_programs_fini(&run->programs);
    if (run->decoder)
        ah__bound_programs_fini(&run->decoder_programs);
    ah__free(run->all.ids);
    ah__free(run->all.targets);
    ah__free(run->all.positions);
    ah__free(run);
}

static int batch_fill(struct ah_run *run, const struct ah_batch *to, int64_t iteration)
{
    size_t bytes = (size_t)run->comm->world_size * (size_t)ah__step_tokens(ah__run_partition(run)) * sizeof *to->ids;
    run->input_iteration = iteration;
    if (!run->eval)
        return run->hooks.batch(to, ah__run_training_iteration(run, iteration), run->hooks.context);
    memcpy(to->ids, run->eval->ids, bytes);
    memcpy(to->targets, run->eval->targets, bytes);
    if (to->positions)
        memcpy(to->positions, run->eval->positions, bytes);
    return AH_OK;
}

/* What the loss of `count` targets is multiplied by. */
static float scale_of(const int32_t *targets, int64_t count)
{
    int64_t counted = 0;
    for (int64_t i = 0; i < count; i++)
        counted += targets[i] != AH_TARGET_IGNORED;
    return 1.0F / (float)(counted > 0 ? counted : 1);
}

/* This rank's part of a batch of all, and what it tells the others. */
static int input_fill_part(struct ah_run *run, const struct ah_batch *to, int64_t iteration)
{
    int64_t tokens = ah__step_tokens(run->partition), first = run->comm->rank * tokens;
    size_t bytes = (size_t)tokens * sizeof *to->ids;
    float *words = (float *)(void *)((char *)to->ids + ah__tokens_words(run->partition));
    AH_TRY(batch_fill(run, &run->all, iteration));
    memcpy(to->ids, run->all.ids + first, bytes);
    memcpy(to->targets, run->all.targets + first, bytes);
    if (to->positions)
        memcpy(to->positions, run->all.positions + first, bytes);
    *(float *)(void *)(to->targets + tokens) = scale_of(run->all.targets, run->comm->world_size * tokens);
    for (int word = 0; word < AH_RUN_WORDS; word++)
        words[word] =
            !run->eval && run->hooks.says && run->hooks.says((enum ah_run_word)word, run->hooks.context) ? 1.0F : 0.0F;
    return AH_OK;
}

/* Writes an iteration's ids and targets where its INPUT copies them from. The loss is the mean over the tokens of all
 * micro-batches and ranks that count, which none of them knows. */
static int input_fill(struct ah_run *run, const struct ah_addresses *at, int64_t iteration)
{
    int32_t *ids = (int32_t *)(void *)at->host_tokens;
    int32_t *targets = (int32_t *)(void *)(at->host_tokens + at->tokens_bytes / 2);
    int64_t tokens = ah__step_tokens(ah__run_partition(run));
    const struct ah_batch to = {ids, targets, ah__run_partition(run)->packed ? ids + tokens : NULL};
    if (run->comm->world_size > 1)
        return input_fill_part(run, &to, iteration);
    AH_TRY(batch_fill(run, &to, iteration));
    if (ah__micro_batches(run->partition) > 1)
        *(float *)(void *)(targets + tokens) = scale_of(targets, tokens);
    return AH_OK;
}

static int bind(struct ah_work *work, const struct ah_item *item, void *context)
{
    struct ah_run *run = context;
    struct ah_addresses at;
    struct ah_binding binding = {
        .partition = ah__run_partition(run),
        .programs = run->decodes ? &run->decoder_programs : &run->programs,
        .class = ah__class_of(item->partition, run->partition->layers),
        .group = item->partition,
        .rank = run->comm->rank,
        .micro_batches = ah__micro_batches(run->partition),
        .infer = run->infer,
        .clip = run->hooks.clip,
    };
    ah__run_addresses(&at, run, item);
    if (run->prefills && item->kind == AH_ITEM_FORWARD && binding.class == AH_CLASS_HEAD)
        return AH_OK; /* work of no tasks */
    if (item->kind == AH_ITEM_INPUT)
        AH_TRY(input_fill(run, &at, item->iteration));
    if (item->kind == AH_ITEM_UPDATE_DEVICE || item->kind == AH_ITEM_UPDATE_STAGED ||
        ah__item_lanes[item->kind] == AH_LANE_HOST)
        run->hooks.adam(&binding.adam, ah__run_training_iteration(run, item->iteration), run->hooks.context);
    return ah__bind(work, item, &binding, &at);
}

/* The norms of an iteration have arrived: what updates multiply by, where those on the host will read it. */
static void result_fill(struct ah_run_result *result, struct ah_run *run, const struct ah_span *span)
{
    const double *squares = ah__run_norms(run, span->item.iteration);
    double norm = ah__clip_norm(squares, run->partition->group_count);
    float scale = run->hooks.clip > 0 ? ah__clip_scale(norm, run->hooks.clip) : 1.0F;
    *ah__run_scale(run, span->item.iteration) = scale;
    *result = (struct ah_run_result){
        .iteration = ah__run_training_iteration(run, span->item.iteration),
        .loss = ah__run_loss(run, span->item.iteration),
        .grad_norm = norm,
        .clip_factor = (double)scale,
        .now_ns = span->end_ns,
    };
    for (int word = 0; run->comm->world_size > 1 && word < AH_RUN_WORDS; word++)
        result->words[word] = ah__run_words(run, span->item.iteration)[word] > 0;
}

static int completed(const struct ah_span *span, void *context)
{
    struct ah_run *run = context;
    run->busy_ns[span->lane] += span->end_ns - span->start_ns;
    if (span->item.kind != AH_ITEM_RESULT)
        return AH_OK;
    if (run->eval) {
        run->loss = ah__run_loss(run, span->item.iteration);
        return AH_OK;
    }
    if (span->item.partition != 0)
        return AH_OK;
    struct ah_run_result result;
    result_fill(&result, run, span);
    if (run->hooks.clip > 0 && !(result.clip_factor == 1))
        ah__sched_clipped(run->sched, span->item.iteration);
    if (run->hooks.result && run->hooks.result(&result, run->hooks.context))
        ah__sched_stop(run->sched, span->item.iteration + (run->comm->world_size > 1 ? AH_SCHED_STOP_AHEAD : 0));
    return AH_OK;
}

/* The copy of a group's master in the compute dtype that is there between two steps: what is fetched from the host, or
 * on the device the embedding's, the head's and that of unsharded blocks. The other blocks there have none. */
static int refresh(struct ah_run *run, int group)
{
    struct ah_work work = {.label.what = "cast", .tasks = 1, .task = {{.type = AH_TASK_CAST}}};
    struct ah_item item = {.partition = group, .param_buffer = -1, .grad_buffer = -1, .shadow_set = -1};
    struct ah_addresses at;
    struct ah_done done;
    item.set = ah__sched_set(run->sched, group);
    ah__run_addresses(&at, run, &item);
    if (!at.update_half)
        return AH_OK;
    work.lane = run->layout->groups[group].on_host ? AH_LANE_HOST : AH_LANE_COMPUTE;
    bool on_host = run->layout->groups[group].on_host;
    int64_t first, count = ah__run_part(&first, run, group);
    work.task[0].as.cast.to = at.update_half + (on_host ? 0 : first * ah__dtype_bytes(run->partition->compute));
    work.task[0].as.cast.from = at.states[0];
    work.task[0].as.cast.to_dtype = run->partition->compute;
    work.task[0].as.cast.from_dtype = AH_F32;
    work.task[0].as.cast.count = count;
    return ah__dev_run(run->dev, &work, &done);
}

static int refresh_all(struct ah_run *run)
{
    for (int group = 0; run->masters_loaded && group < run->partition->group_count; group++)
        AH_TRY(refresh(run, group));
    run->masters_loaded = false;
    return AH_OK;
}

int ah__run_drive(struct ah_run *run, int64_t limit, bool forward_only, struct ah_timeline *timeline)
{
    struct ah_drive drive = {
        .sched = run->sched,
        .dev = run->dev,
        .bind = bind,
        .bind_context = run,
        .completed = completed,
        .completed_context = run,
        .observe = timeline ? ah__timeline_observe : NULL,
        .observe_context = timeline,
    };
    AH_TRY(refresh_all(run));
    ah__sched_limit(run->sched, limit, forward_only);
    return ah__drive(&drive);
}

int ah__run_steps(struct ah_run *run, int64_t count, int64_t *done)
{
    ah__timeline_clear(run->timeline);
    AH_TRY(ah__run_drive(run, run->iteration + count, false, run->timeline));
    *done = ah__sched_iterations(run->sched) - run->iteration;
    run->iteration += *done;
    run->trained += *done;
    return AH_OK;
}

void ah__run_stop(struct ah_run *run)
{
    ah__sched_stop(run->sched, run->input_iteration);
}

void ah__run_busy(int64_t busy_ns[AH_LANE_COUNT], const struct ah_run *run)
{
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        busy_ns[lane] = run->busy_ns[lane];
}

int64_t ah__run_updates_redone(const struct ah_run *run)
{
    return ah__sched_updates_redone(run->sched);
}

struct ah_timeline *ah__run_timeline(struct ah_run *run)
{
    return run->timeline;
}

const struct ah_layout *ah__run_layout(const struct ah_run *run)
{
    return run->layout;
}
