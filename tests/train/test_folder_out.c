/* What a checkpoint has beside weights, and weights in several files: the folder that other programs load. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "io/shards.h"
#include "train/tiny.h"

enum { SHARD_BYTES = 8000 };

static void expect_text(const char *folder, const char *name, const char *expected)
{
    size_t length;
    char *text = read_text(folder, name, &length);
    assert_string_equal(text, expected);
    ah__free(text);
}

static bool exists(const char *folder, const char *name)
{
    char path[PATH_SIZE];
    return access(at(path, folder, name), F_OK) == 0;
}

/* A model's folder with a tokenizer's files; `generation` may be null. */
static void model_folder(char folder[PATH_SIZE], const struct place *place, const char *config, const char *generation)
{
    char path[PATH_SIZE];
    snprintf(folder, PATH_SIZE, "%s-folder", place->model);
    assert_ok(ah__folder_make(folder));
    write_text(at(path, folder, "config.json"), config);
    write_text(at(path, folder, "tokenizer_config.json"), "{\"a\": 1}");
    write_text(at(path, folder, "added_tokens.json"), "{\"<a>\": 2}\n");
    write_text(at(path, folder, "README.md"), "not a part of it");
    if (generation)
        write_text(at(path, folder, "generation_config.json"), generation);
}

#define CONFIG                                                                                                         \
    "{\"model_type\": \"gpt2\", \"vocab_size\": 128, \"n_positions\": 16, \"n_embd\": 16, \"n_layer\": 3, "            \
    "\"n_head\": 2, \"bos_token_id\": 1, \"eos_token_id\": [2, 3]}"

static struct ah_train_options options_in(const struct place *place, const char *model, char out[PATH_SIZE],
                                          const char *name)
{
    struct ah_train_options options = options_of(place);
    snprintf(out, PATH_SIZE, "%s-%s", place->out, name);
    options.model_path = model;
    options.out_dir = out;
    return options;
}

/* They are in the checkpoint, under its checksums, and where the run's folder shows it; a training that goes on has
 * them from there, when the model's folder is long gone. */
static void files_of_the_model_go_along(void **state)
{
    struct place place;
    struct ah_train_result result;
    char model[PATH_SIZE], out[PATH_SIZE], checkpoint[PATH_SIZE];
    struct ah_json sums, files, entry;
    place_init(&place);
    model_folder(model, &place, CONFIG, NULL);
    struct ah_train_options options = options_in(&place, model, out, "along");
    options.steps = 4;
    assert_ok(ah_train(&result, &options));
    assert_ok(ah__folder_remove(model));
    struct ah_train_options resume = resume_of(&place);
    resume.resume_dir = out;
    resume.steps = 6;
    assert_ok(ah_train(&result, &resume));
    at(checkpoint, out, "step-00000006");
    expect_text(checkpoint, "tokenizer_config.json", "{\"a\": 1}");
    expect_text(checkpoint, "added_tokens.json", "{\"<a>\": 2}\n");
    expect_text(out, "added_tokens.json", "{\"<a>\": 2}\n");
    assert_false(exists(checkpoint, "README.md"));
    struct ah_json generation;
    char path[PATH_SIZE];
    int64_t ids[4];
    size_t count;
    assert_ok(ah__json_load(&generation, at(path, out, "generation_config.json")));
    assert_ok(ah__json_int(ids, &generation, "bos_token_id", 1, 1));
    assert_ok(ah__json_ints(ids, &count, 4, &generation, "eos_token_id", 0, 9));
    assert_true(count == 2 && ids[0] == 2 && ids[1] == 3);
    assert_false(ah__json_has(&generation, "pad_token_id"));
    ah__json_free(&generation);
    char *config = read_text(checkpoint, "config.json", &count);
    assert_non_null(strstr(config, "\"bos_token_id\": 1,\n"));
    assert_non_null(strstr(config, "\"eos_token_id\": [2, 3]\n}"));
    assert_non_null(strstr(config, "\"layer_norm_epsilon\": 1e-05"));
    assert_non_null(strstr(config, "\"attn_pdrop\": 0.0"));
    ah__free(config);
    assert_ok(ah__json_load(&sums, at(path, checkpoint, "checksums.json")));
    assert_ok(ah__json_object(&files, &sums, "files"));
    assert_ok(ah__json_object(&entry, &files, "added_tokens.json"));
    assert_ok(ah__json_object(&entry, &files, "generation_config.json"));
    ah__json_free(&sums);
    write_text(at(path, checkpoint, "added_tokens.json"), "{\"<a>\": 3}\n");
    resume.steps = 7;
    resume.resume_dir = checkpoint;
    assert_fails(ah_train(&result, &resume), AH_ECORRUPT, "added_tokens.json: found checksum");
}

