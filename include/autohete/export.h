/* Models as other programs read them. */
#ifndef AUTOHETE_EXPORT_H
#define AUTOHETE_EXPORT_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a model with its tokenizer as one GGUF file, which llama.cpp and its like read. `model` is as for
 * ah_generate_options.model_dir; an adapter's folder is written as by ah_export_adapter. type: "f16" (null), "bf16",
 * "f32" or "q8_0" in any case; vectors are F32 always, and rows of a length that is no multiple of 32 are F16 where
 * q8_0 is asked for. AH_EINPUT: a model, a rotation, a tokenizer that GGUF has nothing for, or a file that cannot be
 * made; AH_EIO: the old file is as it was. */
AH_API int ah_export_gguf(const char *path, const char *model, const char *type);
/* The same. *note: one line about what programs that read such files do otherwise than the model's folder says, which
 * the caller frees with free(), or null. */
AH_API int ah_export_gguf_noted(char **note, const char *path, const char *model, const char *type);

/* Writes a low-rank adapter alone as a GGUF file, which llama.cpp adds to its model's (--lora). `model` and `adapter`
 * are as for ah_generate_options; of the model its configuration counts. type: "f32" (null), or as above. *note (null:
 * not wanted) says how the file is used; freed with free(). AH_EINPUT: no adapter, a model that llama.cpp has no
 * architecture for, or as above. */
AH_API int ah_export_adapter(char **note, const char *path, const char *model, const char *adapter, const char *type);

/* Writes a model with an adapter added to its weights as a new folder `out`, with config.json, model.safetensors and
 * the files of the tokenizer and chat template that the adapter was trained with. `model` and `adapter` are as for
 * ah_generate_options. dtype: "fp32", "bf16", or null: fp32 where bf16 would round the model's weights, or what was
 * trained here in fp32; else bf16. AH_EINPUT: there is no adapter, or `out` is there already or cannot be made; AH_EIO:
 * then there is no `out`. */
AH_API int ah_merge(const char *out, const char *model, const char *adapter, const char *dtype);
/* The same. *note: one line about what was written, which the caller frees with free(). */
AH_API int ah_merge_noted(char **note, const char *out, const char *model, const char *adapter, const char *dtype);

#ifdef __cplusplus
}
#endif
#endif
