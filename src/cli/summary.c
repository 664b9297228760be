#include "cli/summary.h"

#include <math.h>
#include <unistd.h>

#include "cli/out.h"

void ah__training_print(FILE *to, const struct ah_train_summary *facts)
{
    char all[32], train[32], val[32], trained[48] = "";
    const char *token = facts->text && facts->vocab_size <= 256 ? "byte" : "token";
    if (facts->trained < facts->params)
        snprintf(trained, sizeof trained, " (%s of them trained)", ah_count_format(all, sizeof all, facts->trained));
    fprintf(to, "model: %s, %d block%s, %s parameters%s, %lld %ss in its vocabulary\n", facts->model, facts->layers,
            facts->layers == 1 ? "" : "s", ah_count_format(all, sizeof all, facts->params), trained,
            (long long)facts->vocab_size, token);
    fprintf(to, "data: %s %ss: %s to train on, %s%s\n", ah_count_format(all, sizeof all, facts->tokens), token,
            ah_count_format(train, sizeof train, facts->train_tokens),
            ah_count_format(val, sizeof val, facts->val_tokens),
            facts->held_out ? " held back for validation" : " of the same for validation: too few to hold back");
    if (facts->padding >= 0.005)
        fprintf(to, "padding: %.0f%% of the places in sequences hold no token\n", 100 * facts->padding);
    if (facts->first_step > facts->steps) {
        fprintf(to, "steps: none is left of %lld\n", (long long)facts->steps);
        return;
    }
    fprintf(to, "steps: %lld to %lld of %lld x %lld %ss, %.3g epoch%s in all\n", (long long)facts->first_step,
            (long long)facts->steps, (long long)facts->batch, (long long)facts->seq, token, facts->epochs,
            facts->epochs == 1 ? "" : "s");
}

static void print_peaks(FILE *to, const char *name, int64_t predicted, int64_t used)
{
    char first[32], second[32];
    fprintf(to, "  %-14s %s used, %s predicted%s\n", name, ah_size_format(first, sizeof first, used),
            ah_size_format(second, sizeof second, predicted), used == predicted ? " (equal to the byte)" : "");
}

void ah__sources_print(FILE *to, const struct ah_trainer *trainer)
{
    struct ah_train_source source;
    char samples[32];
    for (int i = 0; ah_trainer_source(trainer, 1, &source) == AH_OK && ah_trainer_source(trainer, i, &source) == AH_OK;
         i++)
        fprintf(to, "  %-14s %s: %s sample%s of it, %.3g epoch%s\n", i ? "" : "data", source.path,
                ah_count_format(samples, sizeof samples, source.samples), source.samples == 1 ? "" : "s", source.epochs,
                source.epochs == 1 ? "" : "s");
}

static void print_sources_json(const struct ah_trainer *trainer)
{
    struct ah_train_source source;
    for (int i = 0; ah_trainer_source(trainer, i, &source) == AH_OK; i++) {
        printf("%s{\"path\": ", i ? ", " : "");
        ah__out_string(stdout, source.path);
        printf(", \"format\": \"%s\", \"weight\": ", source.format);
        ah__out_number(stdout, source.weight > 0 ? source.weight : NAN);
        printf(", \"share\": ");
        ah__out_number(stdout, source.share);
        printf(", \"tokens\": %lld, \"samples\": %lld, \"epochs\": ", (long long)source.tokens,
               (long long)source.samples);
        ah__out_number(stdout, source.epochs);
        printf("}");
    }
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
        fprintf(to, "  %-14s timeline.svg and loss.svg there; timeline.json is for Perfetto\n", "pictures");
    fprintf(to, "  %-14s autohete report %s\n", "on one page", folder);
}

/* Prints whether the loss fell, and below the loss of a uniform guess. */
static void print_trend(FILE *to, const struct ah_train_result *result)
{
    const char *how = "fell", *hint = "";
    if (!isfinite(result->first_loss))
        return;
    if (result->last_loss >= result->first_loss) {
        how = "did not fall";
        hint = " (try a lower --lr)";
    } else if (result->last_loss >= result->uniform_loss) {
        how = "did not fall enough";
        hint = ", a uniform guess has less (try a lower --lr)";
    }
    fprintf(to, "  %-14s %s: %.4f in the first tenth of the steps, %.4f in the last%s\n", "mean loss", how,
            result->first_loss, result->last_loss, hint);
}

