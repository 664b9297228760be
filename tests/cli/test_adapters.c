/* Adapters and frozen parameters on the command line: trained, resumed, used, merged, refused. */
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cli/program.h"

enum { FILE_MOST = 1 << 20 };

static char where[200]; /* the case's folder */

/* A model with weights: WHERE/base. */
static const char *base(void)
{
    static char model[240];
    char path[240];
    static const char config[] = "{\"model_type\": \"llama\", \"vocab_size\": 256, \"hidden_size\": 16, "
                                 "\"intermediate_size\": 24, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
                                 "\"num_key_value_heads\": 1, \"max_position_embeddings\": 64}";
    snprintf(where, sizeof where, "%s", ah_test_folder());
    snprintf(model, sizeof model, "%s/base", where);
    snprintf(path, sizeof path, "%s/config.json", where);
    assert_ok(ah__file_write(path, config, strlen(config)));
    run("train --model %s --data %s/../README.md --device cpu --batch 2 --seq 16 --steps 1 --val-batches 0 --quiet "
        "--out %s",
        path, ah_test_source(), model);
    assert_ran(0);
    return model;
}

static void train(const char *out, const char *options)
{
    run("train --data %s/../README.md --device cpu --batch 2 --seq 16 --val-batches 0 --quiet --out %s/%s %s",
        ah_test_source(), where, out, options);
}

static void same_file(const char *a, const char *b, const char *name)
{
    char path[2][300], *text[2];
    size_t length[2];
    snprintf(path[0], sizeof path[0], "%s/%s/checkpoint/%s", where, a, name);
    snprintf(path[1], sizeof path[1], "%s/%s/checkpoint/%s", where, b, name);
    for (int i = 0; i < 2; i++)
        assert_ok(ah__file_read(&text[i], &length[i], path[i], FILE_MOST));
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(text[0], text[1], length[0]);
    for (int i = 0; i < 2; i++)
        ah__free(text[i]);
}

/* Four steps are the same as two under one plan and two more under another; {} in `then` is the first half's folder. */
static void goes_on_as_one(const char *tuning, const char *plan, const char *then, const char *weights)
{
    static const char *const folders[] = {"whole", "half"};
    const char *model = base();
    char options[600];
    snprintf(options, sizeof options, "--model %s %s --steps 4", model, tuning);
    train("whole", options);
    assert_ran(0);
    snprintf(options, sizeof options, "--model %s %s --plan %s --steps 2 --lr-steps 4 --warmup 0", model, tuning, plan);
    train("half", options);
    assert_ran(0);
    const char *at = strstr(then, "{}");
    int before = at ? (int)(at - then) : (int)strlen(then);
    snprintf(options, sizeof options, "--resume %s/half --steps 4 --keep 1 --plan %.*s%s%s%s", where, before, then,
             at ? where : "", at ? "/half" : "", at ? at + 2 : "");
    train("half", options);
    assert_ran(0);
    same_file("whole", "half", weights);
    same_file("whole", "half", "optimizer.safetensors");
    for (size_t i = 0; i < AH_LENGTH(folders); i++) {
        char remove[300];
        snprintf(remove, sizeof remove, "%s/%s", where, folders[i]);
        assert_ok(ah__folder_remove(remove));
    }
}

static void a_resumed_training_of_adapters_is_the_same(void **state)
{
    static const char *const types[] = {"--dtype fp32",
                                        "--dtype bf16",
                                        "--dtype bf16 --moments int8",
                                        "--dtype fp32 --frozen int8",
                                        "--dtype bf16 --frozen nf4",
                                        "--dtype bf16 --frozen mxfp4"};
    for (size_t i = 0; i < AH_LENGTH(types); i++) {
        char tuning[100];
        snprintf(tuning, sizeof tuning, "--lora-rank 4 --lora-alpha 8 %s", types[i]);
        goes_on_as_one(tuning, i % 2 ? "resident" : "c=2,p=1,o=1", i % 2 ? "c=1,p=2,o=2" : "resident",
                       "adapter_model.safetensors");
    }
}

