#include "train/run_config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

enum { FORMAT = 1 };
static const char file_name[] = "run.json";
static const int64_t most = (int64_t)1 << 52, count_most = 4096;

/* The options stored in run.json, in the file itself or in its object "data". */
static const struct row {
    const char *key; /* null: not stored */
    bool of_data;
    enum ah_option_kind kind;
    enum ah_option_resume resume;
    size_t at; /* offset in struct ah_train_options */
} rows[] = {
#define AH_KEY_STATE NULL, false
#define AH_KEY_NONE NULL, false
#define AH_KEY_RUN(key) key, false
#define AH_KEY_DATA(key) key, true
#define AH_OPTION(field, name, kind, group, users, meta, default_, limits, resume, stored, help)                       \
    {AH_KEY_##stored, AH_OPTION_##kind, AH_RESUME_##resume, offsetof(struct ah_train_options, field)},
#include "session/options.def"
};

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static size_t size_of(const struct row *row)
{
    return row->kind == AH_OPTION_FLAG ? sizeof(bool) : row->kind == AH_OPTION_INT ? sizeof(int) : sizeof(int64_t);
}

static bool is_unset(const struct row *row, const void *at)
{
    static const char zeros[sizeof(int64_t)];
    return memcmp(at, zeros, size_of(row)) == 0;
}

/* Returns true if the key may be left out: texts and flags are stored if they are set, numbers always. */
static bool may_lack(const struct row *row)
{
    return row->kind >= AH_OPTION_FLAG;
}

static int add_rows(cJSON *object, const struct ah_train_options *asked, bool of_data)
{
    for (const struct row *row = rows; row < rows + AH_LENGTH(rows); row++) {
        const void *at = (const char *)asked + row->at;
        if (row->key && row->of_data == of_data && !(may_lack(row) && is_unset(row, at)))
            AH_TRY(ah__option_add(object, row->key, row->kind, at));
    }
    return AH_OK;
}

static int add_object(cJSON **out, cJSON *object, const char *key)
{
    *out = cJSON_AddObjectToObject(object, key);
    return *out ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: %s", file_name);
}

/* Returns true if the stamp is certain to show a later change. A file that changes again within one clock tick looks
 * unchanged. */
static bool is_certain(const struct ah_file_stamp *stamp)
{
    const int64_t tick_ns = 2000000000; /* clock tick of the coarsest file systems */
    return (int64_t)time(NULL) * 1000000000 - stamp->modified_ns > tick_ns;
}

static int add_source(cJSON *object, const struct ah_data_facts *facts)
{
    const struct ah_tokens_known *known = &facts->known;
    AH_TRY(ah__json_add_int(object, "bytes", known->stamp.bytes));
    AH_TRY(ah__json_add_int(object, "tokens", facts->tokens));
    AH_TRY(ah__json_add_hash(object, "signature", known->signature));
    AH_TRY(ah__json_add_int(object, "vocab_size", known->vocab_size));
    AH_TRY(ah__json_add_hash(object, "tokenizer", known->tokenizer));
    if (!is_certain(&known->stamp))
        return AH_OK;
    AH_TRY(ah__json_add_hash(object, "modified_ns", (uint64_t)known->stamp.modified_ns));
    return ah__json_add_hash(object, "inode", known->stamp.inode);
}

static int add_named_source(cJSON *list, const struct ah_data_facts *facts)
{
    cJSON *object = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(list, object)) {
        cJSON_Delete(object);
        return ah__fail(AH_ENOMEM, "out of host memory: %s", file_name);
    }
    AH_TRY(ah__json_add_string(object, "path", facts->path));
    if (facts->weight > 0)
        AH_TRY(ah__json_add_double(object, "weight", facts->weight));
    AH_TRY(ah__json_add_double(object, "share", facts->share));
    AH_TRY(ah__json_add_string(object, "format", facts->format));
    AH_TRY(ah__json_add_int(object, "train_samples", facts->train_samples));
    return add_source(object, facts);
}

