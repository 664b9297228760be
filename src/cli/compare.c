#include "cli/compare.h"

#include <stdlib.h>
#include <string.h>

#include "cli/evaluation.h"
#include "cli/out.h"

bool ah__compare_wanted(const struct ah_artefact_inputs *inputs, const struct ah_compare_args *args)
{
    bool several = strcmp(inputs->policy, "all") == 0 || strchr(inputs->policy, ',');
    return args->hardware || args->sweep || args->world_size || args->optimizer || args->memory || several;
}

/* ---- the question ------------------------------------------------------------------------------------------------ */

static const char *nearest_policy(const char *name)
{
    size_t count = 0;
    const char *const *names = ah_policy_names();
    while (names[count])
        count++;
    return ah__args_nearest(name, names, count);
}

/* "--policy: found 'stronghld', expected all, or names out of ..., did you mean 'stronghold'?" */
static int unknown_policy(const char *name)
{
    char list[224] = "";
    const char *nearest = nearest_policy(name);
    for (const char *const *each = ah_policy_names(); *each; each++)
        snprintf(list + strlen(list), sizeof list - strlen(list), ", %s", *each);
    return ah__out_fault("--policy: found '%.40s', expected all%s%s%s%s", name, list, nearest ? "; did you mean '" : "",
                         nearest ? nearest : "", nearest ? "'?" : "");
}

/* "all", or names with commas between them. */
static int read_policies(struct ah_compare *compare, const char *text)
{
    size_t count = 0;
    if (strcmp(text, "all") == 0) {
        for (const char *const *each = ah_policy_names(); *each && count < AH_COMPARE_POLICIES; each++)
            compare->policies[count++] = *each;
        return AH_OK;
    }
    if (strlen(text) >= sizeof compare->names)
        return unknown_policy(text);
    strcpy(compare->names, text);
    for (char *at = compare->names, *next; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = 0;
        if (!ah_policy_description(at) || count == AH_COMPARE_POLICIES)
            return unknown_policy(at);
        compare->policies[count++] = at;
    }
    return AH_OK;
}

/* Options that mean nothing with, or without, a machine of paper. */
static int check_options(const struct ah_artefact_inputs *inputs, const struct ah_compare_args *args)
{
    const struct {
        const char *name;
        bool given;
    } with[] = {{"ranks", args->world_size != 0}, {"optimizer", args->optimizer}},
      without[] = {{"profile", inputs->profile},
                   {"device", strcmp(inputs->device, "auto") != 0},
                   {"link", inputs->dev.link_bytes_per_s != 0},
                   {"threads", inputs->dev.threads != 0},
                   {"host-threads", inputs->dev.host_threads != 0}};
    for (size_t i = 0; i < sizeof with / sizeof with[0] && !args->hardware; i++)
        if (with[i].given)
            return ah__out_fault("--%s: found it without --hardware, expected both", with[i].name);
    for (size_t i = 0; i < sizeof without / sizeof without[0] && args->hardware; i++)
        if (without[i].given)
            return ah__out_fault("--%s: found it beside --hardware, expected one of them", without[i].name);
    return AH_OK;
}

static int read_rule(enum ah_memory_rule *out, const char *text)
{
    bool published = text && strcmp(text, "published") == 0;
    if (text && !published && strcmp(text, "autohete") != 0)
        return ah__out_fault("--memory: found '%.40s', expected autohete or published", text);
    *out = published ? AH_MEMORY_PUBLISHED : AH_MEMORY_LAYOUT;
    return AH_OK;
}

static const char *dtype_word(const struct ah_artefact_inputs *inputs, const struct ah_compare_args *args)
{
    return inputs->dtype ? inputs->dtype : args->hardware ? "bf16" : "fp32";
}

static struct ah_point point_given(const struct ah_compare *compare)
{
    const struct ah_artefact_inputs *inputs = compare->inputs;
    struct ah_point point = {inputs->batch, inputs->seq, inputs->budget.device_bytes, inputs->budget.host_bytes};
    if (!point.device_bytes)
        point.device_bytes = compare->info.device_bytes;
    if (!point.host_bytes)
        point.host_bytes = compare->info.host_bytes;
    return point;
}

