#include "source/model_chat.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "source/adapter_files.h"

enum { TEMPLATE_BYTES_MOST = 1 << 24 };

/* A folder or file that may have a template: an adapter's, then its model's. */
struct place {
    const char *path;
    struct ah_model_files files;
    struct ah_json config, chat, map; /* tokenizer_config.json, chat_template.json, special_tokens_map.json */
};

/* Everything found so far. Texts belong to the files or the trees. */
struct gathered {
    struct place places[2];
    char *text;       /* text of a template that the user named instead */
    const char *from; /* the path that has the template */
    struct ah_chat_source plain, tools;
    cJSON *special;
};

static int json_of(struct ah_json *out, const struct place *place, const char *name)
{
    const struct ah_model_file *file = ah__model_files_find(&place->files, name);
    return file ? ah__json_parse(out, file->text, file->length, name) : AH_OK;
}

/* ---- special tokens ---------------------------------------------------------------------------------------------- */

static bool is_token_name(const char *key)
{
    static const char end[] = "_token";
    size_t length = strlen(key), tail = strlen(end);
    return length > tail && strcmp(key + length - tail, end) == 0;
}

/* Adds keys like bos_token: a text or {content}. A token that is already known stays. */
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

/* Takes the templates of a list of {name, template}. */
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

/* Takes the templates of a place; the first place that has one provides all of them. */
static int templates_take(struct gathered *gathered, const struct place *place)
{
    const struct ah_model_file *file = ah__model_files_find(&place->files, "chat_template.jinja");
    if (file)
        gathered->plain = (struct ah_chat_source){file->text, file->length, file->name};
    const struct ah_model_file *tools = ah__model_files_find(&place->files, AH_MORE_TEMPLATES "/tool_use.jinja");
    if (tools)
        gathered->tools = (struct ah_chat_source){tools->text, tools->length, tools->name};
    AH_TRY(key_take(gathered, &place->config));
    AH_TRY(key_take(gathered, &place->chat));
    if (gathered->plain.text)
        gathered->from = place->path;
    return AH_OK;
}

/* Reads a place. `specials`: adds texts of special tokens that are not known yet. */
static int place_take(struct gathered *gathered, struct place *place, bool specials)
{
    AH_TRY(ah__model_files_load(&place->files, place->path));
    AH_TRY(json_of(&place->config, place, "tokenizer_config.json"));
    AH_TRY(json_of(&place->map, place, "special_tokens_map.json"));
    AH_TRY(json_of(&place->chat, place, "chat_template.json"));
    if (specials) {
        AH_TRY(special_add(gathered->special, place->config.node));
        AH_TRY(special_add(gathered->special, place->map.node));
    }
    return gathered->plain.text ? AH_OK : templates_take(gathered, place);
}

static int open_all(const struct ah_chat **out, struct gathered *gathered, const char *template_path)
{
    bool specials = true;
    gathered->special = cJSON_CreateObject();
    if (!gathered->special)
        return ah__fail(AH_ENOMEM, "out of host memory: special tokens");
    if (template_path) {
        size_t length;
        AH_TRY(ah__file_read(&gathered->text, &length, template_path, TEMPLATE_BYTES_MOST));
        gathered->plain = (struct ah_chat_source){gathered->text, length, template_path};
    }
    for (size_t i = 0; i < AH_LENGTH(gathered->places); i++) {
        struct place *place = &gathered->places[i];
        int status = place->path ? place_take(gathered, place, specials) : AH_OK;
        if (status != AH_OK)
            return ah__fail_prefix(status, "%s", place->path);
        specials = specials && !(i == 0 && place->path && ah__adapter_has_tokenizer(place->path));
    }
    if (!gathered->plain.text)
        return AH_OK;
    int status = ah__chat_new(out, &gathered->plain, &gathered->tools, gathered->special);
    return status == AH_EINPUT && !template_path ? ah__fail_prefix(status, "%s", gathered->from) : status;
}

int ah__model_chat_open(const struct ah_chat **out, const char *model, const char *adapter, const char *template_path)
{
    struct gathered gathered = {.places = {{.path = adapter}, {.path = model}}};
    *out = NULL;
    int status = open_all(out, &gathered, template_path);
    for (size_t i = 0; i < AH_LENGTH(gathered.places); i++) {
        ah__model_files_free(&gathered.places[i].files);
        ah__json_free(&gathered.places[i].config);
        ah__json_free(&gathered.places[i].chat);
        ah__json_free(&gathered.places[i].map);
    }
    ah__free(gathered.text);
    cJSON_Delete(gathered.special);
    return status;
}
