/* Chooses the size of micro-batches. The size belongs to a training, not to its plan, but the planner can tell which
 * size is fast and which ones fit. */
#include <string.h>

#include "bind/bind.h"
#include "comm/comm.h"
#include "plan/fit.h"
#include "plan/search.h"

/* With more divisors of the batch than this, each size tried is at least twice the one before. */
enum { SIZES_ALL = 12 };

static void choice_fini(struct ah_micro_batch *choice)
{
    ah_profile_free(choice->profile);
    ah_partition_free(choice->partition);
    ah_graph_free(choice->graph);
    *choice = (struct ah_micro_batch){0};
}

/* Makes graph and partition. */
static int choice_begin(struct ah_micro_batch *out, const struct ah_micro_batch_options *options, int64_t size)
{
    struct ah_step_options step = options->step;
    step.micro_batches = (int)(options->batch / size);
    *out = (struct ah_micro_batch){.size = size};
    const struct ah_record_options record = {.batch = size,
                                             .seq = options->seq,
                                             .compute = options->compute,
                                             .packed = options->packed,
                                             .tuning = options->tuning};
    int status = ah_model_record(&out->graph, options->model, &record);
    if (status == AH_OK)
        status = ah_partition_new(&out->partition, out->graph, &step);
    if (status != AH_OK)
        choice_fini(out);
    return status;
}

/* Returns the ranks that try sizes together. */
static struct ah_comm *ranks_of(const struct ah_micro_batch_options *options)
{
    return options->step.world_size > 1 ? ah__comm() : ah__comm_self();
}

static int plan_make(struct ah_micro_batch *choice, const struct ah_micro_batch_options *options)
{
    const struct ah_search_options search = {.effort = options->effort};
    return ah__plan_make(&choice->plan, options->plan, choice->partition, choice->profile, &options->budget,
                         options->policy, &search);
}

/* Makes a plan on rank 0 and sends it to all ranks. */
static int plan_for(struct ah_micro_batch *choice, const struct ah_micro_batch_options *options)
{
    struct ah_comm *comm = ranks_of(options);
    AH_TRY(ah__comm_agree(comm, comm->rank == 0 ? plan_make(choice, options) : AH_OK));
    return comm->ops->move(comm, &choice->plan, sizeof choice->plan, 0, AH_ALL_RANKS);
}

/* ---- sizes that fit ---------------------------------------------------------------------------------------------- */

/* Makes a profile in which every time is 1 ns, for questions of memory, which do not depend on times. */
static int profile_blank(struct ah_profile *profile, const struct ah_partition *partition,
                         const struct ah_micro_batch_options *options)
{
    *profile = (struct ah_profile){.costs.layers = partition->layers,
                                   .costs.class_count = partition->class_count,
                                   .world_size = ah__step_ranks(partition),
                                   .partition_signature = partition->signature};
    if (options->disk) /* at rates that do not matter either */
        profile->drive = (struct ah_profile_drive){.read_bytes_per_s = 1, .write_bytes_per_s = 1};
    for (int kind = 0; kind < AH_ITEM_COUNT; kind++)
        for (int class = 0; class < AH_CLASSES_MOST; class ++)
            profile->costs.ns[kind][class] = 1;
    for (int a = 0; a < AH_LANE_COUNT; a++)
        for (int b = 0; b < AH_LANE_COUNT; b++)
            profile->costs.lanes.slowdown[a][b] = 1;
    if (options->dev)
        return ah__workspace_bytes(&profile->workspace_bytes, partition, options->dev);
    return options->hardware ? ah__estimate_workspace(&profile->workspace_bytes, partition, options->hardware) : AH_OK;
}

