/* Mixtures of experts from and to files: a tensor for each expert, as the hub has them, or fused, as transformers has
 * them in memory. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/safetensors.h"
#include "op/op.h"
#include "train/tiny.h"

enum { EXPERTS = 5, HIDDEN = 16, LAYERS = 2, MOST = 96 };

#define SIZES                                                                                                          \
    "\"vocab_size\": 128, \"hidden_size\": 16, \"intermediate_size\": 12, \"num_hidden_layers\": 2, "                  \
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"max_position_embeddings\": 16, "                        \
    "\"num_experts_per_tok\": 2, \"tie_word_embeddings\": false, "

static const struct family {
    const char *config, *up; /* up: a layer of expert 3 in block 1 */
} families[] = {
    {"{\"model_type\": \"qwen3_moe\", " SIZES "\"num_experts\": 5, \"moe_intermediate_size\": 12, \"head_dim\": 8, "
     "\"norm_topk_prob\": true}",
     "model.layers.1.mlp.experts.3.up_proj.weight"},
    {"{\"model_type\": \"mixtral\", " SIZES "\"num_local_experts\": 5}",
     "model.layers.1.block_sparse_moe.experts.3.w3.weight"},
    {"{\"model_type\": \"olmoe\", " SIZES "\"num_experts\": 5}", "model.layers.1.mlp.experts.3.up_proj.weight"},
};

/* Trains a family's model, three steps; returns its checkpoint's folder. */
static char *trained(char path[PATH_SIZE], struct place *place, const struct family *family)
{
    struct ah_train_result result;
    place_init(place);
    snprintf(place->out, PATH_SIZE, "%s/out-%td", ah_test_folder(), family->up ? family - families : -1);
    write_text(place->model, family->config);
    struct ah_train_options options = options_of(place);
    options.profile_path = NULL;
    options.steps = 3;
    assert_ok(ah_train(&result, &options));
    return at(path, place->out, "checkpoint");
}

static struct ah_train_options from(const char *model, const struct place *place, char out[PATH_SIZE], const char *name)
{
    struct ah_train_options options = options_of(place);
    snprintf(out, PATH_SIZE, "%s-%s", place->out, name);
    options.model_path = model;
    options.profile_path = NULL;
    options.out_dir = out;
    options.steps = 1;
    options.lr = 0;
    return options;
}

/* Weights from `model` come out as they are in `place`. */
static void expect_same_start(const char *model, const struct place *place, const char *name)
{
    struct ah_train_result result;
    char out[PATH_SIZE];
    struct ah_train_options options = from(model, place, out, name);
    assert_ok(ah_train(&result, &options));
    expect_same_file(place->out, out, "checkpoint/model.safetensors");
}

static void each_expert_is_a_tensor_in_files(void **state)
{
    for (size_t f = 0; f < AH_LENGTH(families); f++) {
        struct place place;
        struct ah_safetensors *file;
        char model[PATH_SIZE], path[PATH_SIZE];
        const struct ah_safetensors_tensor *tensor;
        size_t stars = 0;
        trained(model, &place, &families[f]);
        assert_ok(ah__safetensors_open(&file, at(path, model, "model.safetensors")));
        assert_ok(ah__safetensors_get(&tensor, file, families[f].up, AH_F32, ah_shape2(12, HIDDEN)));
        for (size_t i = 0; i < ah__safetensors_count(file); i++)
            assert_null(strchr(ah__safetensors_at(file, i)->name, '*'));
        ah__safetensors_close(file);
        assert_ok(ah__safetensors_open(&file, at(path, model, "optimizer.safetensors")));
        for (size_t i = 0; i < ah__safetensors_count(file); i++)
            stars += strchr(ah__safetensors_at(file, i)->name, '*') != NULL;
        assert_int_equal(stars, LAYERS * 3 * 2);
        ah__safetensors_close(file);
        expect_same_start(model, &place, "again");
    }
}

/* ---- fused ------------------------------------------------------------------------------------------------------- */

/* Tensors of a file that is being written, each of one piece or several. */
struct fused {
    struct ah_safetensors_decl decl[MOST];
    char name[MOST][96];
    const unsigned char *piece[MOST][2 * EXPERTS];
    size_t bytes[MOST], pieces[MOST], count; /* bytes of a piece */
};

