/* Trains on batches of one's own: the program makes every batch, AutoHete decides where everything lies and when it
 * moves.
 *
 *     own_batches MODEL MEMORY [FOLDER]     as in: own_batches model.json 3MiB out
 *
 * The sequences count up from anywhere in steps of one to four, modulo the vocabulary: what the model has to find out
 * is the step. Fails when the loss does not fall to half. */
#include <stdio.h>
#include <stdlib.h>

#include "autohete.h"

enum { BATCH = 8, SEQ = 32, STEPS = 60 };

static unsigned draw(unsigned below)
{
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
}

/* Each token learns to say the one behind it. */
static void batch_make(struct ah_batch *batch, int64_t vocab)
{
    for (int row = 0; row < BATCH; row++) {
        int64_t first = draw((unsigned)vocab), by = 1 + draw(4);
        for (int i = 0; i < SEQ; i++) {
            batch->ids[row * SEQ + i] = (int32_t)((first + i * by) % vocab);
            batch->targets[row * SEQ + i] = (int32_t)((first + (i + 1) * by) % vocab);
        }
    }
}

static int steps_take(struct ah_trainer *trainer)
{
    static int32_t ids[BATCH * SEQ], targets[BATCH * SEQ];
    struct ah_batch batch = {ids, targets, NULL};
    struct ah_train_summary summary;
    struct ah_step step;
    int status;
    ah_trainer_summary(trainer, &summary);
    for (;;) {
        batch_make(&batch, summary.vocab_size);
        status = ah_trainer_step_on(trainer, &batch, &step);
        if (status != AH_OK)
            return status == AH_EEND ? AH_OK : status;
        if (step.step % 10 == 1)
            printf("step %lld loss %.4f\n", (long long)step.step, step.loss);
    }
}

static int train(struct ah_train_result *result, const char *model, const char *memory, const char *folder)
{
    struct ah_train_options options;
    struct ah_trainer *trainer = NULL;
    ah_train_options_init(&options, sizeof options);
    options.model_path = model;
    options.own_batches = true;
    options.batch = BATCH;
    options.seq = SEQ;
    options.steps = STEPS;
    options.lr = 1e-2;
    options.out_dir = folder;
    int status = ah_size_parse(&options.budget.device_bytes, memory);
    if (status == AH_OK)
        status = ah_trainer_open(&trainer, &options);
    if (status == AH_OK)
        status = steps_take(trainer);
    if (status == AH_OK)
        ah_trainer_result(trainer, result);
    ah_trainer_close(trainer);
    return status;
}

int main(int argc, char **argv)
{
    struct ah_train_result result;
    if (argc < 3) {
        fprintf(stderr, "usage: own_batches MODEL MEMORY [FOLDER]\n");
        return 2;
    }
    int status = train(&result, argv[1], argv[2], argc > 3 ? argv[3] : NULL);
    if (status != AH_OK) {
        fprintf(stderr, "own_batches: %s\n", ah_error());
        return ah_status_is_input(status) ? 2 : 1;
    }
    printf("last loss %.4f, a uniform guess has %.4f\n", result.final_loss, result.uniform_loss);
    return result.final_loss < result.uniform_loss / 2 ? 0 : 1;
}