static void a_generation_config_is_copied(void **state)
{
    struct place place;
    struct ah_train_result result;
    char model[PATH_SIZE], out[PATH_SIZE], path[PATH_SIZE];
    place_init(&place);
    model_folder(model, &place, CONFIG, "{\"temperature\": 0.6}\n");
    struct ah_train_options options = options_in(&place, model, out, "copied");
    options.steps = 1;
    assert_ok(ah_train(&result, &options));
    expect_text(out, "generation_config.json", "{\"temperature\": 0.6}\n");
    /* what somebody else put there is not overwritten */
    snprintf(out, sizeof out, "%s-theirs", place.out);
    assert_ok(ah__folder_make(out));
    write_text(at(path, out, "tokenizer.json"), "{}");
    assert_fails(ah_train(&result, &options), AH_EINPUT, "tokenizer.json: found one that is no checkpoint's");
    assert_int_equal(unlink(path), 0);
    write_text(at(path, out, "model-00001-of-00002.safetensors"), "x");
    assert_fails(ah_train(&result, &options), AH_EINPUT, "found one that is no checkpoint's");
}

/* Every tensor of the one file is in the files that the index names, with the same bytes. */
static void expect_same_tensors(const char *whole, const char *sharded, int64_t *shards)
{
    struct ah_shards *one, *many;
    struct ah_json index, metadata;
    char path[PATH_SIZE];
    int64_t bytes = 0, total, parameters;
    assert_ok(ah__shards_open(&one, at(path, whole, "model.safetensors")));
    assert_ok(ah__json_load(&index, at(path, sharded, "model.safetensors.index.json")));
    assert_ok(ah__shards_open(&many, path));
    assert_int_equal(ah__shards_count(one), ah__shards_count(many));
    for (size_t i = 0; i < ah__shards_count(one); i++) {
        const struct ah_safetensors_tensor *tensor = ah__shards_at(one, i);
        const struct ah_safetensors_tensor *other = ah__shards_find(many, tensor->name);
        assert_non_null(other);
        assert_int_equal(tensor->bytes, other->bytes);
        assert_memory_equal(tensor->data, other->data, tensor->bytes);
        bytes += (int64_t)tensor->bytes;
    }
    assert_ok(ah__json_object(&metadata, &index, "metadata"));
    assert_ok(ah__json_int(&total, &metadata, "total_size", 0, INT64_MAX));
    assert_ok(ah__json_int(&parameters, &metadata, "total_parameters", 0, INT64_MAX));
    assert_true(total == bytes && parameters == bytes / 4);
    for (*shards = 0;; ++*shards) {
        char name[AH_SHARDS_NAME_SIZE];
        struct stat info;
        long of = 0;
        const char *file =
            cJSON_GetObjectItem(cJSON_GetObjectItem(index.node, "weight_map"), ah__shards_at(many, 0)->name)
                ->valuestring;
        assert_int_equal(sscanf(file, "model-00001-of-%ld", &of), 1);
        if (*shards == of)
            break;
        ah__shards_name(name, *shards, of);
        assert_int_equal(stat(at(path, sharded, name), &info), 0);
        assert_true(info.st_size <= SHARD_BYTES + 4096); /* but for the header; the largest tensor has 8192 bytes */
    }
    ah__json_free(&index);
    ah__shards_close(one);
    ah__shards_close(many);
}

