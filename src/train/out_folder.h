/* The folder that a training writes to: choosing it, locking out other trainings, making it. Takes paths; knows nothing
 * of its files but the names by which a training is recognized. */
#ifndef AH_TRAIN_OUT_FOLDER_H
#define AH_TRAIN_OUT_FOLDER_H

#include "base/status.h"

struct ah_out_folder {
    char *dir; /* null: nothing is written */
    int fd;    /* descriptor of dir, locked; -1: not open, as at the start */
};

/* Chooses the folder asked for, else the folder of the resumed checkpoint if it holds a training; both may be null.
 * Locks the folder if it exists; writes nothing. AH_EINPUT: it holds a training that is not resumed, or another
 * training works there. */
int ah__out_folder_choose(struct ah_out_folder *out, const char *asked, const char *resumed);
/* Checks that the training writes no file that it reads: `data` as for ah__mixture_parse, a chat template; both may be
 * null. AH_EINPUT. */
int ah__out_folder_apart(const struct ah_out_folder *out, const char *data, const char *chat_template);
/* Makes the chosen folder and keeps it locked until fini. AH_EINPUT: another training was faster. */
int ah__out_folder_take(struct ah_out_folder *out);
/* Makes and locks the folder again if it is no longer at its path; *gone: it was not. AH_EINPUT, AH_EIO. */
int ah__out_folder_again(struct ah_out_folder *out, bool *gone);
void ah__out_folder_fini(struct ah_out_folder *out);

#endif
