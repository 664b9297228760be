/* Draws a line chart as SVG: numbers over steps. Knows no training.
 *
 * Takes points, returns an <svg> element as wide as the pictures of pages that show README files. */
#ifndef AH_REPORT_CHART_H
#define AH_REPORT_CHART_H

#include "base/buf.h"

enum { AH_CHART_WIDTH = 880 };

/* A value for each of some steps, in their order. Both arrays have `count` elements and come from ah__new. */
struct ah_series {
    double *step, *value;
    size_t count, capacity;
};
/* Adds a value. A value or step that is not finite, or beyond 1e300, is left out. AH_ENOMEM. */
int ah__series_add(struct ah_series *series, double step, double value);
void ah__series_fini(struct ah_series *series);
/* The first returns the number of values over which the chart smooths a series by an exponential mean (1: not
 * smoothed), the second the last such mean, NaN for an empty series. */
size_t ah__series_window(const struct ah_series *series);
double ah__series_smoothed(const struct ah_series *series);

struct ah_chart {
    const char *title, *note;     /* note: a line below the title; null: no note */
    const char *name;             /* name of `main` in the legend */
    const struct ah_series *main; /* drawn pale unsmoothed, and strong smoothed */
    const char *dots_name;
    const struct ah_series *dots; /* drawn as joined dots; may be null */
    double reference;             /* value of a dashed horizontal line; NaN: no line. Left out if far from the curve */
    const char *reference_name;
    bool plain; /* one exact curve: not smoothed, no legend */
    int height; /* pixels */
};
/* Appends one <svg> element that needs nothing around it and may be a file of its own. */
void ah__chart(struct ah_buf *buf, const struct ah_chart *chart);

#endif