static size_t fused_find(struct fused *to, const char *name)
{
    for (size_t i = 0; i < to->count; i++)
        if (strcmp(to->name[i], name) == 0)
            return i;
    snprintf(to->name[to->count], sizeof to->name[0], "%s", name);
    return to->count++;
}

/* Adds a tensor; an expert's matrix becomes a piece of the tensor that transformers has. */
static void fused_add(struct fused *to, const struct ah_safetensors_tensor *tensor)
{
    int layer, expert;
    char last[32], scope[32], name[96];
    bool of_expert = sscanf(tensor->name, "model.layers.%d.%31[a-z_].experts.%d.%31[a-z0-9_].weight", &layer, scope,
                            &expert, last) == 4;
    bool down = of_expert && (strcmp(last, "w2") == 0 || strcmp(last, "down_proj") == 0);
    bool up = of_expert && (strcmp(last, "w3") == 0 || strcmp(last, "up_proj") == 0);
    struct ah_shape shape = {.rank = tensor->rank};
    memcpy(shape.dim, tensor->dim, (size_t)tensor->rank * sizeof shape.dim[0]);
    snprintf(name, sizeof name, "%s", tensor->name);
    if (of_expert)
        snprintf(name, sizeof name, "model.layers.%d.mlp.experts.%s", layer, down ? "down_proj" : "gate_up_proj");
    else if (sscanf(tensor->name, "model.layers.%d.block_sparse_moe.gat%c", &layer, last) == 2)
        snprintf(name, sizeof name, "model.layers.%d.mlp.gate.weight", layer);
    if (of_expert)
        shape = ah_shape3(EXPERTS, down ? shape.dim[0] : 2 * shape.dim[0], shape.dim[1]);
    size_t i = fused_find(to, name);
    to->decl[i] = (struct ah_safetensors_decl){to->name[i], AH_F32, shape};
    to->piece[i][!of_expert ? 0 : down ? expert : 2 * expert + up] = tensor->data;
    to->bytes[i] = tensor->bytes;
    to->pieces[i] = !of_expert ? 1 : down ? EXPERTS : 2 * EXPERTS;
}

/* Writes FOLDER/model.safetensors with the tensors of another file, fused. */
static void fuse(const char *folder, const char *from)
{
    static struct fused to;
    struct ah_safetensors *file;
    struct ah_safetensors_writer *writer;
    char path[PATH_SIZE];
    to.count = 0;
    assert_ok(ah__safetensors_open(&file, at(path, from, "model.safetensors")));
    for (size_t i = 0; i < ah__safetensors_count(file); i++)
        fused_add(&to, ah__safetensors_at(file, i));
    assert_ok(ah__safetensors_writer_open(&writer, at(path, folder, "model.safetensors"), to.decl, to.count));
    for (size_t i = 0; i < to.count; i++)
        for (size_t k = 0; k < to.pieces[i]; k++)
            assert_ok(ah__safetensors_writer_append(writer, to.piece[i][k], to.bytes[i]));
    assert_ok(ah__safetensors_writer_close(writer, NULL, NULL));
    ah__safetensors_writer_free(writer);
    ah__safetensors_close(file);
}

static void fused_experts_start_the_same(void **state)
{
    for (size_t f = 0; f < AH_LENGTH(families); f++) {
        struct place place;
        char model[PATH_SIZE], folder[PATH_SIZE], config[PATH_SIZE];
        trained(model, &place, &families[f]);
        snprintf(folder, sizeof folder, "%s/fused-%zu", ah_test_folder(), f);
        assert_int_equal(mkdir(folder, 0777), 0);
        write_text(at(config, folder, "config.json"), families[f].config);
        fuse(folder, model);
        expect_same_start(folder, &place, "fused");
    }
}

/* ---- trainings --------------------------------------------------------------------------------------------------- */

