#include "infer/inference.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "bind/bind.h"
#include "sched/sched.h"
#include "source/adapter_files.h"
#include "source/folder.h"
#include "source/model_chat.h"
#include "source/source.h"
#include "train/weights.h"

/* ---- which files ------------------------------------------------------------------------------------------------- */

/* The error of a folder without weights says what is missing. */
static int find_weights(struct ah_inference *inference, const char *path)
{
    AH_TRY(ah__source_weights(&inference->weights, path));
    if (!inference->weights)
        return ah__fail(AH_EINPUT, "%s: found no checkpoint and no weights, expected model.safetensors in it", path);
    return AH_OK;
}

/* Finds the base model that an adapter names. PEFT may have written a name on a hub, which is an error. */
static int find_base(struct ah_inference *inference)
{
    const char *folder = inference->adapter, *named = inference->adapted.config.base;
    AH_TRY(ah__adapter_base(&inference->base, folder));
    if (inference->base)
        return find_weights(inference, inference->base);
    return ah__fail(AH_EINPUT,
                    "%s/" AH_ADAPTER_CONFIG
                    ": key 'base_model_name_or_path': found '%.80s', which is not here, expected a folder; "
                    "--model FOLDER --adapter %s says where %s is",
                    folder, named ? named : "", folder,
                    named && strstr(named, "bnb-4bit") ? "the model before it was quantized" : "it");
}

static int read_adapter(struct ah_inference *inference, bool names_base)
{
    static const char *const files[] = {AH_ADAPTER_FILE, AH_ADAPTER_CONFIG, NULL};
    if (ah__path_has(inference->adapter, "checksums.json")) /* written by a training of AutoHete */
        AH_TRY(ah__folder_verify(inference->adapter, files));
    AH_TRY(ah__adapter_tensors_open(&inference->adapted, inference->adapter));
    return names_base ? find_base(inference) : AH_OK;
}

static int find_model(struct ah_inference *inference, const char *path)
{
    enum ah_source_kind kind = ah__source_kind(path);
    if (kind == AH_SOURCE_FOLDER || kind == AH_SOURCE_GGUF)
        return find_weights(inference, path);
    AH_TRY(ah__checkpoint_open(&inference->checkpoint, path, false));
    if (inference->checkpoint.settings.tuning.lora_rank)
        return ah__fail(AH_EINPUT, "%s: found an adapter, expected the model that it is of", path);
    return find_weights(inference, inference->checkpoint.folder);
}

static int find(struct ah_inference *inference, const char *path, const char *adapter)
{
    char *folder;
    if (adapter) {
        AH_TRY(find_model(inference, path));
        AH_TRY(ah__adapter_find(&inference->adapter, adapter));
        return read_adapter(inference, false);
    }
    AH_TRY(ah__adapter_find(&folder, path));
    if (ah__adapter_config_exists(folder)) {
        inference->adapter = folder;
        return read_adapter(inference, true);
    }
    ah__free(folder);
    return find_model(inference, path);
}

const char *ah__inference_folder(const struct ah_inference *inference)
{
    return inference->checkpoint.folder ? inference->checkpoint.folder
           : inference->base            ? inference->base
                                        : inference->place;
}

/* Changes the model to the shapes and the settings of its adapter. */
static int fit_adapter(struct ah_inference *inference)
{
    const struct ah_adapter_config *config = &inference->adapted.config;
    if (!inference->adapter)
        return AH_OK;
    AH_TRY(ah__adapter_tensors_fit(&inference->adapted, &inference->model));
    inference->tuning = (struct ah_tuning_settings){
        .lora_rank = config->rank, .lora_alpha = config->alpha, .lora_rslora = config->rslora};
    snprintf(inference->tuning.lora_targets, sizeof inference->tuning.lora_targets, "%s", config->targets);
    return AH_OK;
}

