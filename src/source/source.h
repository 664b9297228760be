/* A model wherever it lies. Takes the path that a user gives, tells which kind of place it is, and gives the model's
 * configuration as text and the path of its weights; other headers of this room give its tensors, small files,
 * tokenizer and chat template from the same path. So callers need not look at paths. Knows no families. */
#ifndef AH_SOURCE_SOURCE_H
#define AH_SOURCE_SOURCE_H

#include "base/status.h"

enum ah_source_kind {
    AH_SOURCE_OTHER,    /* none of these, or missing */
    AH_SOURCE_GGUF,     /* a GGUF file */
    AH_SOURCE_CONFIG,   /* another regular file, taken for a configuration */
    AH_SOURCE_TRAINING, /* a folder with a complete checkpoint, or the checkpoint's folder */
    AH_SOURCE_FOLDER,   /* another folder with config.json */
};
enum ah_source_kind ah__source_kind(const char *path);

/* The configuration of a model. */
struct ah_source_config {
    char *text; /* JSON with Hugging Face's keys */
    size_t length;
    char *path; /* file of the text, for messages */
    char *note; /* one line about a property that a GGUF file leaves to its reader; null: none */
};
/* Reads config.json of a folder, the file itself, or the keys of a GGUF file. AH_EINPUT: no model lies there;
 * AH_ECORRUPT; AH_EIO; AH_ENOMEM. */
int ah__source_config(struct ah_source_config *out, const char *path);
/* Zero-initialised is fine. */
void ah__source_config_free(struct ah_source_config *config);

/* Gives the folder if the path is one or its config.json, else a copy of the path; freed with ah__free. */
int ah__source_place(char **place, const char *path);
/* Gives the same for a model that must have weights. AH_EINPUT for paths that are known to be no such model; a missing
 * file is not an error here. */
int ah__source_place_of_weights(char **place, const char *path);
/* Sets *weights to the file of a model's weights, or the index of several; null if there is none. Freed with ah__free.
 * AH_EINPUT: the weights have a form that is not read; the message says how to convert pickled ones. */
int ah__source_weights(char **weights, const char *path);

#endif
