#include "dev/ranks.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "dev/plugin.h"

/* The ranks of this program. A process joins them once. */
static struct {
    const struct ah_transport *transport;
    struct ah_comm *comm;
    bool together; /* all ranks have reported that they are done */
    bool ended;
    int status;
} program;

/* Environment variables that launchers set for each process, and the implementation of MPI that they use. */
static const struct launcher {
    const char *rank, *ranks; /* variables with the rank and the number of ranks */
    const char *kind;
} launchers[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "openmpi"},
    {"PMI_RANK", "PMI_SIZE", "mpich"},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "openmpi"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "mpich"},
};

/* Returns the launcher; null: no launcher, or it has started only one process. */
static const struct launcher *launcher_find(int *ranks)
{
    for (size_t i = 0; i < AH_LENGTH(launchers); i++) {
        const char *rank = getenv(launchers[i].rank), *count = getenv(launchers[i].ranks);
        *ranks = count ? atoi(count) : 0;
        if (rank && *ranks > 1)
            return &launchers[i];
    }
    return NULL;
}

/* Returns the implementation of MPI to use. */
static const char *kind_of(const struct launcher *launcher)
{
    const char *asked = getenv("AUTOHETE_MPI");
    return asked ? asked : launcher->kind;
}

static int transport_open(const struct ah_transport **out, const char *path)
{
    char why[AH_TRANSPORT_WHY] = "";
    ah_transport_function *function;
    /* Open MPI loads parts that look for its symbols, so they are global. */
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return ah__fail(AH_EDEVICE, "ranks: %s does not load: %s", path, dlerror());
    void *symbol = dlsym(library, AH_TRANSPORT_SYMBOL); /* the library stays loaded: MPI cannot be started twice */
    if (!symbol)
        return ah__fail(AH_EDEVICE, "%s: no symbol " AH_TRANSPORT_SYMBOL ", expected a part of this program", path);
    memcpy(&function, &symbol, sizeof function);
    const struct ah_transport *transport = function(why);
    if (!transport)
        return ah__fail(AH_EDEVICE, "ranks: %s", why);
    if (transport->abi != AH_TRANSPORT_ABI || transport->size != sizeof *transport)
        return ah__fail(AH_EDEVICE, "%s: found ABI %u and %u bytes, expected %d and %zu: it is of another build", path,
                        transport->abi, transport->size, AH_TRANSPORT_ABI, sizeof *transport);
    *out = transport;
    return AH_OK;
}

static int transport_find(const struct ah_transport **out, const char *kind, int ranks)
{
    char path[AH_PLUGIN_PATH_BYTES], name[AH_PLUGIN_NAME_BYTES];
    snprintf(name, sizeof name, "mpi-%s", kind);
    if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != strlen(name) || !ah__plugin_find(path, name))
        return ah__fail(AH_EINPUT,
                        "ranks: found %d started by a launcher, expected libautohete-%s.so to join them: "
                        "this program was built without it",
                        ranks, name);
    return transport_open(out, path);
}

int ah_ranks_open(struct ah_ranks *out)
{
    int world_size;
    const struct launcher *launcher = launcher_find(&world_size);
    if (launcher && !program.comm) {
        AH_TRY(transport_find(&program.transport, kind_of(launcher), world_size));
        AH_TRY(ah__comm_group(&program.comm, program.transport));
        ah__comm_of_program(program.comm);
        if (program.transport->world_size != world_size)
            return ah__fail(AH_EDEVICE,
                            "world_size: found %d that MPI knows of, expected %d that were started: the "
                            "launcher belongs to another MPI than libautohete-mpi-%s.so (AUTOHETE_MPI names one)",
                            program.transport->world_size, world_size, kind_of(launcher));
    }
    *out = (struct ah_ranks){ah__comm()->rank, ah__comm()->world_size, ah__comm()->neighbours};
    return AH_OK;
}

int ah_ranks_end(int status)
{
    if (!program.comm)
        return status;
    if (!program.ended) {
        program.ended = true;
        program.status = program.comm->ops->end(program.comm, status, &program.together);
    }
    return program.status;
}

bool ah_ranks_together(void)
{
    return !program.comm || program.together;
}

void ah_ranks_close(int exit_status)
{
    if (!program.comm)
        return;
    ah__comm_of_program(NULL);
    program.comm->ops->close(program.comm);
    program.comm = NULL;
    program.transport->end(program.transport->context, exit_status, program.together);
}
