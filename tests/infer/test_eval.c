/* ah_eval against the logits that ah_eval_logits writes, and those against what is asked. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "io/safetensors.h"
#include "source/model_tokenizer.h"
#include "train/tiny.h"

enum { LENGTH = 53, SEQ = 8 };

static struct place place;
static char data[PATH_SIZE];
static char text[LENGTH + 1];

/* A training of a few steps, and a text that is no multiple of a window. */
static int train_once(void **state)
{
    if (place.out[0])
        return 0;
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.out_dir = place.out;
    assert_ok(ah_train(&result, &options));
    for (int i = 0; i < LENGTH; i++)
        text[i] = (char)('a' + i * i % 17);
    at(data, ah_test_folder(), "text");
    write_text(data, text);
    return 0;
}

static struct ah_eval_options options(void)
{
    return (struct ah_eval_options){
        .model_dir = place.out, .data_path = data, .seq = SEQ, .device = "cpu", .threads = 1};
}

/* Of count ids from the text's first on: minus the logarithm of what the softmax gives the next, summed. */
static double nats_of(int first, int count)
{
    char path[PATH_SIZE];
    int32_t ids[SEQ];
    double sum = 0;
    struct ah_safetensors *file;
    struct ah_eval_options given = options();
    for (int i = 0; i < count; i++)
        ids[i] = (unsigned char)text[first + i];
    at(path, ah_test_folder(), "logits.safetensors");
    assert_ok(ah_eval_logits(path, ids, count, &given));
    assert_ok(ah__safetensors_open(&file, path));
    const struct ah_safetensors_tensor *logits = ah__safetensors_find(file, "logits");
    assert_non_null(logits);
    assert_int_equal(logits->dtype, AH_F32);
    assert_int_equal(logits->rank, 2);
    assert_int_equal(logits->dim[0], count);
    for (int i = 0; i < count; i++) {
        float row[256];
        double total = 0;
        int64_t vocab = logits->dim[1];
        assert_true(vocab <= 256);
        memcpy(row, logits->data + (size_t)(i * vocab) * sizeof *row, (size_t)vocab * sizeof *row);
        for (int64_t v = 0; v < vocab; v++)
            total += exp((double)row[v]);
        sum += log(total) - (double)row[(unsigned char)text[first + i + 1]];
    }
    ah__safetensors_close(file);
    return sum;
}

static void every_token_but_the_first(void **state)
{
    double nats = 0;
    for (int first = 0; first < LENGTH - 1; first += SEQ)
        nats += nats_of(first, LENGTH - 1 - first < SEQ ? LENGTH - 1 - first : SEQ);
    for (int64_t batch = 0; batch < 4; batch++) { /* 0: the default */
        struct ah_eval_options given = options();
        struct ah_eval_result result;
        given.batch = batch;
        assert_ok(ah_eval(&result, &given));
        assert_int_equal(result.tokens, LENGTH - 1);
        assert_true(fabs(result.loss - nats / (LENGTH - 1)) < 1e-5 * result.loss);
        assert_true(fabs(result.perplexity - exp(result.loss)) < 1e-9 * result.perplexity);
        assert_true(fabs(result.bits_per_byte - result.loss / log(2)) < 1e-12 * result.loss);
    }
}

/* Shorter than a window: one of what there is. */
static void a_short_text(void **state)
{
    char path[PATH_SIZE];
    struct ah_eval_result result;
    struct ah_eval_options given = options();
    at(path, ah_test_folder(), "short");
    write_text(path, "bcd");
    given.data_path = path;
    given.seq = 0;
    assert_ok(ah_eval(&result, &given));
    assert_int_equal(result.tokens, 2);
    given.seq = SEQ;
    struct ah_eval_result padded;
    assert_ok(ah_eval(&padded, &given));
    assert_int_equal(padded.tokens, 2);
    assert_true(fabs(padded.loss - result.loss) < 1e-6);
}

static int count_calls(int64_t done, int64_t of, void *context)
{
    ++*(int *)context;
    return 0;
}

