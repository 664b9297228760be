/* autohete tokenize, and training and generation with a model's own tokenizer. */
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cli/program.h"
#include "gguf/write.h"

static const char *golden(const char *kind)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s", ah_test_source(), kind);
    return path;
}

static void text_to_ids_and_back(void **state)
{
    char ids[512];
    snprintf(ids, sizeof ids, "%s/ids", folder());
    run("tokenize --model %s < %s/golden/tokenizers/corpus.txt", golden("llama2"), ah_test_source());
    assert_ran(0);
    assert_ok(ah__file_write(ids, ran.out, strlen(ran.out)));
    run("tokenize --model %s --decode < %s", golden("llama2"), ids);
    assert_ran(0);
    assert_string_equal(program_file("%s/golden/tokenizers/corpus.txt", ah_test_source()), ran.out);
}

static void what_is_shown(void **state)
{
    run("tokenize --model %s --json < /dev/null", golden("llama2"));
    assert_ran(0);
    assert_string_equal(ran.out, "{\"ids\": [1], \"tokens\": [\"<s>\"]}\n");
    run("tokenize --model %s --document < /dev/null", golden("llama2"));
    assert_string_equal(ran.out, "\n");
    char path[512];
    snprintf(path, sizeof path, "%s/ids", folder());
    assert_ok(ah__file_write(path, "a b", 3));
    run("tokenize --model %s --json < %s", folder(), path);
    assert_ran(2);
    assert_says(ran.err, "found no tokenizer and no config.json with a vocab_size, expected one of them");
    run("tokenize --model %s/none --json < %s", folder(), path);
    assert_ran(2);
    assert_says(ran.err, "/none: cannot open: No such file or directory");
    char config[512];
    snprintf(config, sizeof config, "%s/config.json", folder());
    assert_ok(ah__file_write(config, "{\"vocab_size\": 256}", 19));
    run("tokenize --model %s --json < %s", folder(), path); /* no tokenizer there: bytes */
    assert_string_equal(ran.out, "{\"ids\": [97, 32, 98], \"tokens\": [\"a\", \"<0x20>\", \"b\"]}\n");
    assert_ok(ah__file_write(path, "1 2\n231", 7));
    run("tokenize --model %s --decode --special < %s/ids", golden("llama2"), folder());
    assert_string_equal(ran.out, "<s></s>\xef\xbf\xbd");
    run("tokenize --model %s --decode --json < %s/ids", golden("llama2"), folder());
    assert_string_equal(ran.out, "{\"text\": \"\xef\xbf\xbd\"}\n");
    assert_ok(ah__file_write(path, "97 0 200 194 34", 15)); /* bytes again: a zero, and two that are no UTF-8 */
    run("tokenize --model %s --decode --json < %s", folder(), path);
    assert_string_equal(ran.out, "{\"text\": \"a\\u0000\\ufffd\\ufffd\\\"\"}\n");
}

static void mistakes(void **state)
{
    char path[512];
    snprintf(path, sizeof path, "%s/ids", folder());
    assert_ok(ah__file_write(path, "1 x2", 4));
    run("tokenize --model %s --decode < %s", golden("gpt2"), path);
    assert_ran(2);
    assert_says(ran.err, "standard input: id 1: found 'x2', expected a whole number from 0 to");
    assert_ok(ah__file_write(path, "1500", 4));
    run("tokenize --model %s --decode < %s", golden("gpt2"), path);
    assert_ran(2);
    assert_says(ran.err, "token 0: found 1500, expected below the tokenizer's vocabulary of 1500");
    run("tokenize < /dev/null");
    assert_ran(2);
    assert_says(ran.err, "--model is missing");
}

/* The tokenizer goes from the model's folder through training into the checkpoint, and from there into what is
 * written. */
static void a_model_with_a_tokenizer(void **state)
{
    static const char config[] = "{\"model_type\": \"gpt2\", \"vocab_size\": 1759, \"n_positions\": 16, \"n_embd\": 8, "
                                 "\"n_layer\": 1, \"n_head\": 2, \"bos_token_id\": 1, \"eos_token_id\": 2}";
    char path[512];
    snprintf(path, sizeof path, "%s/with", folder());
    assert_ok(ah__folder_make(path));
    snprintf(path, sizeof path, "%s/with/config.json", folder());
    assert_ok(ah__file_write(path, config, sizeof config - 1));
    char *text;
    size_t length;
    snprintf(path, sizeof path, "%s/tokenizer.json", golden("llama2"));
    assert_ok(ah__file_read(&text, &length, path, 1 << 20));
    snprintf(path, sizeof path, "%s/with/tokenizer.json", folder());
    assert_ok(ah__file_write(path, text, length));
    run("train --model %s/with --data %s/golden/tokenizers/corpus.txt --device cpu --batch 2 --seq 16 --steps 2 "
        "--plan resident --out %s/with-out",
        folder(), ah_test_source(), folder());
    assert_ran(0);
    assert_string_equal(program_file("%s/with-out/tokenizer.json", folder()), text);
    ah__free(text);
    run("train --resume %s/with-out --steps 3", folder());
    assert_ran(0);
    run("generate --model %s/with-out --prompt 'free and equal' --tokens 5 --json", folder());
    assert_ran(0);
    assert_says(ran.out, "{\"prompt\": \"free and equal\", \"tokens\": [");
    /* another tokenizer makes other data of the same file */
    assert_ok(ah__file_write(path, "{}", 2));
    run("train --resume %s/with-out --model %s/with --steps 4", folder(), folder());
    assert_ran(2);
    assert_says(ran.err, "tokenizer.json: key 'model': found nothing, expected an object");
}

/* A GGUF file that does not say how its text is split is told of by all that read the text. */
static void a_split_by_default_is_told(void **state)
{
    static const char *const commands[] = {"tokenize --model %s < /dev/null", "generate --model %s --prompt a",
                                           "chat --model %s < /dev/null", "eval --model %s --data /dev/null"};
    static const char *const tokens[] = {"1", "2", "12"};
    char path[512];
    struct ah_gguf_writer *writer;
    snprintf(path, sizeof path, "%s/split.gguf", folder());
    assert_ok(ah__gguf_writer_new(&writer));
    ah__gguf_put_text(writer, "tokenizer.ggml.model", "gpt2");
    ah__gguf_put_array(writer, "tokenizer.ggml.tokens", AH_GGUF_ITEMS_TEXT, AH_LENGTH(tokens));
    for (size_t i = 0; i < AH_LENGTH(tokens); i++)
        ah__gguf_item_text(writer, tokens[i], strlen(tokens[i]));
    ah__gguf_put_array(writer, "tokenizer.ggml.merges", AH_GGUF_ITEMS_TEXT, 1);
    ah__gguf_item_text(writer, "1 2", 3);
    assert_ok(ah__gguf_writer_open(writer, path));
    assert_ok(ah__gguf_writer_close(writer));
    ah__gguf_writer_free(writer);
    for (size_t i = 0; i < AH_LENGTH(commands); i++) {
        char line[600];
        snprintf(line, sizeof line, commands[i], path);
        run("%s", line);
        assert_says(ran.err, "autohete: note: ");
        assert_says(ran.err, "split.gguf: key 'tokenizer.ggml.pre': found nothing; text is split by llama.cpp's");
    }
}

AH_TEST_CASES("cli/tokenize", a_split_by_default_is_told, text_to_ids_and_back, what_is_shown, mistakes,
              a_model_with_a_tokenizer)
