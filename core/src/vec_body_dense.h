// Body of a vector variant, part 4: dense rows of bytes or floats times a narrow table, and its
// transpose.
//
// Shapes: x [count][features], w and y [features][width], out and coefficient [count][width].
// Both products keep a tile of sums in registers (rows x classes, or feature vectors x classes) and
// convert bytes on the way, so that x is read once a class tile and never stored as floats. w is
// transposed first, which costs features * width moves a call.

// One vector of row `r` of x from feature f on.
static inline __attribute__((always_inline)) vf
dense_load(const tt_vec_dense *x, int bytes, uint64_t r, size_t f)
{
    const size_t at = (size_t)r * x->features + f;
    return bytes ? load_bytes(x->bytes + at) : load(x->floats + at);
}

// The same for the last `rest` features, zeros behind.
static inline __attribute__((always_inline)) vf
dense_load_part(const tt_vec_dense *x, int bytes, uint64_t r, size_t f, size_t rest)
{
    const size_t at = (size_t)r * x->features + f;
    if (!bytes)
        return load_part(x->floats + at, rest, 0.0F);
    uint8_t padded[LANES] = {0};
    memcpy(padded, x->bytes + at, rest);
    return load_bytes(padded);
}

static inline uint64_t
dense_row(const tt_vec_dense *x, size_t i)
{
    return x->rows != NULL ? x->rows[i] : x->first + i;
}

static inline void
dense_prefetch(const tt_vec_dense *x, size_t i)
{
    if (x->rows == NULL || i >= x->count)
        return;
    const size_t size = x->bytes != NULL ? x->features : x->features * sizeof(float);
    const char *row = x->bytes != NULL ? (const char *)x->bytes : (const char *)x->floats;
    row += (size_t)x->rows[i] * size;
    for (size_t at = 0; at < size; at += 64)
        __builtin_prefetch(row + at);
}

// out[0 .. rows)[k0 .. k0 + tile) for the rows from i on; wt is [width][features].
static inline __attribute__((always_inline)) void
dot_tile(const tt_vec_dense *x,
         const int bytes,
         const int rows,
         const int tile,
         size_t i,
         const float *wt,
         float *out,
         size_t width)
{
    const size_t features = x->features;
    uint64_t r[2] = {dense_row(x, i), dense_row(x, i + (size_t)rows - 1)};
    vf sum[2][TILE_WIDE];
    for (int a = 0; a < rows; a++)
        for (int k = 0; k < tile; k++)
            sum[a][k] = splat(0.0F);
    size_t f = 0;
    for (; f + LANES <= features; f += LANES) {
        vf v[2];
        for (int a = 0; a < rows; a++)
            v[a] = dense_load(x, bytes, r[a], f);
        for (int k = 0; k < tile; k++) {
            vf weight = load(wt + (size_t)k * features + f);
            for (int a = 0; a < rows; a++)
                sum[a][k] += v[a] * weight;
        }
    }
    if (f < features)
        for (int a = 0; a < rows; a++) {
            vf v = dense_load_part(x, bytes, r[a], f, features - f);
            for (int k = 0; k < tile; k++)
                sum[a][k] += v * load_part(wt + (size_t)k * features + f, features - f, 0.0F);
        }
    const float unit = bytes ? x->scale : 1.0F;
    for (int a = 0; a < rows; a++)
        for (int k = 0; k < tile; k++)
            out[(size_t)a * width + (size_t)k] = unit * sum_lanes(sum[a][k]);
}

// All rows for one class tile.
static inline __attribute__((always_inline)) void
dot_classes(const tt_vec_dense *x,
            const int bytes,
            const int tile,
            const float *wt,
            float *out,
            size_t width)
{
    size_t i = 0;
    for (; i + 2 <= x->count; i += 2) {
        dense_prefetch(x, i + 4);
        dense_prefetch(x, i + 5);
        dot_tile(x, bytes, 2, tile, i, wt, out + i * width, width);
    }
    if (i < x->count)
        dot_tile(x, bytes, 1, tile, i, wt, out + i * width, width);
}

static inline __attribute__((always_inline)) void
dot_all(const tt_vec_dense *x, const int bytes, const float *wt, float *out, size_t width)
{
    size_t k = 0;
    for (; k + TILE_WIDE <= width; k += TILE_WIDE)
        dot_classes(x, bytes, TILE_WIDE, wt + k * x->features, out + k, width);
    for (; k + 3 <= width; k += 3)
        dot_classes(x, bytes, 3, wt + k * x->features, out + k, width);
    for (; k < width; k++)
        dot_classes(x, bytes, 1, wt + k * x->features, out + k, width);
}

