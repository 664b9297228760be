/* Plots as SVG: grouped bars over names, or lines over numbers. Takes values, gives a file; NaN marks what does not
 * fit. */
#ifndef AH_BENCH_PLOT_H
#define AH_BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>

enum { PLOT_SERIES_MOST = 8 };

struct plot_series {
    const char *name, *colour; /* "#rrggbb" */
    const double *y;           /* one for each point */
};

struct plot {
    const char *title, *subtitle, *x_label, *y_label;
    const char *const *x_names; /* grouped bars; null: lines over x */
    const double *x;            /* ascending */
    size_t points, series_count;
    bool all_fit; /* nothing is NaN: the legend does not explain it */
    struct plot_series series[PLOT_SERIES_MOST];
};

/* AH_ENOMEM, AH_EIO, AH_EINPUT. */
int plot_save(const struct plot *plot, const char *path);

#endif
