#include "cli/compare.h"

#include <stdlib.h>
#include <string.h>

#include "cli/artefacts.h"
#include "cli/evaluation.h"
#include "cli/machine.h"
#include "cli/nearest.h"
#include "cli/out.h"

bool ah__compare_wanted(const struct ah_session_options *inputs, const struct ah_compare_args *args)
{
    bool several = strcmp(inputs->policy, "all") == 0 || strchr(inputs->policy, ',');
    return inputs->hardware || args->sweep || inputs->hardware_ranks || inputs->optimizer || several;
}

/* ---- the question ------------------------------------------------------------------------------------------------ */

static const char *nearest_policy(const char *name)
{
    size_t count = 0;
    const char *const *names = ah_policy_names();
    while (names[count])
        count++;
    return ah__name_nearest(name, names, count);
}

/* Reports an unknown policy: "--policy: found 'stronghld', expected all, or names out of ..., did you mean
 * 'stronghold'?" */
static int unknown_policy(const char *name)
{
    char list[224] = "";
    const char *nearest = nearest_policy(name);
    for (const char *const *each = ah_policy_names(); *each; each++)
        snprintf(list + strlen(list), sizeof list - strlen(list), ", %s", *each);
    return ah__out_fault("--policy: found '%.40s', expected all%s%s%s%s", name, list, nearest ? "; did you mean '" : "",
                         nearest ? nearest : "", nearest ? "'?" : "");
}

/* Reads --policy: "all", or names separated by commas. */
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

/* Refuses a quantity that is both given and swept. */
static int check_sweep(const struct ah_compare *compare)
{
    const struct ah_session_options *inputs = compare->inputs;
    struct ah_point given = {
        .seq = inputs->seq, .device_bytes = inputs->budget.device_bytes, .host_bytes = inputs->budget.host_bytes};
    int64_t value;
    memcpy(&value, (const char *)&given + compare->sweep.at, sizeof value);
    if (compare->sweep.name && value != 0)
        return ah__out_fault("--%s: found it beside --sweep %s, expected one of them", compare->sweep.name,
                             compare->sweep.name);
    return AH_OK;
}

static struct ah_point point_at(const struct ah_compare *compare, int index)
{
    const struct ah_session_options *inputs = compare->inputs;
    struct ah_point point = {inputs->batch, inputs->seq, inputs->budget.device_bytes, inputs->budget.host_bytes};
    ah__sweep_set(&point, &compare->sweep, index);
    return point;
}

static struct ah_session_options options_at(const struct ah_compare *compare, const struct ah_point *point)
{
    struct ah_session_options options = *compare->inputs;
    options.size = sizeof options;
    options.policy = compare->policies[0];
    for (int i = 0; options.plan && strstr(options.plan, "passes=") && compare->policies[i];
         i++) /* a policy that ignores passes has one */
        if (ah_policy_uses(compare->policies[i], "passes"))
            options.policy = compare->policies[i];
    options.batch = point->batch;
    options.seq = point->seq;
    return options;
}

/* Opens a session for every point, so that a fault in one of them is reported before the first is evaluated. */
static int check_points(const struct ah_compare *compare)
{
    if (compare->inputs->micro_batch == AH_MICRO_BATCH_AUTO)
        return ah__out_fault("--micro-batch: found auto, expected a size where policies or machines are compared");
    for (int i = 0; i < compare->sweep.count; i++) {
        const struct ah_point point = point_at(compare, i);
        const struct ah_session_options options = options_at(compare, &point);
        struct ah_session *session;
        int status = ah_session_open(&session, &options);
        if (status != AH_OK)
            return status;
        ah_session_close(session);
    }
    return AH_OK;
}

