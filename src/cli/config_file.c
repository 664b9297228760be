#include "cli/config_file.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "cli/input.h"

enum { KEYS_MOST = 256, TEXT_MOST = 65536, FILE_MOST = 16 << 20 };

struct reading {
    struct ah_config_file *file;
    const char *path;
    char *error;
    size_t room;
    yaml_parser_t parser;
    yaml_event_t event; /* the current event, if has_event */
    bool has_event;
};

static bool fault(struct reading *reading, size_t line, const char *format, ...) AH_PRINTF(3, 4);

static bool fault(struct reading *reading, size_t line, const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(reading->error, reading->room, "%.100s: line %zu: %s", reading->path, line, text);
    return false;
}

static size_t line_of(const struct reading *reading)
{
    return reading->event.start_mark.line + 1;
}

static bool next(struct reading *reading)
{
    if (reading->has_event)
        yaml_event_delete(&reading->event);
    reading->has_event = yaml_parser_parse(&reading->parser, &reading->event);
    if (reading->has_event)
        return true;
    return fault(reading, reading->parser.problem_mark.line + 1, "%s, expected YAML or JSON",
                 reading->parser.problem ? reading->parser.problem : "found bytes that cannot be read");
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool is_null(const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 || strcmp(text, "Null") == 0 ||
            strcmp(text, "NULL") == 0);
}

static bool text_take(struct reading *reading, struct ah_config_entry *entry)
{
    const yaml_event_t *event = &reading->event;
    size_t length = event->type == YAML_SCALAR_EVENT ? event->data.scalar.length : 0;
    const char *key = entry->key;
    if (event->type != YAML_SCALAR_EVENT)
        return fault(reading, line_of(reading), "key '%.60s': found %s, expected a text, a number, or true or false",
                     key, event->type == YAML_ALIAS_EVENT ? "an alias" : "a list or an object");
    if (is_null(event) && !entry->list)
        return true;
    if (length > TEXT_MOST || strlen((const char *)event->data.scalar.value) != length)
        return fault(reading, line_of(reading), "key '%.60s': found a zero byte or over %d bytes, expected a text", key,
                     TEXT_MOST);
    if (entry->count == AH_CONFIG_TEXTS_MOST)
        return fault(reading, line_of(reading), "key '%.60s': found over %d values", key, AH_CONFIG_TEXTS_MOST);
    char *copy = strdup((const char *)event->data.scalar.value);
    if (!copy)
        return fault(reading, line_of(reading), "out of host memory");
    entry->text[entry->count++] = copy;
    return true;
}

static bool value_take(struct reading *reading, struct ah_config_entry *entry)
{
    if (!next(reading))
        return false;
    entry->list = reading->event.type == YAML_SEQUENCE_START_EVENT;
    if (!entry->list)
        return text_take(reading, entry);
    while (next(reading))
        if (reading->event.type == YAML_SEQUENCE_END_EVENT)
            return true;
        else if (!text_take(reading, entry))
            return false;
    return false;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static bool entry_take(struct reading *reading)
{
    struct ah_config_file *file = reading->file;
    if (reading->event.type != YAML_SCALAR_EVENT || !reading->event.data.scalar.length)
        return fault(reading, line_of(reading), "found no name, expected that of an option");
    if (file->count == KEYS_MOST)
        return fault(reading, line_of(reading), "found over %d keys", KEYS_MOST);
    struct ah_config_entry *grown = realloc(file->entries, (file->count + 1) * sizeof *grown);
    if (!grown)
        return fault(reading, line_of(reading), "out of host memory");
    file->entries = grown;
    struct ah_config_entry *entry = &grown[file->count];
    *entry = (struct ah_config_entry){.line = line_of(reading),
                                      .key = strdup((const char *)reading->event.data.scalar.value)};
    if (!entry->key)
        return fault(reading, entry->line, "out of host memory");
    file->count++;
    return value_take(reading, entry);
}

static bool expect(struct reading *reading, yaml_event_type_t type, const char *what)
{
    if (!next(reading))
        return false;
    return reading->event.type == type || fault(reading, line_of(reading), "%s", what);
}

static bool document_take(struct reading *reading)
{
    static const char mapping[] = "expected names of options and their values, like 'lr: 1e-4'";
    if (!expect(reading, YAML_STREAM_START_EVENT, mapping) || !expect(reading, YAML_DOCUMENT_START_EVENT, mapping) ||
        !expect(reading, YAML_MAPPING_START_EVENT, mapping))
        return false;
    while (next(reading))
        if (reading->event.type == YAML_MAPPING_END_EVENT)
            return expect(reading, YAML_DOCUMENT_END_EVENT, mapping) &&
                   expect(reading, YAML_STREAM_END_EVENT, "found a second document, expected one");
        else if (!entry_take(reading))
            return false;
    return false;
}

void ah__config_file_free(struct ah_config_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        for (int j = 0; j < file->entries[i].count; j++)
            free(file->entries[i].text[j]);
        free(file->entries[i].key);
    }
    free(file->entries);
    *file = (struct ah_config_file){0};
}

bool ah__config_file_read(struct ah_config_file *file, const char *path, char *error, size_t room)
{
    struct reading reading = {.file = file, .path = path, .error = error, .room = room};
    char *text;
    size_t length;
    if (!ah__input_read(&text, &length, path, FILE_MOST, error, room))
        return false;
    if (!yaml_parser_initialize(&reading.parser)) {
        free(text);
        snprintf(error, room, "%.200s: out of host memory", path);
        return false;
    }
    yaml_parser_set_input_string(&reading.parser, (const unsigned char *)text, length);
    bool good = document_take(&reading);
    if (reading.has_event)
        yaml_event_delete(&reading.event);
    yaml_parser_delete(&reading.parser);
    free(text);
    return good;
}
