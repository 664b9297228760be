/* The interface between the program and a device in a shared object. libautohete-NAME.so exports one function,
 * autohete_plugin(), which takes the program's functions and returns its device's table.
 *
 * A plugin links to nothing of the library. It calls base/ and host/ through struct ah_plugin_host, so that its
 * messages are the program's ah_error(), its memory is counted, and the host's arithmetic is the same code for every
 * device; plugin/forward.c defines these calls under their ordinary names. Both sides must be built from the same
 * headers, which abi and layout check before anything else is called. */
#ifndef AH_DEV_PLUGIN_H
#define AH_DEV_PLUGIN_H

#include "dev/dev.h"
#include "dev/host/lanes.h"
#include "dev/host/pages.h"
#include "dev/host/pool.h"

enum { AH_PLUGIN_ABI = 8 }; /* raised with every change of this interface */

/* Changes with the size of these structs and enums, even if nobody raises the ABI. */
#define AH_PLUGIN_LAYOUT                                                                                               \
    (sizeof(struct ah_work) + (sizeof(struct ah_call) << 16) + (sizeof(struct ah_dev_ops) << 32) +                     \
     (sizeof(struct ah_dev_info) << 40) + ((uint64_t)AH_OP_COUNT << 48) + ((uint64_t)AH_SPACE_COUNT << 56))

/* The program's functions for a plugin. Every member is set; each is the function of its header with `ah__` in front,
 * unless said otherwise. Lives as long as the program. */
struct ah_plugin_host {
    unsigned abi;  /* AH_PLUGIN_ABI */
    unsigned size; /* bytes of this struct */
    /* base/status.h: set the calling thread's message, or put "prefix: " before it; both return the status */
    int (*fail)(int status, const char *message);
    int (*fail_prefix)(int status, const char *prefix);
    const char *(*error)(void); /* ah_error() */
    const char *(*lane_name)(enum ah_lane lane);
    /* base/alloc.h */
    int (*memory_new)(void *out, size_t count, size_t size);
    void (*memory_free)(void *memory);
    /* host/pages.h */
    int (*pages_new)(struct ah_pages *out, int64_t bytes, const char *what);
    void (*pages_free)(struct ah_pages *pages);
    int64_t (*pages_available)(void);
    /* host/pool.h */
    int (*pool_new)(struct ah_pool **out, int threads, int core);
    void (*pool_free)(struct ah_pool *pool);
    void (*pool_enter)(struct ah_pool *pool);
    void (*pool_run)(struct ah_pool *pool, void (*piece)(void *context, int index, int worker), int count,
                     void *context);
    int (*pool_threads)(const struct ah_pool *pool);
    float *(*pool_scratch)(struct ah_pool *pool, int worker);
    double *(*pool_partials)(struct ah_pool *pool);
    /* host/lanes.h */
    int (*lanes_new)(struct ah_lanes **out, const struct ah_lanes_config *config);
    void (*lanes_free)(struct ah_lanes *lanes);
    int (*lanes_submit)(struct ah_lanes *lanes, const struct ah_work *work, struct ah_event *done);
    int (*lanes_wait_any)(struct ah_lanes *lanes, struct ah_done *done);
    int (*lanes_settle)(struct ah_lanes *lanes);
    void (*lanes_finish)(struct ah_lanes *lanes, const struct ah_done *done);
    bool (*lanes_wait)(struct ah_lanes *lanes, struct ah_event event);
    int (*lanes_failed)(struct ah_lanes *lanes);
    /* host/task.h */
    int (*host_adam)(struct ah_pool *pool, const struct ah_task *task);
    int (*host_sqnorm)(struct ah_pool *pool, const struct ah_task *task);
    int (*host_cast)(struct ah_pool *pool, const struct ah_task *task);
    int (*host_expand)(struct ah_pool *pool, const struct ah_task *task);
    int (*host_disk)(const struct ah_task *task);
    /* comm/comm.h: the ranks of this program; not to be closed */
    struct ah_comm *(*comm)(void);
};

/* The plugin's table; static. */
struct ah_plugin {
    unsigned abi;    /* AH_PLUGIN_ABI: checked before all else, so it stays the first member */
    unsigned size;   /* bytes of this struct */
    uint64_t layout; /* AH_PLUGIN_LAYOUT */
    const char *name;
    const struct ah_dev_ops *ops; /* functions of its devices; every member is required */
    /* Opens a device, as the openers of built-in devices do. The options are checked already. The device's ops are the
     * ones above. */
    int (*open)(struct ah_dev **out, const struct ah_dev_options *options);
};

/* The only exported symbol. Called once for each opening, by one thread at a time, before anything else; must not call
 * the host yet. Null: this machine cannot have the device, for a reason that open() cannot report. */
#define AH_PLUGIN_SYMBOL "autohete_plugin"
typedef const struct ah_plugin *ah_plugin_function(const struct ah_plugin_host *host);

/* Loads and opens a device. Looks for libautohete-NAME.so in the folder that the environment variable AUTOHETE_PLUGINS
 * names, beside the library, beside the program and in the folder where libraries are installed; the first file found
 * is loaded or refused. AH_EINPUT: no file; AH_EDEVICE: refused, naming file, found and expected; else the status of
 * its open(). */
int ah__plugin_open(struct ah_dev **out, const char *name, const struct ah_dev_options *options);
/* Finds the file that would be loaded for NAME; false: there is none. */
enum { AH_PLUGIN_PATH_BYTES = 4096 };
bool ah__plugin_find(char path[AH_PLUGIN_PATH_BYTES], const char *name);
/* Adds the NAME of each libautohete-NAME.so in these folders to the `count` names, each once, as many as fit. Returns
 * the number of names. */
enum { AH_PLUGIN_NAME_BYTES = 65 };
int ah__plugin_names(char (*names)[AH_PLUGIN_NAME_BYTES], int count, int most);
/* Unloads the library of a closed device. Null is fine. */
void ah__plugin_unload(void *library);

#endif
