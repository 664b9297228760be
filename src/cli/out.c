#include "cli/out.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A fault that the command found, not the library; "": none. */
static char own_fault[1280];

void ah__out_number(FILE *to, double value)
{
    if (isfinite(value))
        fprintf(to, "%.17g", value);
    else
        fputs("null", to);
}

void ah__out_text(FILE *to, const char *text, size_t length)
{
    fputc('"', to);
    for (size_t bytes; length > 0; length -= bytes, text += bytes) {
        bool control;
        bytes = ah_text_character(&control, text, length);
        if (bytes == 0 || bytes > length) {
            fputs("\\ufffd", to);
            bytes = 1;
        } else if (*text == '"' || *text == '\\') {
            fprintf(to, "\\%c", *text);
        } else if (control) {
            fprintf(to, "\\u%04x", (unsigned char)text[bytes - 1]); /* the last byte is the code */
        } else {
            fwrite(text, 1, bytes, to);
        }
    }
    fputc('"', to);
}

void ah__out_string(FILE *to, const char *text)
{
    ah__out_text(to, text, strlen(text));
}

/* Omits line breaks and tabs: in JSON they are only between tokens, since strings escape them. */
void ah__out_line(FILE *to, const char *json)
{
    for (; *json; json++)
        if (*json != '\n' && *json != '\r' && *json != '\t')
            fputc(*json, to);
}

static int copy_line(FILE *to, const char *path)
{
    FILE *from = fopen(path, "r");
    if (!from) {
        snprintf(own_fault, sizeof own_fault, "%s: cannot open: %s", path, strerror(errno));
        return AH_EIO;
    }
    for (int c; (c = getc(from)) != EOF;)
        if (c != '\n' && c != '\r' && c != '\t')
            fputc(c, to);
    fclose(from);
    return AH_OK;
}

int ah__out_folder(char folder[AH_OUT_FOLDER])
{
    const char *in = getenv("TMPDIR");
    int length = snprintf(folder, AH_OUT_FOLDER, "%s/autohete-XXXXXX", in && *in ? in : "/tmp");
    if (length < AH_OUT_FOLDER && mkdtemp(folder))
        return AH_OK;
    snprintf(own_fault, sizeof own_fault, "%.200s: cannot make a folder: %s", in && *in ? in : "/tmp",
             length < AH_OUT_FOLDER ? strerror(errno) : "its name is too long");
    *folder = 0;
    return AH_EIO;
}

int ah__out_saved(FILE *to, int (*save)(const void *object, const char *path), const void *object)
{
    char folder[AH_OUT_FOLDER], path[AH_OUT_FOLDER + 16];
    int status = ah__out_folder(folder);
    if (status != AH_OK)
        return status;
    snprintf(path, sizeof path, "%s/object.json", folder);
    status = save(object, path);
    if (status == AH_OK)
        status = copy_line(to, path);
    unlink(path);
    rmdir(folder);
    return status;
}

int ah__out_plan(FILE *to, const struct ah_plan *plan)
{
    char *json;
    int status = ah_plan_json(&json, plan);
    if (status != AH_OK)
        return status;
    ah__out_line(to, json);
    free(json);
    return AH_OK;
}

int ah__out_fault(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(own_fault, sizeof own_fault, format, arguments);
    va_end(arguments);
    ah_text_plain(own_fault);
    return AH_EINPUT;
}

static const struct ah_command *running;

void ah__out_command(const struct ah_command *command)
{
    running = command;
}

/* Returns the option of the running command that a library message begins with, without its dashes; "": none. */
static const char *option_of(char name[64], const char *message)
{
    size_t length = strspn(message, "abcdefghijklmnopqrstuvwxyz_");
    name[0] = 0;
    if (!running || length >= 64 || strncmp(message + length, ": found", 7) != 0)
        return name;
    memcpy(name, message, length);
    name[length] = 0;
    for (char *at = name; (at = strchr(at, '_'));)
        *at = '-';
    for (size_t i = 0; i < running->count; i++)
        if (strcmp(running->options[i].name, name) == 0)
            return name;
    name[0] = 0;
    return name;
}

static void error_print(const char *message)
{
    char name[64];
    const char *option = option_of(name, message);
    if (option[0])
        fprintf(stderr, "autohete: --%s%s\n", option, strchr(message, ':'));
    else
        fprintf(stderr, "autohete: %s\n", message);
}

void ah__out_note(char *note)
{
    if (note)
        fprintf(stderr, "autohete: note: %s\n", ah_text_plain(note));
    free(note);
}

int ah__out_tokenizer_note(const char *model, const char *adapter)
{
    char *note = NULL;
    int status = ah_tokenizer_note(&note, model);
    ah__out_note(note);
    if (status == AH_OK && ah_adapter_note(&note, model, adapter) == AH_OK) /* the command reports what is wrong */
        ah__out_note(note);
    return status;
}

void ah__out_cut_note(int64_t count, int64_t most)
{
    if (count == most)
        fprintf(stderr, "autohete: note: the answer was cut after %lld token%s (--tokens)\n", (long long)count,
                count == 1 ? "" : "s");
}

int ah__out_fail(int status)
{
    if (!own_fault[0]) /* several ranks: the message is of the one that failed first */
        status = ah_ranks_end(status);
    error_print(own_fault[0] ? own_fault : ah_error());
    return ah_status_is_input(status) ? 2 : 1;
}
