#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "infer/export_name.h"

/* ---- name -------------------------------------------------------------------------------------------------------- */

/* Returns true if a title leaves the word as it is: a version like "v0.3", or a word that begins with a digit, has a
 * capital or has no lower-case letter. */
static bool stays(const char *word, size_t length)
{
    bool lower = false, version = length > 1 && word[0] == 'v' && isdigit((unsigned char)word[1]);
    for (size_t i = 0; i < length; i++) {
        if (isupper((unsigned char)word[i]))
            return true;
        lower = lower || islower((unsigned char)word[i]);
        version = version && (i == 0 || word[i] == '.' || isdigit((unsigned char)word[i]));
    }
    return !lower || version || isdigit((unsigned char)word[0]);
}

static void word_add(struct ah_buf *to, const char *word, size_t length)
{
    bool as_it_is = stays(word, length), begins = true;
    if (to->length)
        ah__buf_add(to, " ", 1);
    for (size_t i = 0; i < length; i++) {
        char letter = as_it_is || !begins ? word[i] : (char)toupper((unsigned char)word[i]);
        begins = !isalpha((unsigned char)word[i]);
        ah__buf_add(to, &letter, 1);
    }
}

/* Makes a title of an id: "my-model-v2" -> "My Model v2". */
static int title(char **out, const char *id)
{
    static const char between[] = "- \t\r\n";
    struct ah_buf text = {0};
    for (const char *at = id + strspn(id, between); *at; at += strspn(at, between)) {
        size_t length = strcspn(at, between);
        word_add(&text, at, length);
        at += length;
    }
    ah__buf_add(&text, "", 0);
    *out = text.text;
    return text.status;
}

/* Returns the part behind the last slash. */
static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Reads the model's name from its configuration, if that has a name of the form "NAME" or "OWNER/NAME"; else *name is
 * null. */
static int config_name(char **name, const char *folder)
{
    struct ah_json json;
    int status = AH_OK;
    *name = NULL;
    if (ah__json_load_any(&json, folder, "config.json") != AH_OK)
        return AH_OK;
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json.node, "_name_or_path"));
    const char *slash = found ? strchr(found, '/') : NULL;
    if (found && (!slash || !strchr(slash + 1, '/')) && base_of(found)[strspn(base_of(found), ".-")])
        status = title(name, base_of(found));
    ah__json_free(&json);
    return status;
}

static int gguf_name(char **name, const struct ah_gguf *file)
{
    const char *found = NULL;
    AH_TRY(ah__gguf_text(&found, file, "general.name"));
    return found ? ah__strdup(name, found) : AH_OK;
}

int ah__export_name(char **name, const struct ah_gguf *file, const char *folder, const char *named)
{
    char *real;
    *name = NULL;
    AH_TRY(file ? gguf_name(name, file) : config_name(name, folder));
    if (*name)
        return AH_OK;
    AH_TRY(ah__path_real(&real, named));
    int status = title(name, base_of(real ? real : named));
    ah__free(real);
    return status;
}

/* ---- other keys -------------------------------------------------------------------------------------------------- */

void ah__export_size_label(char label[16], int64_t parameters)
{
    static const struct {
        double most;
        char letter;
    } units[] = {{1e6, 'K'}, {1e9, 'M'}, {1e12, 'B'}, {INFINITY, 'T'}};
    size_t i = 0;
    while ((double)parameters > units[i].most)
        i++;
    double scaled = (double)parameters / 1e3;
    for (size_t k = 0; k < i; k++)
        scaled /= 1e3;
    double rounded = nearbyint(scaled);
    ah__snprintf(label, 16, "%.*f%c", rounded < 1 ? 2 : rounded < 10, scaled, units[i].letter);
}

int ah__export_put_sampling(struct ah_gguf_writer *writer, const char *text, const char *path)
{
    static const struct {
        const char *ours, *key;
    } rows[] = {{"top_p", "general.sampling.top_p"},
                {"min_p", "general.sampling.min_p"},
                {"temperature", "general.sampling.temp"},
                {"repetition_penalty", "general.sampling.penalty_repeat"}};
    struct ah_json json;
    if (!text)
        return AH_OK;
    AH_TRY(ah__json_parse(&json, text, strlen(text), path));
    const cJSON *top = cJSON_GetObjectItemCaseSensitive(json.node, "top_k");
    if (cJSON_IsNumber(top) && top->valuedouble >= 0 && top->valuedouble <= INT32_MAX)
        ah__gguf_put_int(writer, "general.sampling.top_k", (uint32_t)top->valuedouble);
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(json.node, rows[i].ours);
        if (cJSON_IsNumber(item))
            ah__gguf_put_float(writer, rows[i].key, (float)item->valuedouble);
    }
    ah__json_free(&json);
    return AH_OK;
}
