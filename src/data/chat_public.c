/* Chat templates, as the public interface offers them. */
#include <string.h>

#include "base/json_python.h"
#include "data/record_chat.h"
#include "source/adapter_config.h"
#include "source/adapter_files.h"
#include "source/model_chat.h"

/* Finds model and adapter. A training's folder means its newest checkpoint; an adapter's names its model. The caller
 * frees both; either may be null. */
static int places_find(char **model, char **adapter, const char *model_path, const char *adapter_dir)
{
    *model = *adapter = NULL;
    if (adapter_dir)
        AH_TRY(ah__adapter_find(adapter, adapter_dir));
    if (!model_path)
        return AH_OK;
    AH_TRY(ah__adapter_find(model, model_path));
    if (adapter_dir || !ah__adapter_config_exists(*model))
        return AH_OK;
    *adapter = *model;
    return ah__adapter_base(model, *adapter);
}

static int open_at(const struct ah_chat **chat, const char *model, const char *adapter, const char *template_path)
{
    AH_TRY(ah__model_chat_open(chat, model, adapter, template_path));
    if (*chat)
        return AH_OK;
    return ah__fail(AH_EINPUT,
                    "%s: found no chat template, expected chat_template.jinja, or chat_template in "
                    "tokenizer_config.json; --chat-template FILE names one",
                    adapter ? adapter
                    : model ? model
                            : "model");
}

int ah_chat_open_adapted(const struct ah_chat **chat, const char *model_path, const char *adapter_dir,
                         const char *template_path)
{
    const struct ah_chat *opened;
    char *model, *adapter;
    int status = places_find(&model, &adapter, model_path, adapter_dir);
    if (status == AH_OK)
        status = open_at(&opened, model, adapter, template_path);
    ah__free(model);
    ah__free(adapter);
    if (status == AH_OK)
        *chat = opened;
    return status;
}

int ah_chat_open(const struct ah_chat **chat, const char *model_path, const char *template_path)
{
    return ah_chat_open_adapted(chat, model_path, NULL, template_path);
}

int ah_adapter_note(char **note, const char *model_path, const char *adapter_dir)
{
    char *model, *adapter, *line = NULL;
    *note = NULL;
    int status = places_find(&model, &adapter, model_path, adapter_dir);
    if (status == AH_OK && model && adapter)
        status = ah__adapter_tokenizer_note(&line, model, adapter);
    *note = line;
    ah__free(model);
    ah__free(adapter);
    return status;
}

void ah_chat_close(const struct ah_chat *chat)
{
    ah__chat_close(chat);
}

/* A conversation as JSON, with the memory it points into. Zero-initialised before; freed after. */
struct given {
    struct ah_buf wrapped; /* a list of messages, as a record */
    struct ah_form_store store;
    struct ah_document document;
    struct ah_record record;
    struct tm now;
    struct ah_conversation conversation;
};

static void given_free(struct given *given)
{
    ah__buf_free(&given->wrapped);
    ah__form_store_free(&given->store);
    ah__record_free(&given->record);
}

/* Parses "YYYY-MM-DD" as noon of that day. */
static int date_read(struct tm *out, const char *date)
{
    const char *end = strptime(date, "%Y-%m-%d", out);
    out->tm_hour = 12;
    return end && !*end ? AH_OK : ah__fail(AH_EINPUT, "date: found '%s', expected YYYY-MM-DD", date);
}

