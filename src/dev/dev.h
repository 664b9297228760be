/* The interface of devices: bounded memory, lanes that run work in order, events between lanes.
 *
 * Takes work with bound addresses, returns completions. Decides nothing: the scheduler chooses what runs next. Must not
 * know plans, graphs or training. Built-in devices have a row in dev.c; others are loaded (dev/plugin.h). */
#ifndef AH_DEV_DEV_H
#define AH_DEV_DEV_H

#include "comm/comm.h"
#include "dev/code8.h"
#include "op/codes.h"
#include "op/program.h"

struct ah_disk;

extern const char *const ah__lane_names[AH_LANE_COUNT];

/* A point on a lane, which has passed when the lane has finished its `sequence`-th work (1-based). {0,0} has always
 * passed. */
struct ah_event {
    enum ah_lane lane;
    uint64_t sequence;
};

/* The name of a work in messages and traces: "backward" of partition 3 in iteration 7. `what` is static text, or null.
 * Devices do not use it otherwise. */
struct ah_label {
    const char *what;
    int partition;
    int64_t iteration;
};

/* AdamW as in PyTorch with per-step constants precomputed on the host, so that every device does the same float
 * arithmetic, each operation rounded once in float:
 *   g = g * scale;  m = fma(b1, m, (1-b1)*g);  v = fma(b2, v, ((1-b2)*g)*g);
 *   p = p*(1 - lr*decay) [decayed elements only];  p = fma(-step_size, m / (sqrt(v)*inv_sqrt_bias2 + eps), p).
 * Moments in BF16 are widened first, and rounded up or down at random when they are stored, so that the mean is exact:
 * 16 bits of ah__draw (dev/draw.h) are added below the 16 bits that are stored, its low bits to m, its high bits to v.
 * Moments in AH_U8 are codes (dev/code8.h). p is computed from the moments before they are rounded. A p in BF16 is
 * rounded as BF16 moments are, with the low bits of ah__draw under the key ~draw; or it has a `rest`, which makes it an
 * F32 value (dev/planes.h) that needs no random bits. */
struct ah_adam {
    float beta1, one_minus_beta1, beta2, one_minus_beta2, eps;
    float decay_factor;   /* 1 - lr*weight_decay */
    float step_size;      /* lr / (1 - beta1^t) */
    float inv_sqrt_bias2; /* 1 / sqrt(1 - beta2^t) */
    uint32_t draw;        /* key of ah__draw, made of the training's seed and the step */
};

/* Returns the bytes of `count` elements of an optimizer state, from an element that may begin a group: whole groups.
 * The dtype is one of dev/host/states.h. */
int64_t ah__state_bytes(enum ah_dtype dtype, int64_t count);

/* The bytes [from, to) of a space; no bytes if both are 0. */
struct ah_extent {
    int64_t from, to;
};

/* A program prepared by a device: kernels, tilings, algorithms and scratch are chosen once, from shapes, device and
 * library version alone, so that the same program gives the same bits whenever it runs. Every device's own struct
 * begins with this. */
struct ah_prepared {
    const struct ah_program *program;        /* must outlive this */
    int64_t workspace_bytes;                 /* bytes of AH_SPACE_WORKSPACE while it runs */
    struct ah_extent extent[AH_SPACE_COUNT]; /* bytes that the operands of all calls cover, and the workspace */
};

enum ah_task_type {
    AH_TASK_PROGRAM,
    AH_TASK_COPY,
    AH_TASK_CAST,
    AH_TASK_EXPAND,
    AH_TASK_ADAM,
    AH_TASK_SQNORM,
    AH_TASK_CLIP,
    AH_TASK_COLLECTIVE,
    AH_TASK_DISK,
    AH_TASK_DELAY
};

