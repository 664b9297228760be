#include "cli/evaluation.h"

#include <math.h>
#include <string.h>

#include "cli/out.h"

static const char *const lane_keys[] = {"compute", "h2d", "d2h", "host", "comm", "disk"};
enum { LANES = sizeof lane_keys / sizeof lane_keys[0] };

int ah__evaluation_count(const char *const *policies)
{
    int count = 0;
    while (policies[count])
        count++;
    return count;
}

/* Returns autohete's evaluation if it is among them and fits, else null. */
static const struct ah_evaluation *find_autohete(const struct ah_evaluation *evaluations, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(evaluations[i].policy, "autohete") == 0 && evaluations[i].fits)
            return &evaluations[i];
    return NULL;
}

/* Returns autohete's speed over this policy's; NaN if either has none. */
static double speedup(const struct ah_evaluation *of, const struct ah_evaluation *evaluations, int count)
{
    const struct ah_evaluation *ours = find_autohete(evaluations, count);
    return ours && of->fits ? ours->tokens_per_s / of->tokens_per_s : NAN;
}

/* ---- table ------------------------------------------------------------------------------------------------------- */

void ah__evaluation_head(FILE *to, bool disk)
{
    fprintf(to, "%-17s %14s %11s %6s %9s %7s %9s %9s", "policy", "c,p,o", "step", "ratio", "tokens/s", "TFLOPS",
            "device", "host");
    if (disk)
        fprintf(to, " %9s %10s", "disk", "writes/day");
    fprintf(to, " %7s\n", "speed");
}

/* Prints what is on disk and what a day writes there; "-": nothing. */
static void disk_cells(FILE *to, const struct ah_plan *plan)
{
    char disk[32] = "-", day[32] = "-";
    if (plan->disk_peak_bytes > 0)
        ah_size_format(disk, sizeof disk, plan->disk_peak_bytes);
    if (plan->disk_written_bytes > 0)
        ah_size_format(day, sizeof day, ah_plan_day_bytes(plan, plan->step_ns));
    fprintf(to, " %9s %10s", disk, day);
}

static void row(FILE *to, const struct ah_evaluation *evaluation, double slower, bool disk)
{
    const struct ah_plan *plan = &evaluation->plan;
    char selective[16] = "", leaving[16] = "", switches[64], device[32], host[32];
    if (plan->switches.selective > 0)
        snprintf(selective, sizeof selective, "+%d", plan->switches.selective);
    if (plan->switches.offload_activations > 0)
        snprintf(leaving, sizeof leaving, "-%d", plan->switches.offload_activations);
    snprintf(switches, sizeof switches, "%d%s%s,%d,%d", plan->switches.checkpoint, selective, leaving,
             plan->switches.offload_params, plan->switches.offload_optimizer);
    fprintf(to, "%-17s %14s ", evaluation->policy, switches);
    if (!evaluation->fits) {
        fprintf(to, "  does not fit; %s\n", evaluation->reason);
        return;
    }
    ah_size_format(device, sizeof device, plan->device_peak_bytes);
    ah_size_format(host, sizeof host, plan->host_peak_bytes);
    fprintf(to, "%8.1f ms %6.3f %9.1f %7.2f %9s %9s", (double)plan->step_ns / 1e6,
            (double)plan->step_ns / (double)plan->bound_ns, evaluation->tokens_per_s, evaluation->tflops_model, device,
            host);
    if (disk)
        disk_cells(to, plan);
    if (isfinite(slower))
        fprintf(to, " %6.2fx\n", 1 / slower);
    else
        fprintf(to, " %7s\n", "-");
}

void ah__evaluation_rows(FILE *to, const struct ah_evaluation *evaluations, int count, const char *label, bool disk)
{
    if (*label)
        fprintf(to, "%s\n", label);
    for (int i = 0; i < count; i++)
        row(to, &evaluations[i], speedup(&evaluations[i], evaluations, count), disk);
}

void ah__evaluation_lanes(FILE *to, const struct ah_evaluation *evaluations, int count, bool disk)
{
    const int lanes = disk ? LANES : LANES - 1; /* the last is the disk's */
    fprintf(to, "\n%-16s %7s %6s %11s %9s  %s", "policy", "buffers", "passes", "bound", "hardware", "busy:");
    for (int lane = 0; lane < lanes; lane++)
        fprintf(to, " %7s", lane_keys[lane]);
    fputc('\n', to);
    for (int i = 0; i < count; i++) {
        if (!evaluations[i].fits)
            continue;
        fprintf(to, "%-16s %7d %6d %8.1f ms %9.2f       ", evaluations[i].policy, evaluations[i].plan.switches.buffers,
                evaluations[i].plan.switches.passes, (double)evaluations[i].plan.bound_ns / 1e6,
                evaluations[i].tflops_hardware);
        for (int lane = 0; lane < lanes; lane++)
            fprintf(to, " %5.0f %%", 100 * evaluations[i].lane_busy[lane]);
        fputc('\n', to);
    }
}

