/* Trainings on examples, documents and token files of other programs. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "train/tiny.h"

static void write_pairs(const char *path, int count, char salt)
{
    char text[8192];
    size_t length = 0;
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "{\"prompt\": \"%d+%c=\", \"completion\": \"%.*s\"}\n", i, salt, i % 9 + 1,
                                   "abcdefghijkl");
    assert_ok(ah__file_write(path, text, length));
}

/* Stopped and resumed gives the same bits; what is cut or left out is told; other examples are refused. */
static void examples_train_and_resume(void **state)
{
    struct place place;
    struct ah_train_result result;
    char whole[PATH_SIZE], part[PATH_SIZE], data[PATH_SIZE];
    place_init(&place);
    snprintf(data, sizeof data, "%s.jsonl", place.data);
    write_pairs(data, 40, 'x');
    struct ah_train_options options = options_on(&place, data, whole, "whole");
    assert_ok(ah_train(&result, &options));
    assert_non_null(strstr(tiny_notes, "40 examples (pairs), one in each sequence; the loss is of the completions"));
    assert_non_null(strstr(tiny_notes, "examples are longer than 8 tokens and were cut there"));
    assert_non_null(strstr(tiny_notes, "tokens of 40 documents take"));
    options = options_on(&place, data, part, "part");
    assert_ok(train_watched(&result, &options, NULL, stop_at_3));
    assert_true(result.stopped);
    struct ah_train_options resume = resume_of(&place);
    resume.resume_dir = part;
    assert_ok(ah_train(&result, &resume));
    expect_same_file(whole, part, "checkpoint/model.safetensors");
    resume.data_format = "bytes";
    assert_fails(ah_train(&result, &resume), AH_ESTALE, "data_format: found bytes, expected auto as when");
    resume.data_format = NULL;
    write_pairs(data, 40, 'y');
    assert_fails(ah_train(&result, &resume), AH_ESTALE, "as in the checkpoint's data");
}

/* The same tokens, packed or not, train the same bits. */
static void packed_text_is_the_same_text(void **state)
{
    struct place place;
    struct ah_train_result result;
    char plain[PATH_SIZE], unpacked[PATH_SIZE], data[PATH_SIZE], *text;
    size_t length;
    place_init(&place);
    assert_ok(ah__file_read(&text, &length, place.data, 1 << 20));
    snprintf(data, sizeof data, "%s.gz", place.data);
    gzFile file = gzopen(data, "wb");
    assert_int_equal(gzwrite(file, text, (unsigned)length), length);
    gzclose(file);
    ah__free(text);
    struct ah_train_options options = options_on(&place, place.data, plain, "plain");
    assert_ok(ah_train(&result, &options));
    options = options_on(&place, data, unpacked, "unpacked");
    assert_ok(ah_train(&result, &options));
    expect_same_file(plain, unpacked, "checkpoint/model.safetensors");
}

/* What is said of data once holds when the training goes on. */
static void a_format_is_kept(void **state)
{
    struct place place;
    struct ah_train_result result;
    char whole[PATH_SIZE], part[PATH_SIZE], data[PATH_SIZE];
    uint16_t ids[600];
    place_init(&place);
    for (size_t i = 0; i < AH_LENGTH(ids); i++)
        ids[i] = (uint16_t)(i * 13 % 128);
    snprintf(data, sizeof data, "%s.ids", place.data);
    assert_ok(ah__file_write(data, ids, sizeof ids));
    struct ah_train_options options = options_on(&place, data, whole, "whole");
    assert_fails(ah_train(&result, &options), AH_EINPUT, "found a zero byte at 0");
    options.data_format = "words";
    assert_fails(ah_train(&result, &options), AH_EINPUT, "data_format: found 'words', expected auto, text");
    options.data_format = "nanogpt";
    assert_ok(ah_train(&result, &options));
    assert_non_null(strstr(tiny_notes, "is read as nanoGPT's 16-bit tokens"));
    options = options_on(&place, data, part, "part");
    options.data_format = "nanogpt";
    assert_ok(train_watched(&result, &options, NULL, stop_at_3));
    struct ah_train_options resume = resume_of(&place);
    resume.resume_dir = part;
    assert_ok(ah_train(&result, &resume));
    expect_same_file(whole, part, "checkpoint/model.safetensors");
}

