/* Checkpoints of a run that was never trained: what goes in comes out, whole or not at all. */
#include "train/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "bind/bind.h"
#include "io/safetensors.h"
#include "sched/sched.h"
#include "test.h"

enum { PATH_SIZE = 512, LAYERS = 2 };

struct fixture {
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_dev *dev;
    struct ah_run *run;
    float *buffer;
};

/* A plan with `offload` blocks' states, and the embedding's, on the host. */
static void fixture_init_in(struct fixture *f, int offload, enum ah_dtype compute)
{
    struct ah_dev_options options = {.threads = 1};
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/model.json", ah_test_folder());
    const char *text =
        "{\"model_type\": \"gpt2\", \"vocab_size\": 20, \"n_positions\": 4, \"n_embd\": 8, \"n_layer\": 2, "
        "\"n_head\": 2}";
    assert_ok(ah__file_write(path, text, strlen(text)));
    assert_ok(ah_model_load(&f->model, path));
    assert_ok(
        ah_model_record(&f->graph, f->model, &(struct ah_record_options){.batch = 1, .seq = 4, .compute = compute}));
    assert_ok(ah_partition_new(&f->partition, f->graph, NULL));
    assert_ok(ah_dev_open(&f->dev, "cpu", &options));
    struct ah_plan plan = {.switches = {.layers = LAYERS,
                                        .offload_optimizer = offload,
                                        .embedding_on_host = offload > 0,
                                        .buffers = 3,
                                        .prefetch_distance = 1},
                           .policy = "autohete"};
    assert_ok(ah__workspace_bytes(&plan.workspace_bytes, f->partition, f->dev));
    assert_ok(ah__run_new(&f->run, f->partition, &plan, f->dev, 0));
    f->buffer = calloc(2 * (size_t)ah__partition_largest(f->partition), sizeof *f->buffer);
}

static void fixture_init(struct fixture *f, int offload)
{
    fixture_init_in(f, offload, AH_F32);
}

static void fixture_fini(struct fixture *f)
{
    free(f->buffer);
    ah__run_free(f->run);
    ah_dev_close(f->dev);
    ah_partition_free(f->partition);
    ah_graph_free(f->graph);
    ah_model_free(f->model);
}

static float value_of(int param, int which, int64_t i)
{
    return (float)(param + 1) + 0.25F * (float)which + 1e-3F * (float)i;
}

static void fill(struct fixture *f)
{
    for (int p = 0; p < f->partition->param_count; p++)
        for (int which = AH_RUN_PARAM; which <= AH_RUN_MOMENT2; which++) {
            for (int64_t i = 0; i < ah__shape_count(&f->partition->params[p].shape); i++)
                f->buffer[i] = value_of(p, which, i);
            assert_ok(ah__run_load(f->run, p, (enum ah_run_state)which, f->buffer));
        }
}

/* Adam's moments are zero in a run that has read parameters only. */
static void expect_filled(struct fixture *f, bool moments)
{
    for (int p = 0; p < f->partition->param_count; p++)
        for (int which = AH_RUN_PARAM; which <= AH_RUN_MOMENT2; which++) {
            assert_ok(ah__run_store(f->run, p, (enum ah_run_state)which, f->buffer));
            for (int64_t i = 0; i < ah__shape_count(&f->partition->params[p].shape); i++)
                assert_true(f->buffer[i] == (which && !moments ? 0 : value_of(p, which, i)));
        }
}

static struct ah_checkpoint state_of(int64_t step, char *data_path)
{
    return (struct ah_checkpoint){
        .step = step,
        .loss = 0.1 + 0.2,
        .data_path = data_path,
        .data_tokens = 1234,
        .data_signature = 0xfedcba9876543210,
        .settings = {.batch = 1,
                     .micro_batch = 1,
                     .seq = 4,
                     .seed = UINT64_MAX,
                     .steps = 40,
                     .keep = 2,
                     .decay = AH_DECAY_LINEAR,
                     .lr = 0.1,
                     .min_lr_ratio = 0.2,
                     .warmup_steps = 3,
                     .beta1 = 0.5,
                     .beta2 = 0.6,
                     .eps = 0.7,
                     .weight_decay = 0.8},
    };
}

static int save(const char *dir, struct ah_checkpoint *state, struct fixture *f)
{
    struct ah_states states = ah__run_states_of(f->run);
    return ah__checkpoint_save(dir, state, f->model, f->partition, &states, f->buffer);
}

static int copy_of_nothing(const void **values, int param, enum ah_run_state which, void *buffer, void *context)
{
    *values = buffer;
    return AH_OK;
}

