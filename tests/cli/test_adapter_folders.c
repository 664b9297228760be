/* What lies in an adapter's folder beside its weights, and what merge makes of it all. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "cli/program.h"

enum { VOCAB = 264, FILE_MOST = 1 << 20, PATH_MOST = 300 };

static char where[200]; /* the case's folder */

static void put(const char *folder, const char *name, const char *text)
{
    char path[PATH_MOST];
    snprintf(path, sizeof path, "%s/%s/%s", where, folder, name);
    assert_ok(ah__file_write(path, text, strlen(text)));
}

/* The letter that stands for a byte in byte-level vocabularies, as JSON has it. */
static void letter_add(struct ah_buf *to, int byte)
{
    int extra = 0, letter = byte;
    for (int b = 0; b <= byte; b++)
        if (!((b > 32 && b < 127) || (b > 160 && b != 173))) {
            letter = b == byte ? 256 + extra : letter;
            extra++;
        }
    ah__buf_printf(to, "\"\\u%04x\": %d", letter, byte);
}

/* The bytes, and tokens from id 256 on. */
static void tokenizer_put(const char *folder, const char *first, const char *second)
{
    struct ah_buf text = {0};
    ah__buf_printf(&text, "{\"added_tokens\": [");
    for (int i = 0; i < (second ? 2 : 1); i++)
        ah__buf_printf(
            &text,
            "%s{\"id\": %d, \"content\": \"%s\", \"special\": true, \"single_word\": false, \"lstrip\": false, "
            "\"rstrip\": false, \"normalized\": false}",
            i ? ", " : "", 256 + i, i ? second : first);
    ah__buf_printf(
        &text, "], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}, "
               "\"post_processor\": null, \"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", "
               "\"merges\": [], \"vocab\": {");
    for (int byte = 0; byte < 256; byte++) {
        ah__buf_printf(&text, "%s", byte ? ", " : "");
        letter_add(&text, byte);
    }
    ah__buf_printf(&text, "}}}");
    assert_ok(text.status);
    put(folder, "tokenizer.json", text.text);
    ah__buf_free(&text);
    put(folder, "tokenizer_config.json", "{\"eos_token\": \"<e>\"}");
}

static void make(const char *folder)
{
    char path[PATH_MOST];
    snprintf(path, sizeof path, "%s/%s", where, folder);
    assert_ok(ah__folder_make(path));
}

/* WHERE/NAME of WHERE/FROM, as it lies there. */
static void copy(const char *from, const char *to, const char *name)
{
    char path[PATH_MOST], *text;
    size_t length;
    snprintf(path, sizeof path, "%s/%s/%s", where, from, name);
    assert_ok(ah__file_read(&text, &length, path, FILE_MOST));
    snprintf(path, sizeof path, "%s/%s/%s", where, to, name);
    assert_ok(ah__file_write(path, text, length));
    ah__free(text);
}

static void train(const char *out, const char *options)
{
    run("train --data %s/../README.md --device cpu --batch 2 --seq 16 --val-batches 0 --steps 1 --lr 0.05 --quiet "
        "--out "
        "%s/%s %s",
        ah_test_source(), where, out, options);
    assert_ran(0);
}

/* Of the suite: a model with a tokenizer (base), an adapter of it that was trained here (ad). Of the case: the two
 * files of that alone, in a folder. */
static void begin(const char *folder)
{
    char options[400];
    snprintf(where, sizeof where, "%s", ah_test_shared());
    snprintf(options, sizeof options, "%s/ad/adapter_config.json", where);
    if (!ah__path_exists(options)) {
        make("m");
        snprintf(options, sizeof options,
                 "{\"model_type\": \"llama\", \"vocab_size\": %d, \"hidden_size\": 16, \"intermediate_size\": 24, "
                 "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, "
                 "\"max_position_embeddings\": 64, \"eos_token_id\": 256}",
                 VOCAB);
        put("m", "config.json", options);
        tokenizer_put("m", "<e>", NULL);
        snprintf(options, sizeof options, "--model %s/m", where);
        train("base", options);
        snprintf(options, sizeof options, "--model %s/base --lora-rank 2", where);
        train("ad", options);
    }
    make(folder);
    copy("ad", folder, "adapter_config.json");
    copy("ad", folder, "adapter_model.safetensors");
}

static const char *file(const char *name)
{
    return program_file("%s/%s", where, name);
}

static bool exists(const char *name)
{
    char path[PATH_MOST];
    snprintf(path, sizeof path, "%s/%s", where, name);
    return ah__path_exists(path);
}

