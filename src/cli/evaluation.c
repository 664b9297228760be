#include "cli/evaluation.h"

#include <math.h>
#include <string.h>

#include "cli/out.h"

static const char *const lane_keys[] = {"compute", "h2d", "d2h", "host", "comm"};
enum { LANES = sizeof lane_keys / sizeof lane_keys[0], LABEL_WIDTH = 13 };

int ah__evaluation_count(const char *const *policies)
{
    int count = 0;
    while (policies[count])
        count++;
    return count;
}

/* autohete's speed over this policy's; NaN when either has none. */
static double speedup(const struct ah_evaluation *of, const struct ah_evaluation *evaluations, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(evaluations[i].policy, "autohete") == 0 && evaluations[i].fits && of->fits)
            return evaluations[i].tokens_per_s / of->tokens_per_s;
    return NAN;
}

/* ---- table ------------------------------------------------------------------------------------------------------- */

void ah__evaluation_head(FILE *to, const char *swept)
{
    if (swept)
        fprintf(to, "%*s  ", LABEL_WIDTH, swept);
    fprintf(to, "%-17s %11s %5s  %11s %11s %6s  %7s %8s  %9s  %9s %9s  %-19s %7s\n", "policy", "c,p,o", "slots", "step",
            "bound", "ratio", "model", "hardware", "tokens/s", "device", "host", "busy %", "speedup");
}

static void lanes(FILE *to, const struct ah_evaluation *evaluation)
{
    char text[64] = "";
    for (int lane = 0; lane < LANES; lane++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.0f", lane ? "/" : "",
                 100 * evaluation->lane_busy[lane]);
    fprintf(to, "  %-19s", text);
}

static void row(FILE *to, const struct ah_evaluation *evaluation, double faster)
{
    const struct ah_plan *plan = &evaluation->plan;
    char switches[48], device[32], host[32];
    snprintf(switches, sizeof switches, "%d,%d,%d", plan->switches.checkpoint,
             plan->switches.offload_params, plan->switches.offload_optimizer);
    fprintf(to, "%-17s %11s %5d  ", evaluation->policy, switches, plan->switches.slots);
    if (!evaluation->fits) {
        fprintf(to, "does not fit; %s\n", evaluation->reason);
        return;
    }
    ah_size_format(device, sizeof device, plan->device_peak_bytes);
    ah_size_format(host, sizeof host, plan->host_peak_bytes);
    fprintf(to, "%8.1f ms %8.1f ms %6.3f  %7.2f %8.2f  %9.1f  %9s %9s", (double)plan->step_ns / 1e6,
            (double)plan->bound_ns / 1e6, (double)plan->step_ns / (double)plan->bound_ns, evaluation->tflops_model,
            evaluation->tflops_hardware, evaluation->tokens_per_s, device, host);
    lanes(to, evaluation);
    if (isfinite(faster))
        fprintf(to, " %6.2fx\n", faster);
    else
        fprintf(to, " %7s\n", "-");
}

void ah__evaluation_rows(FILE *to, const struct ah_evaluation *evaluations, int count, const char *label)
{
    for (int i = 0; i < count; i++) {
        if (*label)
            fprintf(to, "%*s  ", LABEL_WIDTH, i == 0 ? label : "");
        row(to, &evaluations[i], speedup(&evaluations[i], evaluations, count));
    }
}

void ah__evaluation_foot(FILE *to, const char *const *policies)
{
    fputs("\n"
          "c,p,o     blocks that recompute, that give their parameters back after forward, "
          "whose optimizer is on the host\n"
          "model     TFLOPS = flops of forward and backward of one rank / step time / 1e12\n"
          "hardware  TFLOPS = (the same + flops of the c recomputed blocks) / step time / 1e12\n"
          "bound     no schedule of this plan is faster: the busiest lane's total or the longest dependency cycle, "
          "in ms;\n"
          "          ratio = step / bound\n"
          "device    peak of one device; host: peak of one rank's part of host memory\n"
          "busy      compute / host to device / device to host / host optimizer / between ranks, of a steady step\n"
          "speedup   tokens/s of autohete / tokens/s of this policy\n",
          to);
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
            ", \"over_bytes\": %lld, \"plan\": {\"c\": %d, \"p\": %d, \"o\": %d, \"slots\": %d, \"refetch_ahead\": %d, "
            "\"embedding_on_host\": %s, \"head_on_host\": %s}",
            (long long)evaluation->over_bytes, plan->switches.checkpoint, plan->switches.offload_params,
             plan->switches.offload_optimizer,
            plan->switches.slots, plan->switches.refetch_ahead, plan->switches.embedding_on_host ? "true" : "false",
            plan->switches.head_on_host ? "true" : "false");
    number(to, "step_ns", fits ? (double)plan->step_ns : NAN);
    number(to, "bound_ns", fits ? (double)plan->bound_ns : NAN);
    number(to, "bound_ratio", fits ? (double)plan->step_ns / (double)plan->bound_ns : NAN);
    number(to, "tflops_model", fits ? evaluation->tflops_model : NAN);
    number(to, "tflops_hardware", fits ? evaluation->tflops_hardware : NAN);
    number(to, "tokens_per_s", fits ? evaluation->tokens_per_s : NAN);
    number(to, "device_peak_bytes", (double)plan->device_peak_bytes);
    number(to, "host_peak_bytes", (double)plan->host_peak_bytes);
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
