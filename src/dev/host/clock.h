/* The monotonic clock, and copies as slow as a slower link's. */
#ifndef AH_DEV_HOST_CLOCK_H
#define AH_DEV_HOST_CLOCK_H

#include "base/status.h"

int64_t ah__host_now_ns(void);
/* Returns a delay of up to 200 us, drawn from a seed, a lane's number and the number of the draw. Three of four are 0,
 * so that tests with delays do not spend their time asleep. */
int64_t ah__host_jitter_ns(uint64_t seed, int lane, uint64_t draw);
/* Sleeps until the clock shows `deadline_ns`. */
void ah__host_sleep_until(int64_t deadline_ns);
/* Tells the core that the thread spins, so that it may do other work for a moment. */
void ah__host_pause(void);
/* Copies at `bytes_per_s` (0: unthrottled) with absolute deadlines, so that it takes bytes / bytes_per_s and no
 * longer. */
void ah__host_transfer(void *to, const void *from, int64_t bytes, int64_t bytes_per_s);

#endif
