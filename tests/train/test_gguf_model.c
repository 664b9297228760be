/* Models in GGUF files: each parameter has the values that the script knows (tests/golden/gguf_files.py), the
 * configuration is a family's, and files train, generate and become folders. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "gguf/write.h"
#include "golden/crc.h"
#include "source/model_files.h"
#include "source/model_tokenizer.h"
#include "source/weight_tensors.h"
#include "train/tiny.h"

static const char *golden(char path[512], const char *name, const char *ending)
{
    snprintf(path, 512, "%s/golden/gguf/%s%s", ah_test_source(), name, ending);
    return path;
}

static struct ah_shape shape_of(int64_t *count, const struct ah_weight_tensor *tensor)
{
    struct ah_shape shape = {.rank = tensor->rank};
    *count = 1;
    for (int i = 0; i < tensor->rank; i++) {
        shape.dim[i] = tensor->dim[i];
        *count *= tensor->dim[i];
    }
    return shape;
}

static uint32_t tensor_crc(const struct ah_weight_tensors *tensors, const struct ah_weight_tensor *tensor)
{
    int64_t count;
    struct ah_shape shape = shape_of(&count, tensor);
    float *values;
    assert_ok(ah__new(&values, (size_t)count, sizeof *values));
    assert_ok(ah__weight_tensor_read(values, tensors, tensor, shape));
    uint32_t crc = crc_add(0, values, (size_t)count * sizeof *values);
    ah__free(values);
    return crc;
}

static float *values_of(const struct ah_weight_tensors *tensors, size_t i, int64_t *count)
{
    const struct ah_weight_tensor *tensor = &tensors->tensors[i];
    struct ah_shape shape = shape_of(count, tensor);
    float *values;
    assert_ok(ah__new(&values, (size_t)*count, sizeof *values));
    assert_ok(ah__weight_tensor_read(values, tensors, tensor, shape));
    return values;
}

/* But for the sign of zeros, which a step of no length may change. */
static void expect_same_values(const struct ah_weight_tensors *a, const struct ah_weight_tensors *b, size_t i)
{
    int64_t count, other;
    float *left = values_of(a, i, &count), *right = values_of(b, i, &other);
    assert_int_equal(count, other);
    for (int64_t k = 0; k < count; k++)
        if (left[k] < right[k] || left[k] > right[k])
            fail_msg("%s: value %d: found %.9g, expected %.9g", a->tensors[i].name, (int)k, (double)right[k],
                     (double)left[k]);
    ah__free(left);
    ah__free(right);
}

static void expect_near_values(const struct ah_weight_tensors *a, const struct ah_weight_tensors *b, size_t i,
                               double share)
{
    int64_t count, other;
    float *left = values_of(a, i, &count), *right = values_of(b, i, &other);
    double most = 0;
    for (int64_t k = 0; k < count; k++)
        most = fmax(most, fabs((double)left[k]));
    for (int64_t k = 0; k < count; k++)
        if (!(fabs((double)left[k] - (double)right[k]) <= share * most))
            fail_msg("%s: value %d: found %.9g, expected %.9g", a->tensors[i].name, (int)k, (double)right[k],
                     (double)left[k]);
    ah__free(left);
    ah__free(right);
}

/* A folder of a tiny Llama that was trained, with the tokenizer of tests/golden/tokenizers/qwen2 put into it. */
#define SIZES                                                                                                          \
    "\"vocab_size\": 1760, \"hidden_size\": 32, \"intermediate_size\": 48, \"num_hidden_layers\": 4, "                 \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"max_position_embeddings\": 64"

#define OLMOE_SIZES                                                                                                    \
    "\"vocab_size\": 1760, \"hidden_size\": 32, \"intermediate_size\": 48, \"num_hidden_layers\": 4, "                 \
    "\"num_attention_heads\": 4, \"max_position_embeddings\": 64"

static const char llama_config[] =
    "{\"model_type\": \"llama\", " SIZES ", \"rope_theta\": 500000, \"tie_word_embeddings\": true, "
    "\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
    "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 8192}}";

