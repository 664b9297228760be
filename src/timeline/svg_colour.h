/* Colours of the SVG writer: each partition has a colour, each kind of work a shade. */
#ifndef AH_TIMELINE_SVG_COLOUR_H
#define AH_TIMELINE_SVG_COLOUR_H

/* A shade changes the colour of a partition, so that kinds of work can be told apart. */
enum ah_svg_shade { AH_SVG_LIGHT, AH_SVG_SOLID, AH_SVG_AGAIN, AH_SVG_DARK, AH_SVG_GREY };

/* Writes the colour of a partition's work to text, as "#rrggbb". */
void ah__svg_colour(char text[8], int partition, int layers, enum ah_svg_shade shade);

#endif
