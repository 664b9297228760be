/* A plugin with one fault, chosen by the macro that is defined; FAULT is its name. */
#include "dev/plugin/forward.h"

#if defined(FAULT_ABI)
enum { ABI = AH_PLUGIN_ABI + 1 };
#else
enum { ABI = AH_PLUGIN_ABI };
#endif
#if defined(FAULT_LAYOUT)
#define LAYOUT 7
#else
#define LAYOUT AH_PLUGIN_LAYOUT
#endif
#if defined(FAULT_NAME)
#define NAME "other"
#else
#define NAME FAULT
#endif
#if defined(FAULT_SYMBOL)
#define autohete_plugin another_function
#endif

/* None of them is ever called. */
static const struct ah_dev_ops ops = {
    .join = (int (*)(struct ah_dev *))1,
    .device_memory = (int (*)(struct ah_dev *, int64_t, char **))1,
    .host_memory = (int (*)(struct ah_dev *, int64_t, char **))1,
    .memory_release = (int (*)(struct ah_dev *))1,
    .prepare = (int (*)(struct ah_dev *, const struct ah_program *, struct ah_prepared **))1,
    .prepared_free = (void (*)(struct ah_dev *, struct ah_prepared *))1,
    .submit = (int (*)(struct ah_dev *, const struct ah_work *, struct ah_event *))1,
#if !defined(FAULT_MEMBER)
    .wait_any = (int (*)(struct ah_dev *, struct ah_done *))1,
#endif
    .now_ns = (int64_t(*)(struct ah_dev *))1,
    .info = (void (*)(struct ah_dev *, struct ah_dev_info *))1,
    .close = (void (*)(struct ah_dev *))1,
};

static int faulty_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    (void)out, (void)options;
    return ah__fail(AH_EDEVICE, "no driver found, expected version %d", 13);
}

static const struct ah_plugin faulty = {
    .abi = ABI,
    .size = sizeof faulty,
    .layout = LAYOUT,
    .name = NAME,
#if !defined(FAULT_OPS)
    .ops = &ops,
#endif
#if !defined(FAULT_OPEN)
    .open = faulty_open,
#endif
};

AH_API const struct ah_plugin *autohete_plugin(const struct ah_plugin_host *host);

const struct ah_plugin *autohete_plugin(const struct ah_plugin_host *host)
{
    ah__plugin_forward(host);
    (void)ops, (void)faulty_open, (void)faulty;
#if defined(FAULT_NONE)
    return NULL;
#else
    return &faulty;
#endif
}