static void folder_with(char folder[PATH_SIZE], const char *config, const char *tokenizer)
{
    struct place place;
    struct ah_train_result result;
    char path[512], model[PATH_SIZE], file[PATH_SIZE], *text;
    size_t length;
    place_init(&place);
    snprintf(model, sizeof model, "%s", ah_test_folder());
    write_text(at(file, model, "config.json"), config);
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s/tokenizer.json", ah_test_source(), tokenizer);
    assert_ok(ah__file_read(&text, &length, path, 1 << 20));
    write_text(at(file, model, "tokenizer.json"), text);
    ah__free(text);
    struct ah_train_options options = options_of(&place);
    options.model_path = model;
    options.profile_path = NULL;
    options.steps = 1;
    assert_ok(ah_train(&result, &options));
    snprintf(folder, PATH_SIZE, "%s/checkpoint", place.out);
}

static void folder_of(char folder[PATH_SIZE], const char *config)
{
    folder_with(folder, config, "qwen2");
}

static void exported_folder(char folder[PATH_SIZE])
{
    folder_of(folder, llama_config);
}

static void check_values(const char *name)
{
    char path[512], file[512], tensor_name[128], *text;
    struct ah_weight_tensors tensors;
    size_t length, count = 0;
    assert_ok(ah__weight_tensors_open(&tensors, golden(file, name, ".gguf")));
    assert_ok(ah__file_read(&text, &length, golden(path, name, ".crc"), 1 << 16));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), count++) {
        uint32_t expected;
        assert_int_equal(sscanf(line, "%127s %" SCNu32, tensor_name, &expected), 2);
        const struct ah_weight_tensor *tensor = ah__weight_tensors_find(&tensors, tensor_name);
        if (!tensor || tensor_crc(&tensors, tensor) != expected)
            fail_msg("%s: %s: %s", name, tensor_name, tensor ? "other values" : "no such tensor");
    }
    assert_int_equal(tensors.count, count);
    ah__free(text);
    ah__weight_tensors_close(&tensors);
}

static void parameters_have_their_values(void **state)
{
    check_values("llama");
    check_values("qwen3");
    check_values("gpt2");
    check_values("gptneox");
}

static void check_config(const char *name, const char *const *parts)
{
    char path[512];
    struct ah_model *model;
    assert_ok(ah_model_load(&model, golden(path, name, ".gguf")));
    for (; *parts; parts++)
        if (!strstr(ah_model_get(model)->config, *parts))
            fail_msg("%s: found no '%s' in %s", name, *parts, ah_model_get(model)->config);
    assert_null(ah_model_note(model));
    ah_model_free(model);
}

static void configuration_is_the_families(void **state)
{
    static const char *const llama[] = {"\"model_type\": \"llama\"",
                                        "\"vocab_size\": 268",
                                        "\"hidden_size\": 32",
                                        "\"rms_norm_eps\": 1e-05",
                                        "\"rope_theta\": 500000",
                                        "\"rope_type\": \"llama3\"",
                                        "\"factor\": 8",
                                        "\"attention_bias\": true",
                                        "\"original_max_position_embeddings\": 8192",
                                        "\"tie_word_embeddings\": true",
                                        "\"mlp_bias\": false",
                                        NULL};
    static const char *const qwen3[] = {"\"model_type\": \"qwen3\"", "\"head_dim\": 16",
                                        "\"tie_word_embeddings\": false", "\"num_key_value_heads\": 2", NULL};
    check_config("llama", llama);
    check_config("qwen3", qwen3);
}

/* Bytes are tokens, "a" and its neighbours merge, BOS stands in front of a prompt. */
static void tokenizer_is_in_the_file(void **state)
{
    static const int32_t expected[] = {1, 267, 262, 259, 103}; /* <s> _abc c _ <0x64> */
    char path[512];
    const struct ah_tokenizer *tokenizer;
    int32_t *ids;
    int64_t count;
    assert_ok(ah__model_tokenizer_open(&tokenizer, golden(path, "llama", ".gguf")));
    assert_ok(tokenizer->encode_prompt(&ids, &count, tokenizer, "abcc d", 6));
    assert_int_equal(count, 5);
    assert_memory_equal(ids, expected, sizeof expected);
    assert_true(tokenizer->has_eos && tokenizer->eos == 2 && tokenizer->stop_count == 1);
    ah__free(ids);
    ah__tokenizer_close(tokenizer);
}