static void what_goes_in_comes_out(void **state)
{
    struct fixture device, host, bare;
    char data[] = "/some/data", dir[PATH_SIZE];
    snprintf(dir, sizeof dir, "%s", ah_test_folder());
    struct ah_checkpoint in = state_of(7, data), out;
    fixture_init(&device, 0);
    fixture_init(&host, LAYERS);
    fixture_init(&bare, 1);
    fill(&device);
    assert_ok(save(dir, &in, &device));
    assert_ok(ah__checkpoint_open(&out, dir, false));
    assert_int_equal(out.step, 7);
    assert_true(out.loss == in.loss);
    assert_string_equal(out.data_path, data);
    assert_int_equal(out.data_tokens, in.data_tokens);
    assert_true(out.data_signature == in.data_signature && out.settings.seed == UINT64_MAX);
    assert_true(out.settings.lr == 0.1 && out.settings.steps == 40);
    assert_ok(ah__checkpoint_check_model(&out, host.model));
    assert_ok(ah__checkpoint_load(&out, host.partition, host.run, true));
    expect_filled(&host, true);
    assert_ok(ah__checkpoint_load(&out, bare.partition, bare.run, false));
    expect_filled(&bare, false);
    ah__checkpoint_close(&out);
    fixture_fini(&device);
    fixture_fini(&host);
    fixture_fini(&bare);
}

static void names_are_hugging_faces(void **state)
{
    static const char *const names[] = {"transformer.wte.weight", "transformer.wpe.weight",
                                        "transformer.h.1.attn.c_attn.weight", "transformer.h.0.mlp.c_proj.bias",
                                        "transformer.ln_f.bias"};
    struct fixture f;
    struct ah_safetensors *file;
    char data[] = "d", dir[PATH_SIZE], path[PATH_SIZE + 32];
    snprintf(dir, sizeof dir, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    struct ah_checkpoint in = state_of(1, data);
    fixture_init(&f, 0);
    assert_ok(save(dir, &in, &f));
    assert_ok(ah__safetensors_open(&file, path));
    assert_string_equal(ah__safetensors_meta(file, "format"), "pt");
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        if (!ah__safetensors_find(file, names[i]))
            fail_msg("%s is missing", names[i]);
    ah__safetensors_close(file);
    fixture_fini(&f);
}

static void infinity_is_not_saved(void **state)
{
    static const enum ah_run_state places[] = {AH_RUN_PARAM, AH_RUN_MOMENT1, AH_RUN_MOMENT2};
    struct fixture f;
    char data[] = "d", dir[PATH_SIZE];
    snprintf(dir, sizeof dir, "%s", ah_test_folder());
    struct ah_checkpoint good = state_of(1, data), bad = state_of(2, data), found;
    fixture_init(&f, 0);
    fill(&f);
    assert_ok(save(dir, &good, &f));
    for (size_t i = 0; i < AH_LENGTH(places); i++) {
        fill(&f);
        int last = f.partition->param_count - 1;
        assert_ok(ah__run_store(f.run, last, places[i], f.buffer));
        f.buffer[3] = i == 1 ? NAN : INFINITY;
        assert_ok(ah__run_load(f.run, last, places[i], f.buffer));
        assert_fails(save(dir, &bad, &f), AH_ENUMERIC, "[3] is ");
        assert_ok(ah__checkpoint_open(&found, dir, false));
        assert_int_equal(found.step, 1);
        ah__checkpoint_close(&found);
    }
    fixture_fini(&f);
}

/* A folder that is whole by its checksums, but not by what it says. */
static void wrong_state(void **state)
{
    struct fixture f;
    char data[] = "d", dir[PATH_SIZE], path[PATH_SIZE + 32];
    snprintf(dir, sizeof dir, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/state.json", dir);
    struct ah_checkpoint in = state_of(1, data), out = {.step = 77};
    in.settings.batch = -5;
    fixture_init(&f, 0);
    assert_ok(save(dir, &in, &f));
    assert_fails(ah__checkpoint_open(&out, dir, false), AH_EINPUT, "state.json: key 'batch': found -5");
    assert_int_equal(out.step, 77);
    assert_fails(ah__checkpoint_open(&out, ah_test_folder(), true), AH_EINPUT, "");
    fixture_fini(&f);
}

static void damage(const char *dir, const char *file)
{
    char path[PATH_SIZE + 64];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    assert_ok(ah__file_write(path, "damaged", 7));
}

/* The newest whole one, and why; but one that was named is the one that is meant. */
static void a_damaged_one_gives_way_to_the_one_before(void **state)
{
    struct fixture f;
    char data[] = "d", dir[PATH_SIZE], newest[PATH_SIZE + 32];
    snprintf(dir, sizeof dir, "%s", ah_test_folder());
    snprintf(newest, sizeof newest, "%s/step-00000003", dir);
    struct ah_checkpoint found;
    fixture_init(&f, 0);
    fill(&f);
    for (int64_t step = 1; step <= 3; step++) {
        struct ah_checkpoint in = state_of(step, data);
        in.settings.keep = 3;
        assert_ok(save(dir, &in, &f));
    }
    assert_ok(ah__checkpoint_open(&found, dir, true));
    assert_true(found.step == 3 && !found.passed_over);
    ah__checkpoint_close(&found);
    damage(dir, "step-00000003/optimizer.safetensors");
    assert_fails(ah__checkpoint_open(&found, dir, false), AH_ECORRUPT, "step-00000003/optimizer.safetensors: found 7");
    assert_fails(ah__checkpoint_open(&found, newest, true), AH_ECORRUPT, "step-00000003/optimizer.safetensors");
    assert_ok(ah__checkpoint_open(&found, dir, true));
    assert_true(found.step == 2 && strstr(found.passed_over, "step-00000003/optimizer.safetensors: found 7"));
    ah__checkpoint_close(&found);
    damage(dir, "step-00000002/state.json");
    assert_ok(ah__checkpoint_open(&found, dir, true));
    assert_int_equal(found.step, 1);
    ah__checkpoint_close(&found);
    damage(dir, "step-00000001/checksums.json"); /* the newest's fault is what a user must hear of */
    assert_fails(ah__checkpoint_open(&found, dir, true), AH_ECORRUPT, "step-00000003/optimizer.safetensors");
    fixture_fini(&f);
}

/* Whole by its own word, but of too few files, or of another kind. */
static void an_incomplete_one_is_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"{\"version\": 1, \"files\": {}}", "key 'files.model.safetensors': found nothing"},
        {"{\"version\": 999, \"files\": {}}", "key 'version': found 999, expected an integer from 1 to 1"},
        {"{\"files\": {}}", "key 'version': found nothing"},
    };
    struct fixture f;
    char data[] = "d", dir[PATH_SIZE], path[PATH_SIZE + 64];
    snprintf(dir, sizeof dir, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/checkpoint/checksums.json", dir);
    struct ah_checkpoint in = state_of(1, data), found;
    fixture_init(&f, 0);
    assert_ok(save(dir, &in, &f));
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        assert_ok(ah__file_write(path, rows[i].text, strlen(rows[i].text)));
        assert_fails(ah__checkpoint_open(&found, dir, true), AH_ECORRUPT, rows[i].words);
    }
    fixture_fini(&f);
}