/* Whether a file of any bytes holds a text. */
static bool holds(const char *name, const char *words)
{
    char path[PATH_MOST], *text;
    size_t length;
    snprintf(path, sizeof path, "%s/%s", where, name);
    assert_ok(ah__file_read(&text, &length, path, FILE_MOST));
    bool found = memmem(text, length, words, strlen(words)) != NULL;
    ah__free(text);
    return found;
}

static void same_file(const char *a, const char *b)
{
    char path[PATH_MOST], *text[2];
    size_t length[2];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", where, i ? b : a);
        assert_ok(ah__file_read(&text[i], &length[i], path, FILE_MOST));
    }
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(text[0], text[1], length[0]);
    ah__free(text[0]);
    ah__free(text[1]);
}

/* ---- what others read -------------------------------------------------------------------------------------------- */

/* transformers takes a folder with config.json for a whole model; PEFT and others want names, not "all-linear". */
static void a_folder_opens_elsewhere(void **state)
{
    begin("opens");
    assert_false(exists("ad/config.json") || exists("ad/checkpoint/config.json"));
    assert_true(exists("ad/checkpoint/autohete_model.json"));
    const char *config = file("ad/adapter_config.json");
    assert_says(config, "[\"q_proj\", \"k_proj\", \"v_proj\", \"o_proj\", \"gate_proj\", \"up_proj\", \"down_proj\"]");
    char base[PATH_MOST];
    snprintf(base, sizeof base, "\"base_model_name_or_path\": \"%s/base\"", where);
    assert_says(config, base);
}

/* Checkpoints of before have config.json. */
static void older_folders_load(void **state)
{
    char text[1 << 14], *at;
    begin("older");
    snprintf(text, sizeof text, "--model %s/base --lora-rank 2", where);
    train("old", text);
    snprintf(text, sizeof text, "%s", file("old/checkpoint/autohete_model.json"));
    put("old/checkpoint", "config.json", text);
    char path[PATH_MOST];
    snprintf(path, sizeof path, "%s/old/checkpoint/autohete_model.json", where);
    assert_int_equal(remove(path), 0);
    snprintf(text, sizeof text, "%s", file("old/checkpoint/checksums.json"));
    at = strstr(text, "autohete_model.json");
    assert_non_null(at);
    memmove(at + strlen("config.json"), at + strlen("autohete_model.json"),
            strlen(at + strlen("autohete_model.json")) + 1);
    memcpy(at, "config.json", strlen("config.json"));
    put("old/checkpoint", "checksums.json", text);
    run("generate --model %s/old --prompt a --tokens 2", where);
    assert_ran(0);
    run("train --resume %s/old --steps 2 --quiet", where);
    assert_ran(0);
    assert_true(exists("old/checkpoint/autohete_model.json"));
}

/* The name is for others; here its place is known. */
static void a_model_is_called_as_others_call_it(void **state)
{
    char options[PATH_MOST];
    begin("called");
    snprintf(options, sizeof options, "--model %s/base --lora-rank 2 --base-name Someone/Some-Model", where);
    train("named", options);
    assert_says(file("named/adapter_config.json"), "\"Someone/Some-Model\"");
    run("generate --model %s/named --prompt a --tokens 2", where);
    assert_ran(0);
    run("train --resume %s/named --steps 2 --quiet", where);
    assert_ran(0);
    assert_says(file("named/adapter_config.json"), "\"Someone/Some-Model\"");
}

/* ---- what is beside an adapter ----------------------------------------------------------------------------------- */

static void its_tokenizer_is_used(void **state)
{
    static const char *const commands[] = {
        "generate --model %s/base --adapter %s/peft --prompt '<t><t>x' --tokens 6 --json",
        "eval --model %s/base --adapter %s/peft --data %s/text.txt --json",
        "merge --model %s/base --adapter %s/peft --out %s/merged"};
    static const char note[] =
        "peft: the adapter's tokenizer is used, which is not the model's: token 257 is '<t>' in it "
        "and 'nothing' in the model's";
    char kept[2][4096];
    begin("peft");
    put(".", "text.txt", "<t><t> and <t> are tokens<e> or not <t>");
    tokenizer_put("peft", "<e>", "<t>");
    for (size_t i = 0; i < AH_LENGTH(commands); i++) {
        char command[400];
        snprintf(command, sizeof command, commands[i], where, where, where);
        run("%s", command);
        assert_ran(0);
        assert_says(ran.err, note);
        if (i < 2)
            snprintf(kept[i], sizeof kept[i], "%s", ran.out);
    }
    run("generate --model %s/merged --prompt '<t><t>x' --tokens 6 --json", where);
    assert_string_equal(ran.out, kept[0]);
    assert_null(strstr(ran.err, "note"));
    run("eval --model %s/merged --data %s/text.txt --json", where, where);
    assert_string_equal(strstr(ran.out, "\"tokens\""), strstr(kept[1], "\"tokens\""));
    run("train --model %s/base --adapter %s/peft --data %s/text.txt --device cpu --batch 1 --seq 8 --steps 1 "
        "--val-batches 0 --out %s/on",
        where, where, where, where);
    assert_ran(0);
    assert_says(ran.err, note);
    assert_says(ran.err, "/base, which is here alone: --base-name OWNER/NAME");
    same_file("on/tokenizer.json", "peft/tokenizer.json");
    run("train --resume %s/on --steps 2 --quiet", where);
    assert_ran(0);
}

