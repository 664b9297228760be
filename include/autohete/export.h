/* Models in the formats of other programs. */
#ifndef AUTOHETE_EXPORT_H
#define AUTOHETE_EXPORT_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a model with its tokenizer as one GGUF file, for llama.cpp and programs like it. `model` is as for
 * ah_generate_options.model_dir; an adapter's folder is written as by ah_export_adapter. type: "f16" (also null),
 * "bf16", "f32" or "q8_0", in any case. Vectors are always F32; with q8_0, rows whose length is not a multiple of 32
 * are F16. AH_EINPUT: GGUF cannot express the model, its rotation or its tokenizer, or the file cannot be made. AH_EIO:
 * the old file is unchanged. */
AH_API int ah_export_gguf(const char *path, const char *model, const char *type);
/* Does the same. *note: one line about what programs that read such files do differently from what the model's folder
 * says, or null. The caller frees it with free(). */
AH_API int ah_export_gguf_noted(char **note, const char *path, const char *model, const char *type);

/* Writes a low-rank adapter alone as a GGUF file, which llama.cpp adds to its model's (--lora). `model` and `adapter`
 * are as for ah_generate_options; only the model's configuration is used. type: "f32" (also null), or as above. *note
 * says how the file is used, and is freed with free(); `note` may be null. AH_EINPUT: there is no adapter, llama.cpp
 * has no architecture for the model, or as above. */
AH_API int ah_export_adapter(char **note, const char *path, const char *model, const char *adapter, const char *type);

/* Writes a model with an adapter added to its weights as a new folder `out`, with config.json, model.safetensors and
 * the files of the tokenizer and chat template that the adapter was trained with. `model` and `adapter` are as for
 * ah_generate_options. dtype: "fp32", "bf16", or null: fp32 if bf16 would round the model's weights or weights that
 * were trained here in fp32, else bf16. AH_EINPUT: there is no adapter, or `out` already exists or cannot be made.
 * AH_EIO: `out` does not exist then. */
AH_API int ah_merge(const char *out, const char *model, const char *adapter, const char *dtype);
/* Does the same. *note: one line about what was written. The caller frees it with free(). */
AH_API int ah_merge_noted(char **note, const char *out, const char *model, const char *adapter, const char *dtype);

#ifdef __cplusplus
}
#endif
#endif