/* A training from a file is one from a folder: its checkpoint has all that a model needs, and gives the same values. */
static void a_file_trains_and_becomes_a_folder(void **state)
{
    struct place place;
    char path[512], saved[PATH_SIZE];
    struct ah_train_result result;
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", "generation_config.json"};
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.model_path = golden(path, "llama", ".gguf");
    options.profile_path = NULL;
    options.lr = 0;
    options.steps = 1;
    assert_ok(ah_train(&result, &options));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        assert_true(ah__path_exists(at(saved, place.out, files[i])));
    struct ah_weight_tensors before, after;
    assert_ok(ah__weight_tensors_open(&before, path));
    assert_ok(ah__weight_tensors_open(&after, at(saved, place.out, "model.safetensors")));
    assert_int_equal(before.count, after.count);
    for (size_t i = 0; i < before.count; i++) {
        assert_string_equal(before.tensors[i].name, after.tensors[i].name);
        expect_same_values(&before, &after, i);
    }
    ah__weight_tensors_close(&before);
    ah__weight_tensors_close(&after);
}

/* A folder with a tokenizer of its own becomes a file with the same parameters, configuration and ids. What had one
 * added to it has lost bits of what is far below one. */
static void expect_round_trip(const char *text, bool adds_one)
{
    char path[512], folder[PATH_SIZE], file[PATH_SIZE], *config;
    struct ah_model *model, *again;
    struct ah_weight_tensors before, after;
    folder_of(folder, text);
    assert_ok(ah_export_gguf(at(file, folder, "out.gguf"), folder, "f32"));
    assert_ok(ah_model_load(&model, at(path, folder, "config.json")));
    assert_ok(ah__strdup(&config, ah_model_get(model)->config));
    assert_ok(ah_model_load(&again, file));
    assert_string_equal(config, ah_model_get(again)->config);
    assert_null(ah_model_note(again));
    assert_ok(ah__weight_tensors_open(&before, at(path, folder, "model.safetensors")));
    assert_ok(ah__weight_tensors_open(&after, file));
    assert_int_equal(before.count, after.count);
    for (size_t i = 0; i < before.count; i++)
        if (adds_one && strstr(before.tensors[i].name, "norm.weight"))
            expect_near_values(&before, &after, i, 0x1p-24 / 0.004); /* weights are around 0.005 */
        else
            expect_same_values(&before, &after, i);
    ah__weight_tensors_close(&before);
    ah__weight_tensors_close(&after);
    ah__free(config);
    ah_model_free(model);
    ah_model_free(again);
}

static void a_folder_becomes_a_file(void **state)
{
    static const char *const families[] = {
        llama_config,
        "{\"model_type\": \"mistral\", " SIZES ", \"sliding_window\": 5}",
        "{\"model_type\": \"qwen2\", " SIZES ", \"tie_word_embeddings\": true}",
        "{\"model_type\": \"gemma\", " SIZES ", \"head_dim\": 12}",
        "{\"model_type\": \"gemma2\", " SIZES
        ", \"head_dim\": 10, \"query_pre_attn_scalar\": 10, \"sliding_window\": 5}",
        "{\"model_type\": \"gemma3_text\", " SIZES ", \"head_dim\": 10, \"query_pre_attn_scalar\": 10, "
        "\"final_logit_softcapping\": 20, \"rope_local_base_freq\": 5000}",
        "{\"model_type\": \"phi3\", " SIZES ", \"sliding_window\": 5, \"original_max_position_embeddings\": 64}",
        "{\"model_type\": \"phi3\", " SIZES ", \"partial_rotary_factor\": 0.75, \"tie_word_embeddings\": true, "
        "\"original_max_position_embeddings\": 32, \"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1, "
        "1.1, 1.25], "
        "\"long_factor\": [1.08, 3, 7]}}",
        "{\"model_type\": \"granite\", " SIZES ", \"embedding_multiplier\": 12, \"residual_multiplier\": 0.22, "
        "\"attention_multiplier\": 0.015625, \"logits_scaling\": 8}",
        "{\"model_type\": \"olmo2\", " SIZES "}",
        "{\"model_type\": \"olmo3\", " SIZES ", \"sliding_window\": 5, \"attention_bias\": true, \"rope_scaling\": "
        "{\"rope_type\": \"yarn\", \"factor\": 8, \"original_max_position_embeddings\": 16}}",
        "{\"model_type\": \"qwen3\", " SIZES ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 2.5, "
        "\"original_max_position_embeddings\": 32}}",
        "{\"model_type\": \"smollm3\", " SIZES "}",
        "{\"model_type\": \"qwen3_moe\", " SIZES ", \"head_dim\": 12, \"num_experts\": 5, \"num_experts_per_tok\": 2, "
        "\"moe_intermediate_size\": 24, \"norm_topk_prob\": true, \"attention_bias\": true}",
        "{\"model_type\": \"mixtral\", " SIZES ", \"num_local_experts\": 4, \"num_experts_per_tok\": 2}",
        "{\"model_type\": \"granitemoe\", " SIZES ", \"num_local_experts\": 5, \"num_experts_per_tok\": 2, "
        "\"embedding_multiplier\": 12, \"attention_multiplier\": 0.015625, \"logits_scaling\": 6}",
        "{\"model_type\": \"qwen2_moe\", " SIZES ", \"num_experts\": 4, \"num_experts_per_tok\": 2, "
        "\"moe_intermediate_size\": 24, \"shared_expert_intermediate_size\": 40}",
        "{\"model_type\": \"gpt_oss\", " SIZES
        ", \"head_dim\": 8, \"num_local_experts\": 4, \"num_experts_per_tok\": 2, "
        "\"sliding_window\": 7, \"layer_types\": [\"full_attention\", \"sliding_attention\"]}",
        "{\"model_type\": \"olmoe\", " OLMOE_SIZES ", \"num_experts\": 6, \"num_experts_per_tok\": 3}",
    };
    for (size_t i = 0; i < AH_LENGTH(families); i += ah_test_samples() ? 3 : 1)
        expect_round_trip(families[i], strstr(families[i], "\"gemma"));
}

