/* autohete report: writes a training's folder as one HTML page. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/out.h"

struct report_args {
    const char *dir, *out;
    bool json;
};
#define AT(field) offsetof(struct report_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    {"out", AH_ARG_OUT, AT(out), "FILE", .help = "HTML file to write (default: report.html in the folder)"},
    {"json", AH_ARG_FLAG, AT(json),
     .help = "print the file's name as one JSON object in the last line; text goes to standard error"},
};

static int save(const struct report_args *args, const char *path)
{
    int status = ah_report_save(args->dir, args->out);
    if (status != AH_OK)
        return ah__out_fail(status);
    fprintf(args->json ? stderr : stdout, "report: %s\n", path);
    if (!args->json)
        return 0;
    printf("{\"report\": ");
    ah__out_string(stdout, path);
    printf("}\n");
    return 0;
}

static int run(const void *given)
{
    static const char name[] = "report.html";
    const struct report_args *args = given;
    if (args->out)
        return save(args, args->out);
    size_t size = strlen(args->dir) + sizeof name + 1;
    char *path = malloc(size);
    if (!path)
        return ah__out_fail(ah__out_fault("no memory for a path"));
    snprintf(path, size, "%s/%s", args->dir, name);
    int exit_status = save(args, path);
    free(path);
    return exit_status;
}

static struct report_args args;
const struct ah_command ah__command_report = {
    .name = "report",
    .usage = "DIR [--out FILE]",
    .summary = "Write curves, plan, timeline and memory of a training as one HTML page.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .word = AT(dir),
    .word_meta = "DIR",
    .run = run,
};
