/* The small files that lie beside a model's weights and that it is of no use without: its tokenizer's, and how it
 * generates. Takes a folder, keeps them in memory, writes them into other folders byte for byte. Knows not what is in
 * them. */
#ifndef AH_SOURCE_MODEL_FILES_H
#define AH_SOURCE_MODEL_FILES_H

#include "base/status.h"

#define AH_GENERATION_CONFIG "generation_config.json"
/* A folder of templates beside the default, NAME.jinja each. */
#define AH_MORE_TEMPLATES "additional_chat_templates"

struct ah_model_file {
    char *name, *text; /* the name may be AH_MORE_TEMPLATES "/NAME.jinja" */
    size_t length;
};

struct ah_model_files {
    struct ah_model_file *file;
    size_t count, room;
    char *outside; /* path of one that was left out: a link that leads out of the folder. Null: none */
};

/* Whether a file of this name is one of them. */
bool ah__model_files_are(const char *name);
/* Adds those of a folder. A link in it may lead to a file in it or in the same Hugging Face cache; what lies elsewhere
 * is left out, since a folder from elsewhere could make any file of its user part of what is passed on. Where it has no
 * generation_config.json, one is made of the ids in its config.json that begin and end a text, if there are any. `path`
 * may be a folder's config.json, which is as good as the folder, another configuration's file, a GGUF file, which gives
 * what source/gguf_files.h makes of it, or null. AH_EINPUT: one
 * cannot be read, or is longer than 64 MiB; AH_EIO; AH_ENOMEM. */
int ah__model_files_load(struct ah_model_files *files, const char *path);
/* Adds a copy of a text. AH_ENOMEM. */
int ah__model_files_add(struct ah_model_files *files, const char *name, const char *text, size_t length);
/* The text of the file at `path`, by the name that it has here, in place of one of that name. Fails likewise. */
int ah__model_files_set(struct ah_model_files *files, const char *name, const char *path);
/* The text of a config.json beside them: `config`, as a family writes it, with the ids that generation_config.json has
 * for what begins, ends and pads a text, where they are below vocab_size. Without them classes of transformers take
 * those of the first model of their kind. The caller frees *out with ah__free. AH_ENOMEM. */
int ah__model_files_config(char **out, const struct ah_model_files *files, const char *config, int64_t vocab_size);
/* Whether a key of config.json is one of these. */
bool ah__model_files_is_id(const char *key);
/* Writes one into a folder. AH_EIO. */
int ah__model_file_save(const struct ah_model_file *file, const char *folder);
/* Zero-initialised is fine. */
void ah__model_files_free(struct ah_model_files *files);

#endif
