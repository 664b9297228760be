#include "cli/progress.h"

#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define LIVE_NS 100000000LL                 /* least time between two redraws */
#define PLAIN_NS 5000000000LL               /* a plain line at least this often */
enum { PLAIN_LINES = 60, MEAN_STEPS = 30 }; /* plain lines in a whole training, about; steps in the mean loss, about */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void ah__progress_init(struct ah_progress *progress, FILE *to, bool quiet)
{
    *progress = (struct ah_progress){.to = to, .live = isatty(fileno(to)) == 1, .quiet = quiet};
}

char *ah__progress_clock(char text[24], double seconds)
{
    if (!(seconds >= 0 && seconds < 1e9))
        return strcpy(text, "-");
    long whole = lround(seconds);
    if (whole >= 3600)
        snprintf(text, 24, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(text, 24, "%ld:%02ld", whole / 60, whole % 60);
    return text;
}

/* Adds a loss to a mean that forgets. The time before the first step has no weight. */
static void note_loss(struct ah_progress *progress, double loss)
{
    const double share = 2.0 / (MEAN_STEPS + 1);
    if (!isfinite(loss))
        return;
    progress->loss_sum += share * (loss - progress->loss_sum);
    progress->loss_weight += share * (1 - progress->loss_weight);
}

/* Formats a line of progress. The parts that a narrow terminal may cut come last. */
static void format(char *line, size_t size, const struct ah_progress *progress, const struct ah_step *step)
{
    static const char *const lanes[] = {"c", "h2d", "d2h", "host"};
    char left[24];
    int width = snprintf(NULL, 0, "%lld", (long long)step->steps), used;
    used = snprintf(line, size, "step %*lld/%lld  loss %.4f", width, (long long)step->step, (long long)step->steps,
                    step->loss);
    if (progress->loss_weight > 0 && used > 0)
        used += snprintf(line + used, size - (size_t)used, " mean %.4f", progress->loss_sum / progress->loss_weight);
    if (used > 0 && (size_t)used < size)
        used += snprintf(line + used, size - (size_t)used, "  %.0f tokens/s", step->tokens_per_s);
    if (step->learned_per_s < step->tokens_per_s && used > 0 && (size_t)used < size)
        used += snprintf(line + used, size - (size_t)used, " (%.0f learned)", step->learned_per_s);
    if (used > 0 && (size_t)used < size)
        used += snprintf(line + used, size - (size_t)used, "  ETA %s", ah__progress_clock(left, step->eta_s));
    /* lane times are unknown before the second step has ended */
    bool known = step->lane_busy[0] > 0;
    for (size_t i = 0; known && i < sizeof lanes / sizeof lanes[0] && used > 0 && (size_t)used < size; i++)
        used += snprintf(line + used, size - (size_t)used, "%s%s %.0f%%", i ? " " : "  ", lanes[i],
                         100 * step->lane_busy[i]);
    if (known && step->lane_busy[AH_LANE_DISK] > 0 && used > 0 && (size_t)used < size)
        snprintf(line + used, size - (size_t)used, " disk %.0f%%", 100 * step->lane_busy[AH_LANE_DISK]);
}

static int columns(FILE *to)
{
    struct winsize size;
    return ioctl(fileno(to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* Returns true if a plain line is due: at the first and the last step, and evenly in between. A short run prints every
 * step. */
static bool plain_due(const struct ah_progress *progress, const struct ah_step *step, int64_t now)
{
    int64_t left = step->steps - progress->first_step + 1, every = left / PLAIN_LINES;
    return every <= 1 || step->step == progress->first_step || step->step == step->steps ||
           step->step - progress->last_step >= every || now - progress->last_ns >= PLAIN_NS;
}

void ah__progress_step(struct ah_progress *progress, const struct ah_step *step)
{
    char line[256];
    int64_t now = now_ns();
    if (progress->quiet)
        return;
    note_loss(progress, step->loss);
    if (progress->first_step == 0)
        progress->first_step = step->step;
    bool due = progress->live ? step->step == step->steps || now - progress->last_ns >= LIVE_NS
                              : plain_due(progress, step, now);
    if (!due)
        return;
    progress->last_ns = now;
    progress->last_step = step->step;
    format(line, sizeof line, progress, step);
    if (progress->live)
        fprintf(progress->to, "\r%.*s\033[K", columns(progress->to) - 1, line);
    else
        fprintf(progress->to, "%s\n", line);
    progress->drawn = progress->live;
    fflush(progress->to);
}

void ah__progress_val(struct ah_progress *progress, int64_t step, double val_loss, const char *unit)
{
    if (progress->quiet)
        return;
    ah__progress_end(progress);
    fprintf(progress->to, "step %lld: validation loss %.4f (%.3f bits per %s)\n", (long long)step, val_loss,
            val_loss / M_LN2, unit);
    fflush(progress->to);
}

void ah__progress_end(struct ah_progress *progress)
{
    if (progress->drawn)
        fputc('\n', progress->to);
    progress->drawn = false;
}