static void expect_same_ids(const char *a, const char *b, const char *text)
{
    const struct ah_tokenizer *left, *right;
    int32_t *ids, *others;
    int64_t count, other;
    assert_ok(ah__model_tokenizer_open(&left, a));
    assert_ok(ah__model_tokenizer_open(&right, b));
    assert_ok(left->encode_prompt(&ids, &count, left, text, strlen(text)));
    assert_ok(right->encode_prompt(&others, &other, right, text, strlen(text)));
    assert_int_equal(count, other);
    assert_memory_equal(ids, others, (size_t)count * sizeof *ids);
    ah__free(ids);
    ah__free(others);
    ah__tokenizer_close(left);
    ah__tokenizer_close(right);
}

/* Of a file into a folder, whose tokenizer.json has merges, and into a file, which has scores again. */
static void pieces_of_sentencepiece_go_both_ways(void **state)
{
    char path[512], folder[PATH_SIZE], file[PATH_SIZE];
    struct place place;
    struct ah_train_result result;
    struct ah_gguf *again;
    const char *model = NULL;
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    options.model_path = golden(path, "llama", ".gguf");
    options.profile_path = NULL;
    options.steps = 1;
    assert_ok(ah_train(&result, &options));
    snprintf(folder, PATH_SIZE, "%s/checkpoint", place.out);
    assert_ok(ah_export_gguf(at(file, folder, "out.gguf"), folder, "f16"));
    assert_ok(ah__gguf_open(&again, file));
    assert_ok(ah__gguf_text(&model, again, "tokenizer.ggml.model"));
    assert_string_equal(model, "llama");
    assert_true(ah__gguf_has(again, "tokenizer.ggml.scores"));
    ah__gguf_close(again);
    expect_same_ids(path, file, "abc  ab a b\nc\xc3\xa9 abcabc");
    expect_same_ids(path, file, "");
}

/* Nothing is left of a file that is refused (tests/gguf/test_llamacpp.c has the configurations). */
static void what_llama_cpp_lacks_is_not_written(void **state)
{
    char folder[PATH_SIZE], file[PATH_SIZE];
    folder_with(folder, llama_config, "llama2");
    assert_fails(ah_export_gguf(at(file, folder, "out.gguf"), folder, "f32"), AH_EINPUT, "key 'model.merges': found ");
    assert_false(ah__path_exists(file));
}

/* A file with a few keys and no tensors, which is what is wrong with it where it is no part. */
static void expect_part_refused(const char *kind, uint32_t parts, const char *words)
{
    char path[PATH_SIZE];
    struct ah_gguf_writer *writer;
    struct ah_model *model;
    bool whole = parts == 1;
    snprintf(path, sizeof path, "%s/part.gguf", ah_test_folder());
    assert_ok(ah__gguf_writer_new(&writer));
    ah__gguf_put_text(writer, "general.type", kind);
    ah__gguf_put_int(writer, "split.count", parts);
    ah__gguf_put_text(writer, "general.architecture", "llama");
    assert_ok(ah__gguf_writer_open(writer, path));
    assert_ok(ah__gguf_writer_close(writer));
    ah__gguf_writer_free(writer);
    assert_fails(ah_model_load(&model, path), whole ? AH_ECORRUPT : AH_EINPUT, words);
}

