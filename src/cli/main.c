/* autohete COMMAND [option ...]: a client of the public interface. Exit status 0, 1 (the run failed) or 2 (bad
 * input). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/model_name.h"
#include "cli/nearest.h"
#include "cli/out.h"
#include "cli/outputs.h"

const struct ah_command *const ah__commands[] = {
    &ah__command_train,
    &ah__command_data,
    &ah__command_tokenize,
    &ah__command_plan,
    &ah__command_profile,
    &ah__command_simulate,
    &ah__command_fit,
    &ah__command_generate,
    &ah__command_chat,
    &ah__command_eval,
    &ah__command_export,
    &ah__command_merge,
    &ah__command_inspect,
    &ah__command_report,
    &ah__command_devices,
    &ah__command_completion,
    NULL,
};
enum { COMMANDS = sizeof ah__commands / sizeof ah__commands[0] - 1 };

static int version(void)
{
    printf("autohete %s\n", ah_version());
    return 0;
}

static int help(FILE *to)
{
    fprintf(to, "usage: autohete COMMAND [option ...]\n\n"
                "Trains language models that do not fit into the memory of the accelerator.\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", ah__commands[i]->name, ah__commands[i]->summary);
    fprintf(to, "\n'autohete COMMAND --help' lists the options of a command; --version prints the version.\n");
    return 0;
}

static const struct ah_command *command_find(const char *name)
{
    const char *names[COMMANDS + 1];
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = ah__commands[i]->name;
        if (strcmp(name, names[i]) == 0)
            return ah__commands[i];
    }
    names[COMMANDS] = "help";
    const char *nearest = ah__name_nearest(name, names, COMMANDS + 1);
    ah__out_fail(ah__out_fault("found '%.100s', expected a command%s%s%s", name, nearest ? ", did you mean '" : "",
                               nearest ? nearest : " (see 'autohete --help')", nearest ? "'?" : ""));
    return NULL;
}

static struct ah_ranks ranks;

static int alone(const struct ah_command *command)
{
    fprintf(stderr, "autohete: %s: found %d ranks, expected one: only train, plan and profile run on several\n",
            command->name, ranks.world_size);
    return 2;
}

/* Refuses surroundings in which libraries below fail in ways of their own: by a crash, or with a message about
 * something else. */
static int surroundings_check(void)
{
    static const struct {
        const char *name;
        int limit;
        long least_kib;
    } rows[] = {{"stack", RLIMIT_STACK, 512}, {"address space", RLIMIT_AS, 256 << 10}};
    char folder[4096];
    if (!getcwd(folder, sizeof folder) && errno != ERANGE)
        return ah__out_fault("the working folder: cannot find it: %s", strerror(errno));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)rows[i].limit, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
            limit.rlim_cur / 1024 < (rlim_t)rows[i].least_kib)
            return ah__out_fault("the limit of %s (ulimit): found %lu KiB, expected at least %ld", rows[i].name,
                                 (unsigned long)(limit.rlim_cur / 1024), rows[i].least_kib);
    }
    return AH_OK;
}

static int run(const struct ah_command *command, int argc, char **argv)
{
    struct ah_args_error error;
    ah__out_command(command);
    switch (ah__args_parse(command, argc, argv, &error)) {
    case AH_ARGS_HELP:
        ah__args_help(command, stdout);
        return 0;
    case AH_ARGS_VERSION:
        return version();
    case AH_ARGS_WRONG:
        return ah__out_fail(ah__out_fault("%s", error.text));
    case AH_ARGS_RUN:
        break;
    }
    if (ranks.world_size > 1 && !command->together)
        return alone(command);
    int status = surroundings_check();
    if (status == AH_OK)
        status = ah__model_names_resolve(command);
    if (status == AH_OK)
        status = ah__outputs_check(command);
    if (status != AH_OK)
        return ah__out_fail(status);
    return command->run(command->args);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0)
        return version();
    bool asks = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0;
    if (asks && argc == 2)
        return help(stdout);
    const struct ah_command *command = command_find(argv[asks ? 2 : 1]);
    if (!command)
        return 2;
    if (!asks)
        return run(command, argc - 2, argv + 2);
    ah__args_help(command, stdout);
    return 0;
}

/* Opens missing standard streams as /dev/null. Otherwise the first files opened would take their descriptors, and text
 * meant for a terminal would be written into a checkpoint. False: they cannot be opened. */
static bool streams_open(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

/* Opens the ranks. Only rank 0 keeps its output. The others keep a copy of standard error in *voice, for errors that
 * rank 0 cannot report; -1: there is no copy. Returns an exit status. */
static int ranks_init(int *voice)
{
    int status = ah_ranks_open(&ranks);
    *voice = -1;
    if (status != AH_OK)
        return ah__out_fail(status);
    if (ranks.rank == 0)
        return 0;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    *voice = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (nothing >= 0) {
        dup2(nothing, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
        close(nothing);
    }
    return 0;
}

/* Ends all ranks alike, with one message. If another rank hangs, rank 0 says so and ends them all; if rank 0 hangs,
 * another rank has to. Returns the exit status. */
static int ranks_end(int status, int voice)
{
    enum { FIRST_SECONDS = 2 };
    int together = ah_ranks_end(status ? AH_EINPUT : AH_OK);
    if (status == 0 && together != AH_OK)
        status = ah__out_fail(together);
    if (ah_ranks_together() || ranks.rank == 0)
        return status;
    sleep(FIRST_SECONDS);
    if (voice >= 0)
        dprintf(voice, "autohete: %s\n", ah_error());
    return status;
}

int main(int argc, char **argv)
{
    enum { LAST_SECONDS = 1 };
    int voice;
    if (!streams_open())
        return 1;
    /* a file over the size limit is a failed write with a message, as on a full disk */
    signal(SIGXFSZ, SIG_IGN);
    int status = ranks_init(&voice);
    if (status == 0)
        status = dispatch(argc, argv);
    status = ranks_end(status, voice);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "autohete: standard output: %s\n", strerror(errno));
        status = status ? status : 1;
    }
    ah_ranks_close(status);
    if (status && ranks.rank > 0) /* a launcher may drop output of other ranks once one has failed */
        sleep(LAST_SECONDS);
    return status;
}
