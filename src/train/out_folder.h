/* The folder a training writes to: chosen, kept from other trainings, made. Takes paths; knows nothing of what is
 * written there but the names by which a training is recognised. */
#ifndef AH_TRAIN_OUT_FOLDER_H
#define AH_TRAIN_OUT_FOLDER_H

#include "base/status.h"

struct ah_out_folder {
    char *dir; /* null: nothing is written */
    int fd;    /* of dir, locked; -1: not open, the start */
};

/* The folder as asked, else beside the resumed checkpoint when a training lives there; both may be null. Locks it when
 * it exists; writes nothing. AH_EINPUT: it holds a training that is not resumed, or one is at work there. */
int ah__out_folder_choose(struct ah_out_folder *out, const char *asked, const char *resumed);
/* That no file which the training writes there is one that it reads: `data` as for ah__mixture_parse, a chat template;
 * both may be null. AH_EINPUT. */
int ah__out_folder_apart(const struct ah_out_folder *out, const char *data, const char *chat_template);
/* Makes the chosen folder and keeps it until fini. AH_EINPUT when another training was faster. */
int ah__out_folder_take(struct ah_out_folder *out);
/* Makes the folder again, and takes it, when it is no longer where it was; *gone tells. AH_EINPUT, AH_EIO. */
int ah__out_folder_again(struct ah_out_folder *out, bool *gone);
void ah__out_folder_fini(struct ah_out_folder *out);

#endif
