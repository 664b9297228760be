#include "cli/artefacts.h"

#include <string.h>

#include "cli/out.h"

int ah__artefacts_dtype(enum ah_dtype *out, const char *option, const char *word)
{
    if (!word || ah_dtype_parse(out, word) == AH_OK)
        return AH_OK;
    return ah__out_fault("--%s: found '%.40s', expected bf16 or fp32", option, word);
}

int ah__artefacts_graph(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    enum ah_dtype dtype = AH_F32;
    int status = ah__artefacts_dtype(&dtype, "dtype", inputs->dtype);
    if (status == AH_OK)
        status = ah_model_load(&artefacts->model, inputs->model);
    if (status != AH_OK)
        return status;
    int64_t longest = ah_model_get(artefacts->model)->max_seq;
    int64_t seq = inputs->seq ? inputs->seq : longest < 256 ? longest : 256;
    return ah_model_record(&artefacts->graph, artefacts->model, inputs->batch, seq, dtype);
}

int ah__artefacts_partition(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    int status = ah__artefacts_graph(artefacts, inputs);
    struct ah_step_options step = {.clips = inputs->clip > 0};
    return status != AH_OK ? status : ah_partition_new(&artefacts->partition, artefacts->graph, &step);
}

int ah__artefacts_profile(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    int status = ah__artefacts_partition(artefacts, inputs);
    if (status != AH_OK)
        return status;
    if (inputs->profile)
        return ah_profile_load(&artefacts->profile, inputs->profile);
    status = ah_dev_open(&artefacts->dev, inputs->device, &inputs->dev);
    return status != AH_OK ? status : ah_profile_measure(&artefacts->profile, artefacts->partition, artefacts->dev);
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

int ah__artefacts_plan(struct ah_artefacts *artefacts, const struct ah_artefact_inputs *inputs)
{
    int status = check_policy(inputs->policy);
    if (status == AH_OK)
        status = ah__artefacts_profile(artefacts, inputs);
    if (status != AH_OK)
        return status;
    if (strcmp(inputs->plan, "auto") == 0)
        return ah_plan_search(&artefacts->plan, artefacts->partition, artefacts->profile, &inputs->budget,
                              inputs->policy);
    return ah_plan_parse(&artefacts->plan, inputs->plan, artefacts->partition, artefacts->profile, &inputs->budget,
                         inputs->policy);
}

void ah__artefacts_free(struct ah_artefacts *artefacts)
{
    ah_profile_free(artefacts->profile);
    ah_dev_close(artefacts->dev);
    ah_partition_free(artefacts->partition);
    ah_graph_free(artefacts->graph);
    ah_model_free(artefacts->model);
}
