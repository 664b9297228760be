#include "train/weights.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/safetensors.h"
#include "op/bf16.h"

static const char weights_file[] = "model.safetensors";

int ah__weights_find(char **path, const char *model_path)
{
    static const struct {
        const char *name, *what;
    } others[] = {
        {"model.safetensors.index.json", "weights in several files, which are not read yet; expected one"},
        {"pytorch_model.bin", "pickled weights, which are not read: a pickle may run any code; expected"},
        {"pytorch_model.bin.index.json", "pickled weights, which are not read: a pickle may run any code; expected"},
    };
    *path = NULL;
    AH_TRY(ah__sprintf(path, "%s/%s", model_path, weights_file));
    if (access(*path, F_OK) == 0)
        return AH_OK;
    ah__free(*path);
    *path = NULL;
    for (size_t i = 0; i < AH_LENGTH(others); i++) {
        char *other;
        AH_TRY(ah__sprintf(&other, "%s/%s", model_path, others[i].name));
        bool there = access(other, F_OK) == 0;
        int status = there ? ah__fail(AH_EINPUT, "%s: found %s %s, or that random parameters are asked for", other,
                                      others[i].what, weights_file)
                           : AH_OK;
        ah__free(other);
        AH_TRY(status);
    }
    return AH_OK;
}

static bool has_param(const struct ah_partition *partition, const char *name)
{
    for (int p = 0; p < partition->param_count; p++)
        if (strcmp(partition->params[p].name, name) == 0)
            return true;
    return false;
}

/* Nothing in the file is left out without a word. */
static int surplus_check(const struct ah_safetensors *file, const char *path, const struct ah_partition *partition)
{
    if (ah__safetensors_count(file) == (size_t)partition->param_count)
        return AH_OK;
    for (size_t i = 0; i < ah__safetensors_count(file); i++) {
        const char *name = ah__safetensors_at(file, i)->name;
        if (!has_param(partition, name))
            return ah__fail(AH_EINPUT, "%s: found tensor '%.80s', which the model does not have", path, name);
    }
    return AH_OK;
}

static int load_one(float *buffer, const struct ah_safetensors *file, const char *path, const struct ah_param *param)
{
    const struct ah_safetensors_tensor *tensor = ah__safetensors_find(file, param->name);
    if (!tensor)
        return ah__fail(AH_EINPUT, "%s: found no tensor '%.80s', which the model has", path, param->name);
    enum ah_dtype dtype = tensor->dtype;
    if (dtype != AH_F32 && dtype != AH_BF16)
        return ah__fail(AH_EINPUT, "%s: tensor '%.80s' is %.16s, expected F32 or BF16", path, param->name,
                        tensor->dtype_name);
    AH_TRY(ah__safetensors_get(&tensor, file, param->name, dtype, param->shape));
    if (dtype == AH_BF16)
        ah__bf16_widen(buffer, (const uint16_t *)(const void *)tensor->data, ah__shape_count(&param->shape));
    else
        memcpy(buffer, tensor->data, tensor->bytes);
    return AH_OK;
}

static int load_all(const struct ah_safetensors *file, const char *path, const struct ah_partition *partition,
                    struct ah_run *run)
{
    float *buffer;
    AH_TRY(ah__new(&buffer, (size_t)ah__partition_largest(partition), sizeof *buffer));
    int status = AH_OK;
    for (int p = 0; p < partition->param_count && status == AH_OK; p++) {
        status = load_one(buffer, file, path, &partition->params[p]);
        if (status == AH_OK)
            status = ah__run_load(run, p, AH_RUN_PARAM, buffer);
    }
    ah__free(buffer);
    return status == AH_OK ? surplus_check(file, path, partition) : status;
}

int ah__weights_load(const char *path, const struct ah_partition *partition, struct ah_run *run)
{
    struct ah_safetensors *file;
    AH_TRY(ah__safetensors_open(&file, path));
    int status = load_all(file, path, partition, run);
    ah__safetensors_close(file);
    return status;
}