/* Rows that the model's embedding does not have. */
static void its_tokenizer_fits_the_embedding(void **state)
{
    begin("wide");
    tokenizer_put("wide", "<e>", "<t>");
    char text[1 << 14];
    snprintf(text, sizeof text, "%s", file("wide/tokenizer.json"));
    char *at = strstr(text, "257");
    assert_non_null(at);
    memcpy(at, "270", 3);
    put("wide", "tokenizer.json", text);
    run("generate --model %s/base --adapter %s/wide --prompt a --tokens 2", where, where);
    assert_ran(2);
    assert_says(ran.err, "wide: the adapter's tokenizer has token 270, '<t>', expected ids below 264, the rows of the "
                         "model's embedding");
}

static void its_template_is_used(void **state)
{
    begin("tpl");
    put(".", "c.json", "[{\"role\": \"user\", \"content\": \"hi\"}]");
    make("t");
    copy("m", "t", "config.json");
    copy("m", "t", "tokenizer.json");
    copy("m", "t", "tokenizer_config.json");
    put("t", "chat_template.jinja", "[base]{{ messages[0].content }}");
    copy("base", "t", "model.safetensors");
    run("chat --model %s/t --adapter %s/tpl --render %s/c.json", where, where, where);
    assert_string_equal(ran.out, "[base]hi");
    put("tpl", "tokenizer_config.json", "{\"chat_template\": \"[text]{{ messages[0].content }}\"}");
    run("chat --model %s/t --adapter %s/tpl --render %s/c.json", where, where, where);
    assert_string_equal(ran.out, "[text]hi");
    run("merge --model %s/t --adapter %s/tpl --out %s/text", where, where, where);
    assert_ran(0);
    run("chat --model %s/text --render %s/c.json", where, where);
    assert_string_equal(ran.out, "[text]hi");
    assert_says(file("text/tokenizer_config.json"), "\"<e>\""); /* the model's, which has the tokenizer */
    put("tpl", "chat_template.jinja", "[file]{{ messages[0].content }}");
    run("merge --model %s/t --adapter %s/tpl --out %s/file", where, where, where);
    assert_ran(0);
    run("chat --model %s/file --render %s/c.json", where, where);
    assert_string_equal(ran.out, "[file]hi");
    run("train --model %s/t --lora-rank 2 --data %s/../README.md --device cpu --batch 1 --seq 8 --steps 1 "
        "--val-batches 0 "
        "--chat-template %s/tpl/chat_template.jinja --quiet --out %s/own",
        where, ah_test_source(), where, where);
    assert_ran(0);
    run("chat --model %s/own --render %s/c.json", where, where);
    assert_string_equal(ran.out, "[file]hi");
    run("chat --model %s/t --adapter %s/own --render %s/c.json", where, where, where);
    assert_string_equal(ran.out, "[file]hi");
}

/* ---- where it lies ----------------------------------------------------------------------------------------------- */

static void one_level_below(void **state)
{
    begin("below");
    make("outer/checkpoint-100");
    copy("below", "outer/checkpoint-100", "adapter_config.json");
    copy("below", "outer/checkpoint-100", "adapter_model.safetensors");
    run("eval --model %s/base --adapter %s/outer --ids 1,2,3 --logits %s/x", where, where, where);
    assert_ran(0);
    run("eval --model %s/base --adapter %s/below --ids 1,2,3 --logits %s/y", where, where, where);
    assert_ran(0);
    same_file("x", "y");
    run("train --model %s/base --adapter %s/outer --data %s/../README.md --device cpu --batch 1 --seq 8 --steps 1 "
        "--val-batches 0 --quiet",
        where, where, ah_test_source());
    assert_ran(0);
    make("outer/checkpoint-200");
    copy("below", "outer/checkpoint-200", "adapter_config.json");
    run("eval --model %s/base --adapter %s/outer --ids 1,2,3 --logits %s/x", where, where, where);
    assert_refused("outer: found no adapter_config.json but some in folders within, expected one of those: ");
}

