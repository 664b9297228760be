#include "comm/comm.h"

/* What one rank gathers or sums is what it brought. */
static int self_collective(struct ah_comm *comm, enum ah_collective kind, void *buffer, int64_t part_count,
                           enum ah_dtype dtype)
{
    (void)comm, (void)kind, (void)dtype;
    if (!buffer || part_count < 0)
        return ah__fail(AH_EINTERNAL, "collective of %lld elements without a buffer", (long long)part_count);
    return AH_OK;
}

static void self_close(struct ah_comm *comm)
{
    (void)comm;
}

struct ah_comm *ah__comm_self(void)
{
    static const struct ah_comm_ops ops = {.collective = self_collective, .close = self_close};
    static struct ah_comm self = {.ops = &ops, .rank = 0, .ranks = 1};
    return &self;
}
