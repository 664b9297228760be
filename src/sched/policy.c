#include "sched/sched.h"

#include <string.h>

const struct ah_policy *const ah__policies[] = {&ah__policy_autohete, &ah__policy_autohete_fifo, &ah__policy_resident,
                                                NULL};

const struct ah_policy *ah__policy_find(const char *name)
{
    for (int i = 0; ah__policies[i]; i++)
        if (strcmp(ah__policies[i]->name, name) == 0)
            return ah__policies[i];
    return NULL;
}
