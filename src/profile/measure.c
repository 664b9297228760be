#include "dev/host/disk.h"
#include "profile/workload.h"

static void profile_init(struct ah_profile *profile, const struct ah_partition *partition, struct ah_dev *dev)
{
    struct ah_dev_info info;
    dev->ops->info(dev, &info);
    profile->costs.layers = partition->layers;
    profile->costs.class_count = partition->class_count;
    profile->world_size = ah__step_ranks(partition);
    snprintf(profile->device, sizeof profile->device, "%s", info.name);
    profile->threads = info.threads;
    profile->host_threads = info.host_threads;
    profile->link_bytes_per_s = info.link_bytes_per_s;
    profile->device_signature = info.signature;
    profile->costs.lanes.queue_depth = info.queue_depth;
    profile->partition_signature = partition->signature;
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        const struct ah_code *code = &partition->code[class];
        int group = ah__class_representative((enum ah_class) class, partition->layers);
        profile->params[class] = partition->groups[group].count;
        profile->trained[class] = partition->groups[group].trained;
        int times = ah__micro_batches(partition);
        profile->forward_flops[class] = times * code->program[AH_PROGRAM_FORWARD].flops;
        profile->backward_flops[class] = times * code->program[AH_PROGRAM_BACKWARD].flops;
        profile->recompute_flops[class] = times * code->program[AH_PROGRAM_RECOMPUTE].flops;
    }
}

int ah__profile_fits(const struct ah_partition *partition, struct ah_dev *dev)
{
    enum { COPIES = 3 }; /* parameters and both moments of trained elements, in fp32 for every dtype */
    char need[32], have[32];
    int64_t bytes = 0;
    struct ah_dev_info info;
    dev->ops->info(dev, &info);
    for (int i = 0; i < partition->group_count; i++)
        bytes += COPIES * (int64_t)sizeof(float) * partition->groups[i].trained +
                 ah__dtype_bytes(partition->compute) * ah__frozen_count(&partition->groups[i]);
    bytes /= ah__step_ranks(partition);
    if (!info.machine_bytes || bytes <= info.machine_bytes)
        return AH_OK;
    return ah__fail(AH_ENOMEM,
                    "model: found %s of parameters and optimizer, expected at most the %s available on this machine",
                    ah_size_format(need, sizeof need, bytes), ah_size_format(have, sizeof have, info.machine_bytes));
}

/* Copies from `like`, a profile of the same model, everything that is not measured again. */
static void take(struct ah_profile *profile, const struct ah_profile *like)
{
    profile->costs = like->costs;
    profile->h2d_bytes_per_s = like->h2d_bytes_per_s;
    profile->d2h_bytes_per_s = like->d2h_bytes_per_s;
    profile->h2d_both_bytes_per_s = like->h2d_both_bytes_per_s;
    profile->d2h_both_bytes_per_s = like->d2h_both_bytes_per_s;
}

/* Measures only the difference to `like`: on the same device the programs, else the host's threads. */
static int profile_like(struct ah_workload *workload, struct ah_profile *profile, const struct ah_profile *like)
{
    take(profile, like);
    if (like->device_signature == profile->device_signature)
        return ah__profile_rounds_programs(workload, &profile->costs);
    AH_TRY(ah__profile_rounds_host(workload, &profile->costs));
    return ah__profile_streams_host(workload, profile);
}

/* Measures the drive of the device's disk with calls of a size that chunks have. */
static int measure_drive(struct ah_profile *profile, const struct ah_partition *partition, const struct ah_dev *dev)
{
    enum { PIECE_LEAST = 1 << 20, PIECE_MOST = 64 << 20, CHUNKS = 4 };
    struct ah_disk_rates rates;
    int64_t piece = ah__block_group(partition)->count * ah__dtype_bytes(partition->compute) / CHUNKS;
    if (!dev->disk)
        return AH_OK;
    piece = piece < PIECE_LEAST ? PIECE_LEAST : piece > PIECE_MOST ? PIECE_MOST : piece;
    AH_TRY(ah__disk_measure(&rates, dev->disk, piece / AH_DISK_ALIGN * AH_DISK_ALIGN));
    profile->drive = (struct ah_profile_drive){.read_bytes_per_s = rates.read_bytes_per_s,
                                               .write_bytes_per_s = rates.write_bytes_per_s,
                                               .latency_ns = rates.latency_ns,
                                               .free_bytes = rates.free_bytes};
    return AH_OK;
}

static int profile_run(struct ah_workload *workload, struct ah_profile *profile, const struct ah_partition *partition,
                       struct ah_dev *dev, const struct ah_profile *like)
{
    AH_TRY(ah__workload_agree(workload, ah__workload_init(workload, partition, dev)));
    profile->workspace_bytes = workload->programs.workspace_bytes;
    if (like)
        return profile_like(workload, profile, like);
    AH_TRY(ah__workload_agree(workload, ah__profile_notify(&profile->costs.lanes.notify_ns, dev)));
    AH_TRY(ah__profile_rounds(workload, &profile->costs));
    if (profile->world_size > 1)
        AH_TRY(ah__profile_rounds_together(workload, &profile->costs));
    return ah__profile_streams(workload, profile);
}

static int profile_measure(struct ah_profile *profile, const struct ah_partition *partition, struct ah_dev *dev,
                           const struct ah_profile *like, const volatile int *stop)
{
    struct ah_workload *workload;
    AH_TRY(ah__new(&workload, 1, sizeof *workload));
    workload->dev = dev;
    workload->stop = ah__step_ranks(partition) > 1 ? NULL : stop; /* ranks stop together or not at all */
    profile_init(profile, partition, dev);
    int status = profile_run(workload, profile, partition, dev, like);
    if (like)
        profile->drive = like->drive;
    else if (status == AH_OK)
        status = measure_drive(profile, partition, dev);
    ah__workload_fini(workload);
    ah__free(workload);
    return status;
}

int ah__profile_measure_like(struct ah_profile **out, const struct ah_partition *partition, struct ah_dev *dev,
                             const struct ah_profile *like, const volatile int *stop)
{
    struct ah_profile *profile;
    if (partition->compute != AH_F32 && partition->compute != AH_BF16)
        return ah__fail(AH_EINPUT,
                        "profile: found a model in %s, expected F32 or BF16, which is what devices compute in",
                        ah__dtype_name(partition->compute));
    AH_TRY(ah__profile_fits(partition, dev));
    AH_TRY(ah__new(&profile, 1, sizeof *profile));
    int status = profile_measure(profile, partition, dev, like, stop);
    if (status != AH_OK)
        ah__free(profile);
    else
        *out = profile;
    return status;
}

void ah_profile_free(struct ah_profile *profile)
{
    ah__free(profile);
}
