#include "block.h"

#include <string.h>

#include "base/hash.h"

enum { ALIGN = 4096 };

const struct block_row block_forward[BLOCK_FORWARD] = {
    {AH_OP_LAYERNORM, {X, W_LN, B_LN}, {LN1, MEAN1, RSTD1}, 0},
    {AH_OP_LINEAR, {LN1, W_QKV, B_QKV}, {QKV}, 0},
    {AH_OP_ATTENTION, {QKV}, {ATT, LSE}, 0},
    {AH_OP_LINEAR, {ATT, W_PROJ, B_PROJ}, {PROJ}, 0},
    {AH_OP_ADD, {PROJ, X}, {PROJ}, 0},
    {AH_OP_LAYERNORM, {PROJ, W_LN, B_LN}, {LN2, MEAN2, RSTD2}, 0},
    {AH_OP_LINEAR, {LN2, W_FC, B_FC}, {FC}, 0},
    {AH_OP_GELU, {FC}, {ACT}, 0},
    {AH_OP_LINEAR, {ACT, W_OUT, B_OUT}, {OUT}, 0},
    {AH_OP_ADD, {OUT, PROJ}, {OUT}, 0},
};

const struct block_row block_backward[BLOCK_BACKWARD] = {
    {AH_OP_LINEAR_BWD_B, {D_OUT}, {G_BOUT}, 0},
    {AH_OP_LINEAR_BWD_W, {D_OUT, ACT}, {G_WOUT}, 0},
    {AH_OP_LINEAR_BWD_X, {D_OUT, W_OUT}, {D_FC}, 0},
    {AH_OP_GELU_BWD, {D_FC, FC}, {D_FC}, 0},
    {AH_OP_LINEAR_BWD_B, {D_FC}, {G_BFC}, 0},
    {AH_OP_LINEAR_BWD_W, {D_FC, LN2}, {G_WFC}, 0},
    {AH_OP_LINEAR_BWD_X, {D_FC, W_FC}, {D_LN}, 0},
    {AH_OP_LAYERNORM_BWD, {D_LN, PROJ, W_LN, MEAN2, RSTD2}, {D_OUT, G_WLN, G_BLN}, 1},
    {AH_OP_LINEAR_BWD_B, {D_OUT}, {G_BPROJ}, 0},
    {AH_OP_LINEAR_BWD_W, {D_OUT, ATT}, {G_WPROJ}, 0},
    {AH_OP_LINEAR_BWD_X, {D_OUT, W_PROJ}, {D_ATT}, 0},
    {AH_OP_ATTENTION_BWD, {D_ATT, QKV, ATT, LSE}, {D_QKV}, 0},
    {AH_OP_LINEAR_BWD_B, {D_QKV}, {G_BQKV}, 0},
    {AH_OP_LINEAR_BWD_W, {D_QKV, LN1}, {G_WQKV}, 0},
    {AH_OP_LINEAR_BWD_X, {D_QKV, W_QKV}, {D_LN}, 0},
    {AH_OP_LAYERNORM_BWD, {D_LN, X, W_LN, MEAN1, RSTD1}, {D_OUT, G_WLN, G_BLN}, 1},
};

const struct block_row block_other[BLOCK_OTHER] = {
    {AH_OP_EMBEDDING, {TABLE, TARGETS}, {X}, 0},
    {AH_OP_EMBEDDING_BWD, {D_OUT, TARGETS}, {G_TABLE}, 1},
    {AH_OP_CROSS_ENTROPY, {LOGITS, TARGETS}, {LOSS, LOGITS}, 0},
};

const struct block_row block_documents[BLOCK_DOCUMENTS] = {
    {AH_OP_ATTENTION, {QKV, POSITIONS}, {ATT, LSE}, 0},
    {AH_OP_ATTENTION_BWD, {D_ATT, QKV, ATT, LSE, POSITIONS}, {D_QKV}, 0},
};

static void place(struct block *b, enum block_tensor tensor, enum ah_dtype dtype, struct ah_shape shape)
{
    b->meta[tensor] = (struct ah_meta){dtype, shape};
    b->offset[tensor] = b->bytes;
    b->bytes += (ah__meta_bytes(&b->meta[tensor]) + ALIGN - 1) / ALIGN * ALIGN;
}

static void activations_place(struct block *b)
{
    static const int cols[BLOCK_TENSORS] = {
        [X] = 1,   [LN1] = 1,   [QKV] = 3,  [ATT] = 1,  [PROJ] = 1, [LN2] = 1,   [FC] = 4,    [ACT] = 4,
        [OUT] = 1, [D_OUT] = 1, [D_FC] = 4, [D_LN] = 1, [D_X] = 1,  [D_ATT] = 1, [D_QKV] = 3,
    };
    static const enum block_tensor rows[] = {MEAN1, RSTD1, MEAN2, RSTD2};
    for (int i = 0; i < BLOCK_TENSORS; i++)
        if (cols[i])
            place(b, (enum block_tensor)i, b->dtype,
                  (struct ah_shape){3, {b->batch, b->seq, cols[i] * b->channels, 0}});
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        place(b, rows[i], AH_F32, ah_shape1(b->batch * b->seq));
    place(b, LSE, AH_F32, (struct ah_shape){3, {b->batch, b->heads, b->seq, 0}});
}

