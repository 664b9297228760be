/* A machine described by figures with sources, for estimates without the machine: the file format and its contents.
 *
 * Takes hardware/NAME.json (docs/hardware.md), gives numbers in bytes, bytes/s, flops/s and nanoseconds. Must not know
 * models. */
#ifndef AH_PROFILE_HARDWARE_H
#define AH_PROFILE_HARDWARE_H

#include "profile/figure.h"

enum ah_figure_group {
    AH_FIGURES_DEVICE,
    AH_FIGURES_LINK,
    AH_FIGURES_HOST,
    AH_FIGURES_LATENCY,
    AH_FIGURES_INTERCONNECT,
    AH_FIGURES_COUNT
};

/* id, group, key, dimension. Every figure of a group is required unless it is optional; a machine with one device may
 * leave out `interconnect`. */
#define AH_FIGURE_TABLE(X)                                                                                             \
    X(DEVICES, DEVICE, "count", COUNT)                                                                                 \
    X(MEMORY, DEVICE, "memory", BYTES)                   /* of one device, as its driver reports it */                 \
    X(MEMORY_RESERVED, DEVICE, "memory_reserved", BYTES) /* never usable for training */                               \
    X(PEAK, DEVICE, "peak", FLOPS_PER_S)                 /* dense, half precision */                                   \
    X(MEMORY_BANDWIDTH, DEVICE, "memory_bandwidth", BYTES_PER_S)                                                       \
    X(MEMORY_EFFICIENCY, DEVICE, "memory_efficiency", FRACTION) /* of the bandwidth, in streaming kernels */           \
    X(ATTENTION_FORWARD, DEVICE, "attention_forward", FRACTION) /* of the best GEMM rate */                            \
    X(ATTENTION_BACKWARD, DEVICE, "attention_backward", FRACTION)                                                      \
    X(MULTIPROCESSORS, DEVICE, "multiprocessors", COUNT)      /* of a GPU; optional */                                 \
    X(TRAINING_MOST, DEVICE, "training_most", FRACTION)       /* of peak: most flops of any training; optional */      \
    X(PYTORCH_TRAINING, DEVICE, "pytorch_training", FRACTION) /* of peak, reached by PyTorch systems; optional */      \
    X(H2D, LINK, "h2d", BYTES_PER_S)                          /* of each device */                                     \
    X(D2H, LINK, "d2h", BYTES_PER_S)                                                                                   \
    X(H2D_BOTH, LINK, "h2d_both", BYTES_PER_S) /* while the other direction runs too */                                \
    X(D2H_BOTH, LINK, "d2h_both", BYTES_PER_S)                                                                         \
    X(HOST_MEMORY, HOST, "memory", BYTES)                                                                              \
    X(HOST_MEMORY_RESERVED, HOST, "memory_reserved", BYTES)                                                            \
    X(CORES, HOST, "cores", COUNT)                                                                                     \
    X(DRAM, HOST, "dram", BYTES_PER_S) /* peak of all channels */                                                      \
    X(DRAM_EFFICIENCY, HOST, "dram_efficiency", FRACTION)                                                              \
    X(DEEPSPEED_ADAM, HOST, "deepspeed_adam", PARAMS_PER_S)                                                            \
    X(PYTORCH_ADAM, HOST, "pytorch_adam", PARAMS_PER_S) /* of PyTorch systems on a host like this; optional */         \
    X(KERNEL, LATENCY, "kernel", NS)                    /* between two kernels of one work item */                     \
    X(LAUNCH, LATENCY, "launch", NS)                    /* between two work items of a lane */                         \
    X(NOTIFY, LATENCY, "notify", NS)                    /* from a completion to the next submission */                 \
    X(COPY, LATENCY, "copy", NS)                        /* of the smallest copy */                                     \
    X(LINK_PEAK, INTERCONNECT, "peak", BYTES_PER_S)     /* between devices, one direction */                           \
    X(BUS, INTERCONNECT, "bus", BYTES_PER_S)            /* bus bandwidth of collectives, as nccl-tests counts */       \
    X(COLLECTIVE, INTERCONNECT, "latency", NS)                                                                         \
    X(COLLECTIVE_SHARE, INTERCONNECT, "device_share", FRACTION) /* of a device's arithmetic that a collective takes */

enum ah_figure {
#define AH_FIGURE_ENUM(id, group, key, dimension) AH_FIGURE_##id,
    AH_FIGURE_TABLE(AH_FIGURE_ENUM)
#undef AH_FIGURE_ENUM
        AH_FIGURE_COUNT
};

struct ah_figure_row {
    enum ah_figure_group group;
    const char *key;
    enum ah_dimension dimension;
};
extern const struct ah_figure_row ah__figure_table[AH_FIGURE_COUNT];
extern const char *const ah__figure_group_names[AH_FIGURES_COUNT];
extern const char ah__hardware_format[]; /* value of the key "format" */
/* Returns true for figures that may be left out, since some machines have no source for them. */
bool ah__figure_is_optional(enum ah_figure figure);

enum { AH_CURVE_POINTS = 32 };
/* Rates of GEMMs of cubes (m = n = k), sizes ascending; count 0: unknown. */
struct ah_curve {
    int count;
    double size[AH_CURVE_POINTS], flops_per_s[AH_CURVE_POINTS];
    struct ah_figure_origin origin[AH_CURVE_POINTS];
};

struct ah_hardware {
    struct ah_arena arena;
    const char *name, *description;
    double figure[AH_FIGURE_COUNT]; /* 0 if not given */
    struct ah_figure_origin origin[AH_FIGURE_COUNT];
    struct ah_curve gemm, gemm_f32; /* half precision; single precision (may be empty) */
    uint64_t hash;                  /* of all numbers */
};

/* hardware_find.c: find the file of a machine or a drive by name or path and return its path in *out (ah__free).
 * AH_EINPUT names those that exist. */
int ah__hardware_find(char **out, const char *name_or_path);
int ah__drive_find(char **out, const char *name_or_path);

#endif