/* In several files or in one, what is trained is the same; changing it between is fine and leaves nothing behind. */
static void a_large_model_lies_in_several_files(void **state)
{
    struct place place;
    struct ah_train_result result;
    char whole[PATH_SIZE], out[PATH_SIZE], path[PATH_SIZE], name[AH_SHARDS_NAME_SIZE];
    int64_t shards;
    place_init(&place);
    struct ah_train_options options = options_in(&place, place.model, whole, "whole");
    assert_ok(ah_train(&result, &options));
    options = options_in(&place, place.model, out, "shards");
    options.shard_bytes = SHARD_BYTES;
    assert_ok(ah_train(&result, &options));
    assert_false(exists(out, "model.safetensors"));
    expect_same_tensors(whole, out, &shards);
    assert_in_range(shards, 3, 8);
    struct ah_generate_options generate = {.model_dir = out, .prompt = "ab", .tokens = 3, .threads = 1};
    assert_ok(ah_generate(&generate));
    struct ah_train_options resume = resume_of(&place);
    resume.resume_dir = whole;
    resume.steps = STEPS + 2;
    assert_ok(ah_train(&result, &resume));
    resume.resume_dir = out;
    assert_ok(ah_train(&result, &resume));
    expect_same_tensors(whole, out, &shards);
    resume.shard_bytes = 0;
    resume.steps = STEPS + 4;
    assert_ok(ah_train(&result, &resume));
    assert_true(exists(out, "model.safetensors"));
    assert_int_equal(readlink(at(path, out, "model.safetensors.index.json"), name, sizeof name), -1);
    assert_int_equal(readlink(at(path, out, ah__shards_name(name, 0, shards)), name, sizeof name), -1);
    /* a shard that is gone or damaged is found as any other file */
    snprintf(path, sizeof path, "%s/step-%08d/%s", out, STEPS + 2, ah__shards_name(name, 1, shards));
    write_text(path, "damaged");
    snprintf(path, sizeof path, "%s/step-%08d", out, STEPS + 2);
    resume.resume_dir = path;
    assert_fails(ah_train(&result, &resume), AH_ECORRUPT, "found 7 bytes, expected");
}

/* ---- what texts become ids by --------------------------------------------------------------------------------- */

static char notes[4096];

static void keep_notes(const char *line, void *context)
{
    size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", line);
}

#define WIDE                                                                                                           \
    "{\"model_type\": \"gpt2\", \"vocab_size\": 1600, \"n_positions\": 16, \"n_embd\": 16, \"n_layer\": 3, "           \
    "\"n_head\": 2}"

/* `profile` is of an earlier one; null: measured. */
static struct ah_train_options options_wide(const struct place *place, const char *model, char out[PATH_SIZE],
                                            const char *name, const char *profile)
{
    struct ah_train_options options;
    ah_train_options_init(&options, sizeof options);
    snprintf(out, PATH_SIZE, "%s-%s", place->out, name);
    options.model_path = model;
    options.data_path = place->data;
    options.out_dir = out;
    options.device = "cpu";
    options.dev.threads = 1;
    options.plan = "resident";
    options.profile_path = profile;
    options.batch = 2;
    options.seq = 8;
    options.steps = 1;
    options.on_note = keep_notes;
    notes[0] = 0;
    return options;
}

static struct ah_train_options resume_wide(const char *from, const char *profile)
{
    struct ah_train_options options;
    ah_train_options_init(&options, sizeof options);
    options.resume_dir = from;
    options.profile_path = profile;
    options.steps = 2;
    return options;
}

/* A folder with a tokenizer and a chat template of its own. */
static void spoken_folder(char folder[PATH_SIZE], const struct place *place)
{
    char path[PATH_SIZE], *tokenizer;
    size_t length;
    model_folder(folder, place, WIDE, NULL);
    snprintf(path, sizeof path, "%s/golden/tokenizers/qwen2/tokenizer.json", ah_test_source());
    assert_ok(ah__file_read(&tokenizer, &length, path, 1 << 20));
    write_text(at(path, folder, "tokenizer.json"), tokenizer);
    write_text(at(path, folder, "chat_template.jinja"),
               "{{ messages[0].content }}{% generation %}a{% endgeneration %}");
    ah__free(tokenizer);
}

/* FOLDER/config.json: what the data went through is saved; the weights beside it are used where that is asked for, else
 * it is said that they are not. */
static void a_configuration_is_as_good_as_its_folder(void **state)
{
    struct place place;
    struct ah_train_result result, again;
    char model[PATH_SIZE], config[PATH_SIZE], out[PATH_SIZE], more[PATH_SIZE], profile[PATH_SIZE];
    place_init(&place);
    spoken_folder(model, &place);
    struct ah_train_options options = options_wide(&place, at(config, model, "config.json"), out, "spoken", NULL);
    assert_ok(ah_train(&result, &options));
    assert_null(strstr(notes, "random parameters"));
    expect_same_file(model, out, "tokenizer.json");
    expect_same_file(model, out, "tokenizer_config.json");
    expect_same_file(model, out, "chat_template.jinja");
    struct ah_train_options resume = resume_wide(out, at(profile, out, "profile.json"));
    assert_ok(ah_train(&result, &resume));
    /* weights beside it */
    options = options_wide(&place, at(config, out, "config.json"), more, "not used", profile);
    assert_ok(ah_train(&result, &options));
    assert_non_null(strstr(notes, "starting from random parameters, since "));
    options = options_wide(&place, config, more, "used", profile);
    options.init = "weights";
    assert_ok(ah_train(&again, &options));
    assert_non_null(strstr(notes, "starting from the weights in "));
    assert_true(again.final_loss < result.final_loss || again.final_loss > result.final_loss);
    options = options_wide(&place, out, more, "by folder", profile);
    assert_ok(ah_train(&result, &options));
    assert_memory_equal(&again.final_loss, &result.final_loss, sizeof result.final_loss);
}

