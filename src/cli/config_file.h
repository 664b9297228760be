/* Files of options (--config): a mapping of YAML, of which JSON is a part, from names to values or lists of values.
 * Takes a path, returns keys and texts; knows no options. Reads with libyaml. */
#ifndef AH_CLI_CONFIG_FILE_H
#define AH_CLI_CONFIG_FILE_H

#include "autohete.h"

enum { AH_CONFIG_TEXTS_MOST = 64 };

struct ah_config_entry {
    char *key;
    char *text[AH_CONFIG_TEXTS_MOST]; /* [count] values, in order; count 0: null, or an empty list */
    int count;
    bool list;
    size_t line; /* line of the key, counted from 1 */
};

struct ah_config_file {
    struct ah_config_entry *entries;
    size_t count;
};

/* Reads the file at `path` into an empty struct, which the caller frees also after a failure. False: `error`, of `room`
 * bytes, has the cause with path and line. */
bool ah__config_file_read(struct ah_config_file *file, const char *path, char *error, size_t room);
void ah__config_file_free(struct ah_config_file *file);

#endif