/* A writer that keeps one checkpoint takes away what a reader has just found. */
static void a_reader_beside_a_writer_gets_a_whole_one(void **state)
{
    enum { SAVES = 60 };
    struct fixture f;
    char data[] = "d", dir[PATH_SIZE];
    snprintf(dir, sizeof dir, "%s", ah_test_folder());
    struct ah_checkpoint in = state_of(1, data), found;
    in.settings.keep = 1;
    fixture_init(&f, 0);
    fill(&f);
    assert_ok(save(dir, &in, &f));
    pid_t child = fork();
    if (child == 0) {
        struct ah_states states = {copy_of_nothing, NULL}; /* no threads live in a child: the run is not asked */
        for (in.step = 2; in.step <= SAVES; in.step++)
            if (ah__checkpoint_save(dir, &in, f.model, f.partition, &states, f.buffer) != AH_OK)
                _exit(1);
        _exit(0);
    }
    int code = -1;
    do {
        assert_ok(ah__checkpoint_open(&found, dir, false));
        ah__checkpoint_close(&found);
    } while (waitpid(child, &code, WNOHANG) == 0);
    assert_int_equal(code, 0);
    assert_ok(ah__checkpoint_open(&found, dir, false));
    assert_int_equal(found.step, SAVES);
    ah__checkpoint_close(&found);
    fixture_fini(&f);
}

/* The model's file of a training in bf16 has what that computes with, whose ties go away from zero; masters
 * are whole. */
static void ties_are_saved_as_they_are_used(void **state)
{
    static const uint32_t ties[] = {0x3f808000, 0xbf808000, 0x3f818000};
    static const uint16_t used[] = {0x3f81, 0xbf81, 0x3f82};
    struct fixture f;
    struct ah_safetensors *file;
    char data[] = "/some/data", dir[PATH_SIZE], path[PATH_SIZE + 40];
    struct ah_checkpoint in = state_of(7, data);
    in.settings.dtype = in.settings.save_dtype = AH_BF16;
    snprintf(dir, sizeof dir, "%s/ties", ah_test_folder());
    fixture_init_in(&f, 1, AH_BF16);
    fill(&f);
    memcpy(f.buffer, ties, sizeof ties);
    assert_ok(ah__run_load(f.run, 0, AH_RUN_PARAM, f.buffer));
    assert_ok(save(dir, &in, &f));
    const char *name = f.partition->params[0].name;
    char master[PATH_SIZE];
    snprintf(master, sizeof master, "%s.master", name);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    assert_ok(ah__safetensors_open(&file, path));
    assert_memory_equal(ah__safetensors_find(file, name)->data, used, sizeof used);
    ah__safetensors_close(file);
    snprintf(path, sizeof path, "%s/step-00000007/optimizer.safetensors", dir);
    assert_ok(ah__safetensors_open(&file, path));
    assert_memory_equal(ah__safetensors_find(file, master)->data, ties, sizeof ties);
    ah__safetensors_close(file);
    fixture_fini(&f);
}

AH_TEST_CASES("train/checkpoint", what_goes_in_comes_out, ties_are_saved_as_they_are_used, names_are_hugging_faces,
              infinity_is_not_saved, wrong_state, a_damaged_one_gives_way_to_the_one_before,
              an_incomplete_one_is_refused, a_reader_beside_a_writer_gets_a_whole_one)
