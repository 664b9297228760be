/* Between the files of the executor: modules as they are parsed, blocks as they run. */
#ifndef PTX_INSIDE_H
#define PTX_INSIDE_H

#include "ptx.h"

#include <setjmp.h>

enum { WARP = 32, FULL = -1, VECTOR_MOST = 8, SOURCES_MOST = 5, WARPS_MOST = 32 };

enum ptx_type { B8, B16, B32, B64, U8, U16, U32, U64, S8, S16, S32, S64, BF16, BF16X2, F16, F32, F64, PRED, TYPES };

enum ptx_space { GENERIC, GLOBAL, SHARED, LOCAL, PARAM, CONST };
/* Generic addresses of shared and local memory, where no host address is. */
#define SHARED_WINDOW (1ULL << 60)
#define LOCAL_WINDOW (2ULL << 60)
/* Where extern shared memory begins, behind what an entry has besides: at most 227 KiB together. */
#define DYNAMIC_SHARED (1ULL << 20)

enum ptx_rounding { RN, RZ, RM, RP, RNI, RZI, RMI, RPI };
enum ptx_part { LO = 1, HI, WIDE };
enum ptx_compare { EQ, NE, LT, LE, GT, GE, EQU, NEU, LTU, LEU, GTU, GEU, NUM, NAN_ };
enum ptx_combine { COMBINE_NONE, COMBINE_AND, COMBINE_OR, COMBINE_XOR };
enum ptx_mode { MODE_NONE, BFLY, UP, DOWN, IDX, ALL, ANY, BALLOT };

/* Modifiers: each opcode says which it may have. */
enum {
    M_ROUNDING = 1 << 0,
    M_FTZ = 1 << 1,
    M_SAT = 1 << 2,
    M_APPROX = 1 << 3,
    M_FULL = 1 << 4,
    M_PART = 1 << 5,
    M_UNI = 1 << 6,
    M_SYNC = 1 << 7,
    M_SPACE = 1 << 8,
    M_NC = 1 << 9,
    M_CACHE = 1 << 10,
    M_VECTOR = 1 << 11,
    M_COMPARE = 1 << 12,
    M_COMBINE = 1 << 13,
    M_MODE = 1 << 14,
    M_TO = 1 << 15,
    M_WRAP = 1 << 16,
    M_WARP = 1 << 17,
    M_DIRECTION = 1 << 18,
    M_NAN = 1 << 19,
    M_ALIGNED = 1 << 20
};

struct ptx_instr;
/* Computes d of four operands for the lanes of the mask. */
typedef void ptx_lanes(const struct ptx_instr *in, uint64_t *d, const uint64_t *const *s, uint32_t mask);

enum ptx_kind { LANES, COPIES, PACKS, LOADS, STORES, BRANCHES, BARRIER, EXCHANGES, MULTIPLIES, ENDS, TRAPS };

/* One opcode for some types. */
struct ptx_op {
    const char *name;
    enum ptx_kind kind;
    uint32_t types;   /* 1 << enum ptx_type of the first one, 0: it has none */
    uint32_t needed;  /* modifiers that it must have, */
    uint32_t allowed; /* and may have beside them */
    int results, sources;
    ptx_lanes *lanes;
    int part; /* enum ptx_part that it is for */
};
/* By name, type (-1: it has none) and the modifiers of `in`. NULL; `known`: there is an opcode of that name. */
const struct ptx_op *ptx_op_find(const struct ptx_instr *in, const char *name, int type, bool *known);
const struct ptx_op *ptx_op_at(size_t i); /* of all rows; NULL behind the last */
unsigned ptx_type_bytes(enum ptx_type type);

/* A value is a register of the warp, or behind those a constant. */
struct ptx_instr {
    const struct ptx_op *op;
    enum ptx_kind kind;
    enum ptx_type type, from; /* the first and the last that are written */
    enum ptx_rounding rounding;
    enum ptx_part part;
    enum ptx_compare compare;
    enum ptx_combine combine;
    enum ptx_mode mode;
    enum ptx_space space;
    uint32_t modifiers;
    bool ftz, sat, left, guard_not, combine_not;
    int guard; /* a predicate, or -1 */
    int result[VECTOR_MOST], results;
    int also; /* a predicate that is written, too, or -1 */
    int source[3 * VECTOR_MOST], sources;
    int address, vector;
    int64_t offset;
    int target;          /* of a branch */
    int line;            /* of the PTX */
    int file, file_line; /* of the source; 0: unknown */
    const struct ptx_module *module;
};

struct ptx_symbol {
    char *name;
    enum ptx_space space;
    uint64_t address; /* an offset, or where a global variable lies */
    size_t bytes;
    bool dynamic; /* of extern shared memory: behind all that is static */
    struct ptx_symbol *next;
};

