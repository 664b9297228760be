/* A line chart as SVG: numbers over steps. Knows no training.
 *
 * Takes points, gives an <svg> element as wide as pages that show README files give a picture. */
#ifndef AH_REPORT_CHART_H
#define AH_REPORT_CHART_H

#include "base/buf.h"

enum { AH_CHART_WIDTH = 880 };

/* A number of each of some steps, in their order; both arrays of `count`, from ah__new. */
struct ah_series {
    double *step, *value;
    size_t count, capacity;
};
/* Not finite: left out. AH_ENOMEM. */
int ah__series_add(struct ah_series *series, double step, double value);
void ah__series_fini(struct ah_series *series);
/* A mean that forgets: over about how many values the chart smooths a series (1: not at all), and the last such mean.
 * NaN of an empty series. */
size_t ah__series_window(const struct ah_series *series);
double ah__series_smoothed(const struct ah_series *series);

struct ah_chart {
    const char *title, *note;     /* note: a line under the title, may be null */
    const char *name;             /* of `main` in the legend */
    const struct ah_series *main; /* drawn pale as it is and strong smoothed */
    const char *dots_name;
    const struct ah_series *dots; /* marked one by one, joined; may be null */
    double reference;             /* a dashed line across; NaN: none. Left out when far from the curve */
    const char *reference_name;
    bool plain; /* not smoothed, no legend: one exact curve */
    int height; /* pixels */
};
/* One <svg> element that stands for itself, also alone in a file. */
void ah__chart(struct ah_buf *buf, const struct ah_chart *chart);

#endif
