#include "cli/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/artefacts.h"
#include "cli/machine.h"
#include "cli/model_name.h"
#include "cli/out.h"

enum { SEQ_DEFAULT = 1024 };

static const char *dtype_of(const struct ah_fit_args *args)
{
    return args->inputs.dtype ? args->inputs.dtype : "bf16";
}

/* Tunes everything: to measure a machine, and for a model that the tuning options do not suit. */
static const struct ah_tuning no_tuning;

/* ---- models ------------------------------------------------------------------------------------------------------ */

static struct ah_session_options options_of(const struct ah_fit *fit, const struct ah_fit_row *row)
{
    struct ah_session_options options = fit->inputs;
    options.model_path = row->path;
    options.seq = row->seq;
    return options;
}

/* Fills name, sizes and longest sequence of the model at `path`, from a graph of one short sequence. */
static int row_init(struct ah_fit_row *row, const struct ah_fit *fit, const char *path, const struct ah_tuning *tuning)
{
    struct ah_session *session;
    *row = (struct ah_fit_row){.path = path, .seq = 1};
    ah__model_name(row->name, sizeof row->name, path);
    struct ah_session_options options = options_of(fit, row);
    options.tuning = *tuning;
    options.hardware = NULL;
    options.hardware_ranks = 0;
    options.micro_batch = 1;
    options.dev.disk = NULL;
    options.plan = NULL; /* it belongs to the step that is asked for */
    int status = ah__session_start(&session, &options, AH_SESSION_PARTITION, NULL);
    if (status != AH_OK)
        return status;
    row->max_seq = ah_model_get(ah_session_model(session))->max_seq;
    row->parameters = ah_partition_params(ah_session_partition(session));
    row->seq = fit->inputs.seq ? fit->inputs.seq : row->max_seq < SEQ_DEFAULT ? row->max_seq : SEQ_DEFAULT;
    ah_session_close(session);
    return AH_OK;
}

/* Fills a row as row_init does. If there are several models, one that cannot be frozen or adapted as asked for keeps
 * its row, which says so. */
static int row_init_any(struct ah_fit_row *row, const struct ah_fit *fit, const char *path)
{
    char refused[sizeof row->refused];
    int status = row_init(row, fit, path, &fit->inputs.tuning);
    if (status != AH_EINPUT || fit->count < 2)
        return status;
    snprintf(refused, sizeof refused, "%s", ah_error());
    status = row_init(row, fit, path, &no_tuning);
    memcpy(row->refused, refused, sizeof refused);
    return status;
}

static int by_parameters(const void *a, const void *b)
{
    const struct ah_fit_row *first = a, *second = b;
    if (first->parameters != second->parameters)
        return first->parameters < second->parameters ? -1 : 1;
    return strcmp(first->name, second->name);
}

static int no_memory(void)
{
    ah__out_fault("out of host memory: the rows of the table");
    return AH_ENOMEM;
}

static int rows_init(struct ah_fit *fit, const char *const *paths)
{
    int status = AH_OK;
    fit->rows = calloc((size_t)fit->count, sizeof *fit->rows);
    if (!fit->rows)
        return no_memory();
    for (int i = 0; i < fit->count && status == AH_OK; i++)
        status = row_init_any(&fit->rows[i], fit, paths[i]);
    if (status == AH_OK)
        qsort(fit->rows, (size_t)fit->count, sizeof *fit->rows, by_parameters);
    return status;
}

int ah__fit_init(struct ah_fit *out, const struct ah_fit_args *args)
{
    *out = (struct ah_fit){.args = args, .inputs = args->inputs};
    out->inputs.size = sizeof out->inputs;
    out->inputs.dtype = dtype_of(args);
    out->count = args->models.count;
    int status = out->count ? AH_OK : ah_bundled_models(&out->bundled, &out->count);
    return status == AH_OK ? rows_init(out, out->bundled ? (const char *const *)out->bundled : args->models.text)
                           : status;
}

void ah__fit_fini(struct ah_fit *fit)
{
    if (fit->measured[0])
        unlink(fit->measured);
    if (fit->drive[0])
        unlink(fit->drive);
    if (fit->folder[0])
        rmdir(fit->folder);
    free(fit->rows);
    if (fit->bundled)
        ah_bundled_models_free(fit->bundled, fit->count);
}

/* ---- this machine ------------------------------------------------------------------------------------------------ */

/* Returns the model whose block is timed to measure the device. It is small enough to be quick; a processor reaches its
 * full speed with small products, a GPU does not. */
