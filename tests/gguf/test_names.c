/* What llama.cpp decides by a file's general.name, and the names that are given: white space beside added tokens, read
 * and written; titles as its converter makes them. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "gguf/by_name.h"
#include "gguf/tokenizer.h"
#include "infer/export_name.h"
#include "source/model_tokenizer.h"
#include "test.h"

static const char *const added[] = {"<unk>", "<s>", "</s>", "<|endoftext|>", "<|user|>", "<|end|>"};

/* Two letters, a space, a line's end, and added tokens; a bit of `strips` and of `lefts` for each. */
static char *tokenizer_text(size_t count, unsigned strips, unsigned lefts)
{
    struct ah_buf text = {0};
    ah__buf_printf(&text, "{\"added_tokens\": [");
    for (size_t i = 0; i < count; i++)
        ah__buf_printf(&text,
                       "%s{\"id\": %zu, \"content\": \"%s\", \"single_word\": false, \"lstrip\": %s, \"rstrip\": %s, "
                       "\"normalized\": false, \"special\": true}",
                       i ? "," : "", 4 + i, added[i], lefts >> i & 1 ? "true" : "false",
                       strips >> i & 1 ? "true" : "false");
    ah__buf_printf(&text, "], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": "
                          "false, \"use_regex\": true}, \"post_processor\": null, \"decoder\": null, \"model\": {"
                          "\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"\u0120\": 2, \"\u010a\": 3}, "
                          "\"merges\": []}}");
    assert_int_equal(text.status, AH_OK);
    return text.text;
}

static const struct ah_tokenizer *tokenizer_of(const char *text)
{
    char path[512];
    const char *folder = ah_test_folder();
    const struct ah_tokenizer *tokenizer;
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    assert_ok(ah__file_write(path, text, strlen(text)));
    assert_ok(ah__model_tokenizer_open(&tokenizer, folder));
    return tokenizer;
}

enum { PHI = 0x34 }; /* those that Phi-3 strips behind: all but <unk>, <s> and <|endoftext|> */

static void names_make_llama_cpp_strip_alike(void **state)
{
    static const struct {
        const char *name, *expected, *note; /* note: null: there is nothing to say */
        size_t tokens;
        unsigned strips, lefts;
    } rows[] = {
        {"My Model", "My Model", NULL, 6, 0, 0},
        {"Phi-3 Mini", "Phi-3 Mini", NULL, 6, PHI, 0},
        {"My Phi3", "My Phi3", NULL, 6, PHI, 0},
        {"Phi 3 Mini 4k", "Phi-3 Mini 4k", "by 'phi-3' in a name alone llama.cpp takes white space", 6, PHI, 0},
        {"Chat", "Chat (Phi-3)", "named 'Chat (Phi-3)'", 6, PHI, 0},
        {"Phi-3 Mini PHI3", "Phi 3 Mini PHI 3", "as this tokenizer does not", 6, 0, 0},
        {"Phi-3 Mini", "Phi-3 Mini", "1 added token, '</s>' first, takes white space along", 6, 0x30, 0},
        {"Phi-3 Mini", "Phi 3 Mini", "as this tokenizer does not", 3, 0, 0}, /* llama.cpp would not load it */
        {"Chat", "Chat", "1 added token, '</s>' first, takes white space along", 3, 4, 0},
        {"Chat", "Chat", "2 added tokens, '<s>' first, take white space along", 6, 0, 6},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        char *text = tokenizer_text(rows[i].tokens, rows[i].strips, rows[i].lefts), *name;
        const struct ah_tokenizer *tokenizer = tokenizer_of(text);
        struct ah_buf notes = {0};
        assert_ok(ah__gguf_name_settle(&name, &notes, tokenizer, rows[i].name));
        assert_string_equal(name, rows[i].expected);
        if (rows[i].note ? !notes.text || !strstr(notes.text, rows[i].note) : notes.text != NULL)
            fail_msg("%s: found note '%s', expected '%s'", rows[i].name, notes.text ? notes.text : "none",
                     rows[i].note ? rows[i].note : "none");
        ah__buf_free(&notes);
        ah__free(name);
        ah__free(text);
        ah__tokenizer_close(tokenizer);
    }
}

