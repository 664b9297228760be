#include "train/out_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/mixture_parse.h"
#include "source/folder.h"
#include "source/inputs.h"

/* Sets *out to true if dir holds a checkpoint, which would be lost. A training that never completed one does not count:
 * its metrics are renamed. */
static int holds_training(bool *out, const char *dir)
{
    char *found = NULL;
    *out = false;
    if (!ah__path_exists(dir))
        return AH_OK;
    int status = ah__folder_find(&found, dir);
    *out = status == AH_OK;
    ah__free(found);
    return status == AH_EINPUT ? AH_OK : status;
}

/* Locks the folder if it exists. AH_EINPUT: another training has it. */
static int lock(struct ah_out_folder *out)
{
    if (out->fd >= 0)
        return AH_OK;
    int fd = open(out->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return AH_OK; /* it does not exist yet, or the first write will fail with a message */
    /* file systems without locks go unlocked */
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        return ah__fail(AH_EINPUT, "%s: found another training at work there, expected a folder of its own", out->dir);
    }
    out->fd = fd;
    return AH_OK;
}

int ah__out_folder_choose(struct ah_out_folder *out, const char *asked, const char *resumed)
{
    bool occupied = false, same = false;
    if (asked)
        AH_TRY(ah__strdup(&out->dir, asked));
    else if (resumed) {
        AH_TRY(holds_training(&occupied, resumed));
        if (occupied)
            AH_TRY(ah__strdup(&out->dir, resumed));
    }
    if (!out->dir)
        return AH_OK;
    AH_TRY(ah__folder_check(out->dir));
    AH_TRY(lock(out));
    AH_TRY(holds_training(&occupied, out->dir));
    if (occupied && resumed)
        AH_TRY(ah__path_same(&same, out->dir, resumed));
    if (occupied && !same)
        return ah__fail(AH_EINPUT, "%s: found a training there, expected another folder, or --resume to continue it",
                        out->dir);
    return AH_OK;
}

static int data_apart(const char *path, const struct ah_mixture_items *data)
{
    for (size_t i = 0; i < data->count; i++)
        AH_TRY(ah__output_apart_of_all(path, data->item[i].path));
    return AH_OK;
}

int ah__out_folder_apart(const struct ah_out_folder *out, const char *data, const char *chat_template)
{
    struct ah_mixture_items items = {0};
    int status = out->dir && data ? ah__mixture_parse(&items, data) : AH_OK;
    for (size_t i = 0; status == AH_OK && out->dir && ah__folder_written(i); i++) {
        char *path;
        status = ah__sprintf(&path, "%s/%s", out->dir, ah__folder_written(i));
        if (status != AH_OK)
            break;
        status = ah__output_apart(path, chat_template);
        if (status == AH_OK)
            status = data_apart(path, &items);
        ah__free(path);
    }
    ah__mixture_items_free(&items);
    return status;
}

/* If the folder did not exist when it was chosen, another training may have made it since and even be done: that is
 * checked. */
int ah__out_folder_take(struct ah_out_folder *out)
{
    bool locked = out->fd >= 0, taken = false;
    AH_TRY(ah__folder_make(out->dir));
    AH_TRY(lock(out));
    if (!locked)
        AH_TRY(holds_training(&taken, out->dir));
    return taken ? ah__fail(AH_EINPUT, "%s: found a training there that began meanwhile, expected another folder",
                            out->dir)
                 : AH_OK;
}

int ah__out_folder_again(struct ah_out_folder *out, bool *gone)
{
    struct stat taken, there;
    *gone = out->fd >= 0 && (stat(out->dir, &there) != 0 || fstat(out->fd, &taken) != 0 ||
                             taken.st_ino != there.st_ino || taken.st_dev != there.st_dev);
    if (!*gone)
        return AH_OK;
    close(out->fd);
    out->fd = -1;
    return ah__out_folder_take(out);
}

void ah__out_folder_fini(struct ah_out_folder *out)
{
    if (out->fd >= 0)
        close(out->fd);
    ah__free(out->dir);
    *out = (struct ah_out_folder){.fd = -1};
}