struct ptx_prefix {
    char name[32];
    int first, count;
};

struct ptx_entry {
    struct ptx_module *module;
    struct ptx_entry *next;
    char *name;
    struct ptx_instr *instr;
    int instrs, registers;
    uint64_t *constant; /* one each */
    int constants;
    struct {
        size_t at, bytes;
    } * param;
    int params;
    size_t param_bytes, shared_bytes, local_bytes;
    unsigned threads_most;    /* .maxntid, or 1024 */
    unsigned char granule[2]; /* log2 of the bytes of the smallest access: to global, and to shared memory */
    bool dynamic;             /* it has extern shared memory */
    unsigned char *executed;
    long launches;
};

struct ptx_module {
    char *name;
    struct ptx_entry *entry;
    struct ptx_symbol *symbol;
    char **file;
    int files;
    char *globals;
    size_t globals_used, shared_bytes;
    enum ptx_approximate approximate; /* of the launch that runs */
};

/* ---- decode.c: takes an opcode with modifiers apart; the message of what is wrong with it, or NULL */

const char *ptx_decode(struct ptx_instr *in, const char *word);
int ptx_type_named(const char *name); /* "f32"; -1 */

/* ---- registers that every thread begins with */

enum { TID, NTID = TID + 3, CTAID = NTID + 3, NCTAID = CTAID + 3, LANEID = NCTAID + 3, WARPID, SPECIALS };
int ptx_special_named(const char *name); /* "%tid.x"; -1 */

/* ---- running */

enum ptx_state { RUNS, WAITS_WARP, WAITS_BLOCK };

/* Lanes that are at the same instruction. */
struct ptx_group {
    uint32_t lanes;
    int pc;
    enum ptx_state state;
};

struct ptx_warp {
    struct ptx_run *run;
    unsigned index;
    uint32_t live;
    struct ptx_group group[WARP];
    int groups;
    uint64_t *reg;
    uint32_t *defined;                /* lanes of each register */
    uint32_t syncs, seen[WARP][WARP]; /* the last synchronization at which lane i learned what lane j did */
};

/* Who touched some bytes last. Epochs count barriers and blocks. */
struct ptx_trace {
    uint32_t write_epoch, write_sync, read_epoch, read_first, read_sync, read_warps, read_lanes;
    uint16_t write_thread, read_thread;
    int write_at, read_at;
};

struct ptx_run {
    const struct ptx_launch *launch;
    const struct ptx_entry *entry;
    char *error;
    jmp_buf stop;
    unsigned threads, warps, block[3];
    struct ptx_warp warp[WARPS_MOST];
    uint64_t *constant; /* WARP of each */
    char *param, *shared, *local;
    size_t shared_bytes;
    unsigned char *local_written;
    uint32_t epoch, epoch_launch, epoch_block;
    struct ptx_trace *shared_trace;
    uint64_t from, to; /* the extent that was touched last */
};

_Noreturn void ptx_stop(struct ptx_run *run, const struct ptx_instr *in, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
const char *ptx_where(char text[256], const struct ptx_instr *in);

/* ---- warp.c */

/* The lanes of a value; it must have been written in those of the mask. */
const uint64_t *ptx_source(const struct ptx_warp *warp, const struct ptx_instr *in, int value, uint32_t mask);
/* Runs until all lanes have ended or wait at a barrier */
void ptx_warp_run(struct ptx_warp *warp);

/* Runs mma.sync of matrices [16,16] and [16,8] of bf16 by all lanes (matrix.c). */
void ptx_multiply(struct ptx_warp *warp, const struct ptx_instr *in);
/* The vectors that mma.sync has: the sums, then each factor, then the sums before. */
enum { MATRIX_SUMS = 4, MATRIX_LEFT = 4, MATRIX_RIGHT = 2 };

/* ---- memory.c */
void ptx_load(struct ptx_warp *warp, const struct ptx_instr *in, uint32_t mask);
void ptx_store(struct ptx_warp *warp, const struct ptx_instr *in, uint32_t mask);

/* ---- trace.c: hazards */
void ptx_trace_read(struct ptx_warp *warp, const struct ptx_instr *in, struct ptx_trace *t, unsigned lane, bool shared);
void ptx_trace_write(struct ptx_warp *warp, const struct ptx_instr *in, struct ptx_trace *t, unsigned lane, bool shared,
                     bool same);
struct ptx_trace *ptx_trace_at(uint64_t address, unsigned granule); /* log2 of its bytes */
void ptx_trace_sync(struct ptx_warp *warp, uint32_t lanes);

#endif