int ah__inference_open(struct ah_inference *inference, const char *path, const char *adapter)
{
    AH_TRY(ah__source_place_of_weights(&inference->place, path));
    AH_TRY(find(inference, inference->place, adapter));
    const char *folder = ah__inference_folder(inference);
    AH_TRY(ah_model_load(&inference->model, folder));
    AH_TRY(fit_adapter(inference));
    int64_t rows = ah_model_get(inference->model)->vocab_size;
    if (!inference->ids_alone)
        AH_TRY(ah__adapter_tokenizer_open(&inference->tokenizer, folder, inference->adapter, rows, false));
    inference->longest_seq =
        inference->checkpoint.folder ? inference->checkpoint.settings.seq : ah_model_get(inference->model)->max_seq;
    return AH_OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Makes the run with everything on the device and no saved activations: inference needs no profile and no search. */
static int make_run(struct ah_inference *inference)
{
    int layers = inference->partition->layers;
    struct ah_plan plan = {.switches = ah__switches_lowest(layers, 0, 1), .policy = "resident"};
    plan.switches.checkpoint = layers;
    struct ah_sched_config config = {.switches = plan.switches, .policy = &ah__policy_resident};
    plan.switches.buffers = ah__sched_min_buffers(&config);
    AH_TRY(ah__workspace_bytes(&plan.workspace_bytes, inference->partition, inference->dev));
    if (inference->decoder) {
        int64_t bytes;
        AH_TRY(ah__workspace_bytes(&bytes, inference->decoder, inference->dev));
        plan.workspace_bytes = bytes > plan.workspace_bytes ? bytes : plan.workspace_bytes;
        return ah__run_new_decoding(&inference->run, inference->partition, inference->decoder, &plan, inference->dev);
    }
    return ah__run_new(&inference->run, inference->partition, &plan, inference->dev, 0);
}

static int start(struct ah_inference *inference, const char *device, int threads)
{
    const struct ah_dev_options options = {.threads = threads};
    char note[AH_WEIGHTS_NOTE_SIZE];
    AH_TRY(ah_dev_open(&inference->dev, device ? device : "auto", &options));
    AH_TRY(make_run(inference));
    /* an adapter may have more embedding rows than the checkpoint, which can load only tensors of its own shapes */
    if (inference->checkpoint.folder && !inference->adapter)
        return ah__checkpoint_load(&inference->checkpoint, inference->partition, inference->run, false);
    return ah__weights_load(note, NULL, inference->weights, inference->adapter ? &inference->adapted : NULL,
                            inference->partition, inference->run);
}

int ah__inference_start(struct ah_inference *inference, int64_t batch, int64_t seq, bool logits, const char *device,
                        int threads)
{
    const struct ah_step_options step = {.infers = true, .logits = logits};
    const struct ah_record_options record = {
        .batch = batch, .seq = seq, .compute = AH_F32, .tuning = ah__tuning_view(&inference->tuning)};
    AH_TRY(ah_model_record(&inference->graph, inference->model, &record));
    AH_TRY(ah_partition_new(&inference->partition, inference->graph, &step));
    return start(inference, device, threads);
}

/* Makes the program that decodes one token. The workspace is large enough for both programs. */
static int make_decoder(struct ah_inference *inference, const struct ah_record_options *many)
{
    const struct ah_step_options step = {.infers = true, .logits = true};
    struct ah_record_options one = *many;
    one.seq = 1;
    one.decodes = true;
    AH_TRY(ah_model_record(&inference->decoder_graph, inference->model, &one));
    AH_TRY(ah_partition_new(&inference->decoder, inference->decoder_graph, &step));
    inference->partition->work_bytes_least = ah__partition_work_bytes(inference->decoder);
    return AH_OK;
}

int ah__inference_start_decoding(struct ah_inference *inference, int64_t seq, int64_t cache, const char *device,
                                 int threads)
{
    const struct ah_step_options step = {.infers = true};
    const struct ah_record_options many = {
        .batch = 1, .seq = seq, .compute = AH_F32, .cache = cache, .tuning = ah__tuning_view(&inference->tuning)};
    AH_TRY(ah_model_record(&inference->graph, inference->model, &many));
    AH_TRY(ah_partition_new(&inference->partition, inference->graph, &step));
    AH_TRY(make_decoder(inference, &many));
    return start(inference, device, threads);
}

bool ah__inference_ends(const struct ah_inference *inference, int32_t token)
{
    const struct ah_tokenizer *tokenizer = inference->tokenizer;
    for (int32_t i = 0; i < tokenizer->stop_count; i++)
        if (tokenizer->stops[i] == token)
            return true;
    return false;
}

int ah__inference_chat(const struct ah_chat **out, const struct ah_inference *inference,
                       const struct ah_generate_options *options)
{
    const char *folder = ah__inference_folder(inference);
    AH_TRY(ah__model_chat_open(out, folder, inference->adapter, options->chat_template));
    if (*out)
        return AH_OK;
    return ah__fail(AH_EINPUT,
                    "%s: found no chat template, expected chat_template.jinja, or chat_template in "
                    "tokenizer_config.json; --chat-template FILE (chat_template) names one",
                    folder);
}

int ah__inference_render(int32_t **ids, int64_t *count, const struct ah_inference *inference,
                         const struct ah_chat *chat, const cJSON *messages)
{
    const struct ah_conversation conversation = {.messages = messages, .add_generation_prompt = true};
    const struct ah_tokenizer *tokenizer = inference->tokenizer;
    struct ah_buf text = {0};
    int status = ah__chat_render(&text, chat, &conversation);
    if (status == AH_OK)
        status = tokenizer->encode(ids, count, tokenizer, text.text ? text.text : "", text.length);
    ah__buf_free(&text);
    return status;
}

int64_t ah__inference_room(const struct ah_inference *inference, int64_t count, int64_t most)
{
    int64_t change = ah_model_get(inference->model)->switch_seq;
    return change > 0 && count <= change && most > change ? change : most;
}

void ah__inference_stop(struct ah_inference *inference)
{
    ah__run_free(inference->run);
    ah_dev_close(inference->dev);
    ah_partition_free(inference->decoder);
    ah_graph_free(inference->decoder_graph);
    ah_partition_free(inference->partition);
    ah_graph_free(inference->graph);
    inference->run = NULL;
    inference->dev = NULL;
    inference->decoder = inference->partition = NULL;
    inference->decoder_graph = inference->graph = NULL;
}

void ah__inference_close(struct ah_inference *inference)
{
    ah__inference_stop(inference);
    ah_model_free(inference->model);
    ah__tokenizer_close(inference->tokenizer);
    ah__free(inference->weights);
    ah__free(inference->place);
    ah__adapter_tensors_close(&inference->adapted);
    ah__free(inference->adapter);
    ah__free(inference->base);
    ah__checkpoint_close(&inference->checkpoint);
    *inference = (struct ah_inference){0};
}