static void
dot_bytes(const tt_vec_dense *x, const float *wt, float *out, size_t width)
{
    dot_all(x, 1, wt, out, width);
}

static void
dot_floats(const tt_vec_dense *x, const float *wt, float *out, size_t width)
{
    dot_all(x, 0, wt, out, width);
}

static void
dense_dot(const tt_vec_dense *x, const float *w, size_t width, float *out, float *workspace)
{
    const float *wt = w;
    if (width > 1) {
        for (size_t k = 0; k < width; k++)
            for (size_t f = 0; f < x->features; f++)
                workspace[k * x->features + f] = w[f * width + k];
        wt = workspace;
    }
    if (x->bytes != NULL)
        dot_bytes(x, wt, out, width);
    else
        dot_floats(x, wt, out, width);
}

// y[f .. f + vectors * LANES)[k0 .. k0 + tile) += sum over rows; vectors = 0: the last features,
// less than a vector of them.
static inline __attribute__((always_inline)) void
axpy_tile(const tt_vec_dense *x,
          const int bytes,
          const int vectors,
          const int tile,
          size_t f,
          const float *coefficient,
          size_t width,
          float *y)
{
    const size_t rest = x->features - f;
    const int sums = vectors == 0 ? 1 : vectors;
    vf sum[2][TILE_WIDE];
    for (int v = 0; v < sums; v++)
        for (int k = 0; k < tile; k++)
            sum[v][k] = splat(0.0F);
    for (size_t i = 0; i < x->count; i++) {
        const uint64_t r = dense_row(x, i);
        vf value[2];
        if (vectors == 0)
            value[0] = dense_load_part(x, bytes, r, f, rest);
        for (int v = 0; v < vectors; v++)
            value[v] = dense_load(x, bytes, r, f + (size_t)v * LANES);
        for (int k = 0; k < tile; k++) {
            vf c = splat(coefficient[i * width + (size_t)k]);
            for (int v = 0; v < sums; v++)
                sum[v][k] += value[v] * c;
        }
    }
    const float unit = bytes ? x->scale : 1.0F;
    float lanes[TILE_WIDE][LANES];
    for (int v = 0; v < sums; v++) {
        const size_t at = f + (size_t)v * LANES, count = vectors == 0 ? rest : LANES;
        for (int k = 0; k < tile; k++)
            store(lanes[k], sum[v][k] * splat(unit));
        for (size_t j = 0; j < count; j++)
            for (int k = 0; k < tile; k++)
                y[(at + j) * width + (size_t)k] += lanes[k][j];
    }
}

// All features for one class tile.
static inline __attribute__((always_inline)) void
axpy_classes(const tt_vec_dense *x,
             const int bytes,
             const int tile,
             const float *coefficient,
             size_t width,
             float *y)
{
    size_t f = 0;
    for (; f + 2 * LANES <= x->features; f += 2 * LANES)
        axpy_tile(x, bytes, 2, tile, f, coefficient, width, y);
    for (; f + LANES <= x->features; f += LANES)
        axpy_tile(x, bytes, 1, tile, f, coefficient, width, y);
    if (f < x->features)
        axpy_tile(x, bytes, 0, tile, f, coefficient, width, y);
}

static inline __attribute__((always_inline)) void
axpy_all(const tt_vec_dense *x, const int bytes, const float *coefficient, size_t width, float *y)
{
    size_t k = 0;
    for (; k + TILE_WIDE <= width; k += TILE_WIDE)
        axpy_classes(x, bytes, TILE_WIDE, coefficient + k, width, y + k);
    for (; k + 3 <= width; k += 3)
        axpy_classes(x, bytes, 3, coefficient + k, width, y + k);
    for (; k < width; k++)
        axpy_classes(x, bytes, 1, coefficient + k, width, y + k);
}

static void
dense_axpy(
    const tt_vec_dense *x, const float *coefficient, size_t width, float *y, float *workspace)
{
    (void)workspace;
    if (x->bytes != NULL)
        axpy_all(x, 1, coefficient, width, y);
    else
        axpy_all(x, 0, coefficient, width, y);
}
