#include "io/model_chat.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "io/model_files.h"

enum { TEMPLATE_BYTES_MOST = 1 << 24 };

/* What is gathered. Texts belong to the files or the trees. */
struct gathered {
    const char *model;
    struct ah_model_files files;
    struct ah_json config, chat, map; /* tokenizer_config.json, chat_template.json, special_tokens_map.json */
    char *text;                       /* of the template that was named instead */
    struct ah_chat_source plain, tools;
    cJSON *special;
};

static const struct ah_model_file *file_of(const struct gathered *gathered, const char *name)
{
    for (size_t i = 0; i < gathered->files.count; i++)
        if (strcmp(gathered->files.file[i].name, name) == 0)
            return &gathered->files.file[i];
    return NULL;
}

static int json_of(struct ah_json *out, const struct gathered *gathered, const char *name)
{
    const struct ah_model_file *file = file_of(gathered, name);
    return file ? ah__json_parse(out, file->text, file->length, name) : AH_OK;
}

/* ---- special tokens ---------------------------------------------------------------------------------------------- */

static bool is_token_name(const char *key)
{
    static const char end[] = "_token";
    size_t length = strlen(key), tail = strlen(end);
    return length > tail && strcmp(key + length - tail, end) == 0;
}

/* Keys like bos_token: a text or {content}. What is known already stays. */
static int special_add(cJSON *special, const cJSON *object)
{
    for (const cJSON *item = object ? object->child : NULL; item; item = item->next) {
        const cJSON *content = cJSON_IsObject(item) ? cJSON_GetObjectItemCaseSensitive(item, "content") : item;
        const char *text = cJSON_GetStringValue(content);
        if (text && is_token_name(item->string) && !cJSON_GetObjectItemCaseSensitive(special, item->string))
            AH_TRY(ah__json_add_string(special, item->string, text));
    }
    return AH_OK;
}

/* ---- templates --------------------------------------------------------------------------------------------------- */

static void source_set(struct ah_chat_source *source, const char *text, const char *name)
{
    if (!source->text)
        *source = (struct ah_chat_source){text, strlen(text), name};
}

/* A list of {name, template}. */
static int named_take(struct gathered *gathered, const cJSON *list, const char *path)
{
    for (const cJSON *item = list->child; item; item = item->next) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "template"));
        if (!name || !text)
            return ah__fail(AH_EINPUT, "%s: chat_template: found an item without the texts name and template", path);
        if (strcmp(name, "default") == 0)
            source_set(&gathered->plain, text, "chat_template 'default'");
        if (strcmp(name, "tool_use") == 0)
            source_set(&gathered->tools, text, "chat_template 'tool_use'");
    }
    if (!gathered->plain.text)
        return ah__fail(AH_EINPUT, "%s: chat_template: found none of the name 'default', expected one", path);
    return AH_OK;
}

static int key_take(struct gathered *gathered, const struct ah_json *json)
{
    const cJSON *found = json->node ? cJSON_GetObjectItemCaseSensitive(json->node, "chat_template") : NULL;
    if (!found || cJSON_IsNull(found) || gathered->plain.text)
        return AH_OK;
    if (cJSON_IsString(found))
        source_set(&gathered->plain, found->valuestring, "chat_template");
    else if (cJSON_IsArray(found))
        return named_take(gathered, found, json->path);
    else
        return ah__fail(AH_EINPUT, "%s: key 'chat_template': found another value, expected text or a list", json->path);
    return AH_OK;
}

static int files_take(struct gathered *gathered)
{
    AH_TRY(ah__model_files_load(&gathered->files, gathered->model));
    const struct ah_model_file *file = file_of(gathered, "chat_template.jinja");
    if (file && !gathered->plain.text)
        gathered->plain = (struct ah_chat_source){file->text, file->length, file->name};
    const struct ah_model_file *tools = file_of(gathered, AH_MORE_TEMPLATES "/tool_use.jinja");
    if (tools && !gathered->text)
        gathered->tools = (struct ah_chat_source){tools->text, tools->length, tools->name};
    AH_TRY(json_of(&gathered->config, gathered, "tokenizer_config.json"));
    AH_TRY(json_of(&gathered->map, gathered, "special_tokens_map.json"));
    AH_TRY(json_of(&gathered->chat, gathered, "chat_template.json"));
    AH_TRY(special_add(gathered->special, gathered->config.node));
    AH_TRY(special_add(gathered->special, gathered->map.node));
    AH_TRY(key_take(gathered, &gathered->config));
    return key_take(gathered, &gathered->chat);
}

static int open_all(const struct ah_chat **out, struct gathered *gathered, const char *template_path)
{
    gathered->special = cJSON_CreateObject();
    if (!gathered->special)
        return ah__fail(AH_ENOMEM, "out of host memory: special tokens");
    if (template_path) {
        size_t length;
        AH_TRY(ah__file_read(&gathered->text, &length, template_path, TEMPLATE_BYTES_MOST));
        gathered->plain = (struct ah_chat_source){gathered->text, length, template_path};
    }
    if (gathered->model) {
        int status = files_take(gathered);
        if (status != AH_OK)
            return ah__fail_prefix(status, "%s", gathered->model);
    }
    if (!gathered->plain.text)
        return AH_OK;
    int status = ah__chat_new(out, &gathered->plain, &gathered->tools, gathered->special);
    return status == AH_EINPUT && !template_path ? ah__fail_prefix(status, "%s", gathered->model) : status;
}

int ah__model_chat_open(const struct ah_chat **out, const char *model, const char *template_path)
{
    struct gathered gathered = {.model = model};
    *out = NULL;
    int status = open_all(out, &gathered, template_path);
    ah__model_files_free(&gathered.files);
    ah__json_free(&gathered.config);
    ah__json_free(&gathered.chat);
    ah__json_free(&gathered.map);
    ah__free(gathered.text);
    cJSON_Delete(gathered.special);
    return status;
}
