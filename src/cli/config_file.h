/* Files of options (--config): a mapping of YAML, of which JSON is a part, from names to values or lists of them. Takes
 * a path, gives keys and texts; knows no options. Reads with libyaml. */
#ifndef AH_CLI_CONFIG_FILE_H
#define AH_CLI_CONFIG_FILE_H

#include "autohete.h"

enum { AH_CONFIG_TEXTS_MOST = 64 };

struct ah_config_entry {
    char *key;
    char *text[AH_CONFIG_TEXTS_MOST]; /* [count] values, in order; 0: null */
    int count;
    bool list;
    size_t line; /* of the key, from 1 on */
};

struct ah_config_file {
    struct ah_config_entry *entries;
    size_t count;
};

/* Into an empty file, which the caller frees either way. False: the text of at most `room` bytes says why, with path
 * and line. */
bool ah__config_file_read(struct ah_config_file *file, const char *path, char *error, size_t room);
void ah__config_file_free(struct ah_config_file *file);

#endif
