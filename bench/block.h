/* The operators of a GPT-2 block, of the embedding and of the loss as calls over tensors of one size, for the benches
 * of kernels. Not part of the library. */
#ifndef AH_BENCH_BLOCK_H
#define AH_BENCH_BLOCK_H

#include "op/program.h"

enum block_tensor {
    NONE,
    X,
    LN1,
    MEAN1,
    RSTD1,
    QKV,
    ATT,
    LSE,
    PROJ,
    LN2,
    MEAN2,
    RSTD2,
    FC,
    ACT,
    OUT,
    W_LN,
    B_LN,
    W_QKV,
    B_QKV,
    W_PROJ,
    B_PROJ,
    W_FC,
    B_FC,
    W_OUT,
    B_OUT,
    D_OUT,
    D_FC,
    D_LN,
    D_X,
    D_ATT,
    D_QKV,
    G_WLN,
    G_BLN,
    G_WQKV,
    G_BQKV,
    G_WPROJ,
    G_BPROJ,
    G_WFC,
    G_BFC,
    G_WOUT,
    G_BOUT,
    LOGITS,
    TARGETS,
    POSITIONS,
    LOSS,
    TABLE,
    G_TABLE,
    BLOCK_TENSORS
};

struct block_row {
    enum ah_op op;
    enum block_tensor in[5], out[3];
    unsigned acc;
};

enum { BLOCK_FORWARD = 10, BLOCK_BACKWARD = 16, BLOCK_OTHER = 3, BLOCK_DOCUMENTS = 2, BLOCK_DOCUMENT_TOKENS = 256 };
extern const struct block_row block_forward[BLOCK_FORWARD], block_backward[BLOCK_BACKWARD], block_other[BLOCK_OTHER];
/* Attention in sequences of documents of BLOCK_DOCUMENT_TOKENS each, forward and backward. */
extern const struct block_row block_documents[BLOCK_DOCUMENTS];

/* Sizes, and where each tensor lies. The loss has `loss_seq` tokens of each sequence. */
struct block {
    enum ah_dtype dtype;
    int64_t batch, seq, channels, vocabulary, loss_seq;
    int heads;
    int64_t bytes; /* of all tensors */
    int64_t offset[BLOCK_TENSORS];
    struct ah_meta meta[BLOCK_TENSORS];
};

/* Lays the tensors out one behind the other, from the sizes that are set. */
void block_place(struct block *block);
/* Small random numbers, and ids; `memory` of block->bytes. */
void block_fill(const struct block *block, char *memory);
/* All operands lie in AH_SPACE_WORK. */
struct ah_call block_call(const struct block *block, const struct block_row *row);

/* What must move at least: every operand once, outputs that are also read twice; of a table only the rows in use. */
struct traffic {
    double read, written; /* bytes */
};
struct traffic call_traffic(const struct block *block, const struct ah_call *call);
double call_bytes(const struct block *block, const struct ah_call *call); /* both */
/* Whether its time is that of its arithmetic, not of its memory. */
bool op_is_product(enum ah_op op);

#endif
