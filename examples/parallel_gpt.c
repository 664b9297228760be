/* A model of one's own: a GPT whose blocks compute attention and MLP side by side, x + attn(ln x) + mlp(ln x), with
 * relu.
 *
 *     parallel_gpt               prints the recorded graph and how it is partitioned
 *     parallel_gpt TEXT MEMORY   trains it on a text within so much device memory, as in: parallel_gpt book.txt 24MiB
 *
 * With AutoHete installed, or PKG_CONFIG_PATH pointing at its autohete.pc:
 *
 *     cc -o parallel_gpt parallel_gpt.c $(pkg-config --cflags --libs autohete) -lm
 *
 * Only autohete.h is needed. The definition says what is computed, under which names, and nothing about memory. */
#include <math.h>
#include <stdio.h>

#include "autohete.h"

struct parallel_gpt {
    int64_t vocab, positions, embd;
    int layers, heads;
};

static const struct ah_tensor no_bias = {-1};

static struct ah_tensor norm(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t width)
{
    ah_graph_scope_push(graph, "%s", name);
    struct ah_tensor weight = ah_graph_param(graph, "weight", ah_shape1(width), AH_INIT_ONES, 0);
    struct ah_tensor bias = ah_graph_param(graph, "bias", ah_shape1(width), AH_INIT_ZEROS, 0);
    x = ah_graph_layernorm(graph, x, weight, bias, 1e-5f);
    ah_graph_scope_pop(graph);
    return x;
}

static struct ah_tensor linear(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t in, int64_t out,
                               float std)
{
    struct ah_tensor weight = ah_graph_param(graph, name, ah_shape2(in, out), AH_INIT_NORMAL, std);
    return ah_graph_linear(graph, x, weight, no_bias, false);
}

/* Both branches are added onto fresh results, never onto x: the block's input stays whole. */
static struct ah_tensor block(struct ah_graph *graph, const struct parallel_gpt *model, struct ah_tensor x)
{
    int64_t c = model->embd;
    float residual = 0.02f / sqrtf(2.0f * (float)model->layers);
    struct ah_tensor y = norm(graph, "ln", x, c);
    struct ah_tensor attention =
        ah_graph_attention(graph, linear(graph, "attn.qkv", y, c, 3 * c, 0.02f), model->heads, NULL);
    attention = linear(graph, "attn.out", attention, c, c, residual);
    struct ah_tensor mlp = ah_graph_relu(graph, linear(graph, "mlp.in", y, c, 4 * c, 0.02f));
    mlp = linear(graph, "mlp.out", mlp, 4 * c, c, residual);
    return ah_graph_add_inplace(graph, ah_graph_add_inplace(graph, attention, mlp), x);
}

static int record(struct ah_graph *graph, int64_t batch, int64_t seq, void *context)
{
    const struct parallel_gpt *model = context;
    struct ah_tensor tokens = ah_graph_tokens(graph, batch, seq), targets = ah_graph_targets(graph, batch, seq);
    struct ah_tensor table =
        ah_graph_param(graph, "tokens", ah_shape2(model->vocab, model->embd), AH_INIT_NORMAL, 0.02f);
    struct ah_tensor places =
        ah_graph_param(graph, "positions", ah_shape2(model->positions, model->embd), AH_INIT_NORMAL, 0.02f);
    struct ah_tensor x = ah_graph_add_position(graph, ah_graph_embedding(graph, table, tokens), places);
    for (int i = 0; i < model->layers; i++) {
        ah_graph_scope_push(graph, "block.%d", i);
        x = block(graph, model, x);
        ah_graph_scope_pop(graph);
    }
    x = norm(graph, "last", x, model->embd);
    return ah_graph_finish(graph, ah_graph_linear_cross_entropy(graph, x, table, targets));
}

static int show(const struct ah_model *model)
{
    struct ah_graph *graph = NULL;
    struct ah_partition *partition = NULL;
    int status = ah_model_record(&graph, model, &(struct ah_record_options){.batch = 4, .seq = 64, .compute = AH_F32});
    if (status == AH_OK)
        status = ah_partition_new(&partition, graph, NULL);
    if (status == AH_OK)
        status = ah_graph_print(graph, stdout);
    if (status == AH_OK)
        status = ah_partition_print(partition, stdout);
    ah_partition_free(partition);
    ah_graph_free(graph);
    return status;
}

/* All steps; the last checkpoint would be on disk then, had we given a folder. */
static int steps_take(struct ah_trainer *trainer)
{
    struct ah_step step;
    int status;
    while ((status = ah_trainer_step(trainer, &step)) == AH_OK)
        if (step.step == 1 || step.step % 10 == 0)
            printf("step %lld loss %.4f\n", (long long)step.step, step.loss);
    return status == AH_EEND ? AH_OK : status;
}

static int train(const struct ah_model *model, const char *text, const char *memory)
{
    struct ah_train_options options;
    struct ah_train_result result;
    struct ah_trainer *trainer = NULL;
    ah_train_options_init(&options, sizeof options);
    options.model = model;
    options.data_path = text;
    options.batch = 4;
    options.seq = 64;
    options.steps = 50;
    options.lr = 1e-3;
    int status = ah_size_parse(&options.budget.device_bytes, memory);
    if (status == AH_OK)
        status = ah_trainer_open(&trainer, &options);
    if (status == AH_OK)
        status = steps_take(trainer);
    if (status == AH_OK) {
        ah_trainer_result(trainer, &result);
        printf("validation loss %.4f, device peak %lld bytes\n", result.val_loss,
               (long long)result.device_peak_bytes_used);
    }
    ah_trainer_close(trainer);
    return status;
}

int main(int argc, char **argv)
{
    struct parallel_gpt shape = {.vocab = 256, .positions = 64, .embd = 128, .layers = 6, .heads = 4};
    struct ah_model_def def = {
        .name = "parallel_gpt",
        .config = "{\"model_type\": \"parallel_gpt\", \"layers\": 6, \"embd\": 128, \"heads\": 4}",
        .vocab_size = shape.vocab,
        .max_seq = shape.positions,
        .layers = shape.layers,
        .record = record,
        .context = &shape,
    };
    struct ah_model *model = NULL;
    int status = ah_model_new(&model, &def);
    if (status == AH_OK)
        status = argc == 3 ? train(model, argv[1], argv[2]) : show(model);
    ah_model_free(model);
    if (status == AH_OK)
        return 0;
    fprintf(stderr, "parallel_gpt: %s\n", ah_error());
    return ah_status_is_input(status) ? 2 : 1;
}