/* Of files one after the other, whatever the length of each, every token counts alike. */
static void several_files(void **state)
{
    char path[PATH_SIZE], gone[PATH_SIZE], both[3 * PATH_SIZE];
    struct ah_eval_result first, second, all;
    struct ah_eval_options given = options();
    given.seq = 0; /* windows of another length for each */
    assert_ok(ah_eval(&first, &given));
    write_text(at(path, ah_test_folder(), "short"), "bcdefg");
    snprintf(both, sizeof both, "%s,%s,%s", given.data_path, path, given.data_path);
    given.data_path = path;
    assert_ok(ah_eval(&second, &given));
    given.data_path = both;
    assert_ok(ah_eval(&all, &given));
    assert_int_equal(all.tokens, 2 * first.tokens + second.tokens);
    double nats = 2 * first.loss * (double)first.tokens + second.loss * (double)second.tokens;
    assert_true(fabs(all.loss - nats / (double)all.tokens) < 1e-12 * all.loss);
    assert_true(fabs(all.bits_per_byte - all.loss / log(2)) < 1e-12 * all.loss);
    snprintf(both, sizeof both, "%s:2,%s:1", path, path);
    assert_fails(ah_eval(&all, &given), AH_EINPUT, "short: weight: found 2, expected none: every token counts alike");
    snprintf(both, sizeof both, "%s:0.5", path);
    assert_fails(ah_eval(&all, &given), AH_EINPUT, "short: weight: found 0.5, expected none: every token counts alike");
    int calls = 0; /* what cannot be read is told of before anything is evaluated */
    given.on_progress = count_calls;
    given.context = &calls;
    snprintf(both, sizeof both, "%s,%s-gone", path, path);
    assert_fails(ah_eval(&all, &given), AH_EINPUT, "short-gone: cannot open");
    write_text(at(gone, ah_test_folder(), "one"), "b");
    snprintf(both, sizeof both, "%s,%s", path, gone);
    assert_fails(ah_eval(&all, &given), AH_EINPUT, "one: ");
    assert_int_equal(calls, 0);
    snprintf(both, sizeof both, "%s,%s", path, path);
    assert_ok(ah_eval(&all, &given));
    assert_int_equal(calls, 2);
}

/* A folder of config.json and weights is asked as the checkpoint is that they come from. */
static void plain_weights(void **state)
{
    char folder[PATH_SIZE], path[PATH_SIZE], *content;
    size_t length;
    struct ah_eval_result trained, plain;
    struct ah_eval_options given = options();
    assert_ok(ah_eval(&trained, &given));
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    static const char *const names[] = {"config.json", "model.safetensors"};
    for (size_t i = 0; i < AH_LENGTH(names); i++) {
        content = read_text(place.out, names[i], &length);
        assert_ok(ah__file_write(at(path, folder, names[i]), content, length));
        ah__free(content);
    }
    given.model_dir = folder;
    assert_ok(ah_eval(&plain, &given));
    assert_memory_equal(&plain.loss, &trained.loss, sizeof plain.loss);
    char other[PATH_SIZE], logits[PATH_SIZE];
    write_text(at(other, folder, "vocab.txt"), "[PAD]\n"); /* a tokenizer that is not read: ids need none */
    assert_fails(ah_eval(&plain, &given), AH_EINPUT, "vocab.txt: found a tokenizer of a kind that is not read");
    assert_ok(ah_eval_logits(at(logits, folder, "logits.safetensors"), (const int32_t[]){1, 2}, 2, &given));
    assert_int_equal(unlink(other), 0);
    assert_int_equal(unlink(logits), 0);
    assert_int_equal(unlink(path), 0);
    assert_fails(ah_eval(&plain, &given), AH_EINPUT, "found no checkpoint and no weights");
}

/* Beside a tokenizer that begins texts: each window begins with BOS, and every token is predicted, as llama.cpp and
 * lm-eval count it. */
