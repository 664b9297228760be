#include "source/adapter_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "gguf/gguf.h"
#include "io/safetensors.h"
#include "tokenizer/regex.h"

/* RANK_USUAL, ALPHA_USUAL: PEFT's defaults for missing keys. */
enum { RANK_MOST = 1 << 20, RANK_USUAL = 8, ALPHA_USUAL = 8 };

bool ah__adapter_config_exists(const char *folder)
{
    return ah__path_has(folder, AH_ADAPTER_CONFIG);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool is_nothing(const cJSON *value)
{
    return !value || cJSON_IsNull(value) || cJSON_IsFalse(value) ||
           ((cJSON_IsArray(value) || cJSON_IsObject(value)) && !value->child) ||
           (cJSON_IsString(value) && strcmp(value->valuestring, "none") == 0);
}

/* Refuses settings that make an adapter something other than plain LoRA. */
static int check_others(const struct ah_json *json)
{
    static const char *const keys[] = {"bias",
                                       "use_dora",
                                       "layer_replication",
                                       "target_parameters",
                                       "trainable_token_indices",
                                       "lora_bias",
                                       "alora_invocation_tokens",
                                       "use_qalora",
                                       "use_bdlora",
                                       "arrow_config",
                                       "kasa_config",
                                       "monteclora_config",
                                       "velora_config"};
    for (size_t i = 0; i < AH_LENGTH(keys); i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(json->node, keys[i]);
        char found[48] = "something";
        if (is_nothing(value))
            continue;
        if (!cJSON_PrintPreallocated((cJSON *)(uintptr_t)value, found, sizeof found, false))
            snprintf(found, sizeof found, "something");
        return ah__fail(AH_EINPUT,
                        "%s: key '%s': found %.40s, expected nothing: it is not supported; PEFT's merge_and_unload() "
                        "makes a model of it that is read",
                        json->path, keys[i], found);
    }
    return AH_OK;
}

/* Refuses adapters that are not PEFT's LoRA; MLX's file has the same name. */
static int check_kind(const struct ah_json *json)
{
    const char *type;
    if (ah__json_has(json, "fine_tune_type"))
        return ah__fail(AH_EINPUT,
                        "%s: key 'fine_tune_type': found an adapter of MLX, expected PEFT's; mlx_lm.fuse makes a model "
                        "of it that is read (--dequantize where its model is quantized)",
                        json->path);
    AH_TRY(ah__json_string(&type, json, "peft_type"));
    if (strcmp(type, "LORA") == 0)
        return AH_OK;
    return ah__fail(AH_EINPUT,
                    "%s: key 'peft_type': found \"%.40s\", expected \"LORA\"; of most others PEFT's merge_and_unload() "
                    "makes a model that is read",
                    json->path, type);
}

/* Checks that the weights are there; refuses a pickle, which may run any code. */
static int check_file(const char *folder)
{
    if (ah__path_has(folder, AH_ADAPTER_FILE))
        return AH_OK;
    if (ah__path_has(folder, "adapter_model.bin"))
        return ah__fail(AH_EINPUT,
                        "%s/adapter_model.bin: found a pickled adapter, which is not read since a pickle may run any "
                        "code; expected " AH_ADAPTER_FILE ", as Python makes of it by "
                        "peft.PeftModel.from_pretrained(MODEL, FOLDER).save_pretrained(FOLDER)",
                        folder);
    return ah__fail(AH_EINPUT, "%s/" AH_ADAPTER_FILE ": found no such file, expected the adapter's weights", folder);
}

/* Refuses initialisations that also change the model's own weights. */
static int check_init(const struct ah_json *json)
{
    static const char *const words[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(json->node, "init_lora_weights");
    for (size_t i = 0; cJSON_IsString(value) && i < AH_LENGTH(words); i++)
        if (strncmp(value->valuestring, words[i], strlen(words[i])) == 0)
            return ah__fail(AH_EINPUT,
                            "%s: key 'init_lora_weights': found \"%.40s\", under which the model's own weights are "
                            "changed, too; expected an adapter that was saved for those as they are",
                            json->path, value->valuestring);
    return AH_OK;
}

static int add_name(struct ah_adapter_config *out, const char *name, int length, const char *path)
{
    size_t used = strlen(out->targets);
    int more = snprintf(out->targets + used, sizeof out->targets - used, "%s%.*s", used ? "," : "", length, name);
    if (more < 0 || (size_t)more >= sizeof out->targets - used)
        return ah__fail(AH_EINPUT, "%s: key 'target_modules': found more than %d bytes of names, expected fewer", path,
                        AH_ADAPTER_TARGETS - 1);
    return AH_OK;
}

/* ---- targets of the file ----------------------------------------------------------------------------------------- */

bool ah__adapter_factor(size_t *module, char *which, const char *tensor)
{
    const char *at = strstr(tensor, ".lora_"), *end;
    if (!at || (at[6] != 'A' && at[6] != 'B') || at[7] != '.')
        return false;
    end = at + 8;
    if (strcmp(end, "weight") != 0) /* after the adapter's name, if there is one */
        end += strcspn(end, ".") + (strchr(end, '.') != NULL);
    if (strcmp(end, "weight") != 0)
        return false;
    *module = (size_t)(at - tensor);
    *which = at[6];
    return true;
}

/* Returns the part after the last number: "self_attn.q_proj" of
 * "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"; null for a tensor that is not a factor A. */
static const char *module_in(const char *tensor, int *length)
{
    size_t prefix = strlen(AH_ADAPTER_PREFIX), all;
    char which;
    if (!ah__adapter_factor(&all, &which, tensor) || which != 'A')
        return NULL;
    const char *module = tensor + (strncmp(tensor, AH_ADAPTER_PREFIX, prefix) == 0 ? prefix : 0), *last = tensor + all;
    for (const char *part = module; part < last; part += strcspn(part, ".") + 1) {
        size_t digits = strspn(part, "0123456789");
        if (digits > 0 && part[digits] == '.' && part + digits < last)
            module = part + digits + 1;
    }
    *length = (int)(last - module);
    return module;
}

static bool has_name(const struct ah_adapter_config *config, const char *name, int length)
{
    for (const char *at = config->targets; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == (size_t)length && strncmp(at, name, (size_t)length) == 0)
            return true;
    return false;
}

static int take_modules(struct ah_adapter_config *out, const struct ah_safetensors *file, const char *path)
{
    for (size_t i = 0; i < ah__safetensors_count(file); i++) {
        int length = 0;
        const char *module = module_in(ah__safetensors_at(file, i)->name, &length);
        if (module && !has_name(out, module, length))
            AH_TRY(add_name(out, module, length, path));
    }
    return out->targets[0] ? AH_OK
                           : ah__fail(AH_EINPUT,
                                      "%s: found no tensor '" AH_ADAPTER_PREFIX
                                      "NAME.lora_A.weight', expected those of the modules that are adapted",
                                      path);
}

/* Takes the targets from the file of weights, instead of matching names with a regular expression or with excluded
 * modules. */
static int targets_of_file(struct ah_adapter_config *out, const char *folder)
{
    struct ah_safetensors *file;
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/" AH_ADAPTER_FILE, folder));
    int status = ah__safetensors_open(&file, path);
    if (status == AH_OK) {
        status = take_modules(out, file, path);
        ah__safetensors_close(file);
    }
    ah__free(path);
    return status;
}

static bool is_in_block(const char *name)
{
    for (const char *part = name; *part; part += strcspn(part, "."), part += *part == '.') {
        size_t digits = strspn(part, "0123456789");
        if (digits > 0 && part[digits] == '.')
            return true;
    }
    return false;
}

static int read_names(struct ah_adapter_config *out, const cJSON *targets, const struct ah_json *json)
{
    const cJSON *each;
    cJSON_ArrayForEach(each, targets)
    {
        if (!cJSON_IsString(each))
            return ah__fail(AH_EINPUT, "%s: key 'target_modules': found no text, expected names of modules",
                            json->path);
        out->by_file = out->by_file || is_in_block(each->valuestring);
    }
    for (each = targets->child; each && !out->by_file; each = each->next)
        AH_TRY(add_name(out, each->valuestring, (int)strlen(each->valuestring), json->path));
    return AH_OK;
}

/* Reads target_modules. A text other than AH_LORA_ALL is a regular expression. */
static int read_targets(struct ah_adapter_config *out, const struct ah_json *json, const char *folder)
{
    const cJSON *targets = cJSON_GetObjectItemCaseSensitive(json->node, "target_modules");
    bool list = cJSON_IsArray(targets) && targets->child, text = cJSON_IsString(targets) && targets->valuestring[0];
    bool all = text && strcmp(targets->valuestring, AH_LORA_ALL) == 0;
    if (!list && !text)
        return ah__fail(AH_EINPUT, "%s: key 'target_modules': found no names, expected a list of them or \"%s\"",
                        json->path, AH_LORA_ALL);
    AH_TRY(check_file(folder));
    out->by_file = (text && !all) || !is_nothing(cJSON_GetObjectItemCaseSensitive(json->node, "exclude_modules"));
    if (list)
        AH_TRY(read_names(out, targets, json));
    if (out->by_file)
        return targets_of_file(out, folder);
    out->by_file = out->layers != NULL;
    return all ? add_name(out, AH_LORA_ALL, (int)strlen(AH_LORA_ALL), json->path) : AH_OK;
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

static int layers_read(struct ah_adapter_config *out, const struct ah_json *json)
{
    const cJSON *layers = cJSON_GetObjectItemCaseSensitive(json->node, "layers_to_transform"), *each;
    if (is_nothing(layers))
        return AH_OK;
    cJSON_ArrayForEach(each, layers)
    {
        if (!cJSON_IsNumber(each))
            return ah__fail(AH_EINPUT, "%s: key 'layers_to_transform': found no number, expected those of layers",
                            json->path);
    }
    if (!cJSON_IsNumber(layers) && !cJSON_IsArray(layers))
        return ah__fail(AH_EINPUT, "%s: key 'layers_to_transform': found another value, expected numbers of layers",
                        json->path);
    out->layers = layers;
    return AH_OK;
}

/* Compiles a pattern as PEFT matches it: against the whole name, or a part of it after a dot. */
static int pattern_compile(struct ah_regex **out, const char *pattern, const char *path)
{
    char *whole;
    AH_TRY(ah__sprintf(&whole, "\\A(?:.*\\.)?(?:%s)\\z", pattern));
    int status = ah__regex_new(out, whole, false);
    ah__free(whole);
    return status == AH_EINPUT ? ah__fail_prefix(status, "%s: pattern '%.80s'", path, pattern) : status;
}

static int patterns_compile(struct ah_adapter_patterns *patterns, const char *path)
{
    const cJSON *each;
    size_t at = 0;
    AH_TRY(ah__new(&patterns->compiled, (size_t)cJSON_GetArraySize(patterns->object) + 1, sizeof *patterns->compiled));
    cJSON_ArrayForEach(each, patterns->object)
    {
        AH_TRY(pattern_compile(&patterns->compiled[at++], each->string, path));
    }
    return AH_OK;
}

static void patterns_free(struct ah_adapter_patterns *patterns)
{
    for (size_t i = 0; patterns->compiled && patterns->compiled[i]; i++)
        ah__regex_free(patterns->compiled[i]);
    ah__free(patterns->compiled);
}

/* Reads an object that maps patterns to numbers. */
static int pattern_read(struct ah_adapter_patterns *out, const struct ah_json *json, const char *key, double most,
                        bool whole)
{
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(json->node, key), *each;
    if (is_nothing(object))
        return AH_OK;
    if (!cJSON_IsObject(object))
        return ah__fail(AH_EINPUT, "%s: key '%s': found another value, expected an object", json->path, key);
    cJSON_ArrayForEach(each, object)
    {
        bool number = cJSON_IsNumber(each) && each->valuedouble > 0 && each->valuedouble <= most;
        if (!number || (whole && floor(each->valuedouble) < each->valuedouble))
            return ah__fail(AH_EINPUT, "%s: key '%s.%.80s': found another value, expected a %snumber above 0",
                            json->path, key, each->string, whole ? "whole " : "");
    }
    out->object = object;
    return patterns_compile(out, json->path);
}

/* Gives the number of the first pattern that matches; else *value is unchanged. */
static int pattern_value(double *value, const struct ah_adapter_patterns *patterns, const char *module)
{
    const cJSON *each;
    bool matches = false;
    size_t at = 0, start, end;
    cJSON_ArrayForEach(each, patterns->object)
    {
        AH_TRY(ah__regex_next(&matches, &start, &end, patterns->compiled[at++], module, strlen(module), 0));
        if (matches) {
            *value = each->valuedouble;
            return AH_OK;
        }
    }
    return AH_OK;
}

static double scale_of(const struct ah_adapter_config *config, double alpha, double rank)
{
    return alpha / (config->rslora ? sqrt(rank) : rank);
}

int ah__adapter_config_module(int *rank, double *factor, const struct ah_adapter_config *config, const char *module)
{
    double own_rank = config->own_rank, alpha = config->own_alpha;
    AH_TRY(pattern_value(&own_rank, &config->ranks, module));
    AH_TRY(pattern_value(&alpha, &config->alphas, module));
    *rank = (int)own_rank;
    /* Exactly 1 for a module without patterns, however ranks and alphas round. */
    *factor = scale_of(config, alpha, own_rank) / scale_of(config, config->own_alpha, config->own_rank);
    if (fabs(*factor - 1) < 1e-12)
        *factor = 1;
    return AH_OK;
}

bool ah__adapter_config_layer(const struct ah_adapter_config *config, int layer)
{
    const cJSON *each;
    if (!config->layers)
        return true;
    if (cJSON_IsNumber(config->layers))
        return (int)config->layers->valuedouble == layer;
    cJSON_ArrayForEach(each, config->layers)
    {
        if ((int)each->valuedouble == layer)
            return true;
    }
    return false;
}

/* Reads ranks and alphas. `rank` is the largest of all modules, and `alpha` scales it as own_alpha scales own_rank. */
static int read_rank(struct ah_adapter_config *out, const struct ah_json *json)
{
    int64_t rank = RANK_USUAL;
    const cJSON *each;
    out->own_alpha = ALPHA_USUAL;
    if (ah__json_has(json, "r"))
        AH_TRY(ah__json_int(&rank, json, "r", 1, RANK_MOST));
    if (ah__json_has(json, "lora_alpha"))
        AH_TRY(ah__json_double(&out->own_alpha, json, "lora_alpha", 1e-30, 1e30));
    if (ah__json_has(json, "use_rslora"))
        AH_TRY(ah__json_bool(&out->rslora, json, "use_rslora"));
    AH_TRY(pattern_read(&out->ranks, json, "rank_pattern", RANK_MOST, true));
    AH_TRY(pattern_read(&out->alphas, json, "alpha_pattern", 1e30, false));
    out->rank = out->own_rank = (int)rank;
    cJSON_ArrayForEach(each, out->ranks.object)
    {
        out->rank = (int)each->valuedouble > out->rank ? (int)each->valuedouble : out->rank;
    }
    double wider = (double)out->rank / out->own_rank;
    out->alpha = out->own_alpha * (out->rslora ? sqrt(wider) : wider);
    return AH_OK;
}

static int read_all(struct ah_adapter_config *out, const struct ah_json *json, const char *folder)
{
    AH_TRY(check_kind(json));
    AH_TRY(check_others(json));
    AH_TRY(check_init(json));
    AH_TRY(read_rank(out, json));
    AH_TRY(layers_read(out, json));
    if (ah__json_has(json, "lora_dropout"))
        AH_TRY(ah__json_double(&out->dropout, json, "lora_dropout", 0, 1));
    const cJSON *whole = cJSON_GetObjectItemCaseSensitive(json->node, "modules_to_save");
    out->whole = is_nothing(whole) ? NULL : whole;
    const cJSON *base = cJSON_GetObjectItemCaseSensitive(json->node, "base_model_name_or_path");
    if (cJSON_IsString(base) && base->valuestring[0])
        AH_TRY(ah__strdup(&out->base, base->valuestring));
    return read_targets(out, json, folder);
}

int ah__adapter_config_load(struct ah_adapter_config *out, const char *folder)
{
    *out = (struct ah_adapter_config){0};
    if (ah__gguf_is(folder))
        return ah__fail(AH_EINPUT,
                        "%s: found a GGUF file, expected an adapter's folder, with " AH_ADAPTER_CONFIG
                        " and " AH_ADAPTER_FILE,
                        folder);
    AH_TRY(ah__sprintf(&out->path, "%s/" AH_ADAPTER_CONFIG, folder));
    int status = ah__json_load(&out->json, out->path);
    if (status == AH_OK)
        status = read_all(out, &out->json, folder);
    if (status != AH_OK)
        ah__adapter_config_free(out);
    return status;
}

void ah__adapter_config_free(struct ah_adapter_config *config)
{
    patterns_free(&config->ranks);
    patterns_free(&config->alphas);
    ah__json_free(&config->json);
    ah__free(config->path);
    ah__free(config->base);
    *config = (struct ah_adapter_config){0};
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int write_targets(cJSON *tree, const struct ah_adapter_config *config)
{
    char names[AH_ADAPTER_TARGETS], *rest = names;
    if (strcmp(config->targets, AH_LORA_ALL) == 0)
        return ah__json_add_string(tree, "target_modules", AH_LORA_ALL);
    snprintf(names, sizeof names, "%s", config->targets);
    cJSON *list = cJSON_AddArrayToObject(tree, "target_modules");
    for (char *name; (name = strsep(&rest, ","));) {
        name += strspn(name, " ");
        for (size_t length = strlen(name); length && name[length - 1] == ' '; length--)
            name[length - 1] = 0;
        if (*name && !cJSON_AddItemToArray(list, cJSON_CreateString(name)))
            return ah__fail(AH_ENOMEM, "out of host memory: " AH_ADAPTER_CONFIG);
    }
    return AH_OK;
}

static int fill(cJSON *tree, const struct ah_adapter_config *config, bool transposed)
{
    AH_TRY(ah__json_add_string(tree, "peft_type", "LORA"));
    AH_TRY(ah__json_add_string(tree, "task_type", "CAUSAL_LM"));
    AH_TRY(ah__json_add_string(tree, "base_model_name_or_path", config->base ? config->base : ""));
    AH_TRY(ah__json_add_int(tree, "r", config->rank));
    AH_TRY(ah__json_add_double(tree, "lora_alpha", config->alpha));
    AH_TRY(ah__json_add_bool(tree, "use_rslora", config->rslora));
    AH_TRY(ah__json_add_double(tree, "lora_dropout", 0));
    AH_TRY(ah__json_add_string(tree, "bias", "none"));
    AH_TRY(ah__json_add_bool(tree, "fan_in_fan_out", transposed));
    AH_TRY(ah__json_add_bool(tree, "inference_mode", true));
    return write_targets(tree, config);
}

int ah__adapter_config_save(const struct ah_adapter_config *config, bool transposed, const char *folder)
{
    char *path;
    cJSON *tree = cJSON_CreateObject();
    int status = ah__sprintf(&path, "%s/" AH_ADAPTER_CONFIG, folder);
    if (status == AH_OK) {
        status = fill(tree, config, transposed);
        if (status == AH_OK)
            status = ah__json_save(tree, path);
        ah__free(path);
    }
    cJSON_Delete(tree);
    return status;
}
