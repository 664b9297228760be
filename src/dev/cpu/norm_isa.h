/* Layer normalisation and column sums for one instruction set; part of kernels_isa.h. */

enum {
    SUMS = 4,
    STRIP_VECTORS = 4,
    STRIP_ROWS = 32
}; /* SUMS: independent sums of a row, which hide the latency of
                                                        * addition */

AH_INLINE float sums_total(const v16 sum[SUMS])
{
    return v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3])));
}

static AH_TARGET float row_sum(const element *x, int64_t n)
{
    v16 sum[SUMS];
    for (int u = 0; u < SUMS; u++)
        sum[u] = v_set(0.0F);
    int64_t i = 0;
    for (; i + SUMS * LANES <= n; i += SUMS * LANES)
#pragma GCC unroll 4
        for (int u = 0; u < SUMS; u++)
            sum[u] = v_add(sum[u], e_load(x + i + u * LANES));
    for (; i < n; i += LANES)
        sum[0] = v_add(sum[0], e_load_most(x + i, n - i));
    return sums_total(sum);
}

/* Returns the sum of (x - mean)^2. */
static AH_TARGET float row_deviation(const element *x, int64_t n, float mean)
{
    v16 sum[SUMS], centre = v_set(mean);
    for (int u = 0; u < SUMS; u++)
        sum[u] = v_set(0.0F);
    int64_t i = 0;
    for (; i + SUMS * LANES <= n; i += SUMS * LANES)
#pragma GCC unroll 4
        for (int u = 0; u < SUMS; u++) {
            v16 d = v_sub(e_load(x + i + u * LANES), centre);
            sum[u] = v_fma(d, d, sum[u]);
        }
    for (; i < n; i += LANES) {
        int lanes = n - i >= LANES ? LANES : (int)(n - i);
        v16 d = v_first(lanes, v_sub(e_load_first(x + i, lanes), centre), v_set(0.0F));
        sum[0] = v_fma(d, d, sum[0]);
    }
    return sums_total(sum);
}

static AH_TARGET void rmsnorm(void *to, float *rstd, const void *from, const void *weights, int64_t rows, int64_t cols,
                              float eps, float offset)
{
    const element *x = from, *weight = weights;
    element *y = to;
    v16 more = v_set(offset);
    for (int64_t row = 0; row < rows; row++, x += cols, y += cols) {
        rstd[row] = 1.0F / sqrtf(row_deviation(x, cols, 0.0F) / (float)cols + eps);
        v16 scale = v_set(rstd[row]);
        for (int64_t i = 0; i < cols; i += LANES) {
            v16 normal = v_mul(e_load_most(x + i, cols - i), scale);
            e_store_most(y + i, v_mul(normal, v_add(e_load_most(weight + i, cols - i), more)), cols - i);
        }
    }
}

AH_INLINE void layernorm_rows(element *y, float *mean, float *rstd, const element *x, const element *weight,
                              const element *bias, int64_t rows, int64_t cols, float eps, const bool with_bias)
{
    for (int64_t row = 0; row < rows; row++, x += cols, y += cols) {
        mean[row] = row_sum(x, cols) / (float)cols;
        rstd[row] = 1.0F / sqrtf(row_deviation(x, cols, mean[row]) / (float)cols + eps);
        v16 centre = v_set(mean[row]), scale = v_set(rstd[row]);
        for (int64_t i = 0; i < cols; i += LANES) {
            v16 normal = v_mul(v_sub(e_load_most(x + i, cols - i), centre), scale);
            v16 offset = with_bias ? e_load_most(bias + i, cols - i) : v_set(0.0F);
            e_store_most(y + i, v_fma(normal, e_load_most(weight + i, cols - i), offset), cols - i);
        }
    }
}

/* Normalises rows. `bias` may be null. */
static AH_TARGET void layernorm(void *y, float *mean, float *rstd, const void *x, const void *weight, const void *bias,
                                int64_t rows, int64_t cols, float eps)
{
    if (bias)
        layernorm_rows(y, mean, rstd, x, weight, bias, rows, cols, eps, true);
    else
        layernorm_rows(y, mean, rstd, x, weight, NULL, rows, cols, eps, false);
}

