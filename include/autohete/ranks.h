/* Several devices for one training: the ranks of a launcher such as mpirun, one process and one device each. */
#ifndef AUTOHETE_RANKS_H
#define AUTOHETE_RANKS_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ah_ranks {
    int rank, world_size; /* 0 and 1: a single rank */
    int neighbours;       /* number of ranks on this machine, this one included */
};
/* Joins the ranks that this process was started with, if it was. From then on trainings, profiles and plans are made by
 * all ranks together, and every rank must make the same calls. Call it once, before any device is opened. AH_EINPUT:
 * this build does not support ranks. AH_EDEVICE: MPI fails. */
AH_API int ah_ranks_open(struct ah_ranks *out);
/* Reports that this rank is done (AH_OK) or has failed with ah_error(), and waits until the others report, too; after a
 * failure for a few seconds at most. Returns the status that counts for all, with its message: this rank's failure, or
 * another's. A second call returns the same. With a single rank returns `status`. */
AH_API int ah_ranks_end(int status);
/* Returns true if all ranks have met in ah_ranks_end; if not, ah_ranks_close ends them. */
AH_API bool ah_ranks_together(void);
/* The last call, right before the process exits with that status; it may not return. */
AH_API void ah_ranks_close(int exit_status);

#ifdef __cplusplus
}
#endif
#endif
