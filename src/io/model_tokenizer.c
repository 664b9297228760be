#include "io/model_tokenizer.h"

#include "base/alloc.h"
#include "io/gguf.h"
#include "io/gguf_files.h"
#include "tokenizer/subword.h"

int ah__model_tokenizer_open(const struct ah_tokenizer **out, const char *model)
{
    struct ah_gguf_files files;
    if (!model || !ah__gguf_is(model))
        return ah__tokenizer_open(out, model);
    AH_TRY(ah__gguf_files_load(&files, model));
    const struct ah_subword_texts texts = {model, files.tokenizer, files.config, files.generation};
    int status = ah__subword_open_texts(out, &texts);
    ah__gguf_files_free(&files);
    return status;
}

int ah_tokenizer_note(char **note, const char *model_path)
{
    struct ah_gguf *file;
    bool by_default = false;
    *note = NULL;
    if (!model_path || !ah__gguf_is(model_path))
        return AH_OK;
    AH_TRY(ah__gguf_open(&file, model_path));
    int status = ah__gguf_splits_by_default(&by_default, file);
    ah__gguf_close(file);
    return status == AH_OK && by_default ? ah__sprintf(note, "%s: %s", model_path, ah__gguf_splits_note) : status;
}

int ah_tokenizer_open(const struct ah_tokenizer **tokenizer, const char *model_path)
{
    return ah__model_tokenizer_open(tokenizer, model_path);
}
