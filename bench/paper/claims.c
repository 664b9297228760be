#include "paper/claims.h"

#include <math.h>

/* Two figures that differ by less are called equal. */
static const double alike = 0.1;

void paper_claim_ratio(struct ah_buf *buf, const char *system, double found, double reported)
{
    if (!isfinite(found))
        return;
    double part = found / reported - 1;
    if (found < 1)
        ah__buf_printf(buf, "- **%s is faster** than AutoHete, whose speed is %.2f of it; the paper has %.2f.\n",
                       system, found, reported);
    else if (fabs(part) <= alike)
        ah__buf_printf(buf, "- **Over %s** AutoHete is %.2f times as fast, about what the paper has (%.2f).\n", system,
                       found, reported);
    else
        ah__buf_printf(buf, "- **Over %s** AutoHete is %.2f times as fast, %s than in the paper (%.2f) by %.0f%%.\n",
                       system, found, part > 0 ? "more" : "less", reported, 100 * fabs(part));
}

void paper_claim_limit(struct ah_buf *buf, const char *what, double found, double reported, double part)
{
    if (found == reported) {
        ah__buf_printf(buf, "- **%s** comes out: %g.\n", what, found);
        return;
    }
    ah__buf_printf(buf, "- **%s** does not come out: %g here, %g in the paper", what, found, reported);
    if (part > 0)
        ah__buf_printf(buf, "; where the paper's limit lies it takes %.1f%% of the memory", 100 * part);
    ah__buf_printf(buf, ".\n");
}

void paper_claim_above_one(struct ah_buf *buf, const char *what, double found)
{
    if (!isfinite(found))
        return;
    ah__buf_printf(buf, found > 1 ? "- **%s** holds: %.2f times as fast.\n" : "- **%s** does not hold: %.2f.\n", what,
                   found);
}

void paper_claim_runs_out(struct ah_buf *buf, const char *what, double part)
{
    ah__buf_printf(buf,
                   part > 1 ? "- **%s**: host memory runs out, as in the paper (%.1f%% of it are needed).\n"
                            : "- **%s**: host memory is enough, unlike in the paper (%.1f%% of it are needed).\n",
                   what, 100 * part);
}

void paper_claim_gain(struct ah_buf *buf, const char *what, double mean, double most, double aim)
{
    if (!isfinite(mean))
        return;
    ah__buf_printf(buf, "- **%s** AutoHete is %.2f times as fast, at most %.2f: the aim of %.2f is %s.\n", what, mean,
                   most, aim, mean >= aim ? "reached" : "missed");
}

void paper_claim_window(struct ah_buf *buf, const char *where, int blocks, int fastest_blocks, double gain)
{
    if (blocks == 0)
        return;
    ah__buf_printf(buf, "- **StrongHold's window** %s is %d by its rule", where, blocks);
    if (gain > 1 + alike / 2)
        ah__buf_printf(buf, "; with %d it would be %.2f times as fast.\n", fastest_blocks, gain);
    else
        ah__buf_printf(buf, ", and no other is much faster.\n");
}

void paper_claim_fastest(struct ah_buf *buf, const char *where, const char *const *names, const double *speeds,
                         int count)
{
    int best = -1;
    for (int i = 0; i < count; i++)
        if (speeds[i] > 0 && (best < 0 || speeds[i] > speeds[best]))
            best = i;
    if (best >= 0)
        ah__buf_printf(buf, "- **The fastest of the published systems** %s is %s.\n", where, names[best]);
}