static void other_kinds_are_told_what_to_do(void **state)
{
    static const struct {
        const char *name, *config, *says;
    } cases[] = {
        {"adapter_model.bin", "{\"peft_type\": \"LORA\", \"r\": 2, \"target_modules\": [\"q_proj\"]}",
         "other/adapter_model.bin: found a pickled adapter, which is not read since a pickle may run any code; "
         "expected "
         "adapter_model.safetensors, as Python makes of it by peft.PeftModel.from_pretrained(MODEL, FOLDER)"},
        {"adapters.safetensors",
         "{\"fine_tune_type\": \"lora\", \"num_layers\": 2, \"lora_parameters\": {\"rank\": 2}}",
         "key 'fine_tune_type': found an adapter of MLX, expected PEFT's; mlx_lm.fuse makes a model of it"},
        {"README.md", "{\"peft_type\": \"LORA\", \"r\": 2, \"target_modules\": [\"q_proj\"]}",
         "other/adapter_model.safetensors: found no such file, expected the adapter's weights"},
        {"README.md", "{\"peft_type\": \"LORA\", \"use_dora\": true}",
         "key 'use_dora': found true, expected nothing: it is not supported; PEFT's merge_and_unload()"},
    };
    begin("kinds");
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        char path[PATH_MOST];
        snprintf(path, sizeof path, "%s/other", where);
        assert_ok(ah__folder_remove(path));
        make("other");
        put("other", cases[i].name, "x");
        put("other", "adapter_config.json", cases[i].config);
        run("eval --model %s/base --adapter %s/other --ids 1,2,3 --logits %s/x", where, where, where);
        assert_refused(cases[i].says);
    }
    put("m", "q.json", "{\"model_type\": \"llama\", \"quantization_config\": {\"load_in_4bit\": true}}");
    run("plan --model %s/m/q.json", where);
    assert_refused(
        "the model as it was before it was quantized; --frozen nf4 keeps what adapters leave frozen in 4 bits");
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

/* What was trained in fp32 is not rounded, whatever the model's weights are. */
static void merge_keeps_what_was_trained(void **state)
{
    static const struct {
        const char *model, *adapter, *options, *type, *says;
    } cases[] = {
        {"base", "ad", "", "\"F32\"", "merged0: wrote model.safetensors, 12368 parameters in fp32, "},
        {"half", "exact", "", "\"F32\"", " parameters in fp32, "},
        {"half", "rounded", "", "\"BF16\"",
         "(rounded to the model's own type; --dtype fp32 rounds nothing), and 3 files"},
        {"half", "rounded", "--dtype fp32", "\"F32\"", " parameters in fp32, "},
        {"half", "rounded", "--dtype bf16", "\"BF16\"", " KiB, and 3 files of its tokenizer and templates; --model "},
    };
    char words[300];
    begin("kept");
    snprintf(words, sizeof words, "--model %s/m --dtype bf16", where);
    train("half", words);
    snprintf(words, sizeof words, "--model %s/half --lora-rank 2", where);
    train("exact", words);
    snprintf(words, sizeof words, "--model %s/half --lora-rank 2 --dtype bf16", where);
    train("rounded", words);
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        run("merge --model %s/%s --adapter %s/%s --out %s/merged%zu %s", where, cases[i].model, where, cases[i].adapter,
            where, i, cases[i].options);
        assert_ran(0);
        assert_says(ran.out, cases[i].says);
        snprintf(words, sizeof words, "merged%zu/model.safetensors", i);
        assert_true(holds(words, cases[i].type));
    }
}

static void a_merge_that_was_killed_is_in_nobodys_way(void **state)
{
    begin("killed");
    make("out.tmp");
    put("out.tmp", "model.safetensors", "half");
    put("out.tmp", "tokenizer.json", "{");
    run("merge --model %s/ad --out %s/out", where, where);
    assert_ran(0);
    assert_false(exists("out.tmp"));
    make("second.tmp");
    put("second.tmp", "thesis.tex", "mine");
    run("merge --model %s/ad --out %s/second", where, where);
    assert_refused("second.tmp/thesis.tex: found a file of others where the folder is to be made, expected nothing");
    assert_true(exists("second.tmp/thesis.tex"));
    run("merge --model %s/nowhere --out %s/third", where, where);
    assert_ran(2);
    assert_false(exists("third") || exists("third.tmp"));
}

AH_TEST_CASES("cli/adapter_folders", a_folder_opens_elsewhere, older_folders_load, a_model_is_called_as_others_call_it,
              its_tokenizer_is_used, its_tokenizer_fits_the_embedding, its_template_is_used, one_level_below,
              other_kinds_are_told_what_to_do, merge_keeps_what_was_trained, a_merge_that_was_killed_is_in_nobodys_way)