/* With g = dy * weight and n = (x - mean) * rstd: dx = rstd * (g - mean(g) - n * mean(g n)). */
static AH_TARGET void layernorm_bwd_row(element *dx, const element *dy, const element *x, const element *weight,
                                        float mean, float rstd, int64_t cols, bool accumulate)
{
    v16 sum_g[2] = {v_set(0.0F), v_set(0.0F)}, sum_gn[2] = {v_set(0.0F), v_set(0.0F)};
    v16 centre = v_set(mean), scale = v_set(rstd);
    int64_t i = 0;
    for (; i + 2 * LANES <= cols; i += 2 * LANES)
#pragma GCC unroll 2
        for (int u = 0; u < 2; u++) {
            v16 g = v_mul(e_load(dy + i + u * LANES), e_load(weight + i + u * LANES));
            sum_g[u] = v_add(sum_g[u], g);
            sum_gn[u] = v_fma(g, v_mul(v_sub(e_load(x + i + u * LANES), centre), scale), sum_gn[u]);
        }
    for (; i < cols; i += LANES) {
        v16 g = v_mul(e_load_most(dy + i, cols - i), e_load_most(weight + i, cols - i));
        sum_g[0] = v_add(sum_g[0], g);
        sum_gn[0] = v_fma(g, v_mul(v_sub(e_load_most(x + i, cols - i), centre), scale), sum_gn[0]);
    }
    v16 mean_g = v_set(v_sum(v_add(sum_g[0], sum_g[1])) / (float)cols);
    v16 mean_gn = v_set(-v_sum(v_add(sum_gn[0], sum_gn[1])) / (float)cols);
    for (i = 0; i < cols; i += LANES) {
        v16 g = v_mul(e_load_most(dy + i, cols - i), e_load_most(weight + i, cols - i));
        v16 normal = v_mul(v_sub(e_load_most(x + i, cols - i), centre), scale);
        v16 before = accumulate ? e_load_most(dx + i, cols - i) : v_set(0.0F);
        e_store_most(dx + i, v_fma(v_fma(normal, mean_gn, v_sub(g, mean_g)), scale, before), cols - i);
    }
}

static AH_TARGET void layernorm_bwd(void *to, const void *dy, const void *x, const void *weight, const float *mean,
                                    const float *rstd, int64_t rows, int64_t cols, bool accumulate)
{
    const element *gradient = dy, *input = x;
    element *dx = to;
    for (int64_t row = 0; row < rows; row++)
        layernorm_bwd_row(dx + row * cols, gradient + row * cols, input + row * cols, weight, mean[row], rstd[row],
                          cols, accumulate);
}

/* With g = dy * (weight + offset) and n = x * rstd: dx = rstd * (g - n * mean(g n)). */
static AH_TARGET void rmsnorm_bwd_row(element *dx, const element *dy, const element *x, const element *weight,
                                      float rstd, float offset, int64_t cols, bool accumulate)
{
    v16 sum[SUMS], scale = v_set(rstd), more = v_set(offset);
    for (int u = 0; u < SUMS; u++)
        sum[u] = v_set(0.0F);
    int64_t i = 0;
    for (; i + SUMS * LANES <= cols; i += SUMS * LANES)
#pragma GCC unroll 4
        for (int u = 0; u < SUMS; u++) {
            v16 g = v_mul(e_load(dy + i + u * LANES), v_add(e_load(weight + i + u * LANES), more));
            sum[u] = v_fma(g, v_mul(e_load(x + i + u * LANES), scale), sum[u]);
        }
    for (; i < cols; i += LANES) {
        v16 g = v_mul(e_load_most(dy + i, cols - i), v_add(e_load_most(weight + i, cols - i), more));
        sum[0] = v_fma(g, v_mul(e_load_most(x + i, cols - i), scale), sum[0]);
    }
    v16 mean = v_set(-sums_total(sum) / (float)cols);
    for (i = 0; i < cols; i += LANES) {
        v16 g = v_mul(e_load_most(dy + i, cols - i), v_add(e_load_most(weight + i, cols - i), more));
        v16 normal = v_mul(e_load_most(x + i, cols - i), scale);
        v16 before = accumulate ? e_load_most(dx + i, cols - i) : v_set(0.0F);
        e_store_most(dx + i, v_fma(v_fma(normal, mean, g), scale, before), cols - i);
    }
}

