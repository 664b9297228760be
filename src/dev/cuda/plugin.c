/* The CUDA device as a plugin. */
#include "dev/cuda/device.h"
#include "dev/plugin/forward.h"

static const struct ah_plugin cuda = {.abi = AH_PLUGIN_ABI,
                                      .size = sizeof cuda,
                                      .layout = AH_PLUGIN_LAYOUT,
                                      .name = "cuda",
                                      .ops = &ah__dev_cuda_ops,
                                      .open = ah__dev_cuda_open};

AH_API const struct ah_plugin *autohete_plugin(const struct ah_plugin_host *host);

const struct ah_plugin *autohete_plugin(const struct ah_plugin_host *host)
{
    ah__plugin_forward(host);
    return &cuda;
}