/* A task of a lane; work is a short sequence of tasks. Addresses must stay valid until the work completes. */
struct ah_task {
    enum ah_task_type type;
    union {
        /* Runs the program `repeats` times in a row, each time as if it were a task of its own with other bases. Two
         * programs alternate, so that data which the first leaves in a space whose base does not move are there for the
         * second. */
        struct {
            const struct ah_prepared *prepared; /* prepared by the device that runs it */
            const struct ah_prepared *then;     /* run after it each time, with the same bases; or null */
            char *base[AH_SPACE_COUNT];         /* bases of the first run; null for unused spaces */
            int64_t step[AH_SPACE_COUNT];       /* bytes, at least 0, that are added to a base after each run */
            int repeats;                        /* 0 means 1 */
        } program;
        struct {
            void *to;
            const void *from;
            int64_t bytes; /* the lane gives the direction: H2D copies to the device, D2H from it */
        } copy;
        struct {
            void *to; /* does not overlap `from`; or, F32 to AH_BF16, is the same: narrows in place */
            const void *from;
            enum ah_dtype to_dtype, from_dtype; /* AH_F32 and AH_BF16; rounds to nearest even */
            int64_t count;                      /* 0: only writes zeros */
            const struct ah_range *zeros;       /* elements of `to` that become zero instead; must outlive the work */
            int zero_count;
        } cast;
        struct {
            void *to;         /* dtype `to_dtype`, AH_F32 or AH_BF16; does not overlap `from` */
            const void *from; /* blocks of op/codes.h, 8-byte aligned */
            enum ah_dtype to_dtype;
            enum ah_codes codes;
            int64_t count; /* elements, whole blocks */
        } expand;
        struct {
            void *p, *to_p;                    /* dtype `dtype`; to_...: destinations, null: in place */
            void *m, *v, *to_m, *to_v;         /* dtype `moment_dtype`; AH_U8: whole groups, in `decayed` too */
            void *rest, *to_rest;              /* low halves of p in AH_BF16 (dev/planes.h); null: none */
            const void *g;                     /* dtype `dtype` */
            enum ah_dtype dtype, moment_dtype; /* F32 or BF16; moments AH_U8 */
            int64_t count, decayed;            /* elements [0, decayed) take weight decay */
            int64_t first; /* number of element 0 in the training, independent of its place: for ah__draw */
            struct ah_adam adam;
            /* Factor of the gradient, in float, before anything else; read when the task executes, from memory that its
             * lane may read. Null: 1. NaN: nothing is updated. */
            const float *scale;
        } adam;
        struct {
            const void *g;
            enum ah_dtype dtype;
            int64_t count;
            double *out; /* sum of squares, in a fixed order; NaN or infinity pass through */
        } sqnorm;
        struct {
            const double *squares; /* squared norms of all groups' gradients */
            int count;
            double limit;
            float *scale; /* receives ah__clip_scale(ah__clip_norm(squares, count), limit) */
        } clip;
        struct {
            enum ah_collective kind;
            void *buffer;       /* see comm/comm.h for each kind */
            int64_t part_count; /* elements of each rank's part, or of a sum */
            enum ah_dtype dtype;
        } collective;
        struct {
            struct ah_disk *disk;
            void *memory;          /* in host memory; address, offset and bytes are multiples of AH_DISK_ALIGN */
            int64_t offset, bytes; /* of the scratch space (dev/host/disk.h) */
            bool writes;
        } disk;
        struct {
            int64_t ns; /* time of the lane at full speed, without any work: only simulated devices run this */
        } delay;
    } as;
};

enum { AH_WORK_MAX_WAITS = 8, AH_WORK_MAX_TASKS = 8 };

struct ah_work {
    struct ah_label label;
    enum ah_lane lane;
    int waits, tasks;
    struct ah_event wait[AH_WORK_MAX_WAITS]; /* all must have passed before the first task starts */
    struct ah_task task[AH_WORK_MAX_TASKS];
};

/* A completion: the oldest work of its lane. */
struct ah_done {
    enum ah_lane lane;
    int64_t start_ns, end_ns; /* times of the device's clock; start is after the waits */
    int status;               /* AH_OK or why it failed; wait_any sets its caller's ah_error() */
};

