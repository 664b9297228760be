/* Layer normalisation, and sums over rows cut into strips of columns. */
#include "dev/cpu/kernels.h"

enum { ROW_ELEMENTS = 16384, STRIP_WIDE = 64, STRIP_NARROW = 16, STRIPS_WANTED = 8 };

struct norm {
    const struct ah_bound *bound;
    struct ah_cut cut;
    int64_t cols;
};

static struct norm norm_of(const struct ah_bound *bound, int input)
{
    const struct ah_shape *shape = &bound->call->in[input].meta.shape;
    int64_t cols = shape->dim[shape->rank - 1];
    return (struct norm){.bound = bound, .cols = cols, .cut = ah__cut(ah__shape_rows(shape), ROW_ELEMENTS / cols)};
}

static void layernorm_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct norm *job = context;
    const struct ah_bound *b = job->bound;
    int64_t row = index * job->cut.size, at = row * job->cols;
    b->kernels->layernorm((float *)b->out[0] + at, (float *)b->out[1] + row, (float *)b->out[2] + row,
                          (const float *)b->in[0] + at, b->in[1], b->in[2], ah__cut_length(&job->cut, index), job->cols,
                          b->call->attr.eps);
}

int ah__cpu_layernorm(const struct ah_bound *bound)
{
    struct norm job = norm_of(bound, 0);
    ah__pool_run(bound->pool, layernorm_piece, job.cut.count, &job);
    return AH_OK;
}

static void layernorm_bwd_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct norm *job = context;
    const struct ah_bound *b = job->bound;
    int64_t row = index * job->cut.size, at = row * job->cols;
    b->kernels->layernorm_bwd((float *)b->out[0] + at, (const float *)b->in[0] + at, (const float *)b->in[1] + at, b->in[2],
                              (const float *)b->in[3] + row, (const float *)b->in[4] + row, ah__cut_length(&job->cut, index),
                              job->cols, ah__bound_adds(b, 0));
}

struct strips {
    const struct ah_kernels *kernels;
    const struct ah_strip *whole;
    struct ah_cut cut;
};

static void strip_piece(void *context, int index, int worker)
{
    (void)worker;
    const struct strips *job = context;
    struct ah_strip strip = *job->whole;
    int64_t col = index * job->cut.size;
    strip.dy += col;
    strip.dbias += col;
    if (strip.x) {
        strip.x += col;
        strip.dweight += col;
    }
    strip.cols = ah__cut_length(&job->cut, index);
    job->kernels->strip(&strip);
}

void ah__strip_run(struct ah_pool *pool, const struct ah_kernels *kernels, const struct ah_strip *whole)
{
    int width = whole->cols >= STRIPS_WANTED * STRIP_WIDE ? STRIP_WIDE : STRIP_NARROW;
    struct strips job = {.kernels = kernels, .whole = whole, .cut = ah__cut(whole->cols, width)};
    ah__pool_run(pool, strip_piece, job.cut.count, &job);
}

int ah__cpu_layernorm_bwd(const struct ah_bound *bound)
{
    struct norm job = norm_of(bound, 0);
    struct ah_strip strip = {.dy = bound->in[0], .x = bound->in[1], .mean = bound->in[3], .rstd = bound->in[4],
                             .dweight = bound->out[1], .dbias = bound->out[2], .rows = job.cut.total, .stride = job.cols,
                             .cols = job.cols, .add_weight = ah__bound_adds(bound, 1), .add_bias = ah__bound_adds(bound, 2)};
    /* The sums come first, so that dx may be written over dy. */
    ah__strip_run(bound->pool, bound->kernels, &strip);
    ah__pool_run(bound->pool, layernorm_bwd_piece, job.cut.count, &job);
    return AH_OK;
}