int ah__compare_init(struct ah_compare *out, const struct ah_session_options *inputs,
                     const struct ah_compare_args *args)
{
    *out = (struct ah_compare){.inputs = inputs, .args = args};
    int status = ah__machine_check(inputs);
    if (status == AH_OK)
        status = read_policies(out, inputs->policy);
    if (status == AH_OK)
        status = ah__sweep_parse(&out->sweep, args->sweep);
    if (status == AH_OK)
        status = check_sweep(out);
    return status;
}

void ah__compare_fini(struct ah_compare *compare)
{
    ah_session_close(compare->session);
}

/* ---- a point ----------------------------------------------------------------------------------------------------- */

/* Opens the session for a point, unless one of its batch and sequence length is open. Prints to standard error, since
 * the table has not begun. */
static int session_for(struct ah_compare *compare, const struct ah_point *point)
{
    const struct ah_session_options options = options_at(compare, point);
    if (compare->session && point->batch == compare->batch && point->seq == compare->seq)
        return AH_OK;
    ah_session_close(compare->session);
    memset(compare->before, 0, sizeof compare->before);
    compare->batch = point->batch;
    compare->seq = point->seq;
    return ah__session_start(&compare->session, &options, AH_SESSION_PROFILE, stderr);
}

int ah__compare_point(struct ah_compare *compare, int index)
{
    struct ah_point point = point_at(compare, index);
    int status = compare->session ? AH_OK : check_points(compare);
    if (status == AH_OK)
        status = session_for(compare, &point);
    if (status != AH_OK)
        return status;
    const struct ah_session_info *info = ah_session_get(compare->session);
    bool described = info->hardware.name != NULL;
    point.seq = info->seq;
    if (!point.device_bytes)
        point.device_bytes = info->budget.device_bytes;
    if (!point.host_bytes && described)
        point.host_bytes = info->hardware.host_bytes;
    compare->point = point;
    compare->budget = (struct ah_budget){.device_bytes = point.device_bytes,
                                         .host_bytes = point.host_bytes / info->world_size,
                                         .disk_bytes = info->budget.disk_bytes};
    return AH_OK;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

int ah__compare_search(struct ah_compare *compare)
{
    const struct ah_search_options options = {.effort = compare->inputs->effort, .fixed = compare->inputs->plan};
    return ah_plan_search(&compare->plan, ah_session_partition(compare->session), ah_session_profile(compare->session),
                          &compare->budget, compare->policies[0], &options);
}

/* Adds to the reason a change of options with which the step would fit. A sweep gets no such advice: it tries other
 * values itself. */
static int say_advice(struct ah_evaluation *evaluation, const struct ah_compare *compare, const char *policy)
{
    struct ah_advice advice = {.tokens_per_s = 0};
    size_t said = strlen(evaluation->reason);
    int status =
        compare->sweep.name ? AH_OK : ah_session_advise(&advice, compare->session, &compare->budget, policy, false);
    if (status == AH_OK && *advice.change)
        snprintf(evaluation->reason + said, sizeof evaluation->reason - said, "; %s would do", advice.change);
    return status;
}

/* Evaluates all policies at a point, each starting from its plan at the point before. A sweep goes upwards: with more
 * memory no policy that searches is slower than before. */
static int evaluate(struct ah_evaluation *evaluations, struct ah_compare *compare)
{
    int status = AH_OK;
    for (int i = 0; compare->policies[i] && status == AH_OK; i++) {
        struct ah_plan *before = &compare->before[i];
        const struct ah_search_options options = {.warm_start = before->switches.layers ? before : NULL,
                                                  .effort = compare->inputs->effort,
                                                  .fixed = compare->inputs->plan};
        status =
            ah_plan_evaluate(&evaluations[i], ah_session_partition(compare->session),
                             ah_session_profile(compare->session), &compare->budget, compare->policies[i], &options);
        if (status == AH_OK && evaluations[i].fits)
            *before = evaluations[i].plan;
        else if (status == AH_OK)
            status = say_advice(&evaluations[i], compare, compare->policies[i]);
    }
    return status;
}

static const char *optimizer_of(const struct ah_compare *compare)
{
    return compare->inputs->optimizer ? compare->inputs->optimizer : "autohete";
}

static void text_head(const struct ah_compare *compare, FILE *to)
{
    char size[32];
    const struct ah_point *point = &compare->point;
    const char *swept = compare->sweep.name ? compare->sweep.name : "";
    const struct ah_session_info *info = ah_session_get(compare->session);
    const struct ah_hardware_info *hardware = info->hardware.name ? &info->hardware : NULL;
    fprintf(to, "%s", compare->inputs->model_path);
    if (hardware) {
        fprintf(to, "\non %s: %s\n%d of %d device%s, ", hardware->name, hardware->description, info->world_size,
                hardware->devices, hardware->devices == 1 ? "" : "s");
        ah__formats_print(to, info->dtype, compare->inputs);
        fprintf(to, ", rates of %s", optimizer_of(compare));
    }
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
    if (compare->inputs->dev.disk)
        fprintf(to, "disk %s, ", compare->inputs->dev.disk);
    fprintf(to, "%d polic%s\n\n", ah__evaluation_count(compare->policies),
            ah__evaluation_count(compare->policies) == 1 ? "y" : "ies");
}

static void json_head(const struct ah_compare *compare, FILE *to)
{
    const struct ah_session_info *info = ah_session_get(compare->session);
    const char *hardware = info->hardware.name;
    fputs("{\"model\": ", to);
    ah__out_string(to, compare->inputs->model_path);
    fputs(", \"hardware\": ", to);
    if (hardware)
        ah__out_string(to, hardware);
    else
        fputs("null", to);
    fprintf(to, ", \"ranks\": %d, \"dtype\": \"%s\"", info->world_size, info->dtype);
    if (hardware)
        fprintf(to, ", \"optimizer\": \"%s\"", optimizer_of(compare));
}

/* Prints the values of one point. Without a sweep they are also those of the whole answer. */
static void json_point(const struct ah_compare *compare, FILE *to)
{
    const struct ah_point *point = &compare->point;
    int64_t micro_batch = ah_session_get(compare->session)->micro_batch;
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
    const bool disk = compare->inputs->dev.disk != NULL;
    int count = ah__evaluation_count(compare->policies);
    int status = evaluate(evaluations, compare);
    if (status != AH_OK)
        return status;
    if (compare->sweep.name)
        snprintf(label, sizeof label, "%s %s", compare->sweep.name,
                 ah__sweep_text(value, sizeof value, &compare->sweep, index));
    if (index == 0) {
        text_head(compare, text);
        ah__evaluation_head(text, disk);
    }
    ah__evaluation_rows(text, evaluations, count, label, disk);
    if (!compare->sweep.name)
        ah__evaluation_lanes(text, evaluations, count, disk);
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

/* The JSON line is kept until every point has an answer, so that a failure prints no part of it. */
int ah__compare_show(struct ah_compare *compare, FILE *text, FILE *json)
{
    char *line = NULL;
    size_t length = 0;
    FILE *kept = json ? open_memstream(&line, &length) : NULL;
    int status = json && !kept ? no_memory() : AH_OK;
    for (int i = 0; i < compare->sweep.count && status == AH_OK; i++) {
        status = ah__compare_point(compare, i);
        if (status == AH_OK && kept && i == 0)
            json_head(compare, kept);
        if (status == AH_OK)
            status = show_point(compare, i, text, kept);
    }
    if (status == AH_OK)
        ah__evaluation_foot(text, compare->policies, compare->inputs->dev.disk);
    bool whole = !kept || ferror(kept) == 0;
    whole = (!kept || fclose(kept) == 0) && whole;
    if (status == AH_OK && (!whole || (json && !line))) /* closing shrinks the buffer, which takes memory, too */
        status = no_memory();
    if (status == AH_OK && line)
        fprintf(json, "%s%s}\n", line, compare->sweep.name ? "]" : "");
    free(line);
    return status;
}