/* The parts of a checkpoint in several files are the same. */
static void expect_same_parts(const char *a, const char *b)
{
    size_t length;
    int count = 0;
    char *index = read_text(a, "checkpoint/model.safetensors.index.json", &length), name[64];
    assert_non_null(strstr(index, "\"model.layers.1.mlp.experts.4.down_proj.weight\""));
    assert_null(strchr(index, '*'));
    assert_int_equal(sscanf(strstr(index, "-of-"), "-of-%5d", &count), 1);
    assert_true(count > 2);
    expect_same_file(a, b, "checkpoint/model.safetensors.index.json");
    for (int i = 1; i <= count; i++) {
        snprintf(name, sizeof name, "checkpoint/model-%05d-of-%05d.safetensors", i, count);
        expect_same_file(a, b, name);
    }
    ah__free(index);
}

static void several_files_are_resumed(void **state)
{
    struct place place;
    struct ah_train_result result;
    char straight[PATH_SIZE], model[PATH_SIZE];
    trained(model, &place, &families[0]);
    struct ah_train_options options = options_of(&place);
    snprintf(straight, sizeof straight, "%s/straight", ah_test_folder());
    options.out_dir = straight;
    options.shard_bytes = 1 << 13;
    assert_ok(ah_train(&result, &options));
    snprintf(place.out, sizeof place.out, "%s/parts", ah_test_folder());
    options.out_dir = place.out;
    assert_ok(train_watched(&result, &options, NULL, stop_at_3));
    assert_true(result.stopped);
    options = resume_of(&place);
    assert_ok(ah_train(&result, &options));
    expect_same_parts(straight, place.out);
    expect_same_file(straight, place.out, "checkpoint/optimizer.safetensors");
    snprintf(model, sizeof model, "%s/checkpoint", place.out);
    snprintf(place.out, sizeof place.out, "%s/again", ah_test_folder());
    options = options_of(&place);
    options.model_path = model;
    options.steps = 1;
    options.lr = 0;
    options.shard_bytes = 1 << 13;
    assert_ok(ah_train(&result, &options));
    expect_same_parts(straight, place.out);
}

/* A model of another number of experts than its file has. */
static void another_number_of_experts_is_refused(void **state)
{
    static const char fewer[] = "{\"model_type\": \"qwen3_moe\", " SIZES "\"num_experts\": 4, "
                                "\"moe_intermediate_size\": 12, \"head_dim\": 8, \"norm_topk_prob\": true}";
    struct place place;
    struct ah_train_result result;
    char model[PATH_SIZE], path[PATH_SIZE], out[PATH_SIZE];
    trained(model, &place, &families[0]);
    write_text(at(path, model, "config.json"), fewer);
    struct ah_train_options options = from(model, &place, out, "fewer");
    assert_fails(ah_train(&result, &options), AH_ECORRUPT, "found F32 [5, ");
    assert_int_equal(access(out, F_OK), -1);
}

/* ---- adapters ---------------------------------------------------------------------------------------------------- */

/* Adapters beside experts: what is merged has the experts as they were. */
static void experts_stay_beside_adapters(void **state)
{
    for (size_t f = 0; f < AH_LENGTH(families); f++) {
        struct place place;
        struct ah_train_result result;
        struct ah_safetensors *file, *merged;
        char model[PATH_SIZE], path[PATH_SIZE], out[PATH_SIZE];
        size_t experts = 0, others = 0;
        trained(model, &place, &families[f]);
        struct ah_train_options options = options_on(&place, place.data, out, "adapted");
        options.model_path = model;
        options.profile_path = NULL;
        options.tuning.lora_rank = 2;
        options.steps = 3;
        assert_ok(ah_train(&result, &options));
        assert_non_null(strstr(tiny_notes, "experts and their routers get no adapters and stay as they are"));
        at(path, out, "merged");
        assert_ok(ah_merge(path, out, NULL, "fp32"));
        strcat(path, "/model.safetensors");
        assert_ok(ah__safetensors_open(&merged, path));
        assert_ok(ah__safetensors_open(&file, at(path, model, "model.safetensors")));
        assert_int_equal(ah__safetensors_count(merged), ah__safetensors_count(file));
        for (size_t i = 0; i < ah__safetensors_count(file); i++) {
            const struct ah_safetensors_tensor *a = ah__safetensors_at(file, i), *b = ah__safetensors_at(merged, i);
            bool same = memcmp(a->data, b->data, a->bytes) == 0, attends = strstr(a->name, "_proj.weight") != NULL;
            bool expert = strstr(a->name, ".experts.") != NULL;
            assert_string_equal(a->name, b->name);
            assert_int_equal(same, expert || !attends);
            experts += expert;
            others += !same;
        }
        assert_int_equal(experts, LAYERS * 3 * EXPERTS);
        assert_int_equal(others, LAYERS * 4);
        ah__safetensors_close(file);
        ah__safetensors_close(merged);
    }
}