/* What frozen matrices are kept in belongs to a training; an adapter can go on beside another form of them. */
static void codes_are_kept_when_resumed(void **state)
{
    const char *model = base();
    char options[400];
    snprintf(options, sizeof options, "--model %s --lora-rank 2 --frozen nf4 --steps 1", model);
    train("coded", options);
    assert_ran(0);
    run("train --resume %s/coded --frozen int8 --steps 2 --quiet", where);
    assert_refused("--frozen: found 'int8', expected 'nf4' as in the checkpoint");
    run("train --resume %s/coded --frozen nf4 --steps 2 --quiet", where);
    assert_ran(0);
    snprintf(options, sizeof options, "--model %s --lora-rank 2 --steps 1", model);
    train("plain", options);
    assert_ran(0);
    run("train --resume %s/plain --frozen nf4 --steps 2 --quiet", where);
    assert_refused("--frozen: found 'nf4', expected nothing as in the checkpoint");
    snprintf(options, sizeof options, "--model %s --adapter %s/plain --frozen int8 --steps 1", model, where);
    train("other", options);
    assert_ran(0);
    run("eval --model %s/coded --data %s/../README.md --seq 16", where, ah_test_source());
    assert_ran(0);
}

/* What is frozen goes on as it was, whatever types compute and save. */
static void frozen_parameters_are_resumed_exactly(void **state)
{
    static const char *const types[] = {"--dtype fp32", "--dtype bf16", "--dtype bf16 --save-dtype fp32",
                                        "--dtype fp32 --save-dtype bf16"};
    for (size_t i = 0; i < AH_LENGTH(types); i++) {
        char tuning[100];
        snprintf(tuning, sizeof tuning, "--freeze '*.mlp.*,*embed_tokens*' %s", types[i]);
        goes_on_as_one(tuning, "c=1,p=1,o=2", "resident", "model.safetensors");
    }
}

/* The plan that a training leaves is taken again. */
static void above_frozen_blocks_a_plan_is_taken_again(void **state)
{
    goes_on_as_one("--freeze embedding,blocks:1", "c=1,p=1,o=1", "{}/plan.json", "model.safetensors");
}

/* On the host it would be there twice, and nothing of it would leave. */
static void a_frozen_embedding_stays_on_the_device(void **state)
{
    static const char *const freeze[] = {"", "--freeze embedding"};
    const char *model = base();
    for (int frozen = 0; frozen < 2; frozen++) {
        run("plan --model %s --device cpu --seq 16 --plan c=2,p=2,o=2 --json %s", model, freeze[frozen]);
        assert_ran(0);
        assert_non_null(strstr(ran.out, frozen ? "\"embedding_on_host\": false" : "\"embedding_on_host\": true"));
    }
}

/* The model's own weights are no part of a checkpoint, which knows them again. */
static void weights_that_were_adapted_are_known_again(void **state)
{
    const char *model = base();
    char options[400];
    snprintf(options, sizeof options, "--model %s --lora-rank 2 --steps 1", model);
    train("lora", options);
    assert_ran(0);
    run("train --resume %s/lora --steps 2 --quiet", where);
    assert_ran(0);
    run("train --model %s/config.json --data %s/../README.md --device cpu --batch 2 --seq 16 --steps 1 --val-batches 0 "
        "--seed 7 --quiet --out %s/other",
        where, ah_test_source(), where);
    assert_ran(0);
    run("train --resume %s/lora --model %s/other --steps 3 --quiet", where, where);
    assert_refused("other/model.safetensors: found other weights than those that the adapters of");
    run("train --resume %s/lora --model %s/config.json --steps 3 --quiet", where, where);
    assert_refused("config.json: found no weights, expected those that the adapters of");
}

