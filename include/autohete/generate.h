/* What a trained model is asked: text. */
#ifndef AUTOHETE_GENERATE_H
#define AUTOHETE_GENERATE_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ah_generate_options {
    const char *model_dir; /* a checkpoint, or a training's folder (its newest) */
    const char *prompt;    /* text; null or empty: a newline */
    int64_t tokens;        /* how many to add */
    double temperature;    /* 0: the likeliest */
    int top_k;             /* 0: all */
    uint64_t seed;
    const char *device;    /* as for ah_dev_open; default "auto" */
    int threads;           /* of the CPU; 0: one per core */
    /* Each new token with the text it stands for, which is valid during the call and may hold zero bytes; nonzero
     * stops. */
    int (*on_token)(int token, const char *text, size_t length, void *context);
    void *context;
};
/* Continues the prompt; tokens are bytes (AH_EINPUT for a vocabulary beyond 256). Same bytes for any number of
 * threads. */
AH_API int ah_generate(const struct ah_generate_options *options);

#ifdef __cplusplus
}
#endif
#endif