static int add_sources(cJSON *data, const struct ah_run_config *run_config)
{
    if (run_config->data_count == 1)
        return add_source(data, &run_config->data[0]);
    cJSON *list = cJSON_AddArrayToObject(data, "sources");
    if (!list)
        return ah__fail(AH_ENOMEM, "out of host memory: %s", file_name);
    for (size_t i = 0; i < run_config->data_count; i++)
        AH_TRY(add_named_source(list, &run_config->data[i]));
    return AH_OK;
}

static int add_data(cJSON *tree, const struct ah_run_config *run_config)
{
    cJSON *data;
    AH_TRY(add_object(&data, tree, "data"));
    AH_TRY(add_rows(data, &run_config->asked, true));
    return add_sources(data, run_config);
}

static int add_machine(cJSON *tree, const struct ah_run_facts *facts)
{
    const struct ah_device *device = facts->device;
    cJSON *machine;
    AH_TRY(add_object(&machine, tree, "machine"));
    AH_TRY(ah__json_add_string(machine, "device", device->name));
    AH_TRY(ah__json_add_string(machine, "model", device->model));
    AH_TRY(ah__json_add_int(machine, "units", device->units));
    AH_TRY(ah__json_add_int(machine, "host_threads", device->host_threads));
    AH_TRY(ah__json_add_int(machine, "cores", sysconf(_SC_NPROCESSORS_ONLN)));
    AH_TRY(ah__json_add_int(machine, "memory_bytes", (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)));
    return ah__json_add_string(machine, "arithmetic", facts->arithmetic);
}

static int fill(cJSON *tree, const struct ah_run_config *run_config, const struct ah_run_facts *facts)
{
    char started[32];
    time_t now = time(NULL);
    struct tm utc;
    cJSON *settings;
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    AH_TRY(ah__json_add_int(tree, "format", FORMAT));
    AH_TRY(ah__json_add_string(tree, "version", ah_version()));
    AH_TRY(ah__json_add_string(tree, "started", started));
    AH_TRY(ah__json_add_int(tree, "started_at_step", facts->step));
    AH_TRY(ah__json_add_int(tree, "parameters", facts->parameters));
    AH_TRY(add_data(tree, run_config));
    AH_TRY(add_rows(tree, &run_config->asked, false));
    AH_TRY(add_object(&settings, tree, "settings"));
    AH_TRY(ah__settings_save(settings, &run_config->settings));
    return add_machine(tree, facts);
}

int ah__run_config_save(const struct ah_run_config *run_config, const struct ah_run_facts *facts, const char *path)
{
    cJSON *tree = cJSON_CreateObject();
    int status = fill(tree, run_config, facts);
    if (status == AH_OK)
        status = ah__json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

bool ah__run_config_exists(const char *dir)
{
    return ah__path_has(dir, file_name);
}

static int read_rows(struct ah_train_options *out, const struct ah_json *json, bool of_data)
{
    for (const struct row *row = rows; row < rows + AH_LENGTH(rows); row++)
        if (row->key && row->of_data == of_data && ah__json_has(json, row->key)) /* an older version has fewer */
            AH_TRY(ah__option_read((char *)out + row->at, json, row->key, row->kind, 0,
                                   (double)(row->kind == AH_OPTION_INT ? count_most : most)));
    return AH_OK;
}

static int read_source(struct ah_data_facts *out, const struct ah_json *data)
{
    struct ah_tokens_known *known = &out->known;
    uint64_t modified_ns;
    AH_TRY(ah__json_int(&out->tokens, data, "tokens", 0, most));
    AH_TRY(ah__json_int(&known->stamp.bytes, data, "bytes", 0, most));
    AH_TRY(ah__json_hash(&known->signature, data, "signature"));
    AH_TRY(ah__json_int(&known->vocab_size, data, "vocab_size", 1, most));
    AH_TRY(ah__json_hash(&known->tokenizer, data, "tokenizer"));
    if (!ah__json_has(data, "modified_ns")) {
        known->stamp.bytes = -1; /* matches no file */
        return AH_OK;
    }
    AH_TRY(ah__json_hash(&modified_ns, data, "modified_ns"));
    known->stamp.modified_ns = (int64_t)modified_ns;
    return ah__json_hash(&known->stamp.inode, data, "inode");
}

static int read_sources(struct ah_run_config *out, const struct ah_json *data)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(data->node, "sources"), *item;
    if (list && !cJSON_IsArray(list))
        return ah__fail(AH_EINPUT, "%s: key 'data.sources': expected a list of data sources", data->path);
    out->data_count = list ? (size_t)cJSON_GetArraySize(list) : 1;
    AH_TRY(ah__new(&out->data, out->data_count, sizeof *out->data));
    if (!list)
        return read_source(&out->data[0], data);
    struct ah_data_facts *facts = out->data;
    cJSON_ArrayForEach(item, list)
    {
        AH_TRY(read_source(facts++, &(struct ah_json){.node = item, .path = data->path, .where = "data.sources"}));
    }
    return AH_OK;
}

