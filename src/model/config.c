/* Hugging Face's GPT-2 config keys, read strictly and written canonically. */
#include <string.h>

#include "base/alloc.h"
#include "model/gpt2.h"

/* Keys that change nothing here are accepted, so that a folder saved by other tools can be read. */
static const char *const known_keys[] = {
    "model_type", "vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner", "activation_function",
    "layer_norm_epsilon", "tie_word_embeddings", "initializer_range", "scale_attn_weights", "resid_pdrop", "embd_pdrop",
    "attn_pdrop", "reorder_and_upcast_attn", "scale_attn_by_inverse_layer_idx",
    /* without effect */
    "_name_or_path", "architectures", "bos_token_id", "eos_token_id", "pad_token_id", "n_ctx", "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj", "task_specific_params", "torch_dtype",
    "dtype", "transformers_version", "use_cache", NULL};

static int parse_word(const char **out, const struct ah_json *json, const char *key, const char *const *words)
{
    char expected[64] = "";
    AH_TRY(ah__json_string(out, json, key));
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(*out, words[i]) == 0)
            return AH_OK;
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%s'%s'", i ? " or " : "", words[i]);
    }
    return ah__fail(AH_EINPUT, "%s: key '%s': found '%.80s', expected %s", json->path, key, *out, expected);
}

static int parse_sizes(struct ah_gpt2 *out, const struct ah_json *json)
{
    const struct {
        const char *key;
        int64_t *value, max;
    } sizes[] = {
        {"vocab_size", &out->vocab_size, 1 << 24}, {"n_positions", &out->n_positions, 1 << 24},
        {"n_embd", &out->n_embd, 1 << 20},         {"n_layer", &out->n_layer, 1 << 12},
        {"n_head", &out->n_head, 1 << 16},
    };
    for (size_t i = 0; i < AH_LENGTH(sizes); i++)
        AH_TRY(ah__json_int(sizes[i].value, json, sizes[i].key, 1, sizes[i].max));
    if (out->n_embd % out->n_head != 0)
        return ah__fail(AH_EINPUT, "%s: key 'n_head': found %lld, expected a divisor of n_embd %lld", json->path,
                        (long long)out->n_head, (long long)out->n_embd);
    out->n_inner = 4 * out->n_embd;
    if (ah__json_has(json, "n_inner"))
        AH_TRY(ah__json_int(&out->n_inner, json, "n_inner", 1, 1 << 22));
    return AH_OK;
}

static int parse_no_dropout(const struct ah_json *json)
{
    static const char *const keys[] = {"resid_pdrop", "embd_pdrop", "attn_pdrop"};
    for (size_t i = 0; i < AH_LENGTH(keys); i++) {
        double rate = 0;
        if (ah__json_has(json, keys[i]))
            AH_TRY(ah__json_double(&rate, json, keys[i], 0, 1));
        if (rate > 0)
            return ah__fail(AH_EINPUT, "%s: key '%s': found %g, expected 0: dropout is not supported", json->path, keys[i],
                            rate);
    }
    return AH_OK;
}

static int parse_switches(struct ah_gpt2 *out, const struct ah_json *json)
{
    static const struct {
        const char *key;
        bool expected;
    } fixed[] = {
        {"scale_attn_weights", true}, {"reorder_and_upcast_attn", false}, {"scale_attn_by_inverse_layer_idx", false}};
    for (size_t i = 0; i < AH_LENGTH(fixed); i++) {
        bool value = fixed[i].expected;
        if (ah__json_has(json, fixed[i].key))
            AH_TRY(ah__json_bool(&value, json, fixed[i].key));
        if (value != fixed[i].expected)
            return ah__fail(AH_EINPUT, "%s: key '%s': found %s, expected %s", json->path, fixed[i].key,
                            value ? "true" : "false", fixed[i].expected ? "true" : "false");
    }
    out->tied = true;
    if (ah__json_has(json, "tie_word_embeddings"))
        AH_TRY(ah__json_bool(&out->tied, json, "tie_word_embeddings"));
    return AH_OK;
}

static int parse_numbers(struct ah_gpt2 *out, const struct ah_json *json)
{
    out->layer_norm_epsilon = 1e-5;
    out->initializer_range = 0.02;
    if (ah__json_has(json, "layer_norm_epsilon"))
        AH_TRY(ah__json_double(&out->layer_norm_epsilon, json, "layer_norm_epsilon", 1e-12, 1));
    if (ah__json_has(json, "initializer_range"))
        AH_TRY(ah__json_double(&out->initializer_range, json, "initializer_range", 0, 10));
    return AH_OK;
}

int ah__gpt2_parse(struct ah_gpt2 *out, const struct ah_json *json)
{
    static const char *const types[] = {"gpt2", NULL}, *const activations[] = {"gelu_new", "relu", NULL};
    const char *word;
    struct ah_gpt2 config = {0};
    AH_TRY(parse_word(&word, json, "model_type", types));
    AH_TRY(ah__json_only(json, known_keys));
    AH_TRY(parse_sizes(&config, json));
    AH_TRY(parse_no_dropout(json));
    AH_TRY(parse_switches(&config, json));
    AH_TRY(parse_numbers(&config, json));
    if (ah__json_has(json, "activation_function")) {
        AH_TRY(parse_word(&word, json, "activation_function", activations));
        config.relu = strcmp(word, "relu") == 0;
    }
    *out = config;
    return AH_OK;
}

static int fill_text(cJSON *tree, const struct ah_gpt2 *config)
{
    const struct {
        const char *key;
        int64_t value;
    } sizes[] = {
        {"vocab_size", config->vocab_size}, {"n_positions", config->n_positions}, {"n_embd", config->n_embd},
        {"n_layer", config->n_layer},       {"n_head", config->n_head},           {"n_inner", config->n_inner},
    };
    static const char *const architecture = "GPT2LMHeadModel", *const dropouts[] = {"resid_pdrop", "embd_pdrop", "attn_pdrop"};
    cJSON *architectures = cJSON_CreateStringArray(&architecture, 1);
    if (!cJSON_AddItemToObject(tree, "architectures", architectures)) {
        cJSON_Delete(architectures);
        return ah__fail(AH_ENOMEM, "out of host memory: model configuration");
    }
    AH_TRY(ah__json_add_string(tree, "model_type", "gpt2"));
    for (size_t i = 0; i < AH_LENGTH(sizes); i++)
        AH_TRY(ah__json_add_int(tree, sizes[i].key, sizes[i].value));
    AH_TRY(ah__json_add_string(tree, "activation_function", config->relu ? "relu" : "gelu_new"));
    AH_TRY(ah__json_add_double(tree, "layer_norm_epsilon", config->layer_norm_epsilon));
    AH_TRY(ah__json_add_double(tree, "initializer_range", config->initializer_range));
    AH_TRY(ah__json_add_bool(tree, "tie_word_embeddings", config->tied));
    for (size_t i = 0; i < AH_LENGTH(dropouts); i++)
        AH_TRY(ah__json_add_int(tree, dropouts[i], 0));
    return AH_OK;
}

int ah__gpt2_text(char **out, const struct ah_gpt2 *config)
{
    cJSON *tree = cJSON_CreateObject();
    if (!tree)
        return ah__fail(AH_ENOMEM, "out of host memory: model configuration");
    int status = fill_text(tree, config);
    if (status == AH_OK)
        status = ah__json_text(out, tree, false);
    cJSON_Delete(tree);
    return status;
}
