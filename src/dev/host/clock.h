/* The monotonic clock, and copies that take the time a slower link would. */
#ifndef AH_DEV_HOST_CLOCK_H
#define AH_DEV_HOST_CLOCK_H

#include "base/status.h"

int64_t ah__host_now_ns(void);
/* A delay of up to 200 us, drawn from a seed, a lane's number and the number of the draw; three of four are none, so
 * that tests with delays do not spend their time asleep. */
int64_t ah__host_jitter_ns(uint64_t seed, int lane, uint64_t draw);
/* Sleeps until the clock shows `deadline_ns`. */
void ah__host_sleep_until(int64_t deadline_ns);
/* Of a thread that spins: the core may do something else for a moment. */
void ah__host_pause(void);
/* memcpy at `bytes_per_s` (0: unthrottled) by absolute deadlines, so that it takes bytes / bytes_per_s and no more. */
void ah__host_transfer(void *to, const void *from, int64_t bytes, int64_t bytes_per_s);

#endif
