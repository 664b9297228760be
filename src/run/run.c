#include "dev/host/disk.h"
#include "plan/config.h"
#include "plan/predict.h"
#include "run/internal.h"

enum { TIMELINE_ITERATIONS = 12 };

static int run_memory(struct ah_run *run)
{
    run->memory = (struct ah_memory){run->partition, &run->plan.switches, run->layout, NULL, NULL, NULL};
    AH_TRY(run->dev->ops->device_memory(run->dev, run->layout->device_bytes, &run->memory.device));
    AH_TRY(run->dev->ops->host_memory(run->dev, run->layout->host_bytes, &run->memory.host));
    return run->layout->disk_bytes > 0 ? ah__run_disk_open(run) : AH_OK;
}

/* Returns the largest workspace that any program needs. */
static int64_t workspace_bytes(const struct ah_run *run)
{
    int64_t bytes = run->programs.workspace_bytes, decoder = run->decoder_programs.workspace_bytes;
    return bytes > decoder ? bytes : decoder;
}

/* Sets the communicator. In inference each rank runs by itself. */
static int ranks_init(struct ah_run *run)
{
    int ranks = ah__step_ranks(run->partition);
    run->comm = ranks > 1 ? ah__comm() : ah__comm_self();
    if (run->comm->world_size != ranks || ah__world_size(&run->plan.switches) != ranks)
        return ah__fail(AH_ESTALE, "plan: found %d ranks, a model for %d, expected %d",
                        ah__world_size(&run->plan.switches), ranks, run->comm->world_size);
    return AH_OK;
}

static int run_init(struct ah_run *run)
{
    struct ah_sched_config config;
    struct ah_dev_info info;
    run->dev->ops->info(run->dev, &info);
    ah__sched_config_of(&config, &run->plan.switches, run->partition, ah__policy_find(run->plan.policy));
    config.queue_depth = info.queue_depth;
    if (run->partition->step.clips != (run->clip > 0))
        return ah__fail(AH_EINTERNAL, "run: found a clipping limit of %g, expected %s as the partition was made for",
                        run->clip, run->partition->step.clips ? "one above 0" : "0");
    if (run->plan.switches.frozen_blocks != run->partition->frozen_blocks)
        return ah__fail(AH_EINTERNAL, "run: found a plan of %d frozen blocks, expected %d",
                        run->plan.switches.frozen_blocks, run->partition->frozen_blocks);
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
    AH_TRY(ah__timeline_new(&run->timeline, run->plan.switches.layers, config.switches.chunks,
                            config.rounds * TIMELINE_ITERATIONS));
    ah__timeline_describe(run->timeline, run->partition, &run->plan, false);
    AH_TRY(run_memory(run));
    run->drained = true;
    ah__run_queue_init(run);
    return ah__run_start(run);
}

/* Returns true if the decoder's programs can run in memory for `partition`: parameters and caches are the same and
 * nothing is larger. */
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
                struct ah_dev *dev, double clip)
{
    return run_new(out, &(struct ah_run){.partition = partition, .plan = *plan, .dev = dev, .clip = clip});
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
    ah__run_queue_fini(run);
    run->dev->ops->memory_release(run->dev);
    ah__disk_close(run->memory.disk);
    ah_timeline_free(run->timeline);
    ah__sched_free(run->sched);
    ah__layout_free(run->layout);
    ah__bound_programs_fini(&run->programs);
    if (run->decoder)
        ah__bound_programs_fini(&run->decoder_programs);
    ah__free(run);
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
