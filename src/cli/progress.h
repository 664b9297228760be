/* Progress of a training: one live line on a terminal, plain lines elsewhere. Knows no training. */
#ifndef AH_CLI_PROGRESS_H
#define AH_CLI_PROGRESS_H

#include "autohete.h"

struct ah_progress {
    FILE *to;
    bool live; /* one line, redrawn */
    bool quiet;
    bool drawn;                   /* the live line is on the screen, without a line break */
    int64_t last_ns;              /* time of the last line shown */
    int64_t first_step;           /* first step of this run; 0: none yet */
    int64_t last_step;            /* last step shown */
    double loss_sum, loss_weight; /* of the mean loss over about the last thirty steps */
};

void ah__progress_init(struct ah_progress *progress, FILE *to, bool quiet);
void ah__progress_step(struct ah_progress *progress, const struct ah_step *step);
void ah__progress_val(struct ah_progress *progress, int64_t step, double val_loss, const char *unit);
/* Ends the live line, if there is one. */
void ah__progress_end(struct ah_progress *progress);
/* Formats a time as "0:07" or "1:02:03"; "-" if it is unknown. Returns text. */
char *ah__progress_clock(char text[24], double seconds);

#endif
