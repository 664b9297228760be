/* Conversations as text, by a model's chat template. */
#ifndef AUTOHETE_CHAT_H
#define AUTOHETE_CHAT_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model's chat template. The library interprets it itself, with the results of Python's jinja2 in transformers'
 * apply_chat_template. */
struct ah_chat;

/* Opens the chat template of a model: a model's folder, a training's (its newest checkpoint), a config.json or a GGUF
 * file. The template is chat_template.jinja, or chat_template in tokenizer_config.json; or the file `template_path`, if
 * that is not null. Special tokens such as bos_token are the model's; model_path may be null beside a template_path.
 * AH_EINPUT: there is no template, or it uses something that is not supported. */
AH_API int ah_chat_open(const struct ah_chat **chat, const char *model_path, const char *template_path);
/* Does the same for a model with an adapter, as in struct ah_generate_options. Files in the adapter's folder take
 * precedence. */
AH_API int ah_chat_open_adapted(const struct ah_chat **chat, const char *model_path, const char *adapter_dir,
                                const char *template_path);
/* Closes a template; null is fine. */
AH_API void ah_chat_close(const struct ah_chat *chat);

struct ah_chat_options {
    /* JSON: a list of messages, or a conversation as a record of training data (docs/data.md) in any form, with tools,
     * "add_generation_prompt" and all other values that the template reads by name ("enable_thinking"). */
    const char *conversation;
    size_t length;              /* bytes of `conversation` */
    const char *name;           /* its name in error messages; null: "messages" */
    bool add_generation_prompt; /* end the text where the model is to write, even if the conversation does not ask for
                                 * it */
    const char *date;           /* "YYYY-MM-DD", the date that the template takes as today; null: today */
};
/* Renders the text that the model continues, with a zero byte after it, and its length. The caller frees *text with
 * free(). AH_EINPUT also: the template raises an exception. */
AH_API int ah_chat_render(char **text, size_t *length, const struct ah_chat *chat,
                          const struct ah_chat_options *options);
/* Gives the parts of the conversation that a training learns, as JSON: [{"text": .., "parts": [[begin, end], ..]}, ..].
 * Parts are bytes of the text that count for the loss. `train_on`: "assistant" (also null), "all" or "last"
 * (docs/chat.md). The caller frees *json with free(). */
AH_API int ah_chat_mask(char **json, size_t *length, const struct ah_chat *chat, const struct ah_chat_options *options,
                        const char *train_on);

#ifdef __cplusplus
}
#endif
#endif