/* The loss of an adapter beside its model, of a folder that names both, and of both merged. */
static void an_adapter_merged_predicts_the_same(void **state)
{
    const char *model = base();
    char options[300], loss[3][64] = {"", "", ""};
    snprintf(options, sizeof options, "--model %s --lora-rank 2 --steps 3 --lr 0.05 --lora-targets q_proj,down_proj",
             model);
    train("lora", options);
    assert_ran(0);
    run("merge --model %s/lora --out %s/merged", where, where);
    assert_ran(0);
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            run("eval --model %s --adapter %s/lora --data %s/../README.md --seq 16", model, where, ah_test_source());
        else
            run("eval --model %s/%s --data %s/../README.md --seq 16", where, i == 1 ? "lora" : "merged",
                ah_test_source());
        assert_ran(0);
        assert_non_null(strstr(ran.out, "loss "));
        snprintf(loss[i], sizeof loss[i], "%.12s", strstr(ran.out, "loss "));
    }
    assert_string_equal(loss[0], loss[1]);
    assert_string_equal(loss[0], loss[2]);
    run("merge --model %s/lora --out %s/merged", where, where);
    assert_refused("merged: found something there, expected a new folder's name");
    run("merge --model %s --out %s/other", model, where);
    assert_refused("found no adapter, expected one: it has adapter_config.json");
    run("generate --model %s/lora --prompt a --tokens 3", where);
    assert_ran(0);
    run("eval --model %s/lora --adapter %s/lora --data %s/../README.md --seq 16", where, where, ah_test_source());
    assert_refused("lora: found an adapter, expected the model that it is of");
    run("merge --model %s/lora --out %s/again/", where, where);
    assert_ran(0);
    run("eval --model %s/again --data %s/../README.md --seq 16", where, ah_test_source());
    assert_ran(0);
    run("generate --model %s/lora --chat --prompt a --tokens 3", where);
    assert_refused("found no chat template");
    char path[300];
    snprintf(path, sizeof path, "%s/lora/checkpoint/chat_template.jinja", where);
    assert_ok(ah__file_write(path, "{{ messages[0].content }}", 25));
    run("generate --model %s/lora --chat --prompt a --tokens 3", where); /* as a training keeps --chat-template */
    assert_ran(0);
    run("export --model %s/lora --gguf %s/lora.gguf", where, where);
    assert_ran(0);
    assert_says(ran.out, "/lora.gguf: wrote ");
    assert_says(ran.err, "lora.gguf: an adapter of 4 weights");
    run("generate --model %s --adapter %s/lora.gguf --prompt a --tokens 3", model, where);
    assert_refused("lora.gguf: found a GGUF file, expected an adapter's folder");
    run("generate --model %s/lora.gguf --prompt a --tokens 3", where);
    assert_refused("key 'general.type': found 'adapter', expected 'model'");
    run("train --model %s/lora/checkpoint --data %s/../README.md --device cpu --steps 1", where, ah_test_source());
    assert_refused("found an adapter, expected the model that it is of, and this folder as the adapter (--adapter)");
}

