/* PTX on the processor: takes the text that nvcc emits, gives modules whose entries run as grids. Knows nothing of
 * CUDA's runtime: the caller says which memory there is. */
#ifndef PTX_H
#define PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_module;
struct ptx_entry;

enum { PTX_ERROR_BYTES = 1024 };

/* Parses all entries. NULL, and `error` names file and line, if anything is unknown. `text` ends with a 0 byte; it is
 * not kept. */
struct ptx_module *ptx_module_new(const char *text, const char *name, char error[PTX_ERROR_BYTES]);
void ptx_module_free(struct ptx_module *module);
/* NULL: there is none of that name. */
const struct ptx_entry *ptx_module_entry(const struct ptx_module *module, const char *name);
const struct ptx_entry *ptx_module_next(const struct ptx_module *module,
                                        const struct ptx_entry *entry); /* NULL: first */
const char *ptx_entry_name(const struct ptx_entry *entry);
/* Bytes of all parameters; and packs them as the entry reads them, from one address each. */
size_t ptx_entry_param_bytes(const struct ptx_entry *entry);
void ptx_entry_pack(const struct ptx_entry *entry, char *to, void *const *params);

/* Which memory kernels may touch: [*from, *to) around `address`, or false. */
struct ptx_memory {
    bool (*extent)(uint64_t address, uint64_t *from, uint64_t *to);
};

/* At which end of their documented error results of approximations lie. */
enum ptx_approximate { PTX_EXACT, PTX_LOW, PTX_HIGH };

struct ptx_launch {
    const struct ptx_entry *entry;
    unsigned grid[3], block[3];
    size_t shared_bytes; /* of dynamic shared memory */
    const void *params;  /* packed */
    const struct ptx_memory *memory;
    uint64_t seed; /* of the order of blocks and warps; 0: in order */
    enum ptx_approximate approximate;
};
/* Runs all blocks. 0, or -1 and `error` names the fault and its lines. Launches of one process run one at a time. */
int ptx_run(const struct ptx_launch *launch, char error[PTX_ERROR_BYTES]);

/* Instructions of an entry, and how many of them some launch has executed. */
struct ptx_coverage {
    long instructions, executed, launches;
};
struct ptx_coverage ptx_entry_coverage(const struct ptx_entry *entry);
bool ptx_entry_executed(const struct ptx_entry *entry, long instruction, int *line);

#endif
