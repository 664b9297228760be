/* A folder that is either complete or absent. Takes the path of a new folder, gives one to write into, PATH.tmp, and
 * puts it in place. Removes what a killed program left there, if there is nothing else. */
#ifndef AH_SOURCE_NEW_FOLDER_H
#define AH_SOURCE_NEW_FOLDER_H

#include "base/status.h"

struct ah_new_folder;

/* Begins a folder. `is_ours`: returns true for names that are written into such folders. Makes parents of PATH.
 * AH_EINPUT: PATH exists, even as a link that leads nowhere; PATH.tmp is in use or holds other files; the folder cannot
 * be made. AH_EIO, AH_ENOMEM. */
int ah__new_folder_begin(struct ah_new_folder **out, const char *path, bool (*is_ours)(const char *name));
/* Returns the folder to write into. Valid until free. */
const char *ah__new_folder_path(const struct ah_new_folder *folder);
/* Puts the folder in place. AH_EIO. */
int ah__new_folder_commit(struct ah_new_folder *folder);
/* Frees the folder and removes it if it was not committed. Null is fine. */
void ah__new_folder_free(struct ah_new_folder *folder);

#endif