static void parameters_place(struct block *b)
{
    static const struct {
        enum block_tensor weight, bias, dweight, dbias;
        int in, out;
    } layers[] = {{W_QKV, B_QKV, G_WQKV, G_BQKV, 1, 3},
                  {W_PROJ, B_PROJ, G_WPROJ, G_BPROJ, 1, 1},
                  {W_FC, B_FC, G_WFC, G_BFC, 1, 4},
                  {W_OUT, B_OUT, G_WOUT, G_BOUT, 4, 1}};
    for (size_t i = 0; i < AH_LENGTH(layers); i++) {
        struct ah_shape weight = ah_shape2(layers[i].in * b->channels, layers[i].out * b->channels);
        place(b, layers[i].weight, b->dtype, weight);
        place(b, layers[i].bias, b->dtype, ah_shape1(layers[i].out * b->channels));
        place(b, layers[i].dweight, AH_F32, weight);
        place(b, layers[i].dbias, AH_F32, ah_shape1(layers[i].out * b->channels));
    }
    place(b, W_LN, b->dtype, ah_shape1(b->channels));
    place(b, B_LN, b->dtype, ah_shape1(b->channels));
    place(b, G_WLN, AH_F32, ah_shape1(b->channels));
    place(b, G_BLN, AH_F32, ah_shape1(b->channels));
}

void block_place(struct block *b)
{
    b->bytes = 0;
    activations_place(b);
    parameters_place(b);
    place(b, LOGITS, b->dtype, (struct ah_shape){3, {b->batch, b->loss_seq, b->vocabulary, 0}});
    place(b, TARGETS, AH_I32, ah_shape2(b->batch, b->seq));
    place(b, POSITIONS, AH_I32, ah_shape2(b->batch, b->seq));
    place(b, LOSS, AH_F32, ah_shape1(1));
    place(b, TABLE, b->dtype, ah_shape2(b->vocabulary, b->channels));
    place(b, G_TABLE, AH_F32, ah_shape2(b->vocabulary, b->channels));
}

/* 0x3D and 0xBD with random bits below are numbers between 2^-5 and 2^-2 in either dtype. */
static void numbers_fill(char *at, int64_t count, enum ah_dtype dtype, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)ah__random_bits(seed, (uint64_t)i);
        bits = (bits & 0x80FFFFFFU) | 0x3D000000U;
        if (dtype == AH_BF16)
            ((uint16_t *)(void *)at)[i] = (uint16_t)(bits >> 16);
        else
            ((uint32_t *)(void *)at)[i] = bits;
    }
}

void block_fill(const struct block *b, char *memory)
{
    for (int i = NONE + 1; i < BLOCK_TENSORS; i++)
        if (b->meta[i].dtype != AH_I32)
            numbers_fill(memory + b->offset[i], ah__shape_count(&b->meta[i].shape), b->meta[i].dtype, (uint64_t)i);
    for (int64_t i = 0; i < b->batch * b->seq; i++) {
        ((int32_t *)(void *)(memory + b->offset[TARGETS]))[i] = (int32_t)(i * 7919 % b->vocabulary);
        ((int32_t *)(void *)(memory + b->offset[POSITIONS]))[i] = (int32_t)(i % b->seq % BLOCK_DOCUMENT_TOKENS);
    }
}

static struct ah_operand operand(const struct block *b, enum block_tensor tensor)
{
    struct ah_operand out = {AH_SPACE_WORK, b->offset[tensor], b->meta[tensor]};
    return tensor == NONE ? (struct ah_operand){0} : out;
}

struct ah_call block_call(const struct block *b, const struct block_row *row)
{
    struct ah_call call = {.op = row->op, .attr = {.heads = b->heads, .eps = 1e-5F, .acc = row->acc}};
    for (int i = 0; i < 5; i++)
        call.in[i] = operand(b, row->in[i]);
    for (int i = 0; i < 3; i++)
        call.out[i] = operand(b, row->out[i]);
    if (row->op == AH_OP_CROSS_ENTROPY)
        call.in[1].meta.shape = ah_shape2(b->batch, b->loss_seq);
    return call;
}

struct traffic call_traffic(const struct block *b, const struct ah_call *call)
{
    struct traffic traffic = {0, 0};
    for (int i = 0; i < AH_OP_MAX_INPUTS + AH_OP_MAX_OUTPUTS; i++) {
        bool is_output = i >= AH_OP_MAX_INPUTS;
        const struct ah_operand *o = is_output ? &call->out[i - AH_OP_MAX_INPUTS] : &call->in[i];
        bool table = o->offset == b->offset[TABLE] || o->offset == b->offset[G_TABLE];
        int64_t count = table ? b->batch * b->seq * b->channels : ah__shape_count(&o->meta.shape);
        bool adds = is_output && (call->attr.acc >> (i - AH_OP_MAX_INPUTS) & 1U);
        double bytes = o->space ? (double)count * (double)ah__dtype_bytes(o->meta.dtype) : 0;
        traffic.written += is_output ? bytes : 0;
        traffic.read += is_output && !adds ? 0 : bytes;
    }
    return traffic;
}

double call_bytes(const struct block *b, const struct ah_call *call)
{
    struct traffic traffic = call_traffic(b, call);
    return traffic.read + traffic.written;
}

bool op_is_product(enum ah_op op)
{
    return ah__op_table[op]->limit != AH_OP_LIMIT_MEMORY;
}