static void adapters_of_routers_are_refused(void **state)
{
    static const char *const targets[] = {"gate", "q_proj,mlp.gate"};
    struct place place;
    struct ah_train_result result;
    char model[PATH_SIZE], out[PATH_SIZE];
    trained(model, &place, &families[0]);
    struct ah_train_options options = from(model, &place, out, "refused");
    options.tuning.lora_rank = 2;
    for (size_t i = 0; i < AH_LENGTH(targets); i++) {
        options.tuning.lora_targets = targets[i];
        assert_fails(ah_train(&result, &options), AH_EINPUT,
                     "gate', a router of experts, which has no adapter; expected linear layers of the model's blocks: "
                     "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj");
    }
    options.tuning.lora_targets = "up";
    assert_fails(ah_train(&result, &options), AH_EINPUT, "lora_targets: found 'up', expected linear layers");
}

/* A training with adapters of queries and of one of the experts' matrices; returns its folder. */
static char *adapted(char out[PATH_SIZE], const char *model, struct place *place, const char *targets)
{
    struct ah_train_result result;
    struct ah_train_options options = options_on(place, place->data, out, "adapted");
    options.model_path = model;
    options.profile_path = NULL;
    options.tuning.lora_rank = 2;
    options.tuning.lora_targets = targets;
    options.steps = 3;
    assert_ok(ah_train(&result, &options));
    assert_null(strstr(tiny_notes, "get no adapters"));
    return out;
}

/* Counts the tensors that differ between two files with the same names. */
static size_t differences(const char *one, const char *other)
{
    struct ah_safetensors *a, *b;
    size_t count = 0;
    assert_ok(ah__safetensors_open(&a, one));
    assert_ok(ah__safetensors_open(&b, other));
    for (size_t i = 0; i < ah__safetensors_count(a); i++) {
        const struct ah_safetensors_tensor *x = ah__safetensors_at(a, i), *y = ah__safetensors_at(b, i);
        assert_string_equal(x->name, y->name);
        count += memcmp(x->data, y->data, x->bytes) != 0;
    }
    ah__safetensors_close(a);
    ah__safetensors_close(b);
    return count;
}

/* Experts that are named have an adapter each, a pair of tensors as PEFT has them of linear layers. */
static void experts_have_adapters(void **state)
{
    static const char *const targets[] = {"q_proj,up_proj", "q_proj,w3", "q_proj,mlp.experts.*.up_proj"};
    for (size_t f = 0; f < AH_LENGTH(families); f++) {
        struct place place;
        struct ah_train_result result;
        struct ah_safetensors *file;
        const struct ah_safetensors_tensor *tensor;
        char model[PATH_SIZE], path[PATH_SIZE], out[PATH_SIZE], again[PATH_SIZE], name[160], merged[PATH_SIZE];
        adapted(out, trained(model, &place, &families[f]), &place, targets[f]);
        assert_ok(ah__safetensors_open(&file, at(path, out, "checkpoint/adapter_model.safetensors")));
        assert_int_equal(ah__safetensors_count(file), LAYERS * 2 * (1 + EXPERTS));
        snprintf(name, sizeof name, "base_model.model.%.*s.lora_B.weight",
                 (int)(strlen(families[f].up) - strlen(".weight")), families[f].up);
        assert_ok(ah__safetensors_get(&tensor, file, name, AH_F32, ah_shape2(12, 2)));
        ah__safetensors_close(file);

        assert_ok(ah_merge(at(path, out, "merged"), out, NULL, "fp32"));
        assert_int_equal(differences(at(path, model, "model.safetensors"), at(merged, out, "merged/model.safetensors")),
                         LAYERS * (1 + EXPERTS));

        struct ah_train_options options = options_on(&place, place.data, again, "again");
        options.model_path = model;
        options.profile_path = NULL;
        options.adapter_dir = at(path, out, "checkpoint");
        options.steps = 1;
        options.lr = 0;
        assert_ok(ah_train(&result, &options));
        expect_same_file(out, again, "checkpoint/adapter_model.safetensors");
    }
}