static const char *reference_name(bool processor)
{
    return processor ? "gpt2-124m" : "llama-3.2-1b";
}

static int device_is_processor(bool *out, const struct ah_fit *fit)
{
    struct ah_session *session;
    struct ah_session_options options = options_of(fit, &fit->rows[0]);
    options.batch = options.micro_batch = options.seq = 1;
    options.plan = NULL;
    options.dev.disk = NULL;
    options.tuning = no_tuning;
    int status = ah__session_start(&session, &options, AH_SESSION_DEVICE, NULL);
    if (status == AH_OK)
        *out = strcmp(ah_session_get(session)->device.name, "cpu") == 0;
    ah_session_close(session);
    return status;
}

/* Fills the memory budgets that are not given. A processor shares the host's memory: an eighth of it is host memory by
 * default. */
static int budget_fill(struct ah_budget *budget, int64_t device_bytes, bool processor)
{
    enum { HOST_PART = 8 };
    int64_t memory = ah__machine_memory(), shared = processor ? memory : 0;
    if (!budget->device_bytes)
        budget->device_bytes = processor ? memory - memory / HOST_PART : device_bytes;
    if (!budget->host_bytes && processor && budget->device_bytes >= shared)
        return ah__out_fault("--device-memory: found %lld, expected less than this machine's %lld bytes, which host "
                             "and device share",
                             (long long)budget->device_bytes, (long long)memory);
    if (!budget->host_bytes)
        budget->host_bytes = processor ? memory - budget->device_bytes : memory;
    return AH_OK;
}

/* Returns true if the disk is folders of this machine, whose drives are measured; false if it is a described drive. */
static bool names_folders(const char *disk)
{
    struct stat info;
    return disk && (strchr(disk, ',') || (stat(disk, &info) == 0 && S_ISDIR(info.st_mode)));
}

static int file_make(struct ah_fit *fit, const struct ah_session *session)
{
    int status = ah__out_folder(fit->folder);
    if (status != AH_OK)
        return status;
    snprintf(fit->measured, sizeof fit->measured, "%s/this-machine.json", fit->folder);
    status = ah__machine_save(session, fit->measured);
    if (status != AH_OK || !names_folders(fit->inputs.dev.disk))
        return status;
    snprintf(fit->drive, sizeof fit->drive, "%s/this-drive.json", fit->folder);
    return ah__machine_save_drive(session, fit->drive);
}

/* Returns the options of the step whose blocks are timed. */
static struct ah_session_options measured_options(const struct ah_fit *fit, const struct ah_fit_row *row,
                                                  bool processor)
{
    enum { PROCESSOR_SEQ = 256 };
    struct ah_session_options options = options_of(fit, row);
    options.seq = row->seq < row->max_seq ? row->seq : row->max_seq;
    options.plan = NULL;
    if (!names_folders(options.dev.disk))
        options.dev.disk = NULL;
    options.tuning = no_tuning;
    if (!processor)
        return options;
    options.seq = PROCESSOR_SEQ;
    options.batch = 1;
    options.micro_batch = 1;
    return options;
}

/* Times a block of one model on the device and saves a hardware file, from which every model is estimated. */
static int measure(struct ah_fit *fit)
{
    bool processor = false;
    char *path = NULL;
    struct ah_fit_row row;
    struct ah_session *session = NULL;
    int status = device_is_processor(&processor, fit);
    const char *name = reference_name(processor);
    if (status == AH_OK)
        status = ah__model_named(&path, name);
    if (status == AH_OK && !path)
        status = ah__out_fault("models: found no %s.json here, beside the program or installed", name);
    if (status == AH_OK)
        status = row_init(&row, fit, path, &no_tuning);
    if (status != AH_OK) {
        free(path);
        return status;
    }
    struct ah_session_options options = measured_options(fit, &row, processor);
    fprintf(stderr, "this machine, measured with %s\n", name);
    status = ah__session_start(&session, &options, AH_SESSION_PROFILE, stderr);
    if (status == AH_OK)
        status = budget_fill(&fit->inputs.budget, ah_session_get(session)->budget.device_bytes, processor);
    if (status == AH_OK)
        status = file_make(fit, session);
    ah_session_close(session);
    free(path);
    return status;
}

