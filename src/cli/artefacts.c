#include "cli/artefacts.h"

#include <stdlib.h>
#include <string.h>

#include "cli/out.h"

int ah__artefacts_dtype(enum ah_dtype *out, const char *option, const char *word)
{
    if (!word || ah_dtype_parse(out, word) == AH_OK)
        return AH_OK;
    return ah__out_fault("--%s: found '%.40s', expected bf16 or fp32", option, word);
}

int ah__micro_batch_count(int *count, int64_t batch, int64_t size)
{
    *count = 1;
    if (size == AH_MICRO_BATCH_WHOLE)
        return AH_OK;
    if (size < 1 || batch % size != 0)
        return ah__out_fault("--micro-batch: found %lld, expected a divisor of the batch of %lld", (long long)size,
                             (long long)batch);
    *count = (int)(batch / size);
    return AH_OK;
}

void ah__micro_batch_print(FILE *to, int64_t size, int64_t count, bool chosen)
{
    if (count > 1 || chosen)
        fprintf(to, "micro-batches: %lld of %lld sequence%s%s\n", (long long)count, (long long)size,
                size == 1 ? "" : "s", chosen ? ", the fastest" : "");
}

void ah__device_print(FILE *to, const struct ah_device *device)
{
    char memory[32];
    if (device->why[0])
        fprintf(stderr, "autohete: note: no GPU is used: %s\n", device->why);
    if (strcmp(device->name, "cpu") != 0)
        fprintf(to, "device: %s, %s, %s\n", device->name, device->model,
                ah_size_format(memory, sizeof memory, device->memory_bytes));
}

const char *ah__cache_folder(void)
{
    static char path[4096];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (cache && cache[0] == '/') /* another is to be ignored, says the standard */
        length = snprintf(path, sizeof path, "%s/autohete", cache);
    else if (home && home[0] == '/')
        length = snprintf(path, sizeof path, "%s/.cache/autohete", home);
    return length > 0 && (size_t)length < sizeof path ? path : NULL;
}

void ah__profile_age_print(FILE *to, int64_t kept_s)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
    size_t i = 0;
    if (kept_s < 0)
        return;
    while (i + 1 < sizeof units / sizeof units[0] && kept_s < units[i].seconds)
        i++;
    int64_t count = kept_s / units[i].seconds;
    fprintf(to, "profile: kept from %lld %s%s ago (--no-cache measures again)\n", (long long)count, units[i].name,
            count == 1 ? "" : "s");
}

/* The device is open. */
static void take_device(struct ah_artefacts *artefacts)
{
    struct ah_device device;
    ah_dev_get(&device, artefacts->dev);
    if (!artefacts->budget.device_bytes && strcmp(device.name, "cpu") != 0)
        artefacts->budget.device_bytes = device.free_bytes;
    if (artefacts->text)
        ah__device_print(artefacts->text, &device);
}

static int open_device(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    int status = ah_dev_open(&artefacts->dev, inputs->device, &inputs->dev);
    if (status == AH_OK)
        take_device(artefacts);
    return status;
}

static int64_t seq_of(const struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    int64_t longest = ah_model_get(artefacts->model)->max_seq;
    return inputs->seq ? inputs->seq : longest < 256 ? longest : 256;
}

/* Sequences of each rank: an equal part of the batch. */
static int rank_batch(int64_t *batch, struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    int status = ah_ranks_open(&artefacts->ranks);
    if (status != AH_OK)
        return status;
    int ranks = artefacts->ranks.world_size;
    if (ranks > 1 && inputs->hardware)
        return ah__out_fault("--hardware: found it with %d ranks started, expected one: simulate --ranks asks about "
                             "machines that are not there",
                             ranks);
    if (inputs->batch % ranks != 0)
        return ah__out_fault("--batch: found %lld, expected a multiple of %d, the ranks: it is that of all of them",
                             (long long)inputs->batch, ranks);
    artefacts->budget.host_bytes /= artefacts->ranks.neighbours;
    *batch = inputs->batch / ranks;
    return AH_OK;
}

int ah__artefacts_graph(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    int64_t batch;
    int count, status = ah__artefacts_dtype(&artefacts->dtype, "dtype", inputs->dtype);
    if (status == AH_OK)
        status = rank_batch(&batch, artefacts, inputs);
    if (status == AH_OK)
        status = ah__micro_batch_count(&count, batch, inputs->micro_batch);
    if (status == AH_OK && !artefacts->model)
        status = ah_model_load(&artefacts->model, inputs->model);
    if (status != AH_OK)
        return status;
    artefacts->micro_batch = batch / count;
    artefacts->micro_batches = count;
    if (inputs->plan)
        status = ah_plan_check(inputs->plan, ah_model_get(artefacts->model)->layers);
    if (status != AH_OK)
        return status;
    const struct ah_record_options record = {.batch = artefacts->micro_batch,
                                             .seq = seq_of(artefacts, inputs),
                                             .compute = artefacts->dtype,
                                             .packed = inputs->pack};
    return ah_model_record_with(&artefacts->graph, artefacts->model, &record);
}

int ah__artefacts_partition(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    int status = ah__artefacts_graph(artefacts, inputs);
    if (status != AH_OK)
        return status;
    struct ah_step_options step = {.clips = inputs->clip > 0,
                                   .micro_batches = artefacts->micro_batches,
                                   .world_size = artefacts->ranks.world_size};
    return ah_partition_new(&artefacts->partition, artefacts->graph, &step);
}