/* ---- transposed in files ----------------------------------------------------------------------------------------- */

static const struct family gpt_oss = {"{\"model_type\": \"gpt_oss\", " SIZES
                                      "\"num_local_experts\": 5, \"head_dim\": 8, "
                                      "\"sliding_window\": 4}",
                                      NULL};

/* The names and shapes of transformers, in files of the model; the same start again, one file or several. */
static void transposed_experts_start_the_same(void **state)
{
    struct place place;
    struct ah_train_result result;
    struct ah_safetensors *file;
    const struct ah_safetensors_tensor *tensor;
    char path[PATH_SIZE], out[PATH_SIZE], model[PATH_SIZE];
    trained(model, &place, &gpt_oss);
    assert_ok(ah__safetensors_open(&file, at(path, model, "model.safetensors")));
    const struct {
        const char *name;
        struct ah_shape shape;
    } there[] = {{"mlp.experts.gate_up_proj", ah_shape3(EXPERTS, HIDDEN, 24)},
                 {"mlp.experts.gate_up_proj_bias", ah_shape2(EXPERTS, 24)},
                 {"mlp.experts.down_proj", ah_shape3(EXPERTS, 12, HIDDEN)},
                 {"mlp.experts.down_proj_bias", ah_shape2(EXPERTS, HIDDEN)},
                 {"mlp.router.bias", ah_shape1(EXPERTS)},
                 {"self_attn.sinks", ah_shape1(2)}};
    for (size_t i = 0; i < AH_LENGTH(there); i++) {
        char name[96];
        snprintf(name, sizeof name, "model.layers.1.%s", there[i].name);
        assert_ok(ah__safetensors_get(&tensor, file, name, AH_F32, there[i].shape));
    }
    for (size_t i = 0; i < ah__safetensors_count(file); i++)
        assert_null(strchr(ah__safetensors_at(file, i)->name, '^'));
    ah__safetensors_close(file);
    expect_same_start(model, &place, "again");
    struct ah_train_options options = from(model, &place, out, "parts");
    options.shard_bytes = 1 << 13;
    assert_ok(ah_train(&result, &options));
    expect_same_start(at(path, out, "checkpoint"), &place, "whole");
    options = resume_of(&place);
    options.steps = 4;
    assert_ok(ah_train(&result, &options));
}

/* Targets have no marks. Adapters of experts go into what is merged, and come back. */
static void transposed_experts_have_adapters(void **state)
{
    struct place place;
    struct ah_train_result result;
    char model[PATH_SIZE], path[PATH_SIZE], out[PATH_SIZE], again[PATH_SIZE], merged[PATH_SIZE];
    trained(model, &place, &gpt_oss);
    adapted(out, model, &place, "q_proj,gate_up_proj,down_proj");
    assert_non_null(strstr(tiny_notes, "the experts are fused in files, and so are their adapters"));
    assert_ok(ah_merge(at(path, out, "merged"), out, NULL, "fp32"));
    assert_int_equal(differences(at(path, model, "model.safetensors"), at(merged, out, "merged/model.safetensors")),
                     LAYERS * 3);
    struct ah_train_options options = options_on(&place, place.data, again, "again");
    options.model_path = model;
    options.profile_path = NULL;
    options.adapter_dir = at(path, out, "checkpoint");
    options.steps = 1;
    options.lr = 0;
    assert_ok(ah_train(&result, &options));
    expect_same_file(out, again, "checkpoint/adapter_model.safetensors");
    options = from(model, &place, out, "refused");
    options.tuning.lora_rank = 2;
    options.tuning.lora_targets = "up";
    assert_fails(ah_train(&result, &options), AH_EINPUT, "k_proj, v_proj, o_proj, gate_up_proj, down_proj");
}

AH_TEST_CASES("train/experts", transposed_experts_start_the_same, transposed_experts_have_adapters,
              each_expert_is_a_tensor_in_files, fused_experts_start_the_same, several_files_are_resumed,
              another_number_of_experts_is_refused, experts_stay_beside_adapters, adapters_of_routers_are_refused,
              experts_have_adapters)