int ah__fit_machine(struct ah_fit *fit)
{
    int status = fit->inputs.hardware ? AH_OK : measure(fit);
    if (status != AH_OK || fit->inputs.hardware)
        return status;
    fit->inputs.hardware = fit->measured;
    fit->inputs.device = "auto";
    fit->inputs.dev = (struct ah_dev_options){.disk = fit->drive[0] ? fit->drive : fit->inputs.dev.disk};
    return AH_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void machine_take(struct ah_fit *fit, const struct ah_session_info *info)
{
    snprintf(fit->machine, sizeof fit->machine, "%s", info->hardware.name);
    snprintf(fit->description, sizeof fit->description, "%s", info->hardware.description);
    fit->budget = info->budget;
    fit->ranks = info->world_size;
}

static int row_evaluate(struct ah_fit *fit, struct ah_fit_row *row)
{
    struct ah_session *session;
    const struct ah_session_options options = options_of(fit, row);
    const struct ah_search_options search = {.effort = options.effort, .fixed = options.plan};
    int status = ah__session_start(&session, &options, AH_SESSION_PROFILE, NULL);
    if (status == AH_OK)
        machine_take(fit, ah_session_get(session));
    if (status == AH_OK)
        status = ah_plan_evaluate(&row->evaluation, ah_session_partition(session), ah_session_profile(session),
                                  &fit->budget, options.policy, &search);
    if (status == AH_OK && !row->evaluation.fits)
        status = ah_session_advise(&row->advice, session, &fit->budget, options.policy, true);
    ah_session_close(session);
    row->known = true;
    return status;
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static const char *reason_of(char *text, size_t size, const struct ah_fit_row *row)
{
    if (row->known || row->refused[0])
        return row->known ? row->evaluation.reason : row->refused;
    snprintf(text, size, "sequences: at most %lld tokens", (long long)row->max_seq);
    return text;
}

/* Prints a refusal: "no   host memory: 16.8 GiB too much; --moments int8 would do (2103 tokens/s)" */
static void refusal_print(const struct ah_fit_row *row, FILE *to)
{
    char text[80];
    fprintf(to, "no   %s", reason_of(text, sizeof text, row));
    if (*row->advice.change)
        fprintf(to, "; %s would do", row->advice.change);
    if (row->advice.tokens_per_s > 0)
        fprintf(to, " (%.1f tokens/s)", row->advice.tokens_per_s);
    fputc('\n', to);
}

/* Prints what is on disk and what a day writes there; "-": nothing. */
static void disk_print(const struct ah_plan *plan, FILE *to)
{
    char disk[32] = "-", day[32] = "-";
    if (plan->disk_peak_bytes > 0)
        ah_size_format(disk, sizeof disk, plan->disk_peak_bytes);
    if (plan->disk_written_bytes > 0)
        ah_size_format(day, sizeof day, ah_plan_day_bytes(plan, plan->step_ns));
    fprintf(to, " %10s %10s", disk, day);
}

static void row_print(const struct ah_fit *fit, const struct ah_fit_row *row, FILE *to)
{
    char device[32], host[32];
    const struct ah_evaluation *found = &row->evaluation;
    fprintf(to, "%-20s %8.2f B %7lld  ", row->name, (double)row->parameters * 1e-9, (long long)row->seq);
    if (!row->known || !found->fits) {
        refusal_print(row, to);
        return;
    }
    fprintf(to, "yes %11.1f %7.2f %10s %10s", found->tokens_per_s, found->tflops_model,
            ah_size_format(device, sizeof device, found->plan.device_peak_bytes),
            ah_size_format(host, sizeof host, found->plan.host_peak_bytes));
    if (fit->inputs.dev.disk)
        disk_print(&found->plan, to);
    fputc('\n', to);
}

static void head_print(const struct ah_fit *fit, FILE *to)
{
    char device[32], host[32], disk[32];
    fprintf(to, "on %s: %s\n", fit->machine, fit->description);
    if (fit->ranks > 1)
        fprintf(to, "%d devices, figures of memory are of one\n", fit->ranks);
    ah__formats_print(to, fit->inputs.dtype, &fit->inputs);
    fprintf(to, ", %lld sequences in a step, device memory %s, host memory %s", (long long)fit->inputs.batch,
            ah_size_format(device, sizeof device, fit->budget.device_bytes),
            ah_size_format(host, sizeof host, fit->budget.host_bytes));
    if (fit->inputs.dev.disk)
        fprintf(to, ", %s on the disk %s", ah_size_format(disk, sizeof disk, fit->budget.disk_bytes),
                fit->args->inputs.dev.disk);
    fputs("; predicted, not run\n\n", to);
    fprintf(to, "%-20s %10s %7s  %-4s %10s %7s %10s %10s", "model", "parameters", "seq", "fits", "tokens/s", "TFLOPS",
            "device", "host");
    if (fit->inputs.dev.disk)
        fprintf(to, " %10s %10s", "disk", "writes/day");
    fputc('\n', to);
}

/* Prints the rows before `until` that have not been printed, the table's head before the first. */
static void rows_print(struct ah_fit *fit, int until, FILE *to)
{
    if (!fit->printed)
        head_print(fit, to);
    for (; fit->printed < until; fit->printed++)
        row_print(fit, &fit->rows[fit->printed], to);
    fflush(to);
}

int ah__fit_rows(struct ah_fit *fit, FILE *to)
{
    int status = AH_OK, known = 0;
    for (int i = 0; i < fit->count && status == AH_OK; i++) {
        if (fit->rows[i].seq > fit->rows[i].max_seq || fit->rows[i].refused[0])
            continue;
        status = row_evaluate(fit, &fit->rows[i]);
        if (status == AH_OK)
            rows_print(fit, i + 1, to);
        known++;
    }
    if (status == AH_OK && known)
        rows_print(fit, fit->count, to);
    if (status == AH_OK && !known && fit->rows[0].refused[0])
        status = ah__out_fault("%s: %s", fit->rows[0].name, fit->rows[0].refused);
    else if (status == AH_OK && !known)
        status = ah__out_fault("--seq: found %lld, expected at most %lld, the longest sequence of %s",
                               (long long)fit->inputs.seq, (long long)fit->rows[0].max_seq, fit->rows[0].name);
    return status;
}

static void number(FILE *to, const char *key, double value)
{
    fprintf(to, ", \"%s\": ", key);
    ah__out_number(to, value);
}

static void row_json(const struct ah_fit_row *row, FILE *to)
{
    char text[80];
    const struct ah_evaluation *found = &row->evaluation;
    bool fits = row->known && found->fits;
    fputs("{\"model\": ", to);
    ah__out_string(to, row->path);
    fputs(", \"name\": ", to);
    ah__out_string(to, row->name);
    fprintf(to, ", \"parameters\": %lld, \"seq\": %lld, \"fits\": %s, \"reason\": ", (long long)row->parameters,
            (long long)row->seq, fits ? "true" : "false");
    ah__out_string(to, fits ? "" : reason_of(text, sizeof text, row));
    fputs(", \"would_do\": ", to);
    ah__out_string(to, row->advice.change);
    number(to, "would_do_tokens_per_s", row->advice.tokens_per_s > 0 ? row->advice.tokens_per_s : NAN);
    number(to, "over_bytes", row->known ? (double)found->over_bytes : NAN);
    number(to, "tokens_per_s", fits ? found->tokens_per_s : NAN);
    number(to, "tflops_model", fits ? found->tflops_model : NAN);
    number(to, "step_ns", fits ? (double)found->plan.step_ns : NAN);
    number(to, "device_peak_bytes", row->known ? (double)found->plan.device_peak_bytes : NAN);
    number(to, "host_peak_bytes", row->known ? (double)found->plan.host_peak_bytes : NAN);
    number(to, "disk_peak_bytes", row->known ? (double)found->plan.disk_peak_bytes : NAN);
    number(to, "disk_read_bytes", fits ? (double)found->plan.disk_read_bytes : NAN);
    number(to, "disk_written_bytes", fits ? (double)found->plan.disk_written_bytes : NAN);
    fputc('}', to);
}

void ah__fit_json(const struct ah_fit *fit, FILE *to)
{
    fputs("{\"hardware\": ", to);
    ah__out_string(to, fit->machine);
    fprintf(to,
            ", \"ranks\": %d, \"dtype\": \"%s\", \"policy\": \"%s\", \"batch\": %lld, \"device_memory_bytes\": %lld, "
            "\"host_memory_bytes\": %lld, \"disk_bytes\": %lld, \"models\": [",
            fit->ranks, fit->inputs.dtype, fit->inputs.policy, (long long)fit->inputs.batch,
            (long long)fit->budget.device_bytes, (long long)fit->budget.host_bytes, (long long)fit->budget.disk_bytes);
    for (int i = 0; i < fit->count; i++) {
        fputs(i ? ", " : "", to);
        row_json(&fit->rows[i], to);
    }
    fputs("]}\n", to);
}
