#include <string.h>

#include "sched/sched.h"

const struct ah_policy *const ah__policies[] = {
    &ah__policy_autohete,        &ah__policy_autohete_paper,
    &ah__policy_autohete_fifo,   &ah__policy_stronghold,
    &ah__policy_stronghold_best, &ah__policy_patrickstar,
    &ah__policy_zero_offload,    &ah__policy_l2l,
    &ah__policy_resident,        NULL,
};

const struct ah_policy *ah__policy_find(const char *name)
{
    for (int i = 0; ah__policies[i]; i++)
        if (strcmp(ah__policies[i]->name, name) == 0)
            return ah__policies[i];
    return NULL;
}

uint32_t ah__policy_unused(const struct ah_policy *policy)
{
    uint32_t unused = 0;
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        unused |= ah__policy_uses(policy, (enum ah_switch)i) ? 0 : 1U << i;
    return unused;
}

bool ah__policy_is_placed(const struct ah_policy *policy)
{
    return policy->placement != NULL;
}

const char *ah__policy_names(void)
{
    return "autohete, autohete-paper, autohete-fifo, stronghold, stronghold-best, patrickstar, zero-offload, "
           "l2l or resident";
}