/* Reads a record from an object, or from a list of messages. */
static int document_read(struct given *given, const char *text, size_t length, const char *name)
{
    struct ah_records records = {.kind = AH_RECORDS_ALONE, .path = name, .line = 1, .count = 1};
    cJSON *tree;
    AH_TRY(ah__json_value_parse(&tree, text, length, name)); /* the whole, so that faults have a position */
    const bool object = cJSON_IsObject(tree), list = cJSON_IsArray(tree);
    cJSON_Delete(tree);
    if (!object && !list)
        return ah__fail(AH_EINPUT, "%s: found neither a list nor an object, expected messages", name);
    size_t blank = ah__json_blank(text, length);
    if (list)
        ah__buf_printf(&given->wrapped, "{\"messages\": %.*s}", (int)(length - blank), text + blank);
    AH_TRY(given->wrapped.status);
    records.text = list ? given->wrapped.text : text + blank;
    records.length = list ? given->wrapped.length : length - blank;
    AH_TRY(ah__form_read(&given->document, &given->store, &records, AH_DATA_AUTO));
    if (given->document.kind == AH_DOCUMENT_CHAT)
        return AH_OK;
    return ah__fail(AH_EINPUT, "%s: found a record of %s, which is no conversation, expected messages", name,
                    ah__data_format_words[given->document.form]);
}

static int given_read(struct given *given, const struct ah_chat *chat, const struct ah_chat_options *options)
{
    const char *name = options->name ? options->name : "messages";
    if (options->date) {
        AH_TRY(date_read(&given->now, options->date));
        given->conversation.now = &given->now;
    }
    AH_TRY(document_read(given, options->conversation, options->length, name));
    given->conversation.add_generation_prompt = options->add_generation_prompt || given->document.generation;
    return ah__record_conversation(&given->conversation, &given->record, &given->document, chat, name);
}

/* Gives the buffer's text to the user, "" for an empty buffer. */
static int text_take(char **text, size_t *length, struct ah_buf *buf)
{
    if (!buf->text)
        ah__buf_add(buf, "", 0);
    AH_TRY(buf->status);
    *text = buf->text;
    *length = buf->length;
    *buf = (struct ah_buf){0};
    return AH_OK;
}

int ah_chat_render(char **text, size_t *length, const struct ah_chat *chat, const struct ah_chat_options *options)
{
    struct given given = {0};
    struct ah_buf buf = {0};
    int status = given_read(&given, chat, options);
    if (status == AH_OK)
        status = ah__chat_render(&buf, chat, &given.conversation);
    if (status == AH_OK)
        status = text_take(text, length, &buf);
    ah__buf_free(&buf);
    given_free(&given);
    return status;
}

/* Prints [{"text": .., "parts": [[begin, end], ..]}, ..]. */
static void pieces_print(struct ah_buf *to, const struct ah_chat_masked *masked)
{
    for (size_t i = 0; i < masked->count; i++) {
        const struct ah_chat_piece *piece = &masked->pieces[i];
        ah__buf_printf(to, "%s{\"text\": \"", i ? ", " : "[");
        ah__buf_json(to, piece->text.text ? piece->text.text : "");
        ah__buf_printf(to, "\", \"parts\": [");
        for (size_t k = 0; k < piece->span_count; k++)
            ah__buf_printf(to, "%s[%zu, %zu]", k ? ", " : "", piece->spans[k].begin, piece->spans[k].end);
        ah__buf_printf(to, "]}");
    }
    ah__buf_printf(to, masked->count ? "]\n" : "[]\n");
}

int ah_chat_mask(char **json, size_t *length, const struct ah_chat *chat, const struct ah_chat_options *options,
                 const char *train_on)
{
    struct given given = {0};
    struct ah_chat_masked masked = {0};
    struct ah_buf buf = {0};
    enum ah_train_on on = AH_TRAIN_ON_ASSISTANT;
    int status = ah__train_on_parse(&on, train_on);
    if (status == AH_OK)
        status = given_read(&given, chat, options);
    if (status == AH_OK && !given.document.bad) /* a bad answer is not learned */
        status = ah__chat_mask(&masked, chat, &given.conversation, on);
    if (status == AH_OK) {
        pieces_print(&buf, &masked);
        status = text_take(json, length, &buf);
    }
    ah__buf_free(&buf);
    ah__chat_masked_free(&masked);
    given_free(&given);
    return status;
}
