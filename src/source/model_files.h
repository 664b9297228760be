/* The small files beside a model's weights without which it is of no use: those of the tokenizer and of generation.
 * Takes a folder, keeps its files in memory, writes them into other folders byte for byte. Knows nothing of their
 * content. */
#ifndef AH_SOURCE_MODEL_FILES_H
#define AH_SOURCE_MODEL_FILES_H

#include "base/status.h"

#define AH_GENERATION_CONFIG "generation_config.json"
/* The folder of templates beside the default, NAME.jinja each. */
#define AH_MORE_TEMPLATES "additional_chat_templates"

struct ah_model_file {
    char *name, *text; /* the name may be AH_MORE_TEMPLATES "/NAME.jinja" */
    size_t length;
};

struct ah_model_files {
    struct ah_model_file *file;
    size_t count, room;
    char *outside; /* path of a file that was left out: a link that leads out of the folder. Null: there is none */
};

/* Returns true if a file of this name is one of them. */
bool ah__model_files_are(const char *name);
/* Adds the files of a folder. A link in it may lead to a file in it or in the same Hugging Face cache; other links are
 * left out, since a folder from elsewhere could otherwise make any file of its user part of the result. Without
 * generation_config.json, one is made of the ids in config.json that begin and end a text, if it has any. `path` may be
 * a folder's config.json, which means the folder, the file of another configuration, a GGUF file, which gives the files
 * of gguf/files.h, or null. AH_EINPUT: a file cannot be read, or is longer than 64 MiB; AH_EIO; AH_ENOMEM. */
int ah__model_files_load(struct ah_model_files *files, const char *path);
/* Returns the file of that name, or null. */
const struct ah_model_file *ah__model_files_find(const struct ah_model_files *files, const char *name);
/* Adds a copy of a text. AH_ENOMEM. */
int ah__model_files_add(struct ah_model_files *files, const char *name, const char *text, size_t length);
/* Sets the file of this name to the text of the file at `path`. Fails likewise. */
int ah__model_files_set(struct ah_model_files *files, const char *name, const char *path);
/* Makes the text of a config.json beside them: `config`, as a family writes it, with the ids of generation_config.json
 * that begin, end and pad a text, if they are below vocab_size. Without them classes of transformers use the ids of the
 * first model of their kind. The caller frees *out with ah__free. AH_ENOMEM. */
int ah__model_files_config(char **out, const struct ah_model_files *files, const char *config, int64_t vocab_size);
/* Returns true if a key of config.json is one of these ids. */
bool ah__model_files_is_id(const char *key);
/* Writes a file into a folder. AH_EIO. */
int ah__model_file_save(const struct ah_model_file *file, const char *folder);
/* Zero-initialised is fine. */
void ah__model_files_free(struct ah_model_files *files);

#endif
