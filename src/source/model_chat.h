/* The chat template of a model, wherever it is kept: in the files of a folder, in a GGUF file's metadata, or in a file
 * that is named instead. */
#ifndef AH_SOURCE_MODEL_CHAT_H
#define AH_SOURCE_MODEL_CHAT_H

#include "chat/chat.h"

/* `model`: a folder, its config.json, a GGUF file, or null. Of a folder: chat_template.jinja, else chat_template in
 * tokenizer_config.json (a text, or a list of {name, template}, of which "default" is used, and "tool_use" where there
 * are tools), else in chat_template.json. `adapter`, a folder where not null, comes before the model. `template_path`,
 * where not null, is a template to use instead. Either way bos_token and the like are those of the adapter, if it has a
 * tokenizer, else of the model. *out is null where there is no template. AH_EINPUT, AH_ENOMEM. */
int ah__model_chat_open(const struct ah_chat **out, const char *model, const char *adapter, const char *template_path);

#endif
