/* Finds, checks and loads devices in shared objects. */
#include "dev/plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "dev/host/task.h"

enum { PATH_BYTES = AH_PLUGIN_PATH_BYTES, FOLDERS_MOST = 4, NAME_MOST = AH_PLUGIN_NAME_BYTES - 1 };

/* ---- functions of the program for plugins ------------------------------------------------------------------------ */

static int host_fail(int status, const char *message)
{
    return ah__fail(status, "%s", message);
}

static int host_fail_prefix(int status, const char *prefix)
{
    return ah__fail_prefix(status, "%s", prefix);
}

static const struct ah_plugin_host host = {
    .abi = AH_PLUGIN_ABI,
    .size = sizeof host,
    .fail = host_fail,
    .fail_prefix = host_fail_prefix,
    .error = ah_error,
    .lane_name = ah_lane_name,
    .memory_new = ah__new,
    .memory_free = ah__free,
    .pages_new = ah__pages_new,
    .pages_free = ah__pages_free,
    .pages_available = ah__pages_available,
    .pool_new = ah__pool_new,
    .pool_free = ah__pool_free,
    .pool_enter = ah__pool_enter,
    .pool_run = ah__pool_run,
    .pool_threads = ah__pool_threads,
    .pool_scratch = ah__pool_scratch,
    .pool_partials = ah__pool_partials,
    .lanes_new = ah__lanes_new,
    .lanes_free = ah__lanes_free,
    .lanes_submit = ah__lanes_submit,
    .lanes_wait_any = ah__lanes_wait_any,
    .lanes_settle = ah__lanes_settle,
    .lanes_finish = ah__lanes_finish,
    .lanes_wait = ah__lanes_wait,
    .lanes_failed = ah__lanes_failed,
    .host_adam = ah__host_adam,
    .host_sqnorm = ah__host_sqnorm,
    .host_cast = ah__host_cast,
    .host_expand = ah__host_expand,
    .host_disk = ah__host_disk,
    .comm = ah__comm,
};

/* ---- folders of plugins ------------------------------------------------------------------------------------------ */

struct folders {
    int count;
    char path[FOLDERS_MOST][PATH_BYTES];
};

static void folder_add(struct folders *folders, const char *path)
{
    for (int i = 0; i < folders->count; i++)
        if (strcmp(folders->path[i], path) == 0)
            return;
    if (*path && snprintf(folders->path[folders->count], PATH_BYTES, "%s", path) < PATH_BYTES)
        folders->count++;
}

/* Adds the folder of a file. */
static void parent_add(struct folders *folders, char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash)
        return;
    *slash = 0;
    folder_add(folders, path);
}

static void folders_fill(struct folders *folders)
{
    char path[PATH_BYTES];
    Dl_info info;
    const char *named = secure_getenv("AUTOHETE_PLUGINS");
    folders->count = 0;
    if (named)
        folder_add(folders, named);
    if (dladdr(&host, &info) && info.dli_fname && snprintf(path, sizeof path, "%s", info.dli_fname) < PATH_BYTES)
        parent_add(folders, path);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = 0;
        parent_add(folders, path);
    }
    folder_add(folders, AH_LIBRARY_FOLDER);
}

/* Returns true if the name has only letters, digits, '-' and '_', so that it cannot lead out of a folder. */
static bool name_is_plain(const char *name)
{
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    return *name && strlen(name) <= NAME_MOST && strspn(name, plain) == strlen(name);
}

static int no_plugin(const struct folders *folders, const char *name)
{
    char text[768] = "";
    size_t used = 0;
    for (int i = 0; i < folders->count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "", folders->path[i]);
    return ah__fail(AH_EINPUT, "device \"%s\": unknown, expected \"cpu\" or a plugin: no libautohete-%s.so in %s", name,
                    name, text);
}

static bool find_in(char path[PATH_BYTES], const struct folders *folders, const char *name)
{
    for (int i = 0; i < folders->count; i++)
        if (snprintf(path, PATH_BYTES, "%s/libautohete-%s.so", folders->path[i], name) < PATH_BYTES &&
            access(path, F_OK) == 0)
            return true;
    return false;
}

bool ah__plugin_find(char path[AH_PLUGIN_PATH_BYTES], const char *name)
{
    struct folders folders;
    folders_fill(&folders);
    return find_in(path, &folders, name);
}

static int plugin_find(char path[PATH_BYTES], const char *name)
{
    struct folders folders;
    if (!name_is_plain(name))
        return ah__fail(AH_EINPUT, "device \"%s\": unknown, expected \"cpu\" or the name of a plugin", name);
    folders_fill(&folders);
    return find_in(path, &folders, name) ? AH_OK : no_plugin(&folders, name);
}

static int name_add(char (*names)[AH_PLUGIN_NAME_BYTES], int count, int most, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return count;
    if (count == most || !name_is_plain(name) || strncmp(name, "mpi-", 4) == 0) /* libautohete-mpi-* is no device:
                                                                                 * dev/ranks.h */
        return count;
    snprintf(names[count], AH_PLUGIN_NAME_BYTES, "%s", name);
    return count + 1;
}

