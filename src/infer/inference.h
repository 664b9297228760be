/* A model that is asked and learns nothing: its folder, tokenizer and parameters, whole on a device, in fp32. Takes the
 * path of a training, of one checkpoint, or of any folder with config.json and weights; gives a drained run. Knows not
 * what is asked. */
#ifndef AH_INFER_INFERENCE_H
#define AH_INFER_INFERENCE_H

#include "chat/chat.h"
#include "train/adapter_tensors.h"
#include "train/checkpoint.h"

struct ah_inference {
    char *place;                       /* what was opened: a folder or GGUF file (source/model_path.h) */
    struct ah_checkpoint checkpoint;   /* its folder is null where the weights are no checkpoint's */
    char *weights;                     /* then, and where an adapter is beside them: their file; else null */
    char *adapter, *base;              /* folders of an adapter, and of the model that names; null: none, or given */
    struct ah_adapter_tensors adapted; /* its file, fitted to the model; zero: none */
    struct ah_tuning_settings tuning;  /* that the adapter is of */
    struct ah_model *model;
    bool ids_alone;                       /* set before opening: no text is taken or given, */
    const struct ah_tokenizer *tokenizer; /* and this is null, so that one that is not read is no fault */
    int64_t longest_seq;                  /* that the model was trained on here; else that it can take */
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_graph *decoder_graph; /* null: no tokens are generated */
    struct ah_partition *decoder;
    struct ah_dev *dev;
    struct ah_run *run;
};

/* Finds and verifies what lies at `path`, or of a config.json beside it, and opens model and tokenizer. `adapter`: a
 * folder with adapter_config.json, or of a training of adapters, for the model at path; null: none, or what lies at
 * path is one, and says where its model is. The struct is zero before, but for ids_alone; whatever happens it is closed
 * by ah__inference_close. AH_EINPUT, AH_ECORRUPT. */
int ah__inference_open(struct ah_inference *inference, const char *path, const char *adapter);
/* The folder with config.json. */
const char *ah__inference_folder(const struct ah_inference *inference);
/* Opens the device (null: "auto") and loads the parameters, for ids [batch, seq]; with room for their logits or not. */
int ah__inference_start(struct ah_inference *inference, int64_t batch, int64_t seq, bool logits, const char *device,
                        int threads);
/* The same to generate: `seq` tokens at once, or one at a time, behind up to `cache` others (run/run.h's prefill and
 * decode). */
int ah__inference_start_decoding(struct ah_inference *inference, int64_t seq, int64_t cache, const char *device,
                                 int threads);
/* How many positions a cache should have for sequences of `count` tokens, of `most` at last: most, or up to where the
 * model rotates as it does those. Another answer than before means to stop, and to start decoding anew. */
int64_t ah__inference_room(const struct ah_inference *inference, int64_t count, int64_t most);
/* Undoes the two above. */
void ah__inference_stop(struct ah_inference *inference);
/* Whether the token ends what a model writes. */
bool ah__inference_ends(const struct ah_inference *inference, int32_t token);
/* The chat template that the options name, else the adapter's, else the model's. AH_EINPUT: there is none. */
int ah__inference_chat(const struct ah_chat **out, const struct ah_inference *inference,
                       const struct ah_generate_options *options);
/* The ids of messages with a generation prompt, as the template writes them; freed with ah__free. */
int ah__inference_render(int32_t **ids, int64_t *count, const struct ah_inference *inference,
                         const struct ah_chat *chat, const cJSON *messages);
/* A zero-initialised or closed struct is fine. */
void ah__inference_close(struct ah_inference *inference);

#endif
