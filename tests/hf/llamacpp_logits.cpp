/* llamacpp_logits MODEL.gguf ADAPTER.gguf|- ID ...: the logits that llama.cpp computes of some token ids, as floats on
 * standard output, one row for each id. For tests/hf/llamacpp_adapters, which compiles it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama.h"

static void fail(const char *what)
{
    fprintf(stderr, "llama.cpp cannot %s\n", what);
    exit(1);
}

/* Errors alone, and what continues them. */
static void say(enum ggml_log_level level, const char *text, void *data)
{
    (void)data;
    if (level == GGML_LOG_LEVEL_ERROR || level == GGML_LOG_LEVEL_CONT)
        fputs(text, stderr);
}

static void adapter_add(struct llama_context *context, struct llama_model *model, const char *path)
{
    float scale = 1;
    struct llama_adapter_lora *adapter = llama_adapter_lora_init(model, path);
    if (!adapter || llama_set_adapters_lora(context, &adapter, 1, &scale) != 0)
        fail("take the adapter");
}

int main(int argc, char **argv)
{
    int32_t count = argc - 3;
    if (count < 1)
        return 2;
    llama_log_set(say, NULL);
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model)
        fail("load the model");
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = 512;
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.n_threads = params.n_threads_batch = 1;
    struct llama_context *context = llama_init_from_model(model, params);
    if (!context)
        fail("make a context");
    if (strcmp(argv[2], "-") != 0)
        adapter_add(context, model, argv[2]);
    struct llama_batch batch = llama_batch_init(count, 0, 1);
    batch.n_tokens = count;
    for (int32_t i = 0; i < count; i++) {
        batch.token[i] = atoi(argv[3 + i]);
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    if (llama_decode(context, batch) != 0)
        fail("decode");
    int32_t vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    for (int32_t i = 0; i < count; i++)
        fwrite(llama_get_logits_ith(context, i), sizeof(float), (size_t)vocabulary, stdout);
    return 0;
}