static int check_batches(const struct ah_compare *compare)
{
    const struct ah_artefact_inputs *inputs = compare->inputs;
    if (inputs->micro_batch == AH_MICRO_BATCH_AUTO)
        return ah__out_fault("--micro-batch: found auto, expected a size where policies or machines are compared");
    for (int i = 0; i < compare->sweep.count; i++) {
        struct ah_point point = point_given(compare);
        ah__sweep_set(&point, &compare->sweep, i);
        int count;
        if (point.batch % compare->world_size == 0 &&
            ah__micro_batch_count(&count, point.batch / compare->world_size, inputs->micro_batch) != AH_OK)
            return AH_EINPUT;
        if (point.batch % compare->world_size != 0)
            return ah__out_fault("--batch: found %lld for %d ranks, expected a multiple of %d: "
                                 "the batch is that of all ranks",
                                 (long long)point.batch, compare->world_size, compare->world_size);
    }
    return AH_OK;
}

/* A quantity is either given or swept. */
static int check_sweep(const struct ah_compare *compare)
{
    const struct ah_artefact_inputs *inputs = compare->inputs;
    struct ah_point given = {
        .seq = inputs->seq, .device_bytes = inputs->budget.device_bytes, .host_bytes = inputs->budget.host_bytes};
    int64_t value;
    memcpy(&value, (const char *)&given + compare->sweep.at, sizeof value);
    if (compare->sweep.name && value != 0)
        return ah__out_fault("--%s: found it beside --sweep %s, expected one of them", compare->sweep.name,
                             compare->sweep.name);
    return AH_OK;
}

/* A machine "a100-40g" asked for 4 ranks is the one called "a100-40g-x4", where there is one. */
static int load_hardware(struct ah_compare *compare)
{
    char wider[96];
    const char *name = compare->args->hardware;
    int status = ah_hardware_load(&compare->hardware, name);
    if (status != AH_OK)
        return status;
    ah_hardware_get(&compare->info, compare->hardware);
    if (compare->world_size <= compare->info.devices)
        return AH_OK;
    struct ah_hardware *hardware;
    snprintf(wider, sizeof wider, "%.64s-x%d", name, compare->world_size);
    if (strchr(name, '/') || strchr(name, '.') || ah_hardware_load(&hardware, wider) != AH_OK)
        return ah__out_fault("--ranks: found %d, expected at most %d, the devices of %.64s", compare->world_size,
                             compare->info.devices, name);
    ah_hardware_free(compare->hardware);
    compare->hardware = hardware;
    ah_hardware_get(&compare->info, hardware);
    return AH_OK;
}

int ah__compare_init(struct ah_compare *out, const struct ah_artefact_inputs *inputs,
                     const struct ah_compare_args *args)
{
    enum ah_dtype dtype;
    *out = (struct ah_compare){.inputs = inputs, .args = args, .world_size = args->world_size ? args->world_size : 1};
    int status = check_options(inputs, args);
    if (status == AH_OK)
        status = read_rule(&out->rule, args->memory);
    if (status == AH_OK)
        status = ah__artefacts_dtype(&dtype, "dtype", dtype_word(inputs, args));
    if (status == AH_OK)
        status = read_policies(out, inputs->policy);
    if (status == AH_OK)
        status = ah__sweep_parse(&out->sweep, args->sweep);
    if (status == AH_OK)
        status = check_sweep(out);
    if (status == AH_OK)
        status = check_batches(out);
    return status == AH_OK && args->hardware ? load_hardware(out) : status;
}

void ah__compare_fini(struct ah_compare *compare)
{
    ah__artefacts_free(&compare->artefacts);
    ah_hardware_free(compare->hardware);
}

/* ---- a point ----------------------------------------------------------------------------------------------------- */

static int estimate(struct ah_artefacts *artefacts, const struct ah_compare *compare, const struct ah_point *point)
{
    struct ah_record_options record = {.seq = point->seq, .packed = compare->inputs->pack};
    struct ah_step_options step = {.clips = compare->inputs->clip > 0, .world_size = compare->world_size};
    struct ah_estimate_options options = {compare->world_size, compare->args->optimizer};
    int64_t batch = point->batch / compare->world_size;
    int status = ah__artefacts_dtype(&record.compute, "dtype", dtype_word(compare->inputs, compare->args));
    if (status == AH_OK)
        status = ah__micro_batch_count(&step.micro_batches, batch, compare->inputs->micro_batch);
    if (status == AH_OK)
        status = ah_model_load(&artefacts->model, compare->inputs->model);
    if (status == AH_OK) {
        record.batch = batch / step.micro_batches;
        status = ah_model_record_with(&artefacts->graph, artefacts->model, &record);
    }
    if (status == AH_OK)
        status = ah_partition_new(&artefacts->partition, artefacts->graph, &step);
    if (status == AH_OK)
        status = ah_profile_estimate(&artefacts->profile, artefacts->partition, compare->hardware, &options);
    return status;
}