/* Adds the names of a folder in alphabetical order, so that the same folder gives the same list. */
static int folder_names(char (*names)[AH_PLUGIN_NAME_BYTES], int count, int most, const char *path)
{
    static const char before[] = "libautohete-", after[] = ".so";
    struct dirent **entries;
    int found = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        char *name = entries[i]->d_name;
        size_t length = strlen(name), least = sizeof before + sizeof after - 2;
        if (length > least && strncmp(name, before, sizeof before - 1) == 0 &&
            strcmp(name + length - sizeof after + 1, after) == 0) {
            name[length - sizeof after + 1] = 0;
            count = name_add(names, count, most, name + sizeof before - 1);
        }
        free(entries[i]);
    }
    if (found >= 0)
        free(entries);
    return count;
}

int ah__plugin_names(char (*names)[AH_PLUGIN_NAME_BYTES], int count, int most)
{
    struct folders folders;
    folders_fill(&folders);
    for (int i = 0; i < folders.count; i++)
        count = folder_names(names, count, most, folders.path[i]);
    return count;
}

/* ---- whether a plugin fits --------------------------------------------------------------------------------------- */

static bool is_null(const void *table, size_t offset)
{
    static const char zeros[sizeof(void (*)(void))];
    return memcmp((const char *)table + offset, zeros, sizeof zeros) == 0;
}

static int ops_check(const char *path, const struct ah_dev_ops *ops)
{
#define MEMBER(name)                                                                                                   \
    {                                                                                                                  \
#name, offsetof(struct ah_dev_ops, name)                                                                       \
    }
    static const struct {
        const char *name;
        size_t offset;
    } members[] = {MEMBER(join),    MEMBER(device_memory), MEMBER(host_memory), MEMBER(memory_release),
                   MEMBER(prepare), MEMBER(prepared_free), MEMBER(submit),      MEMBER(wait_any),
                   MEMBER(now_ns),  MEMBER(info),          MEMBER(close)};
    _Static_assert(sizeof members / sizeof *members * sizeof(void (*)(void)) == sizeof(struct ah_dev_ops),
                   "every member");
#undef MEMBER
    for (size_t i = 0; i < AH_LENGTH(members); i++)
        if (is_null(ops, members[i].offset))
            return ah__fail(AH_EDEVICE, "%s: the device's table has no %s, every member is required", path,
                            members[i].name);
    return AH_OK;
}

static int plugin_check(const char *path, const char *name, const struct ah_plugin *plugin)
{
    if (!plugin)
        return ah__fail(AH_EDEVICE, "%s: " AH_PLUGIN_SYMBOL "() gave no plugin", path);
    if (plugin->abi != AH_PLUGIN_ABI)
        return ah__fail(AH_EDEVICE, "%s: found plugin ABI %u, expected %d", path, plugin->abi, AH_PLUGIN_ABI);
    if (plugin->size != sizeof *plugin || plugin->layout != AH_PLUGIN_LAYOUT)
        return ah__fail(AH_EDEVICE,
                        "%s: found a plugin of %u bytes and layout %llx, expected %zu and %llx: it is of another "
                        "build",
                        path, plugin->size, (unsigned long long)plugin->layout, sizeof *plugin,
                        (unsigned long long)AH_PLUGIN_LAYOUT);
    if (!plugin->name || strcmp(plugin->name, name) != 0)
        return ah__fail(AH_EDEVICE, "%s: found the device \"%s\", expected \"%s\"", path,
                        plugin->name ? plugin->name : "", name);
    if (!plugin->open || !plugin->ops)
        return ah__fail(AH_EDEVICE, "%s: the plugin has no %s, every member is required", path,
                        plugin->open ? "ops" : "open");
    return ops_check(path, plugin->ops);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Held while a plugin is loaded or unloaded, and while it stores `host`: one thread may read the variables that loading
 * on another has written, or, if the plugin was unloaded in between, write them again. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

/* Loads and checks the plugin at `path`. *library is for ah__plugin_unload. The plugin's code stays in memory, since a
 * driver's runtime that is linked into it keeps state there. */
static int library_load(void **library, const struct ah_plugin **plugin, const char *path, const char *name)
{
    ah_plugin_function *function;
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!*library)
        return ah__fail(AH_EDEVICE, "device \"%s\": its plugin does not load: %s", name, dlerror());
    void *symbol = dlsym(*library, AH_PLUGIN_SYMBOL);
    if (!symbol)
        return ah__fail(AH_EDEVICE, "%s: no symbol " AH_PLUGIN_SYMBOL ", expected a plugin of this program", path);
    memcpy(&function, &symbol, sizeof function);
    *plugin = function(&host);
    return plugin_check(path, name, *plugin);
}

int ah__plugin_open(struct ah_dev **out, const char *name, const struct ah_dev_options *options)
{
    char path[PATH_BYTES];
    struct ah_dev *dev;
    AH_TRY(plugin_find(path, name));
    void *library;
    const struct ah_plugin *plugin;
    pthread_mutex_lock(&loading);
    int status = library_load(&library, &plugin, path, name);
    pthread_mutex_unlock(&loading);
    if (status == AH_OK) {
        status = plugin->open(&dev, options);
        if (status != AH_OK)
            ah__fail_prefix(status, "device \"%s\"", name);
    }
    if (status != AH_OK) {
        ah__plugin_unload(library);
        return status;
    }
    dev->library = library;
    *out = dev;
    return AH_OK;
}

void ah__plugin_unload(void *library)
{
    if (!library)
        return;
    pthread_mutex_lock(&loading);
    dlclose(library);
    pthread_mutex_unlock(&loading);
}
