/* Colours of the SVG writer: a partition has one of its own, and a shade for each kind of work. */
#ifndef AH_TIMELINE_SVG_COLOUR_H
#define AH_TIMELINE_SVG_COLOUR_H

/* What is done to a partition's own colour so that kinds of work can be told apart. */
enum ah_svg_shade { AH_SVG_LIGHT, AH_SVG_SOLID, AH_SVG_AGAIN, AH_SVG_DARK, AH_SVG_GREY };

/* "#rrggbb" of a partition's work into text. */
void ah__svg_colour(char text[8], int partition, int layers, enum ah_svg_shade shade);

#endif