static int measure(struct ah_artefacts *artefacts, const struct ah_compare *compare, const struct ah_point *point)
{
    struct ah_artefact_inputs args = *compare->inputs;
    args.batch = point->batch;
    args.seq = point->seq;
    artefacts->text = stderr; /* the table has not begun */
    return ah__artefacts_profile(artefacts, &args);
}

/* The sequence length that is chosen when none is given has to be known before two points can be told apart. */
static int default_seq(int64_t *seq, const struct ah_compare *compare)
{
    struct ah_model *model;
    int status = *seq ? AH_OK : ah_model_load(&model, compare->inputs->model);
    if (*seq || status != AH_OK)
        return status;
    int64_t longest = ah_model_get(model)->max_seq;
    *seq = longest < 256 ? longest : 256;
    ah_model_free(model);
    return AH_OK;
}

int ah__compare_point(struct ah_compare *compare, int index)
{
    struct ah_point point = point_given(compare), before = compare->point;
    ah__sweep_set(&point, &compare->sweep, index);
    int status = default_seq(&point.seq, compare);
    if (status != AH_OK)
        return status;
    if (point.batch != before.batch || point.seq != before.seq) {
        ah__artefacts_free(&compare->artefacts);
        compare->artefacts = (struct ah_artefacts){0};
        memset(compare->before, 0, sizeof compare->before);
        status = compare->hardware ? estimate(&compare->artefacts, compare, &point)
                                   : measure(&compare->artefacts, compare, &point);
    }
    if (status != AH_OK)
        return status;
    if (!point.device_bytes)
        point.device_bytes = compare->artefacts.budget.device_bytes;
    compare->point = point;
    compare->budget = (struct ah_budget){.device_bytes = point.device_bytes,
                                         .host_bytes = point.host_bytes / compare->world_size,
                                         .rule = compare->rule};
    return AH_OK;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

int ah__compare_search(struct ah_compare *compare)
{
    struct ah_artefacts *artefacts = &compare->artefacts;
    return ah_plan_search(&artefacts->plan, artefacts->partition, artefacts->profile, &compare->budget,
                          compare->policies[0]);
}

/* A sweep goes upwards: with more memory no policy that searches is slower than before. */
static int evaluate(struct ah_evaluation *evaluations, struct ah_compare *compare)
{
    int status = AH_OK;
    for (int i = 0; compare->policies[i] && status == AH_OK; i++) {
        struct ah_plan *before = &compare->before[i];
        const struct ah_search_options options = {.warm_start = before->switches.layers ? before : NULL};
        status = ah_plan_evaluate_with(&evaluations[i], compare->artefacts.partition, compare->artefacts.profile,
                                       &compare->budget, compare->policies[i], &options);
        if (status == AH_OK && evaluations[i].fits)
            *before = evaluations[i].plan;
    }
    return status;
}

static void text_head(const struct ah_compare *compare, FILE *to)
{
    char size[32];
    const struct ah_point *point = &compare->point;
    const char *swept = compare->sweep.name ? compare->sweep.name : "";
    const struct ah_compare_args *args = compare->args;
    fprintf(to, "%s", compare->inputs->model);
    if (args->hardware)
        fprintf(to, "\non %s: %s\n%d of %d device%s, %s, rates of %s", compare->info.name, compare->info.description,
                compare->world_size, compare->info.devices, compare->info.devices == 1 ? "" : "s",
                dtype_word(compare->inputs, args), args->optimizer ? args->optimizer : "autohete");
    if (compare->rule == AH_MEMORY_PUBLISHED)
        fprintf(to, "%smemory as published", args->hardware ? ", " : "\n");
    fputc('\n', to);
    if (strcmp(swept, "batch") != 0)
        fprintf(to, "batch %lld, ", (long long)point->batch);
    if (compare->inputs->micro_batch)
        fprintf(to, "micro-batches of %lld, ", (long long)compare->inputs->micro_batch);
    if (strcmp(swept, "seq") != 0)
        fprintf(to, "sequences of %lld tokens, ", (long long)point->seq);
    if (strcmp(swept, "device-memory") != 0)
        fprintf(to, "device memory %s, ",
                point->device_bytes ? ah_size_format(size, sizeof size, point->device_bytes) : "any");
    if (strcmp(swept, "host-memory") != 0)
        fprintf(to, "host memory %s, ",
                point->host_bytes ? ah_size_format(size, sizeof size, point->host_bytes) : "any");
    fprintf(to, "%d polic%s\n\n", ah__evaluation_count(compare->policies),
            ah__evaluation_count(compare->policies) == 1 ? "y" : "ies");
}

static void json_head(const struct ah_compare *compare, FILE *to)
{
    const struct ah_compare_args *args = compare->args;
    fputs("{\"model\": ", to);
    ah__out_string(to, compare->inputs->model);
    fputs(", \"hardware\": ", to);
    if (args->hardware)
        ah__out_string(to, compare->info.name);
    else
        fputs("null", to);
    fprintf(to, ", \"ranks\": %d, \"dtype\": \"%s\"", compare->world_size, dtype_word(compare->inputs, args));
    if (args->hardware)
        fprintf(to, ", \"optimizer\": \"%s\"", args->optimizer ? args->optimizer : "autohete");
    if (compare->rule == AH_MEMORY_PUBLISHED)
        fprintf(to, ", \"memory\": \"published\"");
}

/* What holds for one point; without a sweep also what the whole answer is about. */
static void json_point(const struct ah_compare *compare, FILE *to)
{
    const struct ah_point *point = &compare->point;
    int64_t size = compare->inputs->micro_batch, micro_batch = size ? size : point->batch / compare->world_size;
    fprintf(to,
            "\"batch\": %lld, \"micro_batch\": %lld, \"seq\": %lld, \"device_memory_bytes\": %lld, "
            "\"host_memory_bytes\": %lld, \"policies\": ",
            (long long)point->batch, (long long)micro_batch, (long long)point->seq, (long long)point->device_bytes,
            (long long)point->host_bytes);
}

static int show_point(struct ah_compare *compare, int index, FILE *text, FILE *json)
{
    struct ah_evaluation evaluations[AH_COMPARE_POLICIES];
    char label[80] = "", value[32];
    int count = ah__evaluation_count(compare->policies);
    int status = evaluate(evaluations, compare);
    if (status != AH_OK)
        return status;
    if (compare->sweep.name)
        snprintf(label, sizeof label, "%s %s", compare->sweep.name,
                 ah__sweep_text(value, sizeof value, &compare->sweep, index));
    if (index == 0) {
        text_head(compare, text);
        ah__evaluation_head(text);
    }
    ah__evaluation_rows(text, evaluations, count, label);
    if (!compare->sweep.name)
        ah__evaluation_lanes(text, evaluations, count);
    if (!json)
        return AH_OK;
    fputs(compare->sweep.name ? index ? ", {" : ", \"sweep\": [{" : ", ", json);
    json_point(compare, json);
    ah__evaluation_json(json, evaluations, count);
    if (compare->sweep.name)
        fputc('}', json);
    return AH_OK;
}

static int no_memory(void)
{
    ah__out_fault("out of host memory: the line of JSON");
    return AH_ENOMEM;
}

/* The JSON line is kept until every point has an answer, so that a failure leaves none behind. */
int ah__compare_show(struct ah_compare *compare, FILE *text, FILE *json)
{
    char *line = NULL;
    size_t length = 0;
    FILE *kept = json ? open_memstream(&line, &length) : NULL;
    int status = json && !kept ? no_memory() : AH_OK;
    if (kept)
        json_head(compare, kept);
    for (int i = 0; i < compare->sweep.count && status == AH_OK; i++) {
        status = ah__compare_point(compare, i);
        if (status == AH_OK)
            status = show_point(compare, i, text, kept);
    }
    if (status == AH_OK)
        ah__evaluation_foot(text, compare->policies);
    bool whole = !kept || ferror(kept) == 0;
    whole = (!kept || fclose(kept) == 0) && whole;
    if (status == AH_OK && (!whole || (json && !line))) /* closing shrinks it, which takes memory, too */
        status = no_memory();
    if (status == AH_OK && line)
        fprintf(json, "%s%s}\n", line, compare->sweep.name ? "]" : "");
    free(line);
    return status;
}
