/* The chat template of a model: from the files of a folder, from a GGUF file's metadata, or from a file that the user
 * names instead. */
#ifndef AH_SOURCE_MODEL_CHAT_H
#define AH_SOURCE_MODEL_CHAT_H

#include "chat/chat.h"

/* Opens the template. `model`: a folder, its config.json, a GGUF file, or null. A folder's template is
 * chat_template.jinja, else chat_template in tokenizer_config.json (a text, or a list of {name, template} with
 * "default", and "tool_use" for conversations with tools), else in chat_template.json. `adapter`, a folder if not null,
 * precedes the model. `template_path`, if not null, is a template to use instead. In each case bos_token and similar
 * tokens are the adapter's, if it has a tokenizer, else the model's. *out is null if there is no template. AH_EINPUT,
 * AH_ENOMEM. */
int ah__model_chat_open(const struct ah_chat **out, const char *model, const char *adapter, const char *template_path);

#endif
