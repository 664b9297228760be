/* The top-level keys of public models' config.json, with the values that they have there: each is read, passed over or
 * noted, and none refuses the model. Of seven small models the keys alone are theirs, sizes are not. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "model/model.h"
#include "test.h"

/* The lines of tests/golden/public_keys.tsv: a model's name, its keys that are noted, its config.json. */
struct public_models {
    char *text;
    size_t count;
    struct public_model {
        const char *name, *noted, *config;
    } model[64];
};

static void models_read(struct public_models *out)
{
    char path[512], *rest;
    size_t length;
    *out = (struct public_models){.count = 0};
    snprintf(path, sizeof path, "%s/golden/public_keys.tsv", ah_test_source());
    assert_ok(ah__file_read(&out->text, &length, path, 1 << 20));
    rest = out->text;
    for (char *line; (line = strsep(&rest, "\n")) && *line; out->count++) {
        assert_true(out->count < AH_LENGTH(out->model));
        struct public_model *model = &out->model[out->count];
        model->name = strsep(&line, "\t");
        model->noted = strsep(&line, "\t");
        model->config = line;
    }
    assert_true(out->count > 0);
}

static size_t number_length(const char *text)
{
    return strspn(text, "0123456789+-.e");
}

static bool is_real(const char *number)
{
    return strcspn(number, ".e") < number_length(number);
}

/* Keys that configurations of the time have as whole numbers, and that classes of transformers 5 declare as floats. */
static bool is_class_real(const char *key)
{
    static const char *const keys[] = {"\"rope_theta\"",        "\"rotary_emb_base\"", "\"rope_local_base_freq\"",
                                       "\"attention_dropout\"", "\"embd_pdrop\"",      "\"resid_pdrop\""};
    bool found = false;
    for (size_t i = 0; i < AH_LENGTH(keys); i++)
        found |= strncmp(key, keys[i], strlen(keys[i])) == 0;
    return found;
}

/* transformers 5 refuses 50 where 50.0 is meant, and 256.0 where 256 is. */
static void numbers_form_check(const char *name, const char *source, const char *saved)
{
    char key[80];
    for (const char *at = strchr(source, ':'); at; at = strchr(at + 1, ':')) {
        const char *quote = at - 1;
        for (bool named = *quote == '"'; named; named = *--quote != '"')
            continue;
        if (!number_length(at + 1))
            continue;
        snprintf(key, sizeof key, "%.*s: ", (int)(at - quote), quote);
        const char *other = strstr(saved, key);
        if (other && number_length(other + strlen(key)) &&
            is_real(other + strlen(key)) != (is_real(at + 1) || is_class_real(key)))
            fail_msg("%s: %.60s is saved as %.60s", name, quote, other);
    }
}

static void public_models_are_taken(void **state)
{
    struct public_models models;
    models_read(&models);
    for (const struct public_model *at = models.model; at < models.model + models.count; at++) {
        struct ah_model *model;
        if (ah__model_parse(&model, at->config, strlen(at->config), at->name) != AH_OK)
            fail_msg("%s", ah_error());
        const char *note = ah_model_note(model) ? strrchr(ah_model_note(model), ':') + 2 : "";
        if (strcmp(note, at->noted) != 0)
            fail_msg("%s: noted '%s', expected '%s'", at->name, note, at->noted);
        numbers_form_check(at->name, at->config, ah_model_get(model)->config);
        ah_model_free(model);
    }
    ah__free(models.text);
}

/* What those keys would ask for otherwise. */
static void other_values_are_refused(void **state)
{
    static const struct {
        const char *name, *from, *to, *words;
    } cases[] = {
        {"microsoft/Phi-4-mini-instruct", "\"lm_head_bias\":false", "\"lm_head_bias\":true",
         "key 'lm_head_bias': found true, expected false"},
        {"microsoft/Phi-4-mini-instruct", "\"full_attn_mod\":1", "\"full_attn_mod\":2", "key 'full_attn_mod': found 2"},
        {"microsoft/Phi-4-mini-instruct", "\"type\":\"longrope\"", "\"type\":\"mrope\"", "found 'mrope', expected"},
        {"google/gemma-3-1b-it", "\"final_logit_softcapping\":null", "\"final_logit_softcapping\":0",
         "key 'final_logit_softcapping': found 0"},
        {"facebook/opt-125m", "\"do_layer_norm_before\":true", "\"do_layer_norm_before\":false",
         "key 'do_layer_norm_before': found false"},
        {"Qwen/Qwen2.5-7B", "\"use_mrope\":false", "\"use_mrope\":true", "key 'use_mrope': found true, expected false"},
    };
    struct public_models models;
    models_read(&models);
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        char text[4096];
        struct ah_model *model = NULL;
        size_t k = 0;
        while (strcmp(models.model[k].name, cases[i].name) != 0)
            k++;
        const char *whole = models.model[k].config, *at = strstr(whole, cases[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, cases[i].to, at + strlen(cases[i].from));
        assert_fails(ah__model_parse(&model, text, strlen(text), "m.json"), AH_EINPUT, cases[i].words);
        assert_null(model);
    }
    ah__free(models.text);
}

AH_TEST_CASES("model/public_keys", public_models_are_taken, other_values_are_refused)
