/* Several devices for one training: the ranks of a launcher such as mpirun, one process and one device each. */
#ifndef AUTOHETE_RANKS_H
#define AUTOHETE_RANKS_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ah_ranks {
    int rank, world_size; /* 0 and 1: one alone */
    int neighbours;       /* of them on this machine, this one among them */
};
/* Joins the ranks that this process was started with, if it was; what is trained, profiled and planned afterwards is so
 * by all of them together, and every rank must make the same calls. To be called once, before any device is opened.
 * AH_EINPUT: this build cannot; AH_EDEVICE: MPI fails. */
AH_API int ah_ranks_open(struct ah_ranks *out);
/* This rank is done (AH_OK), or has failed with ah_error(): waits until the others say so, too, after a failure for a
 * few seconds at most. Returns the status that counts for all, with its message: this rank's failure, or that of
 * another. Called again it returns the same. One rank alone: `status`. */
AH_API int ah_ranks_end(int status);
/* Whether all ranks have met in ah_ranks_end; if not, ah_ranks_close ends them. */
AH_API bool ah_ranks_together(void);
/* The last call, right before the process exits with that status; it may not return. */
AH_API void ah_ranks_close(int exit_status);

#ifdef __cplusplus
}
#endif
#endif