static void what_is_trained_is_checked(void **state)
{
    const char *model = base();
    static const struct {
        const char *options, *says;
    } cases[] = {
        {"--lora-rank 4 --lora-targets foo",
         "lora_targets: found 'foo', expected linear layers of the model's blocks: q_proj, k_proj, v_proj, o_proj, "
         "gate_proj, up_proj, down_proj"},
        {"--lora-targets q_proj", "--lora-rank: found nothing, expected it beside other settings of adapters"},
        {"--freeze '*.mlq.*'", "freeze: found '*.mlq.*', which no parameter is called; expected embedding, blocks, "
                               "blocks:1-2, head or names like 'model.embed_tokens.weight'"},
        {"--freeze embedding,blocks:1-4", "freeze: found 'blocks:1-4', expected blocks:FIRST-LAST within blocks:1-2"},
        {"--freeze blocks:0", "freeze: found 'blocks:0', expected blocks:FIRST-LAST within blocks:1-2"},
        {"--freeze embedding,blocks:2-1x", "freeze: found 'blocks:2-1x', expected blocks:FIRST-LAST within"},
        {"--freeze blocks:1",
         "--freeze: found model.layers.0.input_layernorm.weight frozen and model.layers.1.input_layernorm.weight not, "
         "expected the same of all blocks, or all of the embedding and of the lowest blocks"},
        {"--freeze embedding,blocks:2", "--freeze: found model.layers.1.input_layernorm.weight frozen"},
        {"--lora-rank 4 --lora-targets ','", "--lora-targets: found ',', expected names of linear layers"},
        {"--freeze '*.mlp.*' --plan c=0,p=1,o=2,staged=1",
         "--plan: staged=1: found frozen parameters, expected staged=0"},
        {"--freeze '*'", "step: found all parameters frozen, expected some to train"},
        {"--freeze '*layers.0.*'", "--freeze: found model.layers.0.input_layernorm.weight frozen"},
        {"--lora-rank 4 --init random", "--lora-rank: found 4 beside random parameters, expected a model with weights"},
        {"--lora-rank 4 --frozen int4", "--frozen: found 'int4', expected int8, nf4 or mxfp4"},
        {"--frozen nf4", "--frozen: found 'nf4' without adapters, expected lora_rank beside it"},
        {"--freeze '*.mlp.*' --frozen int8", "--frozen: found 'int8' without adapters, expected lora_rank beside it"},
        {"--lora-rank 4 --freeze embedding,blocks:1",
         "freeze: found 'blocks:1' beside adapters, which are of all blocks alike"},
        {"--lora-rank 4 --lora-targets layers.1.mlp.up_proj", "blocks 'model.layers.0' and 'model.layers.1' differ"},
        {"--freeze embedding,'model.layers.1.mlp.*'",
         "--freeze: found model.layers.1.mlp.gate_proj.weight frozen and model.layers.0.mlp.gate_proj.weight not"},
        {"--freeze embedding,blocks:1 --plan c=3,p=0,o=1", "c=3: found 3, expected at most layers=2"},
        {"--adapter nowhere", "nowhere/adapter_config.json"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        char options[400];
        snprintf(options, sizeof options, "--model %s --steps 1 %s", model, cases[i].options);
        train("never", options);
        assert_refused(cases[i].says);
    }
}

/* Of a file that somebody else has written. */
static void configurations_of_adapters_are_read_or_refused(void **state)
{
    const char *model = base();
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"{\"peft_type\": \"IA3\"}", "key 'peft_type': found \"IA3\", expected \"LORA\""},
        {"{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, \"use_dora\": true}",
         "key 'use_dora': found true, expected nothing: it is not supported"},
        {"{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, \"init_lora_weights\": \"pissa_niter_4\"}",
         "key 'init_lora_weights': found \"pissa_niter_4\", under which the model's own weights are changed, too"},
        {"{\"peft_type\": \"LORA\", \"r\": 0, \"lora_alpha\": 8}", "key 'r': found 0, expected an integer from 1 to"},
        {"{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, \"target_modules\": []}",
         "key 'target_modules': found no names, expected a list of them or \"all-linear\""},
        {"{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, \"target_modules\": \".*_proj\"}",
         "adapter_model.safetensors: "}, /* which says what has adapters: there is none */
        {"{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, \"arrow_config\": {\"top_k\": 3}}",
         "key 'arrow_config': found {\"top_k\":3}, expected nothing: it is not supported"},
        {"{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, \"rank_pattern\": {\"v_proj\": 0}}",
         "key 'rank_pattern.v_proj': found another value, expected a whole number above 0"},
        {"{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 8, \"rank_pattern\": {\"v_proj\": 0.5}}",
         "key 'rank_pattern.v_proj': found another value, expected a whole number above 0"},
        {"{\"peft_type\": \"LORA\", \"layers_to_transform\": \"1\"}",
         "key 'layers_to_transform': found another value, expected numbers of layers"},
        {"{\"peft_type\": \"LORA\", \"target_modules\": [\"q_proj\"], \"alpha_pattern\": {\"(q\": 2}}",
         "adapter_config.json: pattern '(q': "},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        char path[300], options[500];
        snprintf(path, sizeof path, "%s/adapter_config.json", where);
        assert_ok(ah__file_write(path, cases[i].json, strlen(cases[i].json)));
        snprintf(options, sizeof options, "--model %s --steps 1 --adapter %s", model, where);
        train("never", options);
        assert_refused(cases[i].says);
    }
}

