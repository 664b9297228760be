/* The losses. Forward also computes the gradients, so that no other operator is needed for them. */
#include "op/rules.h"

/* ---- loss of logits, whose gradient overwrites them -------------------------------------------------------------- */

static int cross_entropy_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    (void)attr;
    AH_TRY(ah__op_expect_float("logits", &in[0], 3, 3));
    AH_TRY(ah__op_expect("targets", &in[1], AH_I32, ah_shape2(in[0].shape.dim[0], in[0].shape.dim[1])));
    if (in[2].shape.rank)
        AH_TRY(ah__op_expect("scale", &in[2], AH_F32, ah_shape1(1)));
    out[0] = ah__op_floats(1);
    out[1] = in[0];
    return AH_OK;
}

AH_OP_FLOPS_PER_ELEMENT(cross_entropy_flops, 5.0)

static int64_t cross_entropy_classes(const struct ah_meta *in)
{
    return ah__op_last(&in[0]);
}

/* (logits [B,T,V], targets [B,T], scale [1]?) -> (loss [1], dlogits). The mean, or the sum times `scale`. */
const struct ah_op_row ah__op_cross_entropy = {
    .name = "cross_entropy",
    AH_OP_INPUTS({.name = "logits", .kind = AH_OPERAND_ACTIVATION}, {.name = "targets", .kind = AH_OPERAND_TARGETS},
                 {.name = "scale", .kind = AH_OPERAND_SCALE, .optional = true}),
    AH_OP_OUTPUTS({.name = "loss", .kind = AH_OPERAND_LOSS},
                  {.name = "dlogits", .kind = AH_OPERAND_GRADIENT, .backward_reads = true, .in_place = true}),
    .infer = cross_entropy_infer,
    .flops = cross_entropy_flops,
    .classes = cross_entropy_classes,
};

/* ---- loss of activations and the head's weight: only a chunk of logits exists at once ---------------------------- */

/* Size of a chunk of tokens: large enough for products near their best speed. Each chunk reads and writes the weight's
 * gradient, which hides behind the arithmetic of enough tokens. Tokens are proportional to the channels, so that the
 * scratch is a fixed part of that gradient. With few ids a chunk costs little. */
enum { CHUNK_PART = 3, CHUNK_BYTES = 4 << 20, CHUNK_LEAST = 64, CHUNK_MULTIPLE = 16 };

