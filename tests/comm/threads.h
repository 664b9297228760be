/* Ranks as threads of the test: a transport between them, and their groups. What runs over MPI runs here unchanged,
 * with the order of messages drawn by the machine. */
#ifndef AH_TESTS_COMM_THREADS_H
#define AH_TESTS_COMM_THREADS_H

#include "comm/comm.h"

enum { THREADS_MOST = 8 };

/* Runs work(rank, context) on `ranks` threads at once, each of which has its group as ah__comm(), and waits for all.
 * `work` may assert. */
void threads_run(int ranks, void (*work)(int rank, void *context), void *context);
/* The calling rank's next exchange of work fails, for this reason. */
void threads_refuse(const char *why);

#endif