/* The file says what has adapters, where names are a regular expression or some are excluded. */
static void targets_that_are_no_names_are_those_of_the_file(void **state)
{
    const char *model = base();
    static const char *const targets[] = {"[\"q_proj\", \"down_proj\"]",
                                          "\"(?:.*?attn.*?q_proj.*?)|.*\\\\.(down)_proj\"",
                                          "\"all-linear\", \"exclude_modules\": \"[kvogu].*_proj\""};
    char options[500], path[300], json[400], name[16];
    snprintf(options, sizeof options, "--model %s --lora-rank 2 --lora-targets q_proj,down_proj --lr 0.05 --steps 2",
             model);
    train("first", options);
    assert_ran(0);
    for (size_t i = 0; i < AH_LENGTH(targets); i++) {
        snprintf(path, sizeof path, "%s/first/checkpoint/adapter_config.json", where);
        snprintf(json, sizeof json, "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 2, \"target_modules\": %s}",
                 targets[i]);
        assert_ok(ah__file_write(path, json, strlen(json)));
        snprintf(options, sizeof options, "--model %s --adapter %s/first/checkpoint --lr 0.05 --steps 2", model, where);
        snprintf(name, sizeof name, "on%zu", i);
        train(name, options);
        assert_ran(0);
        same_file("on0", name, "adapter_model.safetensors");
    }
    static const struct {
        const char *config, *says;
    } refused[] = {
        {"\"lora_dropout\": 0.1", "key 'lora_dropout': found 0.1, expected 0: training drops nothing; --no-dropout"},
        {"\"alpha_pattern\": {\"q_proj\": 3}",
         "key 'alpha_pattern': found scales that differ, expected one for all; autohete merge makes a model of it"},
        {"\"modules_to_save\": [\"no_such\"]", "key 'modules_to_save': found modules, expected none; autohete merge"},
    };
    for (size_t i = 0; i < AH_LENGTH(refused); i++) {
        snprintf(json, sizeof json, "{\"peft_type\": \"LORA\", \"r\": 2, \"target_modules\": %s, %s}", targets[0],
                 refused[i].config);
        assert_ok(ah__file_write(path, json, strlen(json)));
        train("never", options);
        assert_refused(refused[i].says);
    }
}

/* What a training began with is in run.json: one that is started like it begins with the same. */
static void an_adapter_is_gone_on_from(void **state)
{
    const char *model = base();
    char options[500];
    snprintf(options, sizeof options, "--model %s --lora-rank 2 --lr 0.05 --steps 2", model);
    train("first", options);
    assert_ran(0);
    snprintf(options, sizeof options, "--model %s --adapter %s/first/checkpoint --steps 1", model, where);
    train("second", options);
    assert_ran(0);
    snprintf(options, sizeof options, "--like %s/second", where);
    train("third", options);
    assert_ran(0);
    same_file("second", "third", "adapter_model.safetensors");
    run("profile --model %s --device cpu --batch 2 --seq 16 --lora-rank 2 --as-hardware %s/machine.json", model, where);
    assert_refused("--as-hardware: found it beside frozen parameters, whose updates are too small to tell rates");
}