static AH_TARGET void rmsnorm_bwd(void *to, const void *dy, const void *x, const void *weight, const float *rstd,
                                  int64_t rows, int64_t cols, float offset, bool accumulate)
{
    const element *gradient = dy, *input = x;
    element *dx = to;
    for (int64_t row = 0; row < rows; row++)
        rmsnorm_bwd_row(dx + row * cols, gradient + row * cols, input + row * cols, weight, rstd[row], offset, cols,
                        accumulate);
}

/* Adds rows [from, to) of the strip's columns at `col` in float sums, over so few rows that these lose little. */
AH_INLINE void strip_rows(v16 *weight, v16 *bias, const struct ah_strip *s, int64_t from, int64_t to, int64_t col,
                          int lanes, const int vectors, const bool with_x)
{
    const element *gradient = s->dy, *x = s->x;
    for (int u = 0; u < vectors; u++)
        weight[u] = bias[u] = v_set(0.0F);
    for (int64_t row = from; row < to; row++) {
        v16 centre = v_set(with_x && s->mean ? s->mean[row] : 0.0F), scale = v_set(with_x ? s->rstd[row] : 0.0F);
#pragma GCC unroll 4
        for (int u = 0; u < vectors; u++) {
            int64_t at = row * s->stride + col + u * LANES;
            v16 dy = e_load_most(gradient + at, lanes);
            bias[u] = v_add(bias[u], dy);
            if (with_x)
                weight[u] = v_fma(dy, v_mul(v_sub(e_load_most(x + at, lanes), centre), scale), weight[u]);
        }
    }
}

AH_INLINE void strip_store(float *to, d16 sum, int lanes, bool accumulate)
{
    double lane[LANES];
    d_store(lane, sum);
    for (int i = 0; i < lanes; i++)
        to[i] = (float)(accumulate ? (double)to[i] + lane[i] : lane[i]);
}

AH_INLINE void strip_columns(const struct ah_strip *s, int64_t col, int lanes, const int vectors, const bool with_x)
{
    d16 weight_sum[STRIP_VECTORS], bias_sum[STRIP_VECTORS];
    for (int u = 0; u < vectors; u++)
        weight_sum[u] = bias_sum[u] = d_zero();
    for (int64_t from = 0; from < s->rows; from += STRIP_ROWS) {
        v16 weight[STRIP_VECTORS], bias[STRIP_VECTORS];
        strip_rows(weight, bias, s, from, from + STRIP_ROWS < s->rows ? from + STRIP_ROWS : s->rows, col, lanes,
                   vectors, with_x);
        for (int u = 0; u < vectors; u++) {
            weight_sum[u] = d_add(weight_sum[u], weight[u]);
            bias_sum[u] = d_add(bias_sum[u], bias[u]);
        }
    }
    for (int u = 0; u < vectors; u++) {
        if (s->dbias)
            strip_store(s->dbias + col + u * LANES, bias_sum[u], lanes, s->add_bias);
        if (with_x)
            strip_store(s->dweight + col + u * LANES, weight_sum[u], lanes, s->add_weight);
    }
}

AH_INLINE void strip_all(const struct ah_strip *s, const bool with_x)
{
    int64_t col = 0;
    for (; col + STRIP_VECTORS * LANES <= s->cols; col += STRIP_VECTORS * LANES)
        strip_columns(s, col, LANES, STRIP_VECTORS, with_x);
    for (; col < s->cols; col += LANES)
        strip_columns(s, col, s->cols - col < LANES ? (int)(s->cols - col) : LANES, 1, with_x);
}

static AH_TARGET void strip(const struct ah_strip *s)
{
    if (s->x)
        strip_all(s, true);
    else
        strip_all(s, false);
}