/* Of "<|user|> \na" in a file of that name. */
static void expect_ids(const char *name, int64_t expected)
{
    char path[512], *text = tokenizer_text(6, PHI, 0);
    const struct ah_tokenizer *tokenizer = tokenizer_of(text), *again;
    const struct ah_gguf_tokenizer from = {.path = "tokenizer", .json = text, .tokenizer = tokenizer, .rows = 10};
    struct ah_gguf_writer *writer;
    struct ah_buf notes = {0};
    int32_t *ids;
    int64_t count;
    snprintf(path, sizeof path, "%s/named.gguf", ah_test_folder());
    assert_ok(ah__gguf_writer_new(&writer));
    if (name)
        ah__gguf_put_text(writer, "general.name", name);
    assert_ok(ah__gguf_put_tokenizer(writer, &notes, &from));
    assert_ok(ah__gguf_writer_open(writer, path));
    assert_ok(ah__gguf_writer_close(writer));
    ah__gguf_writer_free(writer);
    assert_ok(ah__model_tokenizer_open(&again, path));
    assert_ok(again->encode(&ids, &count, again, "<|user|> \na", 11));
    assert_int_equal(count, expected);
    assert_int_equal(ids[0], 8);
    ah__free(ids);
    ah__free(text);
    ah__buf_free(&notes);
    ah__tokenizer_close(tokenizer);
    ah__tokenizer_close(again);
}

static void a_name_says_how_a_file_is_read(void **state)
{
    expect_ids("Phi-3 Mini", 2);
    expect_ids("my-PHI3", 2);
    expect_ids("Phi 3 Mini", 4);
    expect_ids(NULL, 4);
}

/* As llama.cpp's converter writes it of a folder and of its config.json. */
static void names_are_titles(void **state)
{
    static const struct {
        const char *folder, *config, *expected;
    } rows[] = {
        {"my-model", NULL, "My Model"},
        {"Qwen2.5-0.5b-instruct-v0.3", "{}", "Qwen2.5 0.5b Instruct v0.3"},
        {"tiny_llama-v2x", "{}", "Tiny_Llama V2X"},
        {"a", "{\"_name_or_path\": \"meta-llama/Llama-2-7b-hf\"}", "Llama 2 7b Hf"},
        {"b", "{\"_name_or_path\": \"/data/me/models/x\"}", "B"},
        {"c", "{\"_name_or_path\": \".\"}", "C"},
        {"d", "{\"_name_or_path\": \"\"}", "D"},
    };
    char folder[512], path[600], *name;
    const char *top = ah_test_folder();
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        snprintf(folder, sizeof folder, "%s/%s", top, rows[i].folder);
        assert_ok(ah__folder_make(folder));
        snprintf(path, sizeof path, "%s/config.json", folder);
        if (rows[i].config)
            assert_ok(ah__file_write(path, rows[i].config, strlen(rows[i].config)));
        assert_ok(ah__export_name(&name, NULL, folder, folder));
        assert_string_equal(name, rows[i].expected);
        ah__free(name);
    }
}

static void sizes_have_two_digits(void **state)
{
    static const struct {
        int64_t count;
        const char *label;
    } rows[] = {{134515008, "135M"}, {8030261248, "8.0B"}, {5000, "5.0K"}, {400, "0.40K"}, {999600, "1000K"}};
    char label[16];
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        ah__export_size_label(label, rows[i].count);
        assert_string_equal(label, rows[i].label);
    }
}

AH_TEST_CASES("gguf/names", names_make_llama_cpp_strip_alike, a_name_says_how_a_file_is_read, names_are_titles,
              sizes_have_two_digits)