/* Conversations: the template that is given goes into the saved folder, where the training that goes on, and whoever
 * loads the folder, finds it. */
static void conversations_train_and_resume(void **state)
{
    static const char template[] = "{% for m in messages %}{{ m.role[0] }}{{ m.content }};{% endfor %}"
                                   "{% if add_generation_prompt %}a{% endif %}";
    struct place place;
    struct ah_train_result result;
    char whole[PATH_SIZE], part[PATH_SIZE], data[PATH_SIZE], given[PATH_SIZE], text[8192];
    size_t length = 0;
    place_init(&place);
    for (int i = 0; i < 40; i++)
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "{\"messages\": [{\"role\": \"user\", \"content\": \"%d\"}, {\"role\": "
                                   "\"assistant\", \"content\": \"%d\"}]}\n",
                                   i % 7, i % 7 + 1);
    snprintf(data, sizeof data, "%s.jsonl", place.data);
    assert_ok(ah__file_write(data, text, length));
    snprintf(given, sizeof given, "%s.jinja", place.data);
    assert_ok(ah__file_write(given, template, strlen(template)));
    struct ah_train_options options = options_on(&place, data, whole, "whole");
    assert_fails(ah_train(&result, &options), AH_EINPUT, "--chat-template FILE");
    options.train_on = "user";
    assert_fails(ah_train(&result, &options), AH_EINPUT, "train_on: found 'user', expected assistant, all or last");
    options.train_on = "last";
    options.chat_template = given;
    assert_ok(ah_train(&result, &options));
    assert_non_null(strstr(tiny_notes,
                           "40 examples (messages) by the chat template, one in each sequence; the loss is of the "
                           "last messages"));
    options = options_on(&place, data, part, "part");
    options.train_on = "last";
    options.chat_template = given;
    assert_ok(train_watched(&result, &options, NULL, stop_at_3));
    assert_ok(ah__file_write(given, "changed", 7));
    struct ah_train_options resume = resume_of(&place);
    resume.resume_dir = part;
    assert_ok(ah_train(&result, &resume));
    expect_same_file(whole, part, "checkpoint/model.safetensors");
    char *saved = read_text(part, "checkpoint/chat_template.jinja", &length);
    assert_string_equal(saved, template);
    ah__free(saved);
    resume.train_on = "all";
    assert_fails(ah_train(&result, &resume), AH_ESTALE, "train_on: found all, expected last as when the training");
}

/* Templates beside the default: the one for tools is used, all are saved, and the training goes on with them. */
static void more_templates_are_kept(void **state)
{
    static const char config[] = "{\"model_type\": \"gpt2\", \"vocab_size\": 256, \"n_positions\": 64, \"n_embd\": 16, "
                                 "\"n_layer\": 3, \"n_head\": 2}";
    static const char plain[] = "{% for m in messages %}{{ m.content }}{% endfor %}";
    static const char of_tools[] = "T{% for m in messages %}{{ m.content }};{% endfor %}";
    struct place place;
    struct ah_train_result result;
    char whole[PATH_SIZE], part[PATH_SIZE], data[PATH_SIZE], model[PATH_SIZE - 64], path[PATH_SIZE], text[8192];
    size_t length = 0;
    place_init(&place);
    for (int i = 0; i < 40; i++)
        length += (size_t)snprintf(
            text + length, sizeof text - length,
            "{\"tools\": [{\"name\": \"f\"}], \"messages\": [{\"role\": \"user\", \"content\": \"%d\"}, {\"role\": "
            "\"assistant\", \"content\": \"%d\"}]}\n",
            i % 7, i % 7 + 1);
    snprintf(data, sizeof data, "%s.jsonl", place.data);
    assert_ok(ah__file_write(data, text, length));
    snprintf(model, sizeof model, "%s-model", place.out);
    assert_ok(ah__folder_make(at(path, model, "additional_chat_templates")));
    write_text(at(path, model, "config.json"), config);
    write_text(at(path, model, "chat_template.jinja"), plain);
    write_text(at(path, model, "additional_chat_templates/rag.jinja"), "other");
    at(path, model, "additional_chat_templates/tool_use.jinja");
    struct ah_train_options options = options_on(&place, data, whole, "whole");
    options.model_path = model;
    options.profile_path = NULL;
    write_text(path, "{{ raise_exception('of tools') }}");
    assert_fails(ah_train(&result, &options), AH_EINPUT, "tool_use.jinja: line 1: the template refuses: of tools");
    write_text(path, of_tools);
    assert_ok(ah_train(&result, &options));
    options.out_dir = part;
    snprintf(part, sizeof part, "%s-part", place.out);
    assert_ok(train_watched(&result, &options, NULL, stop_at_3));
    struct ah_train_options resume = resume_of(&place);
    resume.resume_dir = part;
    resume.profile_path = NULL;
    assert_ok(ah_train(&result, &resume));
    expect_same_file(whole, part, "checkpoint/model.safetensors");
    at(path, part, "checkpoint");
    expect_same_file(model, path, "additional_chat_templates/rag.jinja");
    expect_same_file(model, path, "additional_chat_templates/tool_use.jinja");
    expect_same_file(model, part, "additional_chat_templates/tool_use.jinja"); /* through a link of the folder's */
}