/* Sets *fits to true if a plan for the partition is within the budget. Nothing is timed. */
static int partition_fits(bool *fits, const struct ah_partition *partition,
                          const struct ah_micro_batch_options *options)
{
    struct ah_profile profile;
    struct ah_predictor predictor;
    struct ah_plan plan;
    AH_TRY(profile_blank(&profile, partition, options));
    if (!ah_plan_is_open(options->plan)) {
        int status = ah_plan_parse(&plan, options->plan, partition, &profile, &options->budget, options->policy);
        *fits = status == AH_OK;
        return status == AH_EBUDGET || status == AH_EINPUT ? AH_OK : status; /* the plan does not fit so many
                                                                              * micro-batches, or any number */
    }
    AH_TRY(ah__predictor_init(&predictor, partition, &profile, options->policy));
    int status = ah__plan_fixed(&predictor.fixed, options->plan, partition->layers);
    if (status == AH_OK)
        status = ah__plan_check_fixed(&predictor);
    *fits = status == AH_OK;
    if (status == AH_OK)
        status = ah__plan_any_fits(fits, &predictor, &options->budget);
    ah__predictor_fini(&predictor);
    return status == AH_EINPUT ? AH_OK : status;
}

int ah_step_fits(bool *out, const struct ah_micro_batch_options *options, int64_t size)
{
    struct ah_micro_batch choice;
    AH_TRY(choice_begin(&choice, options, size));
    int status = partition_fits(out, choice.partition, options);
    choice_fini(&choice);
    return status;
}

/* ---- the fastest size -------------------------------------------------------------------------------------------- */

static int64_t divisors(int64_t batch)
{
    int64_t count = 0;
    for (int64_t size = 1; size <= batch; size++)
        count += batch % size == 0;
    return count;
}

/* Returns the next size to try; beyond the batch: there is no other. */
static int64_t size_after(int64_t size, int64_t batch)
{
    int64_t next = divisors(batch) > SIZES_ALL ? 2 * size : size + 1;
    while (next <= batch && batch % next)
        next++;
    return next;
}

/* Returns AH_EBUDGET if no plan fits. All ranks return what rank 0 finds. */
static int choice_fits(const struct ah_micro_batch *choice, const struct ah_micro_batch_options *options)
{
    bool fits = true;
    struct ah_comm *comm = ranks_of(options);
    int status = comm->rank == 0 ? partition_fits(&fits, choice->partition, options) : AH_OK;
    if (status == AH_OK && !fits)
        status = ah__fail(AH_EBUDGET, "micro-batches of %lld do not fit", (long long)choice->size);
    return ah__comm_agree(comm, status);
}

/* Measures and plans one size. `like` is the profile of the size before, or null for the first size. AH_EBUDGET if no
 * plan fits. With several ranks all return the same status. */
static int try_size(struct ah_micro_batch *out, const struct ah_micro_batch_options *options, int64_t size,
                    const struct ah_profile *like)
{
    struct ah_comm *comm = ranks_of(options);
    int status = ah__comm_agree(comm, choice_begin(out, options, size));
    if (status == AH_OK && like)
        status = choice_fits(out, options);
    if (status == AH_OK)
        status = ah__comm_agree(comm, ah__profile_measure_kept(&out->profile, &out->profile_kept_s, out->partition,
                                                               options->dev, like, &options->profile));
    if (status == AH_OK)
        status = plan_for(out, options);
    if (status != AH_OK)
        choice_fini(out);
    return status;
}

int ah_micro_batch_choose(struct ah_micro_batch *out, const struct ah_micro_batch_options *options)
{
    struct ah_micro_batch best, next;
    AH_TRY(try_size(&best, options, 1, NULL));
    for (int64_t size = size_after(1, options->batch); size <= options->batch;
         size = size_after(size, options->batch)) {
        if (options->batch / size < ah__plan_passes_given(options->plan))
            break;
        int status = try_size(&next, options, size, best.profile);
        if (status == AH_EBUDGET)
            break;
        if (status != AH_OK) {
            choice_fini(&best);
            return status;
        }
        struct ah_micro_batch *slower = next.plan.step_ns < best.plan.step_ns ? &best : &next;
        choice_fini(slower);
        if (slower == &best)
            best = next;
    }
    *out = best;
    return AH_OK;
}
