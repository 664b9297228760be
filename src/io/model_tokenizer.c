#include "io/model_tokenizer.h"

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

int ah_tokenizer_open(const struct ah_tokenizer **tokenizer, const char *model_path)
{
    return ah__model_tokenizer_open(tokenizer, model_path);
}