static int64_t round_to(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

/* Returns the rows of a chunk: all chunks are equal, but the last may be smaller. */
static int64_t chunk_rows(int64_t rows, int64_t vocab, int64_t channels)
{
    int64_t cheap = CHUNK_BYTES / (vocab * (int64_t)sizeof(float)), most = channels / CHUNK_PART;
    most = cheap > most ? cheap : most;
    most = most < CHUNK_LEAST ? CHUNK_LEAST : most / CHUNK_MULTIPLE * CHUNK_MULTIPLE;
    int64_t chunks = (rows + most - 1) / most, each = round_to((rows + chunks - 1) / chunks, CHUNK_MULTIPLE);
    return each < rows ? each : rows;
}

static int linear_cross_entropy_infer(struct ah_meta *out, const struct ah_meta *in, const struct ah_attr *attr)
{
    AH_TRY(ah__cap_expect(attr));
    AH_TRY(ah__op_expect_float("x", &in[0], 3, 3));
    AH_TRY(ah__op_expect_float("weight", &in[1], 2, 2));
    if (in[1].dtype != in[0].dtype || ah__op_last(&in[1]) != ah__op_last(&in[0]))
        return ah__op_wrong("weight", &in[1], "%s [V,%lld]", ah__dtype_name(in[0].dtype),
                            (long long)ah__op_last(&in[0]));
    AH_TRY(ah__op_expect("targets", &in[2], AH_I32, ah_shape2(in[0].shape.dim[0], in[0].shape.dim[1])));
    if (in[3].shape.rank)
        AH_TRY(ah__op_expect("scale", &in[3], AH_F32, ah_shape1(1)));
    int64_t vocab = in[1].shape.dim[0];
    out[0] = ah__op_floats(1);
    int64_t chunk = chunk_rows(ah__shape_rows(&in[0].shape), vocab, ah__op_last(&in[0]));
    out[1] = (struct ah_meta){in[0].dtype, ah_shape2(chunk, vocab)};
    out[2] = in[0];
    out[3] = (struct ah_meta){AH_F32, in[1].shape};
    return AH_OK;
}

/* Floating-point operations: one product for the logits, one for each gradient. */
static double linear_cross_entropy_flops(const struct ah_meta *in, const struct ah_meta *out,
                                         const struct ah_attr *attr)
{
    (void)attr;
    double rows = (double)ah__shape_rows(&in[0].shape), vocab = (double)in[1].shape.dim[0];
    int products = 1 + (out[2].shape.rank != 0) + (out[3].shape.rank != 0);
    return rows * vocab * (2.0 * products * (double)ah__op_last(&in[0]) + 5.0);
}

/* Bytes moved. Every chunk reads the weight once for each product with it, reads and writes the weight's gradient, and
 * passes its own logits five times: written, turned into their gradient (read and written), and read by two
 * products. */
static double linear_cross_entropy_bytes(const struct ah_meta *in, const struct ah_meta *out,
                                         const struct ah_attr *attr)
{
    int64_t rows = ah__shape_rows(&in[0].shape), chunk = out[1].shape.dim[0];
    double chunks = (double)((rows + chunk - 1) / chunk), weight = (double)ah__meta_bytes(&in[1]);
    double gradient = (double)ah__meta_bytes(&out[3]), first = attr->acc >> 3 & 1 ? 0 : gradient;
    double logits = (double)rows * (double)in[1].shape.dim[0] * (double)ah__dtype_bytes(out[1].dtype);
    double bytes = chunks * weight + 3 * logits + (double)ah__meta_bytes(&in[0]) + (double)ah__meta_bytes(&in[2]);
    if (out[2].shape.rank)
        bytes += chunks * weight + logits + (double)ah__meta_bytes(&out[2]);
    if (out[3].shape.rank)
        bytes += 2 * chunks * gradient - first + logits + (double)ah__meta_bytes(&in[0]);
    return bytes;
}

/* Size of the product for all tokens: with many ids one chunk keeps a processor busy, and the traffic of chunks is in
 * the bytes. */
static struct ah_op_product linear_cross_entropy_product(const struct ah_meta *in, const struct ah_meta *out)
{
    (void)out;
    return (struct ah_op_product){ah__shape_rows(&in[0].shape), in[1].shape.dim[0], in[1].shape.dim[1]};
}

static int64_t linear_cross_entropy_classes(const struct ah_meta *in)
{
    return in[1].shape.dim[0];
}

/* (x [B,T,C], weight [V,C], targets [B,T], scale [1]?) -> (loss [1], one chunk of logits, dx, dweight). The mean is
 * over the tokens whose target is not AH_TARGET_IGNORED: their sum times `scale`, or by their number without it. With a
 * cap c logits l become c tanh(l / c) first. */
const struct ah_op_row ah__op_linear_cross_entropy = {
    .name = "linear_cross_entropy",
    AH_OP_INPUTS({.name = "x", .kind = AH_OPERAND_ACTIVATION}, {.name = "weight", .kind = AH_OPERAND_PARAM},
                 {.name = "targets", .kind = AH_OPERAND_TARGETS},
                 {.name = "scale", .kind = AH_OPERAND_SCALE, .optional = true}),
    AH_OP_OUTPUTS({.name = "loss", .kind = AH_OPERAND_LOSS}, {.name = "logits", .kind = AH_OPERAND_SCRATCH},
                  {.name = "dx", .kind = AH_OPERAND_GRADIENT, .backward_reads = true, .optional = true},
                  {.name = "dweight", .kind = AH_OPERAND_PARAM_GRADIENT, .optional = true}),
    .attrs = AH_ATTR_ACC | AH_ATTR_CAP,
    .infer = linear_cross_entropy_infer,
    .flops = linear_cross_entropy_flops,
    .bytes = linear_cross_entropy_bytes,
    .limit = AH_OP_LIMIT_PRODUCT,
    .product = linear_cross_entropy_product,
    .classes = linear_cross_entropy_classes,
};