static void print_step_time(FILE *to, const struct ah_train_result *result)
{
    if (result->step_ns_median <= 0)
        return;
    double measured = (double)result->step_ns_median, predicted = (double)result->step_ns_predicted;
    double error = 100 * (predicted - measured) / measured;
    fprintf(to, "  %-14s %.2f ms measured (median of %lld step%s), %.2f ms predicted (%+.1f%%)\n", "step time",
            measured / 1e6, (long long)result->steps_timed, result->steps_timed == 1 ? "" : "s", predicted / 1e6,
            error);
    fprintf(to, "  %-14s %.0f tokens/s", "speed", result->tokens_per_s);
    if (result->learned < 1)
        fprintf(to, ", of which %.0f (%.0f%%) are learned", result->learned * result->tokens_per_s,
                100 * result->learned);
    fputc('\n', to);
    if (result->profile_kept_s >= 0 && fabs(error) > 25)
        fprintf(to, "  %-14s the cached profile no longer fits this machine: --no-cache measures again\n", "note");
}

static void print_disk(FILE *to, const struct ah_train_result *result)
{
    char disk[32], written[32], wear[96];
    const struct ah_plan *plan = &result->plan;
    if (plan->disk_peak_bytes == 0)
        return;
    fprintf(to, "  %-14s %s on it, %s written in a step", "disk",
            ah_size_format(disk, sizeof disk, plan->disk_peak_bytes),
            ah_size_format(written, sizeof written, plan->disk_written_bytes));
    ah_plan_wear(wear, sizeof wear, plan, result->step_ns_median > 0 ? result->step_ns_median : plan->step_ns);
    fprintf(to, "%s%s\n", *wear ? "; " : "", wear);
}

void ah__summary_print(FILE *to, const struct ah_train_result *result, const struct ah_train_options *train,
                       const char *unit)
{
    if (result->stopped && !result->saved && result->steps_timed == 0) {
        fprintf(to, "\nstopped before the first step: nothing was written\n");
        return;
    }
    fprintf(to, "\n%s after step %lld", result->stopped ? "stopped" : "done", (long long)result->steps_done);
    if (isfinite(result->final_loss))
        fprintf(to, ": loss %.4f", result->final_loss);
    if (isfinite(result->val_loss)) {
        fprintf(to, ", validation loss %.4f (%.3f bits per %s)", result->val_loss, result->val_loss / M_LN2, unit);
        if (result->val_step != result->steps_done)
            fprintf(to, " after step %lld", (long long)result->val_step);
    }
    fputc('\n', to);
    print_trend(to, result);
    print_step_time(to, result);
    if (result->steps_timed > 0) {
        print_peaks(to, "device memory", result->device_peak_bytes_predicted, result->device_peak_bytes_used);
        print_peaks(to, "host memory", result->host_peak_bytes_predicted, result->host_peak_bytes_used);
    }
    print_disk(to, result);
    print_places(to, train);
}

int ah__summary_json(const struct ah_train_result *result, const struct ah_trainer *trainer)
{
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {
        {"device_peak_bytes_predicted", result->device_peak_bytes_predicted},
        {"device_peak_bytes_used", result->device_peak_bytes_used},
        {"host_peak_bytes_predicted", result->host_peak_bytes_predicted},
        {"host_peak_bytes_used", result->host_peak_bytes_used},
        {"disk_peak_bytes", result->plan.disk_peak_bytes},
        {"disk_read_bytes", result->plan.disk_read_bytes},
        {"disk_written_bytes", result->plan.disk_written_bytes},
        {"step_ns_predicted", result->step_ns_predicted},
        {"step_ns_median", result->step_ns_median},
        {"steps_timed", result->steps_timed},
        {"profile_kept_s", result->profile_kept_s},
        {"steps", result->steps_done},
        {"val_step", result->val_step},
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
    printf(", \"learned\": ");
    ah__out_number(stdout, result->learned);
    printf(", \"data\": [");
    print_sources_json(trainer);
    printf("], \"stopped\": %s, \"policy\": ", result->stopped ? "true" : "false");
    ah__out_string(stdout, result->plan.policy);
    printf(", \"plan\": ");
    int status = ah__out_plan(stdout, &result->plan);
    printf("}\n");
    return status;
}