static void parts_of_models_are_refused(void **state)
{
    expect_part_refused("adapter", 0, "key 'general.type': found 'adapter', expected 'model': merge it into its model");
    expect_part_refused("mmproj", 0, "found 'mmproj', expected 'model': it has what sees images");
    expect_part_refused("model", 3, "key 'split.count': found 3, expected a whole model: llama-gguf-split --merge");
    expect_part_refused("model", 1, "tensor 'token_embd.weight': found nothing");
}

/* Whichever file a folder has its template in. */
static void templates_go_into_the_file(void **state)
{
    static const char list[] = "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"other\"}, "
                               "{\"name\": \"default\", \"template\": \"of the list\"}]}";
    static const struct {
        const char *name, *text, *expected;
    } rows[] = {
        {"tokenizer_config.json", "{\"chat_template\": \"of the config\"}", "of the config"},
        {"tokenizer_config.json", list, "of the list"},
        {"chat_template.jinja", "of a file", "of a file"}, /* comes before the others */
    };
    char folder[PATH_SIZE], path[PATH_SIZE], file[PATH_SIZE];
    folder_of(folder, llama_config);
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_model_files files = {0};
        write_text(at(path, folder, rows[i].name), rows[i].text);
        assert_ok(ah_export_gguf(at(file, folder, "template.gguf"), folder, "f32"));
        assert_ok(ah__model_files_load(&files, file));
        for (size_t k = 0; k < files.count; k++)
            if (strcmp(files.file[k].name, "tokenizer_config.json") == 0)
                assert_non_null(strstr(files.file[k].text, rows[i].expected));
        ah__model_files_free(&files);
    }
}

/* Halves and eighths: what gguf's own reader gives is checked by hand; here, that they are near and stay so. */
static void types_round_as_they_say(void **state)
{
    static const struct {
        const char *type;
        double most; /* of the largest value of a tensor, which is below 1 */
    } types[] = {{"f16", 0x1p-11}, {"bf16", 0x1p-8}, {"q8_0", 0.5 / 127 + 0x1p-11}};
    char path[512], folder[PATH_SIZE], file[PATH_SIZE];
    exported_folder(folder);
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        struct ah_weight_tensors before, after;
        assert_ok(ah_export_gguf(at(file, folder, "out.gguf"), folder, types[k].type));
        assert_ok(ah__weight_tensors_open(&before, at(path, folder, "model.safetensors")));
        assert_ok(ah__weight_tensors_open(&after, file));
        for (size_t i = 0; i < before.count; i++)
            expect_near_values(&before, &after, i, types[k].most);
        ah__weight_tensors_close(&before);
        ah__weight_tensors_close(&after);
    }
    assert_fails(ah_export_gguf(file, folder, "q9"), AH_EINPUT, "found 'q9', expected f16, bf16, f32 or q8_0");
    assert_fails(ah_export_gguf(file, folder, "q4_k_m"), AH_EINPUT,
                 "found 'q4_k_m', expected f16, bf16, f32 or q8_0; llama.cpp makes it of a file in f16 or bf16: "
                 "llama-quantize FILE.gguf NEW.gguf Q4_K_M");
}

/* An architecture that is no family here. */
static void others_are_refused_by_name(void **state)
{
    char path[512];
    struct ah_model *model;
    const struct ah_tokenizer *tokenizer;
    assert_int_equal(ah_model_load(&model, golden(path, "types", ".gguf")), AH_EINPUT);
    assert_non_null(strstr(ah_error(), "key 'general.architecture': found 'test', expected one of llama"));
    assert_int_equal(ah__model_tokenizer_open(&tokenizer, path), AH_EINPUT);
    assert_non_null(strstr(ah_error(), "key 'tokenizer.ggml.tokens': found nothing"));
}

AH_TEST_CASES("train/gguf_model", templates_go_into_the_file, parameters_have_their_values,
              configuration_is_the_families, tokenizer_is_in_the_file, a_file_trains_and_becomes_a_folder,
              a_folder_becomes_a_file, pieces_of_sentencepiece_go_both_ways, what_llama_cpp_lacks_is_not_written,
              parts_of_models_are_refused, types_round_as_they_say, others_are_refused_by_name)
