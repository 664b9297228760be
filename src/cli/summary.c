#include "cli/summary.h"

#include <math.h>
#include <unistd.h>

#include "cli/out.h"

static void print_peaks(FILE *to, const char *name, int64_t predicted, int64_t used)
{
    char first[32], second[32];
    fprintf(to, "  %-14s %s used, %s predicted%s\n", name, ah_size_format(first, sizeof first, used),
            ah_size_format(second, sizeof second, predicted), used == predicted ? " (equal to the byte)" : "");
}

static void print_places(FILE *to, const struct ah_train_options *train)
{
    const char *folder = train->out_dir ? train->out_dir : train->resume_dir;
    char path[4096];
    if (!folder) {
        fprintf(to, "  %-14s nothing (--out DIR keeps model, metrics and timelines)\n", "saved");
        return;
    }
    fprintf(to, "  %-14s %s\n", "saved", folder);
    snprintf(path, sizeof path, "%s/timeline.svg", folder);
    if (access(path, R_OK) == 0)
        fprintf(to, "  %-14s %s, %s/timeline.json\n", "timelines", path, folder);
}

void ah__summary_print(FILE *to, const struct ah_train_result *result, const struct ah_train_options *train,
                       const char *unit)
{
    fprintf(to, "\n%s after step %lld", result->stopped ? "stopped" : "done", (long long)result->steps_done);
    if (isfinite(result->final_loss))
        fprintf(to, ": loss %.4f", result->final_loss);
    if (isfinite(result->val_loss))
        fprintf(to, ", validation loss %.4f (%.3f bits per %s)", result->val_loss, result->val_loss / M_LN2, unit);
    fputc('\n', to);
    if (result->step_ns_median > 0) {
        double measured = (double)result->step_ns_median, predicted = (double)result->step_ns_predicted;
        fprintf(to, "  %-14s %.2f ms measured, %.2f ms predicted (%+.1f%%), %.0f tokens/s\n", "step time",
                measured / 1e6, predicted / 1e6, 100 * (predicted - measured) / measured, result->tokens_per_s);
    }
    print_peaks(to, "device memory", result->device_peak_bytes_predicted, result->device_peak_bytes_used);
    print_peaks(to, "host memory", result->host_peak_bytes_predicted, result->host_peak_bytes_used);
    print_places(to, train);
}

int ah__summary_json(const struct ah_train_result *result)
{
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {
        {"device_peak_bytes_predicted", result->device_peak_bytes_predicted},
        {"device_peak_bytes_used", result->device_peak_bytes_used},
        {"host_peak_bytes_predicted", result->host_peak_bytes_predicted},
        {"host_peak_bytes_used", result->host_peak_bytes_used},
        {"step_ns_predicted", result->step_ns_predicted},
        {"step_ns_median", result->step_ns_median},
        {"steps", result->steps_done},
        {"micro_batch", result->micro_batch},
        {"clipped_steps", result->clipped_steps},
        {"skipped_steps", result->skipped_steps},
        {"updates_redone", result->updates_redone},
    };
    printf("{\"final_loss\": ");
    ah__out_number(stdout, result->final_loss);
    printf(", \"val_loss\": ");
    ah__out_number(stdout, result->val_loss);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        printf(", \"%s\": %lld", counts[i].key, (long long)counts[i].value);
    printf(", \"device\": \"%s\", \"dtype\": \"%s\"", result->device, result->dtype);
    printf(", \"clip\": ");
    ah__out_number(stdout, result->clip);
    printf(", \"tokens_per_s\": ");
    ah__out_number(stdout, result->tokens_per_s);
    printf(", \"stopped\": %s, \"policy\": ", result->stopped ? "true" : "false");
    ah__out_string(stdout, result->plan.policy);
    printf(", \"plan\": ");
    int status = ah__out_plan(stdout, &result->plan);
    printf("}\n");
    return status;
}