/* Texts are bytes for vocabularies of bytes, or where that is asked for. */
static void bytes_are_asked_for(void **state)
{
    struct place place;
    struct ah_train_result result;
    struct ah_eval_result evaluated;
    char model[PATH_SIZE], out[PATH_SIZE], none[PATH_SIZE], path[PATH_SIZE], tokens[PATH_SIZE], profile[PATH_SIZE];
    place_init(&place);
    model_folder(model, &place, WIDE, NULL); /* with tokenizer_config.json alone */
    struct ah_train_options options = options_wide(&place, model, out, "bytes", NULL);
    assert_fails(ah_train(&result, &options), AH_EINPUT,
                 "folder: found no tokenizer, expected tokenizer.json, vocab.json with merges.txt, tokenizer.model or "
                 "spiece.model in its folder: vocab_size is 1600, and bytes are the tokens of up to 256 alone");
    assert_false(exists(out, "checkpoint"));
    options.data_format = "bytes";
    assert_ok(ah_train(&result, &options));
    struct ah_train_options resume = resume_wide(at(path, out, "step-00000001"), at(profile, out, "profile.json"));
    assert_ok(ah_train(&result, &resume)); /* also of the one checkpoint: it says so itself */
    struct ah_eval_options eval = {.model_dir = out, .data_path = place.data};
    assert_ok(ah_eval(&evaluated, &eval));
    assert_true(evaluated.bits_per_byte > 0);
    /* a new training of that model and adapters of it, by its folder, a checkpoint or a config.json */
    char more[PATH_SIZE], adapter[PATH_SIZE];
    options = options_wide(&place, path, more, "more bytes", profile);
    assert_ok(ah_train(&result, &options));
    assert_non_null(strstr(notes, "text is read as bytes, which "));
    options = options_wide(&place, at(path, more, "config.json"), adapter, "bytes adapted", NULL);
    options.init = "weights";
    options.tuning.lora_rank = 2;
    assert_ok(ah_train(&result, &options));
    eval = (struct ah_eval_options){.model_dir = adapter, .data_path = place.data, .seq = 8};
    assert_ok(ah_eval(&evaluated, &eval));
    double alone = evaluated.loss;
    eval.model_dir = more;
    eval.adapter_dir = adapter;
    assert_ok(ah_eval(&evaluated, &eval));
    assert_memory_equal(&evaluated.loss, &alone, sizeof alone);
    /* what has ids already needs none */
#define IDS "[300, 301, 302, 303, 301, 302, 300, 303, 301]"
    write_text(at(tokens, model, "ids.jsonl"), "{\"input_ids\": " IDS ", \"labels\": " IDS "}\n"
                                               "{\"input_ids\": " IDS ", \"labels\": " IDS "}\n");
    options = options_wide(&place, model, none, "ids", profile);
    options.data_path = tokens;
    assert_ok(ah_train(&result, &options));
    eval = (struct ah_eval_options){.model_dir = none, .data_path = tokens};
    assert_ok(ah_eval(&evaluated, &eval));
    assert_true(isnan(evaluated.bits_per_byte));
    eval.data_path = place.data;
    assert_fails(ah_eval(&evaluated, &eval), AH_EINPUT, "found no tokenizer, expected tokenizer.json");
    const struct ah_tokenizer *tokenizer;
    assert_fails(ah_tokenizer_open(&tokenizer, none), AH_EINPUT, "found no tokenizer, expected tokenizer.json");
    struct ah_generate_options generate = {.model_dir = none, .tokens = 1};
    assert_fails(ah_generate(&generate), AH_EINPUT, "found no tokenizer, expected tokenizer.json");
}

AH_TEST_CASES("train/folder_out", files_of_the_model_go_along, a_generation_config_is_copied,
              a_large_model_lies_in_several_files, a_configuration_is_as_good_as_its_folder, bytes_are_asked_for)
