/* The pictures of a training: timeline.json, timeline.svg and loss.svg in its folder. A picture is not worth a
 * training: what cannot be drawn is said and left. */
#ifndef AH_TRAIN_PICTURES_H
#define AH_TRAIN_PICTURES_H

#include "train/training.h"

/* After a segment of `steps`: keeps its record when it is the first that is long enough, or the longest so far, and
 * draws it. */
void ah__pictures_segment(struct ah_training *training, int64_t steps);
/* When the training is over: the same again with the step time of the whole run, and the loss. */
void ah__pictures_end(struct ah_training *training);

#endif
