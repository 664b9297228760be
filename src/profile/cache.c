/* The cache of profiles in files, so that the same question has the same answer tomorrow. A file is named after
 * everything that a profile depends on, and begins with a checksum of the rest; a damaged one is measured again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/loaded.h"
#include "dev/host/disk.h"
#include "profile/profile.h"

enum { HEAD = 17 }; /* 16 hex digits and a line break */
static const size_t FILE_MOST = 1 << 20;

/* ---- what a profile depends on ----------------------------------------------------------------------------------- */

/* Hashes the environment variables that libraries read. */
static uint64_t hash_environment(void)
{
    static const char *const prefixes[] = {"DNNL_", "ONEDNN_", "OMP_",   "GOMP_", "KMP_", "MALLOC_", "GLIBC_",
                                           "CUDA_", "CUBLAS",  "CUDNN_", "NCCL_", "UCX_", "FI_"};
    uint64_t sum = 0;
    for (char **each = environ; each && *each; each++)
        for (size_t i = 0; i < AH_LENGTH(prefixes); i++)
            if (strncmp(*each, prefixes[i], strlen(prefixes[i])) == 0)
                sum += ah__hash_text(*each, 0);
    return sum;
}

static uint64_t key_make(const struct ah_partition *partition, const struct ah_dev *dev, const struct ah_dev_info *info)
{
    char machine[256] = "";
    gethostname(machine, sizeof machine - 1);
    uint64_t key = ah__hash_text(ah_version(), partition->signature);
    key = ah__hash_int(info->signature, key);
    key = ah__hash_text(info->arithmetic, key);
    key = ah__hash_text(machine, key);
    key = dev->disk ? ah__hash_text(dev->disk, key) : key;
    key = ah__hash_int(ah__loaded_hash(), key);
    return ah__hash_int(hash_environment(), key);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int entry_path(char **out, const char *folder, uint64_t key)
{
    return ah__sprintf(out, "%s/profile-%016" PRIx64 ".json", folder, key);
}

/* A drive has other free bytes by now. */
static bool drive_renew(struct ah_profile *profile, const struct ah_dev *dev)
{
    return !dev->disk || ah__disk_free_bytes(&profile->drive.free_bytes, dev->disk) == AH_OK;
}

/* Loads a cached profile. False: there is none that can be used. */
static bool entry_load(struct ah_profile **out, int64_t *age_s, const char *path, const struct ah_partition *partition,
                       const struct ah_dev *dev, const struct ah_dev_info *info)
{
    struct stat file;
    struct ah_profile *profile;
    char *text, head[HEAD + 1];
    size_t length;
    if (stat(path, &file) != 0 || ah__file_read(&text, &length, path, FILE_MOST) != AH_OK)
        return false;
    bool whole = length > HEAD;
    if (whole) {
        snprintf(head, sizeof head, "%016" PRIx64 "\n", ah__hash(text + HEAD, length - HEAD, 0));
        whole = memcmp(text, head, HEAD) == 0;
    }
    bool found = whole && ah__profile_parse(&profile, text + HEAD, length - HEAD, path) == AH_OK;
    ah__free(text);
    if (!found)
        return false;
    if (profile->partition_signature != partition->signature || profile->device_signature != info->signature ||
        !drive_renew(profile, dev)) {
        ah_profile_free(profile);
        return false;
    }
    int64_t age = (int64_t)time(NULL) - (int64_t)file.st_mtim.tv_sec;
    *age_s = age > 0 ? age : 0;
    *out = profile;
    return true;
}

/* Saves a profile in the cache; does nothing if that is not possible. */
static void entry_save(const struct ah_profile *profile, const char *folder, const char *path)
{
    char *text = NULL, *entry = NULL;
    int status = ah__folder_make(folder);
    if (status == AH_OK)
        status = ah__profile_text(&text, profile);
    if (status == AH_OK)
        status = ah__sprintf(&entry, "%016" PRIx64 "\n%s", ah__hash(text, strlen(text), 0), text);
    if (status == AH_OK)
        ah__file_write(path, entry, strlen(entry));
    ah__free(entry);
    free(text);
}

/* ---- measuring, or loading --------------------------------------------------------------------------------------- */

/* Sends the profile of rank 0 (null: it has none) to all ranks, so that all decide alike. */
static int profile_share(struct ah_profile **profile, struct ah_comm *comm)
{
    char *text = NULL;
    int status = comm->rank == 0 && *profile ? ah__profile_text(&text, *profile) : AH_OK;
    status = ah__comm_agree(comm, status);
    if (status == AH_OK)
        status = ah__comm_text(&text, comm);
    if (status == AH_OK && comm->rank > 0) {
        ah_profile_free(*profile);
        *profile = NULL;
        status = text ? ah__profile_parse(profile, text, strlen(text), "the profile of rank 0") : AH_OK;
    }
    if (comm->rank == 0)
        free(text);
    else
        ah__free(text);
    return status;
}

/* Joins the keys of all ranks: collectives depend on these machines and on the link between them. */
static int key_join(uint64_t *key, struct ah_comm *comm)
{
    uint64_t all = 0;
    for (int rank = 0; rank < comm->world_size; rank++) {
        uint64_t each = *key;
        AH_TRY(comm->ops->move(comm, &each, sizeof each, rank, AH_ALL_RANKS));
        all = ah__hash_int(each, all);
    }
    *key = all;
    return AH_OK;
}

static int measure_with_path(struct ah_profile **out, int64_t *kept_s, const char *path,
                             const struct ah_partition *partition, struct ah_dev *dev, const struct ah_profile *like,
                             const struct ah_profile_options *options)
{
    struct ah_comm *comm = ah__comm();
    struct ah_dev_info info;
    struct ah_profile *profile = NULL;
    dev->ops->info(dev, &info);
    if (path && !options->renew)
        entry_load(&profile, kept_s, path, partition, dev, &info);
    int status = profile_share(&profile, comm);
    if (status == AH_OK && !profile) {
        status = ah__comm_agree(comm, ah__profile_measure_like(&profile, partition, dev, like, NULL));
        if (status == AH_OK && path)
            entry_save(profile, options->cache, path);
        if (status == AH_OK)
            status = profile_share(&profile, comm);
    }
    if (status == AH_OK)
        *out = profile;
    else
        ah_profile_free(profile);
    return status;
}

/* Measures with several ranks: rank 0 looks for a cached profile; if there is none, all measure together. */
static int measure_together(struct ah_profile **out, int64_t *kept_s, uint64_t key,
                            const struct ah_partition *partition, struct ah_dev *dev, const struct ah_profile *like,
                            const struct ah_profile_options *options)
{
    struct ah_comm *comm = ah__comm();
    char *path = NULL; /* of rank 0 */
    AH_TRY(key_join(&key, comm));
    int status = comm->rank == 0 && options->cache ? entry_path(&path, options->cache, key) : AH_OK;
    if (status == AH_OK)
        status = ah__profile_fits(partition, dev);
    status = ah__comm_agree(comm, status);
    if (status == AH_OK)
        status = measure_with_path(out, kept_s, path, partition, dev, like, options);
    ah__free(path);
    return status;
}

int ah__profile_measure_kept(struct ah_profile **out, int64_t *kept_s, const struct ah_partition *partition,
                             struct ah_dev *dev, const struct ah_profile *like,
                             const struct ah_profile_options *options)
{
    struct ah_dev_info info;
    char *path = NULL;
    dev->ops->info(dev, &info);
    *kept_s = -1;
    const uint64_t key = key_make(partition, dev, &info);
    if (ah__step_ranks(partition) > 1)
        return measure_together(out, kept_s, key, partition, dev, like, options);
    if (options->cache)
        AH_TRY(entry_path(&path, options->cache, key));
    int status = ah__profile_fits(partition, dev);
    if (status == AH_OK && path && !options->renew && entry_load(out, kept_s, path, partition, dev, &info)) {
        ah__free(path);
        return AH_OK;
    }
    if (status == AH_OK)
        status = ah__profile_measure_like(out, partition, dev, like, options->stop);
    if (status == AH_OK && path)
        entry_save(*out, options->cache, path);
    ah__free(path);
    return status;
}

int ah_profile_measure(struct ah_profile **out, int64_t *kept_s, const struct ah_partition *partition,
                       struct ah_dev *dev, const struct ah_profile_options *options)
{
    static const struct ah_profile_options none;
    int64_t kept;
    struct ah_profile *profile;
    AH_TRY(ah__profile_measure_kept(&profile, &kept, partition, dev, NULL, options ? options : &none));
    *out = profile;
    if (kept_s)
        *kept_s = kept;
    return AH_OK;
}

int ah__profile_drop(bool *dropped, const struct ah_partition *partition, struct ah_dev *dev,
                     const struct ah_profile_options *options)
{
    struct ah_comm *comm = ah__step_ranks(partition) > 1 ? ah__comm() : ah__comm_self();
    struct ah_dev_info info;
    char *path;
    dev->ops->info(dev, &info);
    uint64_t key = key_make(partition, dev, &info);
    *dropped = false;
    if (comm->world_size > 1)
        AH_TRY(key_join(&key, comm));
    if (!options->cache || comm->rank > 0)
        return AH_OK;
    AH_TRY(entry_path(&path, options->cache, key));
    *dropped = unlink(path) == 0;
    ah__free(path);
    return AH_OK;
}