/* Of a machine one need not own; memory that was left open is the machine's. */
static int estimate(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    struct ah_hardware *hardware;
    struct ah_hardware_info info;
    const struct ah_estimate_options options = {.world_size = 1};
    if (inputs->profile)
        return ah__out_fault("--profile: found it beside --hardware, expected one of them");
    int status = ah_hardware_load(&hardware, inputs->hardware);
    if (status != AH_OK)
        return status;
    ah_hardware_get(&info, hardware);
    struct ah_budget *budget = &artefacts->budget;
    budget->device_bytes = budget->device_bytes ? budget->device_bytes : info.device_bytes;
    budget->host_bytes = budget->host_bytes ? budget->host_bytes : info.host_bytes;
    status = ah_profile_estimate(&artefacts->profile, artefacts->partition, hardware, &options);
    ah_hardware_free(hardware);
    return status;
}

int ah__artefacts_profile(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    int status = ah__artefacts_partition(artefacts, inputs);
    if (status != AH_OK)
        return status;
    if (inputs->hardware)
        return estimate(artefacts, inputs);
    if (inputs->profile)
        return ah_profile_load(&artefacts->profile, inputs->profile);
    status = open_device(artefacts, inputs);
    if (status != AH_OK)
        return status;
    int64_t kept_s;
    const struct ah_profile_options how = {.cache = ah__cache_folder(), .renew = inputs->renew};
    status = ah_profile_measure_with(&artefacts->profile, &kept_s, artefacts->partition, artefacts->dev, &how);
    if (status == AH_OK && artefacts->text)
        ah__profile_age_print(artefacts->text, kept_s);
    return status;
}

/* The planner knows this too, but it is asked only after everything was timed. */
static int check_policy(const char *policy)
{
    char list[224] = "";
    if (ah_policy_description(policy))
        return AH_OK;
    for (const char *const *each = ah_policy_names(); *each; each++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", list[0] ? ", " : "", *each);
    return ah__out_fault("--policy: found '%.40s', expected one of %s", policy, list);
}

static struct ah_micro_batch_options micro_batch_options(const struct ah_artefacts *artefacts,
                                                         const struct ah_artefact_inputs *inputs)
{
    return (struct ah_micro_batch_options){
        .model = artefacts->model,
        .batch = inputs->batch / artefacts->ranks.world_size,
        .seq = seq_of(artefacts, inputs),
        .compute = artefacts->dtype,
        .packed = inputs->pack,
        .step = {.clips = inputs->clip > 0, .world_size = artefacts->ranks.world_size},
        .dev = artefacts->dev,
        .budget = artefacts->budget,
        .plan = inputs->plan,
        .policy = inputs->policy,
        .profile = {.cache = ah__cache_folder(), .renew = inputs->renew},
    };
}

static int choose(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    struct ah_micro_batch chosen;
    int64_t batch;
    if (inputs->profile || inputs->hardware)
        return ah__out_fault("--micro-batch: found auto beside --%s, expected a size",
                             inputs->profile ? "profile" : "hardware");
    int status = ah__artefacts_dtype(&artefacts->dtype, "dtype", inputs->dtype);
    if (status == AH_OK)
        status = rank_batch(&batch, artefacts, inputs);
    if (status == AH_OK)
        status = ah_model_load(&artefacts->model, inputs->model);
    if (status == AH_OK)
        status = ah_plan_check(inputs->plan, ah_model_get(artefacts->model)->layers);
    if (status == AH_OK)
        status = open_device(artefacts, inputs);
    if (status != AH_OK)
        return status;
    struct ah_micro_batch_options options = micro_batch_options(artefacts, inputs);
    status = ah_micro_batch_choose(&chosen, &options);
    if (status != AH_OK)
        return status;
    artefacts->graph = chosen.graph;
    artefacts->partition = chosen.partition;
    artefacts->profile = chosen.profile;
    if (artefacts->text)
        ah__profile_age_print(artefacts->text, chosen.profile_kept_s);
    artefacts->plan = chosen.plan;
    artefacts->micro_batch = chosen.size;
    artefacts->micro_batches = (int)(batch / chosen.size);
    return AH_OK;
}

static int plan_given_size(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    int status = ah__artefacts_profile(artefacts, inputs);
    if (status != AH_OK)
        return status;
    if (strcmp(inputs->plan, "auto") == 0)
        status = ah_plan_search(&artefacts->plan, artefacts->partition, artefacts->profile, &artefacts->budget,
                                inputs->policy);
    else
        status = ah_plan_parse(&artefacts->plan, inputs->plan, artefacts->partition, artefacts->profile,
                               &artefacts->budget, inputs->policy);
    if (status != AH_EBUDGET || !artefacts->dev)
        return status;
    struct ah_micro_batch_options options = micro_batch_options(artefacts, inputs);
    return ah_micro_batch_advise(&options, artefacts->micro_batch);
}

int ah__artefacts_plan(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    int status = check_policy(inputs->policy);
    artefacts->budget = inputs->budget;
    if (status != AH_OK)
        return status;
    return inputs->micro_batch == AH_MICRO_BATCH_AUTO ? choose(artefacts, inputs) : plan_given_size(artefacts, inputs);
}

void ah__artefacts_free(struct ah_artefacts *artefacts)
{
    ah_profile_free(artefacts->profile);
    ah_dev_close(artefacts->dev);
    ah_partition_free(artefacts->partition);
    ah_graph_free(artefacts->graph);
    ah_model_free(artefacts->model);
}
