#include "io/tokenizer_copy.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "io/tokenizer.h"

enum { FILES_MOST = 16, FILE_BYTES = 64 << 20 };

struct ah_tokenizer_copy {
    struct {
        const char *name;
        char *data;
        size_t length;
    } files[FILES_MOST];
    int count;
};

static int file_read(struct ah_tokenizer_copy *copy, const char *folder, const char *name)
{
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/%s", folder, name));
    int status = AH_OK;
    if (access(path, F_OK) == 0) {
        status = ah__file_read(&copy->files[copy->count].data, &copy->files[copy->count].length, path, FILE_BYTES);
        copy->files[copy->count].name = name;
        copy->count += status == AH_OK;
    }
    ah__free(path);
    return status;
}

int ah__tokenizer_copy_new(struct ah_tokenizer_copy **out, const char *model)
{
    struct ah_tokenizer_copy *copy = NULL;
    char *folder;
    AH_TRY(ah__tokenizer_folder(&folder, model));
    if (!folder)
        return AH_OK;
    int status = ah__new(&copy, 1, sizeof *copy);
    for (int i = 0; status == AH_OK && ah__tokenizer_files[i] && copy->count < FILES_MOST; i++)
        status = file_read(copy, folder, ah__tokenizer_files[i]);
    ah__free(folder);
    if (status == AH_OK)
        *out = copy;
    else
        ah__tokenizer_copy_free(copy);
    return status;
}

void ah__tokenizer_copy_free(struct ah_tokenizer_copy *copy)
{
    for (int i = 0; copy && i < copy->count; i++)
        ah__free(copy->files[i].data);
    ah__free(copy);
}

int ah__tokenizer_copy_write(const struct ah_tokenizer_copy *copy, struct ah_folder *folder)
{
    for (int i = 0; copy && i < copy->count; i++) {
        char *path;
        AH_TRY(ah__sprintf(&path, "%s/%s", ah__folder_path(folder), copy->files[i].name));
        int status = ah__file_write(path, copy->files[i].data, copy->files[i].length);
        ah__free(path);
        AH_TRY(status);
        AH_TRY(ah__folder_add(folder, copy->files[i].name));
    }
    return AH_OK;
}
