#include "cli/road.h"

#include <string.h>

#include "cli/out.h"

int ah__cli_road_graph(struct ah_cli_road *road, const struct ah_cli_road_args *args)
{
    int status = ah_model_load(&road->model, args->model);
    if (status != AH_OK)
        return status;
    int64_t longest = ah_model_get(road->model)->max_seq;
    int64_t seq = args->seq ? args->seq : longest < 256 ? longest : 256;
    return ah_model_record(&road->graph, road->model, args->batch, seq, AH_F32);
}

int ah__cli_road_partition(struct ah_cli_road *road, const struct ah_cli_road_args *args)
{
    int status = ah__cli_road_graph(road, args);
    return status != AH_OK ? status : ah_partition_new(&road->partition, road->graph);
}

int ah__cli_road_profile(struct ah_cli_road *road, const struct ah_cli_road_args *args)
{
    int status = ah__cli_road_partition(road, args);
    if (status != AH_OK)
        return status;
    if (args->profile)
        return ah_profile_load(&road->profile, args->profile);
    status = ah_dev_open(&road->dev, args->device, &args->dev);
    return status != AH_OK ? status : ah_profile_measure(&road->profile, road->partition, road->dev);
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

int ah__cli_road_plan(struct ah_cli_road *road, const struct ah_cli_road_args *args)
{
    int status = check_policy(args->policy);
    if (status == AH_OK)
        status = ah__cli_road_profile(road, args);
    if (status != AH_OK)
        return status;
    if (strcmp(args->plan, "auto") == 0)
        return ah_plan_search(&road->plan, road->partition, road->profile, &args->budget, args->policy);
    return ah_plan_parse(&road->plan, args->plan, road->partition, road->profile, &args->budget, args->policy);
}

void ah__cli_road_free(struct ah_cli_road *road)
{
    ah_profile_free(road->profile);
    ah_dev_close(road->dev);
    ah_partition_free(road->partition);
    ah_graph_free(road->graph);
    ah_model_free(road->model);
}
