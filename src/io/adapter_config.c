#include "io/adapter_config.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/gguf.h"
#include "io/safetensors.h"

enum { RANK_MOST = 1 << 20 };

bool ah__adapter_config_exists(const char *folder)
{
    char *path;
    if (ah__sprintf(&path, "%s/" AH_ADAPTER_CONFIG, folder) != AH_OK)
        return false;
    bool exists = access(path, F_OK) == 0;
    ah__free(path);
    return exists;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool is_nothing(const cJSON *value)
{
    return !value || cJSON_IsNull(value) || cJSON_IsFalse(value) ||
           ((cJSON_IsArray(value) || cJSON_IsObject(value)) && !value->child) ||
           (cJSON_IsString(value) && strcmp(value->valuestring, "none") == 0);
}

/* Settings under which an adapter is something else. */
static int check_others(const struct ah_json *json)
{
    static const char *const keys[] = {"bias",
                                       "modules_to_save",
                                       "use_dora",
                                       "rank_pattern",
                                       "alpha_pattern",
                                       "layers_to_transform",
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
        cJSON_PrintPreallocated((cJSON *)(uintptr_t)value, found, sizeof found, false);
        return ah__fail(AH_EINPUT, "%s: key '%s': found %.40s, expected nothing: it is not supported", json->path,
                        keys[i], found);
    }
    return AH_OK;
}

/* Of these the model's own weights are others than before. */
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

static int add_target(struct ah_adapter_config *out, const cJSON *target, const struct ah_json *json)
{
    if (!cJSON_IsString(target))
        return ah__fail(AH_EINPUT, "%s: key 'target_modules': found no text, expected names of modules", json->path);
    return add_name(out, target->valuestring, (int)strlen(target->valuestring), json->path);
}

/* ---- targets of the file ----------------------------------------------------------------------------------------- */

/* "self_attn.q_proj" of "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": what follows the last number;
 * null: another tensor. */
static const char *module_in(const char *tensor, int *length)
{
    static const char end[] = ".lora_A.weight";
    size_t prefix = strlen(AH_ADAPTER_PREFIX), all = strlen(tensor), suffix = strlen(end);
    if (all <= prefix + suffix || strncmp(tensor, AH_ADAPTER_PREFIX, prefix) != 0 ||
        strcmp(tensor + all - suffix, end) != 0)
        return NULL;
    const char *module = tensor + prefix, *last = tensor + all - suffix;
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

/* Names are not matched with a regular expression, nor with what is excluded: the file says what has adapters. */
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

/* A text that is no word is a regular expression. */
static int read_targets(struct ah_adapter_config *out, const struct ah_json *json, const char *folder)
{
    const cJSON *targets = cJSON_GetObjectItemCaseSensitive(json->node, "target_modules"), *each;
    bool list = cJSON_IsArray(targets) && targets->child, text = cJSON_IsString(targets) && targets->valuestring[0];
    bool all = text && strcmp(targets->valuestring, AH_LORA_ALL) == 0;
    if (!list && !text)
        return ah__fail(AH_EINPUT, "%s: key 'target_modules': found no names, expected a list of them or \"%s\"",
                        json->path, AH_LORA_ALL);
    if ((text && !all) || !is_nothing(cJSON_GetObjectItemCaseSensitive(json->node, "exclude_modules")))
        return targets_of_file(out, folder);
    if (all)
        return add_target(out, targets, json);
    cJSON_ArrayForEach(each, targets)
    {
        AH_TRY(add_target(out, each, json));
    }
    return AH_OK;
}

static int read_all(struct ah_adapter_config *out, const struct ah_json *json, const char *folder)
{
    const char *text;
    int64_t rank;
    AH_TRY(ah__json_string(&text, json, "peft_type"));
    if (strcmp(text, "LORA") != 0)
        return ah__fail(AH_EINPUT, "%s: key 'peft_type': found \"%.40s\", expected \"LORA\"", json->path, text);
    AH_TRY(check_others(json));
    AH_TRY(check_init(json));
    AH_TRY(ah__json_int(&rank, json, "r", 1, RANK_MOST));
    out->rank = (int)rank;
    AH_TRY(ah__json_double(&out->alpha, json, "lora_alpha", 1e-30, 1e30));
    if (ah__json_has(json, "use_rslora"))
        AH_TRY(ah__json_bool(&out->rslora, json, "use_rslora"));
    if (ah__json_has(json, "lora_dropout"))
        AH_TRY(ah__json_double(&out->dropout, json, "lora_dropout", 0, 1));
    const cJSON *base = cJSON_GetObjectItemCaseSensitive(json->node, "base_model_name_or_path");
    if (cJSON_IsString(base) && base->valuestring[0])
        AH_TRY(ah__strdup(&out->base, base->valuestring));
    return read_targets(out, json, folder);
}

int ah__adapter_config_load(struct ah_adapter_config *out, const char *folder)
{
    struct ah_json json;
    char *path;
    *out = (struct ah_adapter_config){0};
    if (ah__gguf_is(folder))
        return ah__fail(AH_EINPUT,
                        "%s: found a GGUF file, expected an adapter's folder, with " AH_ADAPTER_CONFIG
                        " and " AH_ADAPTER_FILE,
                        folder);
    AH_TRY(ah__sprintf(&path, "%s/" AH_ADAPTER_CONFIG, folder));
    int status = ah__json_load(&json, path);
    if (status == AH_OK) {
        status = read_all(out, &json, folder);
        ah__json_free(&json);
    }
    ah__free(path);
    if (status != AH_OK)
        ah__adapter_config_free(out);
    return status;
}

void ah__adapter_config_free(struct ah_adapter_config *config)
{
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
