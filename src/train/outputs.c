#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "train/road.h"

/* Enough for two iterations in full swing. */
enum { STRETCH_ENOUGH = 4 };

/* ---- the files beside the checkpoints ------------------------------------------------------------------------------ */

static int save_profile(const struct ah_road *road, const char *path)
{
    return ah_profile_save(road->profile, path);
}

static int save_plan(const struct ah_road *road, const char *path)
{
    return ah_plan_save(&road->plan, path);
}

static int save_timeline(const struct ah_road *road, const char *path)
{
    return ah_timeline_save(ah__run_timeline(road->run), path);
}

static int save_picture(const struct ah_road *road, const char *path)
{
    return ah_timeline_save_svg(road->predicted, ah__run_timeline(road->run), road->options->budget.device_bytes, path);
}

static int save(const struct ah_road *road, const char *name, int (*how)(const struct ah_road *road, const char *path))
{
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/%s", road->out_dir, name));
    int status = how(road, path);
    ah__free(path);
    return status;
}

/* ---- before and during training ------------------------------------------------------------------------------------ */

/* The next checkpoint's state: only step and loss change from here on. */
static int prepare_state(struct ah_road *road)
{
    const struct ah_tokens_info *info = ah__tokens_info(road->tokens);
    const char *data = road->options->data_path ? road->options->data_path : road->resumed.data_path;
    char *absolute = realpath(data, NULL);
    int status = ah__strdup(&road->state.data_path, absolute ? absolute : data);
    free(absolute);
    road->state.data_tokens = info->tokens;
    road->state.data_signature = info->signature;
    road->state.settings = road->settings;
    AH_TRY(status);
    return ah__new(&road->save_buffer, (size_t)ah__checkpoint_buffer(road->partition), sizeof *road->save_buffer);
}

int ah__road_lock(struct ah_road *road)
{
    if (road->out_fd >= 0)
        return AH_OK;
    int fd = open(road->out_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return AH_OK; /* not there yet, or what the first write will complain about */
    /* File systems that cannot lock do without. */
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        return ah__fail(AH_EINPUT, "%s: found another training at work there, expected a folder of its own", road->out_dir);
    }
    road->out_fd = fd;
    return AH_OK;
}

void ah__road_unlock(struct ah_road *road)
{
    if (road->out_fd >= 0)
        close(road->out_fd);
    road->out_fd = -1;
}

/* A folder that was not there when the inputs were checked: another training may have made it and even be done. */
static int take_out(struct ah_road *road)
{
    bool locked = road->out_fd >= 0, taken = false;
    AH_TRY(ah__folder_make(road->out_dir));
    AH_TRY(ah__road_lock(road));
    if (!locked)
        AH_TRY(ah__road_holds_training(&taken, road->out_dir));
    return taken ? ah__fail(AH_EINPUT, "%s: found a training there that began meanwhile, expected another folder",
                            road->out_dir)
                 : AH_OK;
}

int ah__road_open_out(struct ah_road *road)
{
    if (!road->out_dir)
        return AH_OK;
    AH_TRY(prepare_state(road));
    AH_TRY(take_out(road));
    AH_TRY(save(road, "profile.json", save_profile));
    AH_TRY(save(road, "plan.json", save_plan));
    AH_TRY(ah__metrics_open(&road->metrics, road->out_dir, road->resumed.step));
    road->loop.metrics = &road->metrics;
    road->loop.save = ah__road_save;
    road->loop.stretch = ah__road_pictures;
    road->loop.context = road;
    return AH_OK;
}

int ah__road_save(int64_t step, double loss, void *context)
{
    struct ah_road *road = context;
    road->state.step = step;
    road->state.loss = loss;
    AH_TRY(ah__metrics_sync(&road->metrics));
    return ah__checkpoint_save(road->out_dir, &road->state, road->model, road->partition, road->run, road->save_buffer);
}

/* The first stretch that is long enough, or the longest so far, shows what really happened. */
int ah__road_pictures(int64_t steps, void *context)
{
    struct ah_road *road = context;
    if (steps <= road->longest_stretch || road->longest_stretch >= STRETCH_ENOUGH)
        return AH_OK;
    road->longest_stretch = steps;
    AH_TRY(save(road, "timeline.json", save_timeline));
    return save(road, "timeline.svg", save_picture);
}
