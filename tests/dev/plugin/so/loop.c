/* The device "loop": the CPU device's own kernels and checks in a shared object, on pools and lanes of the program. */
#include "dev/cpu/device.h"
#include "dev/plugin/forward.h"

static void loop_info(struct ah_dev *dev, struct ah_dev_info *out)
{
    ah__dev_cpu_ops.info(dev, out);
    out->name = "loop";
}

static struct ah_dev_ops loop_ops;

/* Once, before there is a device that reads it. */
__attribute__((constructor)) static void loop_ops_make(void)
{
    loop_ops = ah__dev_cpu_ops;
    loop_ops.info = loop_info;
}

static int loop_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    AH_TRY(ah__dev_cpu_open(out, options));
    (*out)->ops = &loop_ops;
    return AH_OK;
}

static const struct ah_plugin loop = {.abi = AH_PLUGIN_ABI,
                                      .size = sizeof loop,
                                      .layout = AH_PLUGIN_LAYOUT,
                                      .name = "loop",
                                      .ops = &loop_ops,
                                      .open = loop_open};

AH_API const struct ah_plugin *autohete_plugin(const struct ah_plugin_host *host);

const struct ah_plugin *autohete_plugin(const struct ah_plugin_host *host)
{
    ah__plugin_forward(host);
    return &loop;
}
