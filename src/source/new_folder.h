/* A folder that is there complete or not at all. Takes the path of one that is to be made, gives one to write into,
 * PATH.tmp, and puts it in place. What a killed program left there is swept, where it is nothing but that. */
#ifndef AH_SOURCE_NEW_FOLDER_H
#define AH_SOURCE_NEW_FOLDER_H

#include "base/status.h"

struct ah_new_folder;

/* `is_ours`: whether a file or folder of that name is one that is written into such folders. Makes parents of PATH.
 * AH_EINPUT: something is there, be it a link that leads nowhere; PATH.tmp is at work or holds what is not ours; the
 * folder cannot be made. AH_EIO, AH_ENOMEM. */
int ah__new_folder_begin(struct ah_new_folder **out, const char *path, bool (*is_ours)(const char *name));
/* Where to write. Valid until free. */
const char *ah__new_folder_path(const struct ah_new_folder *folder);
/* Puts it in place. AH_EIO. */
int ah__new_folder_commit(struct ah_new_folder *folder);
/* Frees; what was not committed is removed. Null is fine. */
void ah__new_folder_free(struct ah_new_folder *folder);

#endif
