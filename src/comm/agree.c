/* Messages between the programs of several ranks, sent between steps. */
#include <string.h>

#include "base/alloc.h"
#include "comm/comm.h"

enum { MESSAGE_BYTES = 512 };

/* A rank's status, with the message of a failure. */
struct word {
    int status;
    char message[MESSAGE_BYTES];
};

int ah__comm_agree(struct ah_comm *comm, int status)
{
    struct word word = {.status = status};
    double failed = comm->world_size; /* the lowest rank that failed */
    if (comm->world_size == 1)
        return status;
    if (status != AH_OK)
        snprintf(word.message, sizeof word.message, "%s", ah_error());
    for (int rank = 0; rank < comm->world_size; rank++) {
        double mine = comm->rank == rank && status != AH_OK;
        AH_TRY(ah__comm_sum(comm, &mine, 1));
        if (mine > 0 && rank < failed)
            failed = rank;
    }
    if (failed >= comm->world_size)
        return AH_OK;
    AH_TRY(comm->ops->move(comm, &word, sizeof word, (int)failed, AH_ALL_RANKS));
    word.message[MESSAGE_BYTES - 1] = 0;
    return failed > 0 ? ah__fail(word.status, "rank %d: %s", (int)failed, word.message)
                      : ah__fail(word.status, "%s", word.message);
}

int ah__comm_text(char **text, struct ah_comm *comm)
{
    int64_t length = comm->rank == 0 && *text ? (int64_t)strlen(*text) : -1;
    char *own = NULL;
    if (comm->world_size == 1)
        return AH_OK;
    AH_TRY(comm->ops->move(comm, &length, sizeof length, 0, AH_ALL_RANKS));
    int status = comm->rank && length >= 0 ? ah__new(&own, (size_t)length + 1, 1) : AH_OK;
    status = ah__comm_agree(comm, status);
    if (status == AH_OK && length >= 0)
        status = comm->ops->move(comm, comm->rank ? own : *text, length, 0, AH_ALL_RANKS);
    if (status != AH_OK) {
        ah__free(own);
        return status;
    }
    if (comm->rank)
        *text = own;
    return AH_OK;
}

int ah__comm_sum(struct ah_comm *comm, double *values, int count)
{
    return comm->ops->collective(comm, AH_SUM_DOUBLES, values, count, AH_F32);
}
