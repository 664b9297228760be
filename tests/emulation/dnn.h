/* What the two halves of cuDNN's stand-in share: descriptors as they were set, and graphs that are run. */
#ifndef EMULATION_DNN_H
#define EMULATION_DNN_H

#include <stdbool.h>
#include <stdint.h>

#include <cudnn.h>

enum { CUDNN_ATTRIBUTES_MOST = 8, CUDNN_OPERATIONS_MOST = 64, CUDNN_TENSORS_MOST = 96 };

/* An attribute that was set. */
struct cudnn_value {
    cudnnBackendAttributeName_t name;
    int64_t count;
    void *elements;
};

struct cudnn_descriptor {
    int magic;
    cudnnBackendDescriptorType_t type;
    bool finalized;
    struct cudnn_value value[CUDNN_ATTRIBUTES_MOST];
    int values;
    int engine;                    /* engines and their configurations: which, counted from 0 */
    struct cudnn_descriptor *from; /* heuristics' results: the graph */
};

/* The elements of an attribute; null when it was not set. */
const void *cudnn_elements(const struct cudnn_descriptor *descriptor, cudnnBackendAttributeName_t name);
int64_t cudnn_count(const struct cudnn_descriptor *descriptor, cudnnBackendAttributeName_t name);
/* The only element of one; 0 or null when it was not set. */
struct cudnn_descriptor *cudnn_link(const struct cudnn_descriptor *descriptor, cudnnBackendAttributeName_t name);
int64_t cudnn_int(const struct cudnn_descriptor *descriptor, cudnnBackendAttributeName_t name);
int cudnn_enum(const struct cudnn_descriptor *descriptor, cudnnBackendAttributeName_t name);

/* Whether the shapes and types of an operation fit each other. */
bool cudnn_operation_good(const struct cudnn_descriptor *operation);

/* A graph with addresses, to be run on a stream's thread; the graph's descriptors must live until then. */
struct cudnn_run {
    const struct cudnn_descriptor *graph;
    char *workspace; /* overwritten */
    int64_t workspace_bytes;
    int tensors;
    struct {
        int64_t uid;
        char *at;
        float number; /* of a by-value tensor, read when the run was asked for */
    } tensor[16];
};
/* The argument is a struct cudnn_run. */
void cudnn_run(void *run);

#endif