/* The texts live as long as the device. */
struct ah_dev_info {
    const char *name;                /* "cpu", "cuda:0" */
    const char *model;               /* name of the hardware; "": unknown */
    const char *link_kind;           /* its connection, "PCIe 32.0 GT/s x16"; null: unknown */
    int count;                       /* devices of this kind in this machine */
    int threads, host_threads;       /* parallel threads or multiprocessors of the device; threads of the host */
    int queue_depth;                 /* works in flight that keep a lane busy while the driver learns of one; 0: two */
    int64_t link_bytes_per_s;        /* 0: not throttled */
    int64_t align_bytes;             /* buffers start at multiples of this */
    int64_t device_high_water_bytes; /* highest byte of the region any task has touched */
    int64_t host_bytes;              /* host memory handed out by host_memory */
    int64_t memory_bytes;            /* whole memory of the device; 0: unknown */
    int64_t device_bytes;            /* largest region that it could provide when it opened; 0: no limit of its own */
    int64_t machine_bytes;           /* device and host memory together available when it opened; 0: unknown */
    uint64_t signature;              /* hash of what timings depend on: kind, hardware, threads, link, driver */
    char arithmetic[64];             /* what bits depend on beside programs: libraries, their code paths here */
    char attention[160];             /* what does attention in prepared programs, and why no library; "": unknown */
};

/* The functions of a device. Every member is required. Calls come from one thread at a time, not always the same one (a
 * run has its own while iterations are in flight); only now_ns comes from any thread at any time. Lanes run on their
 * own. */
struct ah_dev_ops {
    /* Prepares collectives of several ranks, beside ah__comm(). Called once, before all else, by all ranks together,
     * when each has opened its device. AH_EINPUT: these devices cannot work together, on all ranks alike; any other
     * failure is this rank's own. */
    int (*join)(struct ah_dev *dev);
    /* Makes the only, bounded device region, zeroed. Called at most once per device between two calls of
     * memory_release. */
    int (*device_memory)(struct ah_dev *dev, int64_t bytes, char **base);
    /* Makes host memory as the device needs it (pinned, pre-faulted, zeroed). Freed by memory_release. */
    int (*host_memory)(struct ah_dev *dev, int64_t bytes, char **base);
    /* Frees all device and host memory handed out; no work may be in flight. */
    int (*memory_release)(struct ah_dev *dev);
    /* Prepares a program. The caller frees *out with prepared_free, before close and while it is not in flight.
     * AH_EDEVICE names the operator that the device does not know or cannot run in this shape or dtype; or
     * AH_ENOMEM. */
    int (*prepare)(struct ah_dev *dev, const struct ah_program *program, struct ah_prepared **out);
    void (*prepared_free)(struct ah_dev *dev, struct ah_prepared *prepared); /* null is fine */
    /* Copies *work, queues it on its lane and returns at once. The lane starts it when all earlier work of the lane is
     * done and its waits have passed. *done names its completion. No heap allocation. */
    int (*submit)(struct ah_dev *dev, const struct ah_work *work, struct ah_event *done);
    /* Blocks until some work completes. Completions of one lane come in order, each once. AH_EINTERNAL: nothing is in
     * flight. After a failure all later work completes with the same status without running, until memory_release (work
     * that an accelerator already has may still run; it completes with that status as well). A device whose hardware
     * has failed reports AH_EDEVICE once more there, and stays failed. */
    int (*wait_any)(struct ah_dev *dev, struct ah_done *done);
    int64_t (*now_ns)(struct ah_dev *dev);
    void (*info)(struct ah_dev *dev, struct ah_dev_info *out);
    void (*close)(struct ah_dev *dev);
};

/* Every device's struct begins with this. */
struct ah_dev {
    const struct ah_dev_ops *ops;
    void *library;         /* for the loader: the shared object of the device; a device leaves it null */
    char *disk;            /* for the opener: folders for scratch space; null: the folder for temporary files */
    char passed_over[192]; /* for the opener: why "auto" took this device although there is an accelerator; else "" */
};

/* Runs a work and waits for it; nothing else may be in flight. For loading, saving, profiling. */
int ah__dev_run(struct ah_dev *dev, const struct ah_work *work, struct ah_done *done);

/* Returns the largest region to request from a device if nobody set a limit; 0: no limit but the machine's. */
int64_t ah__dev_region_bytes(struct ah_dev *dev);

int ah__dev_cpu_open(struct ah_dev **out, const struct ah_dev_options *options);

#endif