/* Half of the weights' bytes and less, and no state but the adapters'. */
static void frozen_weights_need_little(void **state)
{
    run("simulate --hardware rtx4090-64g --model %s/../models/llama-3.1-8b.json --batch 8 --seq 1024",
        ah_test_source());
    assert_says(ran.out, "does not fit; host memory");
    run("simulate --hardware rtx4090-64g --model %s/../models/llama-3.1-8b.json --batch 8 --seq 1024 --lora-rank 16",
        ah_test_source());
    assert_ran(0);
    assert_null(strstr(ran.out, "does not fit"));
    /* 32 blocks have 21 GB, and training of the other 8 what the device has beside. */
    run("simulate --hardware rtx4090-128g --model %s/../models/qwen3-14b.json --batch 4 --seq 2048 --dtype bf16 "
        "--freeze embedding,blocks:1-32",
        ah_test_source());
    assert_ran(0);
    assert_null(strstr(ran.out, "does not fit"));
}

/* Comparisons and pictures say what of the model is trained and what the rest is kept in. */
static void pictures_say_what_is_frozen(void **state)
{
    const struct {
        const char *options, *types, *rates;
    } rows[] = {{"", "tokens, bf16; on rtx4090-64g", "bf16, rates"},
                {"--lora-rank 16", "tokens, bf16, 11.3 M trained; on rtx4090-64g", "bf16, adapters of rank 16, rates"},
                {"--lora-rank 16 --frozen nf4", "tokens, bf16, 11.3 M trained beside nf4; on rtx4090-64g",
                 "bf16, adapters of rank 16 beside nf4, rates"}};
    const char *dir = ah_test_folder();
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        run("simulate --hardware rtx4090-64g --model %s/../models/llama-3.2-1b.json --batch 2 --seq 64 %s --plan "
            "c=4,p=0,o=0 --svg %s/timeline.svg",
            ah_test_source(), rows[i].options, dir);
        assert_ran(0);
        assert_says(program_file("%s/timeline.svg", dir), rows[i].types);
        run("simulate --hardware rtx4090-64g --model %s/../models/llama-3.2-1b.json --batch 2 --seq 64 %s",
            ah_test_source(), rows[i].options);
        assert_ran(0);
        assert_says(ran.out, rows[i].rates);
    }
}

/* Blocks on the device are used where they lie and their gradients have places of their own; one that comes needs a
 * buffer, as do gradients where all is trained. */
static void frozen_blocks_on_the_device_need_no_buffer(void **state)
{
    const char *model = base();
    static const char *const rows[][2] = {
        {"--lora-rank 4 --plan resident", "buffers         none: all blocks are used where they stay"},
        {"--lora-rank 4 --plan c=0,p=0,o=0", "buffers         none"},
        {"--lora-rank 4 --plan c=0,p=1,o=1,buffers=1", "buffers         1, as large as one block's parameters"},
        {"--lora-rank 4 --plan c=0,p=2,o=2", "buffers         2, each as large as one block's parameters"},
        {"--plan resident", "buffers         2, each as large as one block's parameters"}};
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        run("plan --model %s --device cpu --batch 2 --seq 16 --dtype bf16 --no-cache %s", model, rows[i][0]);
        assert_ran(0);
        assert_says(ran.out, rows[i][1]);
    }
    run("plan --model %s --device cpu --batch 2 --seq 16 --plan c=0,p=0,o=0,buffers=0", model);
    assert_ran(2);
    assert_says(ran.err, "--plan: buffers=0: found 0, expected at least");
}

AH_TEST_CASES("cli/adapters", a_resumed_training_of_adapters_is_the_same, codes_are_kept_when_resumed,
              frozen_parameters_are_resumed_exactly, above_frozen_blocks_a_plan_is_taken_again,
              a_frozen_embedding_stays_on_the_device, weights_that_were_adapted_are_known_again,
              an_adapter_merged_predicts_the_same, what_is_trained_is_checked,
              configurations_of_adapters_are_read_or_refused, targets_that_are_no_names_are_those_of_the_file,
              an_adapter_is_gone_on_from, frozen_weights_need_little, pictures_say_what_is_frozen,
              frozen_blocks_on_the_device_need_no_buffer)
