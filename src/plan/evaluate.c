/* Evaluates a policy for a model on a machine: its best plan, in the figures by which systems are compared. */
#include "plan/evaluate.h"

#include <string.h>

#include "plan/search.h"

enum { EVALUATE_ITERATIONS = 8, STEADY_FIRST = 3, STEADY_LAST = 6, POLICIES_MOST = 32 };

/* Computes speeds. Model flops are those of forward and backward; the hardware also recomputes. Flops are of one rank,
 * as partition and plan are; tokens are of all ranks. */
static void speeds(struct ah_evaluation *out, const struct ah_predictor *predictor)
{
    const struct ah_partition *partition = predictor->partition;
    double seconds = (double)out->plan.step_ns / 1e9;
    double model = partition->flops_forward + partition->flops_backward;
    double again = 0;
    for (int block = 1; block <= partition->layers; block++) {
        const struct ah_program *program = ah__code_of(partition, block)->program;
        again += ah__recomputes(&out->plan.switches, block) ? program[AH_PROGRAM_RECOMPUTE].flops : 0;
        again +=
            ah__recomputes_selectively(&out->plan.switches, block) ? program[AH_PROGRAM_RECOMPUTE_SELECTIVE].flops : 0;
    }
    out->tflops_model = model / seconds / 1e12;
    out->tflops_hardware = (model + again * ah__micro_batches(partition)) / seconds / 1e12;
    out->tokens_per_s = (double)(ah__predictor_world_size(predictor) * ah__step_tokens(partition)) / seconds;
}

int ah__evaluation_measure(struct ah_evaluation *out, const struct ah_predictor *predictor)
{
    struct ah_timeline *timeline;
    speeds(out, predictor);
    AH_TRY(ah__plan_timeline(&timeline, &out->plan, predictor, EVALUATE_ITERATIONS));
    ah__timeline_busy(out->lane_busy, timeline, STEADY_FIRST, STEADY_LAST);
    ah_timeline_free(timeline);
    return AH_OK;
}

/* Writes why no plan fits: "device memory: 3.2 GiB too much, host memory: 41.0 GiB too much", or one of them, or two
 * joined by "or". */
static int refuse(struct ah_evaluation *out, const struct ah_search_report *report,
                  const struct ah_predictor *predictor)
{
    const struct {
        const char *join, *name;
        int64_t over;
    } parts[] = {{", ", "device memory", report->least_device_over_bytes},
                 {", ", "host memory", report->least_host_over_bytes},
                 {", ", "disk space", report->least_disk_over_bytes},
                 {", or ", "device memory", report->or_device_over_bytes},
                 {", or ", "host memory", report->or_host_over_bytes}};
    size_t length = 0;
    out->plan = report->least;
    for (size_t i = 0; i < AH_LENGTH(parts); i++) {
        char size[32];
        if (parts[i].over == 0)
            continue;
        length += (size_t)snprintf(out->reason + length, sizeof out->reason - length, "%s%s: %s too much",
                                   length ? parts[i].join : "", parts[i].name,
                                   ah_size_format(size, sizeof size, parts[i].over));
        out->over_bytes = out->over_bytes ? out->over_bytes : parts[i].over;
    }
    return ah__plan_predict(&out->plan, predictor);
}

int ah__plan_evaluate(struct ah_evaluation *out, const struct ah_predictor *predictor, const struct ah_budget *budget,
                      const struct ah_search_options *options)
{
    struct ah_search_report report;
    struct ah_evaluation evaluation = {.fits = false};
    snprintf(evaluation.policy, sizeof evaluation.policy, "%s", predictor->policy->name);
    int status = ah__plan_search_with(&evaluation.plan, &report, predictor, budget, options);
    if (status == AH_OK) {
        evaluation.fits = true;
        status = ah__evaluation_measure(&evaluation, predictor);
    } else if (status == AH_EBUDGET) {
        status = refuse(&evaluation, &report, predictor);
    }
    if (status == AH_OK)
        *out = evaluation;
    return status;
}

/* Fixes those of the switches that the policy knows, so that policies can be compared. */
static int fix_known(struct ah_predictor *predictor, const char *text)
{
    AH_TRY(ah__plan_fixed(&predictor->fixed, text, predictor->partition->layers));
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        if (!ah__policy_uses(predictor->policy, (enum ah_switch)i))
            predictor->fixed.mask &= ~(1U << i);
    return ah__plan_check_fixed(predictor);
}

int ah_plan_evaluate(struct ah_evaluation *out, const struct ah_partition *partition, const struct ah_profile *profile,
                     const struct ah_budget *budget, const char *policy, const struct ah_search_options *options)
{
    struct ah_predictor predictor;
    AH_TRY(ah__predictor_init(&predictor, partition, profile, policy));
    predictor.effort = options ? options->effort : 0;
    int status = fix_known(&predictor, options ? options->fixed : NULL);
    if (status == AH_OK)
        status = ah__plan_evaluate(out, &predictor, budget, options);
    ah__predictor_fini(&predictor);
    return status;
}

const char *const *ah_policy_names(void)
{
    static _Thread_local const char *names[POLICIES_MOST + 1];
    for (int i = 0; i < POLICIES_MOST && ah__policies[i]; i++)
        names[i] = ah__policies[i]->name;
    return names;
}

const char *ah_policy_description(const char *name)
{
    const struct ah_policy *policy = ah__policy_find(name);
    return policy ? policy->description : NULL;
}

bool ah_policy_uses(const char *name, const char *key)
{
    const struct ah_policy *policy = ah__policy_find(name);
    int index = ah__switch_find(key, strlen(key), false);
    return policy && index >= 0 && ah__policy_uses(policy, (enum ah_switch)index);
}
