/* Opens a model for inference: its folder, tokenizer and parameters, whole on a device, in fp32. Takes the path of a
 * training, of a checkpoint, or of any folder with config.json and weights; returns a drained run. Knows not what the
 * run is used for. */
#ifndef AH_INFER_INFERENCE_H
#define AH_INFER_INFERENCE_H

#include "chat/chat.h"
#include "train/adapter_tensors.h"
#include "train/checkpoint.h"

struct ah_inference {
    char *place;                       /* opened path: a folder or GGUF file (source/source.h) */
    struct ah_checkpoint checkpoint;   /* its folder is null if the weights are no checkpoint's */
    char *weights;                     /* file of the model's weights, or the index of several */
    char *adapter, *base;              /* folders of the adapter and of the base model that it names; null: none */
    struct ah_adapter_tensors adapted; /* the adapter's file, fitted to the model; zero: no adapter */
    struct ah_tuning_settings tuning;  /* settings of the adapter */
    struct ah_model *model;
    bool ids_alone;                       /* set before opening: neither takes nor returns text, */
    const struct ah_tokenizer *tokenizer; /* and `tokenizer` is null, so that an unreadable tokenizer is no error */
    int64_t longest_seq;                  /* longest sequence in training here, else that the model can take */
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_graph *decoder_graph; /* null: generates no tokens */
    struct ah_partition *decoder;
    struct ah_dev *dev;
    struct ah_run *run;
};

/* Finds and verifies the model at `path`, which may also be its config.json, and opens model and tokenizer. `adapter`:
 * a folder with adapter_config.json, or of a training of adapters, for the model at path. null: no adapter, or `path`
 * is an adapter and names its base model. The struct is zero before, but for ids_alone; whatever happens it is closed
 * by ah__inference_close. AH_EINPUT, AH_ECORRUPT. */
int ah__inference_open(struct ah_inference *inference, const char *path, const char *adapter);
/* Returns the folder with config.json. It belongs to the struct. */
const char *ah__inference_folder(const struct ah_inference *inference);
/* Opens the device (null: "auto") and loads the parameters, for ids [batch, seq]. `logits`: makes room for their
 * logits. */
int ah__inference_start(struct ah_inference *inference, int64_t batch, int64_t seq, bool logits, const char *device,
                        int threads);
/* Does the same to generate tokens: runs `seq` tokens at once, or one at a time behind up to `cache` others
 * (run/run.h's prefill and decode). */
int ah__inference_start_decoding(struct ah_inference *inference, int64_t seq, int64_t cache, const char *device,
                                 int threads);
/* Returns the number of positions that a cache should have for sequences of `count` tokens that grow to `most`: most,
 * or the length up to which the model rotates positions as it does those. If the result changes, stop and start
 * decoding again. */
int64_t ah__inference_room(const struct ah_inference *inference, int64_t count, int64_t most);
/* Undoes ah__inference_start and ah__inference_start_decoding. */
void ah__inference_stop(struct ah_inference *inference);
/* Returns true if the token ends the model's answer. */
bool ah__inference_ends(const struct ah_inference *inference, int32_t token);
/* Opens the chat template that the options name, else the adapter's, else the model's. AH_EINPUT: there is no
 * template. */
int ah__inference_chat(const struct ah_chat **out, const struct ah_inference *inference,
                       const struct ah_generate_options *options);
/* Encodes messages with a generation prompt, as the template writes them. *ids is freed with ah__free. */
int ah__inference_render(int32_t **ids, int64_t *count, const struct ah_inference *inference,
                         const struct ah_chat *chat, const cJSON *messages);
/* Closes everything. A zero-initialised or closed struct is fine. */
void ah__inference_close(struct ah_inference *inference);

#endif
