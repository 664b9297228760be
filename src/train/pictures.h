/* The pictures of a training: timeline.json, timeline.svg and loss.svg in its folder. A picture that cannot be drawn is
 * reported; the training goes on. */
#ifndef AH_TRAIN_PICTURES_H
#define AH_TRAIN_PICTURES_H

#include "train/training.h"

/* Called after a segment of `steps`: keeps and draws its record if it is the first that is long enough, or the longest
 * so far. */
void ah__pictures_segment(struct ah_training *training, int64_t steps);
/* Called when the training is over: draws the timeline again with the step time of the whole run, and the loss. */
void ah__pictures_end(struct ah_training *training);

#endif
