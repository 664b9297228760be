#include "train/out_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "io/folder.h"

/* Whether both name one existing folder. */
static int same_folder(bool *same, const char *a, const char *b)
{
    char *left, *right;
    AH_TRY(ah__path_real(&left, a));
    int status = ah__path_real(&right, b);
    if (status == AH_OK) {
        *same = left && right && strcmp(left, right) == 0;
        ah__free(right);
    }
    ah__free(left);
    return status;
}

/* Whether dir has what a training leaves. */
static int holds_training(bool *out, const char *dir)
{
    static const char *const traces[] = {"metrics.jsonl", "checkpoint"};
    *out = false;
    for (size_t i = 0; i < AH_LENGTH(traces) && !*out; i++) {
        char *path;
        AH_TRY(ah__sprintf(&path, "%s/%s", dir, traces[i]));
        *out = ah__path_exists(path);
        ah__free(path);
    }
    return AH_OK;
}

/* Nothing to do while the folder does not exist. AH_EINPUT when another training has it. */
static int lock(struct ah_out_folder *out)
{
    if (out->fd >= 0)
        return AH_OK;
    int fd = open(out->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return AH_OK; /* not there yet, or what the first write will complain about */
    /* File systems that cannot lock do without. */
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
        AH_TRY(same_folder(&same, out->dir, resumed));
    if (occupied && !same)
        return ah__fail(AH_EINPUT, "%s: found a training there, expected another folder, or --resume to continue it",
                        out->dir);
    return AH_OK;
}

/* A folder that was not there when it was chosen: another training may have made it and even be done. */
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

void ah__out_folder_fini(struct ah_out_folder *out)
{
    if (out->fd >= 0)
        close(out->fd);
    ah__free(out->dir);
    *out = (struct ah_out_folder){.fd = -1};
}