void ah__evaluation_foot(FILE *to, const char *const *policies, bool disk)
{
    fputs("\n"
          "c,p,o     blocks that are recomputed, offload parameters, offload optimizer states\n"
          "c+n       n more blocks use selective recomputation; -n: n blocks offload their activations\n"
          "ratio     step / bound; no schedule of this plan is faster than the bound\n"
          "TFLOPS    model flops of one rank per second; hardware: recomputation included\n"
          "device    peak memory of one device; host: peak host memory of one rank\n"
          "buffers   device buffers, each as large as one block's parameters\n"
          "passes    rounds over the model in which a step runs its micro-batches\n"
          "bound     the busiest lane's work, or the longest dependency cycle from one step to the next\n"
          "busy      share of a step: compute, copies to the device (h2d) and back (d2h), host optimizer,\n"
          "          collectives (comm)\n"
          "speed     tokens/s relative to autohete\n",
          to);
    if (disk)
        fputs("disk      space on it at most; writes/day: what a day of such steps writes there\n", to);
    if (!policies[0] || !policies[1])
        return;
    fputc('\n', to);
    for (int i = 0; policies[i]; i++)
        fprintf(to, "%-17s %s\n", policies[i], ah_policy_description(policies[i]));
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void number(FILE *to, const char *key, double value)
{
    fprintf(to, ", \"%s\": ", key);
    ah__out_number(to, value);
}

static void object(FILE *to, const struct ah_evaluation *evaluation, double faster)
{
    const struct ah_plan *plan = &evaluation->plan;
    bool fits = evaluation->fits;
    fprintf(to, "{\"policy\": \"%s\", \"fits\": %s, \"reason\": ", evaluation->policy, fits ? "true" : "false");
    ah__out_string(to, evaluation->reason);
    fprintf(to,
            ", \"over_bytes\": %lld, \"plan\": {\"c\": %d, \"selective\": %d, \"p\": %d, \"o\": %d, "
            "\"staged\": %d, \"a\": %d, \"whole\": %d, \"buffers\": %d, \"passes\": %d, \"prefetch_distance\": %d, "
            "\"disk\": %d, "
            "\"embedding_on_host\": %s, \"head_on_host\": %s, \"share_embedding_head\": %s}",
            (long long)evaluation->over_bytes, plan->switches.checkpoint, plan->switches.selective,
            plan->switches.offload_params, plan->switches.offload_optimizer, plan->switches.staged,
            plan->switches.offload_activations, plan->switches.unsharded, plan->switches.buffers, plan->switches.passes,
            plan->switches.prefetch_distance, plan->switches.disk_blocks,
            plan->switches.embedding_on_host ? "true" : "false", plan->switches.head_on_host ? "true" : "false",
            plan->switches.share_embedding_head ? "true" : "false");
    number(to, "step_ns", fits ? (double)plan->step_ns : NAN);
    number(to, "bound_ns", fits ? (double)plan->bound_ns : NAN);
    number(to, "bound_ratio", fits ? (double)plan->step_ns / (double)plan->bound_ns : NAN);
    number(to, "tflops_model", fits ? evaluation->tflops_model : NAN);
    number(to, "tflops_hardware", fits ? evaluation->tflops_hardware : NAN);
    number(to, "tokens_per_s", fits ? evaluation->tokens_per_s : NAN);
    number(to, "device_peak_bytes", (double)plan->device_peak_bytes);
    number(to, "host_peak_bytes", (double)plan->host_peak_bytes);
    number(to, "disk_peak_bytes", (double)plan->disk_peak_bytes);
    number(to, "disk_read_bytes", (double)plan->disk_read_bytes);
    number(to, "disk_written_bytes", (double)plan->disk_written_bytes);
    number(to, "speedup", faster);
    fputs(", \"lane_busy\": {", to);
    for (int lane = 0; lane < LANES; lane++) {
        fprintf(to, "%s\"%s\": ", lane ? ", " : "", lane_keys[lane]);
        ah__out_number(to, fits ? evaluation->lane_busy[lane] : NAN);
    }
    fputs("}}", to);
}

void ah__evaluation_json(FILE *to, const struct ah_evaluation *evaluations, int count)
{
    fputc('[', to);
    for (int i = 0; i < count; i++) {
        fputs(i ? ", " : "", to);
        object(to, &evaluations[i], speedup(&evaluations[i], evaluations, count));
    }
    fputc(']', to);
}