static int read_data(struct ah_run_config *out, const struct ah_json *json)
{
    struct ah_json data;
    AH_TRY(ah__json_object(&data, json, "data"));
    AH_TRY(read_rows(&out->asked, &data, true));
    return read_sources(out, &data);
}

static int read_all(struct ah_run_config *out, const struct ah_json *json)
{
    struct ah_json settings;
    int64_t format;
    AH_TRY(ah__json_int(&format, json, "format", FORMAT, FORMAT));
    AH_TRY(read_data(out, json));
    AH_TRY(read_rows(&out->asked, json, false));
    if (ah__json_has(json, "passes")) {
        int passes;
        AH_TRY(ah__option_read(&passes, json, "passes", AH_OPTION_INT, 0, (double)count_most));
        if (passes)
            snprintf(out->passes, sizeof out->passes, "passes=%d", passes);
    }
    AH_TRY(ah__json_object(&settings, json, "settings"));
    return ah__settings_load(&out->settings, &settings);
}

int ah__run_config_load(struct ah_run_config *out, const char *dir)
{
    struct ah_run_config run_config = {0};
    int status = ah__json_load_in(&run_config.json, dir, file_name);
    if (status == AH_OK)
        status = read_all(&run_config, &run_config.json);
    if (status == AH_OK)
        *out = run_config;
    else
        ah__run_config_free(&run_config);
    return status;
}

void ah__run_config_free(struct ah_run_config *run_config)
{
    ah__free(run_config->data);
    ah__json_free(&run_config->json);
    *run_config = (struct ah_run_config){0};
}

/* ---- using ------------------------------------------------------------------------------------------------------- */

/* Sets an option that is not set to the run's. */
static void take(struct ah_train_options *options, const struct row *row, const struct ah_train_options *stored)
{
    char *option = (char *)options + row->at;
    if (is_unset(row, option))
        memcpy(option, (const char *)stored + row->at, size_of(row));
}

void ah__run_config_apply(struct ah_train_options *options, const struct ah_run_config *run_config, bool again)
{
    struct ah_train_options stored = run_config->asked;
    const struct ah_tuning *tuning = &options->tuning;
    if (run_config->passes[0])
        stored.plan = run_config->passes;
    /* Threads and link belong to a device: if any of them is asked for, none of the run's are taken. */
    if (options->device || options->dev.threads || options->dev.link_bytes_per_s || options->dev.host_threads) {
        stored.device = NULL;
        stored.dev = (struct ah_dev_options){.disk = stored.dev.disk};
    }
    if (again && options->data_path)
        stored.data_format = NULL;
    if (tuning->lora_rank || tuning->freeze || tuning->lora_targets)
        stored.adapter_dir = NULL;
    if (options->model)
        stored.model_path = NULL;
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        if (rows[i].key && (again || rows[i].resume != AH_RESUME_ANEW))
            take(options, &rows[i], &stored);
}