/* The token that ends a text is part of the data: kept when the training goes on, and another one is refused. */
static void an_end_is_kept(void **state)
{
    struct place place;
    struct ah_train_result result;
    char whole[PATH_SIZE], part[PATH_SIZE], none[PATH_SIZE], data[PATH_SIZE], model[PATH_SIZE - 64];
    char path[PATH_SIZE], text[8192], *tokenizer;
    size_t length;
    place_init(&place);
    snprintf(model, sizeof model, "%s-model", place.out);
    assert_int_equal(mkdir(model, 0777), 0);
    snprintf(path, sizeof path, "%s/golden/tokenizers/qwen2/tokenizer.json", ah_test_source());
    assert_ok(ah__file_read(&tokenizer, &length, path, 1 << 20));
    write_text(at(path, model, "tokenizer.json"), tokenizer);
    ah__free(tokenizer);
    write_text(at(path, model, "config.json"),
               "{\"model_type\": \"gpt2\", \"vocab_size\": 1600, \"n_positions\": 16, \"n_embd\": 16, \"n_layer\": 3, "
               "\"n_head\": 2}");
    length = 0;
    for (int i = 0; i < 60; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "{\"text\": \"%d and %d\"}\n", i, i * 7);
    snprintf(data, sizeof data, "%s.jsonl", place.data);
    assert_ok(ah__file_write(data, text, length));
    struct ah_train_options options = options_on(&place, data, whole, "whole");
    options.model_path = model;
    options.profile_path = NULL;
    options.eos = "<|im_end|>";
    assert_ok(ah_train(&result, &options));
    options.out_dir = none;
    snprintf(none, sizeof none, "%s-none", place.out);
    options.eos = NULL;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "--eos");
    options.eos = "<|im_end|>";
    options.out_dir = part;
    snprintf(part, sizeof part, "%s-part", place.out);
    assert_ok(train_watched(&result, &options, NULL, stop_at_3));
    struct ah_train_options resume = resume_of(&place);
    resume.resume_dir = part;
    resume.profile_path = NULL;
    resume.eos = "<|im_start|>";
    assert_fails(ah_train(&result, &resume), AH_ESTALE, "eos: found <|im_start|>, expected <|im_end|> as when");
    resume.eos = NULL;
    assert_ok(ah_train(&result, &resume));
    expect_same_file(whole, part, "checkpoint/model.safetensors");
}

/* Steps that pass over the training part so often, and no steps beside them. */
static void epochs_are_steps(void **state)
{
    struct place place;
    struct ah_train_result result;
    char out[PATH_SIZE];
    place_init(&place);
    struct ah_train_options options = options_on(&place, place.data, out, "epochs");
    options.epochs = 1;
    options.steps = 3;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "epochs: found 1 beside 3 steps, expected one of them");
    options.steps = AH_UNSET;
    options.epochs = 1e-5;
    assert_ok(ah_train(&result, &options));
    assert_int_equal(result.steps_done, 1);
    options.epochs = -1;
    assert_fails(ah_train(&result, &options), AH_EINPUT, "epochs: found -1, expected more than 0");
}

AH_TEST_CASES("train/data", more_templates_are_kept, an_end_is_kept, conversations_train_and_resume, epochs_are_steps,
              examples_train_and_resume, packed_text_is_the_same_text, a_format_is_kept)
