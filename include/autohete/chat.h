/* Conversations as text, by a model's chat template. */
#ifndef AUTOHETE_CHAT_H
#define AUTOHETE_CHAT_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model's chat template, interpreted here: what Python's jinja2 makes of it in transformers' apply_chat_template. */
struct ah_chat;

/* Of a model's folder, a training's (its newest checkpoint), a config.json or a GGUF file: chat_template.jinja, or
 * chat_template in tokenizer_config.json; or of the file `template_path`, where that is not null. Special tokens
 * such as bos_token are the model's, which may be null beside a template's file. AH_EINPUT: there is none, or it
 * says what is not known here. */
AH_API int ah_chat_open(const struct ah_chat **chat, const char *model_path, const char *template_path);
/* The same of a model with an adapter, as in struct ah_generate_options: what the adapter's folder has comes first. */
AH_API int ah_chat_open_adapted(const struct ah_chat **chat, const char *model_path, const char *adapter_dir,
                                const char *template_path);
/* Null is fine. */
AH_API void ah_chat_close(const struct ah_chat *chat);

struct ah_chat_options {
    /* JSON: a list of messages, or a conversation as a record of training data (docs/data.md) in any form, with tools,
     * "add_generation_prompt" and whatever else the template reads by its name ("enable_thinking"). */
    const char *conversation;
    size_t length;              /* bytes of it */
    const char *name;           /* where it comes from, for messages; null: "messages" */
    bool add_generation_prompt; /* end where the model is to write, also where the conversation does not say */
    const char *date;           /* "YYYY-MM-DD", which the template takes as today; null: today */
};
/* The text that the model continues, terminated, and its length; the caller frees *text with free(). AH_EINPUT also:
 * the template raises an exception. */
AH_API int ah_chat_render(char **text, size_t *length, const struct ah_chat *chat,
                          const struct ah_chat_options *options);
/* What a training learns from the conversation, as JSON: [{"text": .., "parts": [[begin, end], ..]}, ..], where parts
 * are bytes of the text that count for the loss. `train_on`: "assistant" (null too), "all" or "last" (docs/chat.md).
 * The caller frees *json with free(). */
AH_API int ah_chat_mask(char **json, size_t *length, const struct ah_chat *chat, const struct ah_chat_options *options,
                        const char *train_on);

#ifdef __cplusplus
}
#endif
#endif
