/* ah_train: the whole road on one screen. */
#include "train/road.h"

static int walk(struct ah_road *road)
{
    const struct ah_train_options *options = road->options;
    struct ah_run_hooks hooks;
    AH_TRY(ah__road_inputs(road));
    AH_TRY(ah_model_record(&road->graph, road->model, road->settings.batch, road->settings.seq, AH_F32));
    AH_TRY(ah_partition_new(&road->partition, road->graph));
    AH_TRY(ah_dev_open(&road->dev, options->device ? options->device : "cpu", &options->dev));
    AH_TRY(ah__road_profile(road));
    AH_TRY(ah__road_plan(road));
    AH_TRY(ah__loop_init(&road->loop, &hooks, road->dev));
    AH_TRY(ah__run_new(&road->run, road->partition, &road->plan, road->dev, &hooks));
    AH_TRY(ah__road_load(road));
    AH_TRY(ah__road_open_out(road));
    return ah__loop_run(&road->loop, road->run);
}

static void leave(struct ah_road *road)
{
    ah__metrics_close(&road->metrics);
    ah__road_unlock(road);
    ah__free(road->save_buffer);
    ah__free(road->state.data_path);
    ah__run_free(road->run);
    ah__loop_fini(&road->loop);
    ah_timeline_free(road->predicted);
    ah_profile_free(road->profile);
    ah_dev_close(road->dev);
    ah_partition_free(road->partition);
    ah_graph_free(road->graph);
    ah__tokens_close(road->tokens);
    ah__tokenizer_close(road->tokenizer);
    ah_model_free(road->own_model);
    ah__free(road->out_dir);
    ah__checkpoint_close(&road->resumed);
}

static void fill_result(struct ah_train_result *result, struct ah_road *road)
{
    struct ah_dev_info info;
    int64_t step_ns = ah__loop_step_ns(&road->loop);
    road->dev->ops->info(road->dev, &info);
    *result = (struct ah_train_result){
        .steps_done = road->loop.step,
        .stopped = road->loop.stopped,
        .final_loss = road->loop.loss,
        .val_loss = road->loop.val_loss,
        .tokens_per_s = step_ns ? (double)(road->settings.batch * road->settings.seq) * 1e9 / (double)step_ns : 0,
        .device_peak_bytes_predicted = road->plan.device_peak_bytes,
        .device_peak_bytes_used = info.device_high_water_bytes,
        .host_peak_bytes_predicted = road->plan.host_peak_bytes,
        .host_peak_bytes_used = info.host_bytes,
        .step_ns_predicted = road->plan.step_ns,
        .step_ns_median = step_ns,
        .plan = road->plan,
    };
}

int ah_train(struct ah_train_result *result, const struct ah_train_options *options)
{
    struct ah_road road = {.options = options, .out_fd = -1};
    int status = walk(&road);
    if (status == AH_OK)
        fill_result(result, &road);
    leave(&road);
    return status;
}
