#include "timeline/svg_colour.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

/* Blocks have the colours of this ramp, from the first block to the last. */
static const int ramp[][3] = {{13, 148, 136}, {14, 116, 190}, {79, 70, 229}, {147, 51, 207}, {219, 39, 119}};
static const int embedding_colour[3] = {71, 85, 105}, head_colour[3] = {217, 119, 6}, grey[3] = {148, 163, 184};

static void base_colour(int rgb[3], int partition, int layers)
{
    const int *fixed = partition <= 0 ? embedding_colour : partition > layers ? head_colour : NULL;
    int stops = (int)AH_LENGTH(ramp) - 1;
    double at = layers > 1 ? (double)(partition - 1) / (layers - 1) * stops : 0;
    int stop = (int)at < stops ? (int)at : stops - 1;
    for (int i = 0; i < 3; i++)
        rgb[i] = fixed ? fixed[i] : (int)(ramp[stop][i] + (at - stop) * (ramp[stop + 1][i] - ramp[stop][i]) + 0.5);
}

void ah__svg_colour(char text[8], int partition, int layers, enum ah_svg_shade shade)
{
    /* share of the partition's colour; the rest is white (255) or nearly black (24) */
    static const struct {
        double share;
        int rest;
    } mixes[] = {[AH_SVG_LIGHT] = {0.42, 255},
                 [AH_SVG_SOLID] = {0.92, 255},
                 [AH_SVG_AGAIN] = {0.92, 255},
                 [AH_SVG_DARK] = {0.68, 24},
                 [AH_SVG_GREY] = {1, 0}};
    int rgb[3];
    base_colour(rgb, partition, layers);
    if (shade == AH_SVG_GREY)
        memcpy(rgb, grey, sizeof rgb);
    for (int i = 0; i < 3; i++)
        rgb[i] = (int)(mixes[shade].share * rgb[i] + (1 - mixes[shade].share) * mixes[shade].rest);
    snprintf(text, 8, "#%02x%02x%02x", (unsigned)rgb[0] & 255U, (unsigned)rgb[1] & 255U, (unsigned)rgb[2] & 255U);
}