static void windows_begin_with_bos(void **state)
{
    static const char config[] = "{\"model_type\": \"llama\", \"vocab_size\": 1760, \"hidden_size\": 16, "
                                 "\"intermediate_size\": 32, \"num_hidden_layers\": 3, \"num_attention_heads\": 2, "
                                 "\"max_position_embeddings\": 16, \"tie_word_embeddings\": true}";
    char folder[PATH_SIZE], path[PATH_SIZE], out[PATH_SIZE], logits_path[PATH_SIZE], *tokenizer_text;
    size_t length;
    int32_t *ids;
    int64_t count;
    double nats = 0;
    const struct ah_tokenizer *tokenizer;
    struct ah_train_result trained;
    struct ah_eval_result result;
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/golden/tokenizers/llama2/tokenizer.json", ah_test_source());
    assert_ok(ah__file_read(&tokenizer_text, &length, path, 1 << 20));
    write_text(at(path, folder, "tokenizer.json"), tokenizer_text);
    ah__free(tokenizer_text);
    write_text(at(path, folder, "config.json"), config);
    struct ah_train_options train = options_of(&place);
    train.model_path = folder;
    train.profile_path = NULL;
    train.steps = 1;
    train.out_dir = at(out, folder, "out");
    assert_ok(ah_train(&trained, &train));
    assert_ok(ah__model_tokenizer_open(&tokenizer, folder));
    assert_ok(tokenizer->encode_prompt(&ids, &count, tokenizer, "a", 1));
    const int32_t bos = ids[0];
    ah__free(ids);
    assert_ok(tokenizer->encode(&ids, &count, tokenizer, text, LENGTH));
    assert_int_not_equal(ids[0], bos);
    struct ah_eval_options given = options();
    given.model_dir = out;
    for (int64_t first = 0; first < count; first += SEQ) {
        int32_t window[SEQ] = {bos};
        int64_t here = count - first < SEQ ? count - first : SEQ;
        struct ah_safetensors *file;
        memcpy(window + 1, ids + first, (size_t)(here - 1) * sizeof *ids);
        assert_ok(ah_eval_logits(at(logits_path, folder, "logits.safetensors"), window, here, &given));
        assert_ok(ah__safetensors_open(&file, logits_path));
        const struct ah_safetensors_tensor *logits = ah__safetensors_find(file, "logits");
        for (int64_t i = 0; i < here; i++) {
            static float row[1760];
            double total = 0;
            memcpy(row, logits->data + (size_t)i * sizeof row, sizeof row);
            for (size_t v = 0; v < AH_LENGTH(row); v++)
                total += exp((double)row[v]);
            nats += log(total) - (double)row[ids[first + i]];
        }
        ah__safetensors_close(file);
    }
    assert_ok(ah_eval(&result, &given));
    assert_true(result.bos);
    assert_int_equal(result.tokens, count);
    assert_true(fabs(result.loss - nats / (double)count) < 1e-5 * result.loss);
    ah__free(ids);
    ah__tokenizer_close(tokenizer);
}

/* Of examples the completions are predicted, and their ends. */
static void completions_alone(void **state)
{
    char path[PATH_SIZE];
    struct ah_eval_result result;
    struct ah_eval_options given = options();
    at(path, ah_test_folder(), "examples.jsonl");
    write_text(path, "{\"prompt\": \"ab\", \"completion\": \"cd\"}\n{\"prompt\": \"b\", \"completion\": \"efg\"}\n");
    given.data_path = path;
    assert_ok(ah_eval(&result, &given));
    assert_int_equal(result.tokens, 3 + 4);
    given.batch = 1;
    struct ah_eval_result single;
    assert_ok(ah_eval(&single, &given));
    assert_int_equal(single.tokens, result.tokens);
    assert_true(fabs(single.loss - result.loss) < 1e-6);
}

static int stop_early(int64_t done, int64_t windows, void *context)
{
    assert_int_equal(windows, 7);
    return done >= 2;
}

static void refused(void **state)
{
    char path[PATH_SIZE];
    struct ah_eval_result result = {.tokens = 77};
    struct ah_eval_options given = options();
    given.seq = 1000;
    assert_fails(ah_eval(&result, &given), AH_EINPUT, "sequence length: found 1000");
    given = options();
    given.batch = -1;
    assert_fails(ah_eval(&result, &given), AH_EINPUT, "batch: found -1");
    given.batch = 1;
    given.data_path = NULL;
    assert_fails(ah_eval(&result, &given), AH_EINPUT, "data: found none");
    given.data_path = "/no/such/text";
    assert_fails(ah_eval(&result, &given), AH_EINPUT, "/no/such/text");
    given = options();
    given.batch = 1;
    given.on_progress = stop_early;
    assert_fails(ah_eval(&result, &given), AH_ESTOP, "stopped after 2 of 7 windows");
    assert_int_equal(result.tokens, 77);
    at(path, ah_test_folder(), "logits.safetensors");
    const int32_t wrong[] = {1, 2, 5000};
    assert_fails(ah_eval_logits(path, wrong, 3, &given), AH_EINPUT, "ids: found 5000 at 2");
    assert_fails(ah_eval_logits(path, wrong, 0, &given), AH_EINPUT, "ids: found 0");
    assert_int_not_equal(access(path, F_OK), 0);
}

AH_TEST_SUITE("infer/eval", cmocka_unit_test_setup(windows_begin_with_bos, train_once),
              cmocka_unit_test_setup(every_token_but_the_first, train_once),
              cmocka_unit_test_setup(a_short_text, train_once), cmocka_unit_test_setup(several_files, train_once),
              cmocka_unit_test_setup(plain_weights, train_once), cmocka_unit_test_setup(completions_alone, train_once),
              cmocka_unit_test_setup(refused, train_once))
