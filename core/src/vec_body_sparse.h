// Body of a vector variant, part 3: sparse rows.
//
// These loops are scalar in all variants; the variants differ in what surrounds them. Measured with
// table rows in the first cache: four scalar sums take 3.1 ns for a row of 14 ones and 7.4 ns for
// 37, the AVX-512 gather 3.5 and 10.5 ns; with a table of 160 KB 4.5 and 11.6 against 4.7 and 12.3.

// Rows ahead whose entries are prefetched when rows are picked at random.
enum { PREFETCH_ROWS = 8 };

static inline uint64_t
csr_row(const tt_vec_csr *m, size_t i)
{
    return m->rows != NULL ? m->rows[i] : m->first + i;
}

static inline float
sum_ones(const uint32_t *index, size_t n, const float *w)
{
    float a = 0, b = 0, c = 0, d = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        a += w[index[i]];
        b += w[index[i + 1]];
        c += w[index[i + 2]];
        d += w[index[i + 3]];
    }
    for (; i < n; i++)
        a += w[index[i]];
    return (a + b) + (c + d);
}

static inline float
sum_values(const float *values, const uint32_t *index, size_t n, const float *w)
{
    float a = 0, b = 0, c = 0, d = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        a += values[i] * w[index[i]];
        b += values[i + 1] * w[index[i + 1]];
        c += values[i + 2] * w[index[i + 2]];
        d += values[i + 3] * w[index[i + 3]];
    }
    for (; i < n; i++)
        a += values[i] * w[index[i]];
    return (a + b) + (c + d);
}

static inline float
sparse_dot(const float *values, const uint32_t *index, size_t n, const float *w)
{
    return values == NULL ? sum_ones(index, n, w) : sum_values(values, index, n, w);
}

static inline void
sparse_axpy(float a,
            const float *restrict values,
            const uint32_t *restrict index,
            size_t n,
            float *restrict y)
{
    if (values == NULL) {
        for (size_t i = 0; i < n; i++)
            y[index[i]] += a;
        return;
    }
    for (size_t i = 0; i < n; i++)
        y[index[i]] += a * values[i];
}

static inline void
csr_prefetch(const tt_vec_csr *m, size_t i)
{
    if (m->rows == NULL)
        return;
    if (i + 2 * PREFETCH_ROWS < m->count)
        __builtin_prefetch(m->begin + m->rows[i + 2 * PREFETCH_ROWS]);
    if (i + PREFETCH_ROWS < m->count) {
        uint64_t at = m->begin[m->rows[i + PREFETCH_ROWS]];
        __builtin_prefetch(m->index + at);
        __builtin_prefetch(m->index + at + 16);
        if (m->value != NULL) {
            __builtin_prefetch(m->value + at);
            __builtin_prefetch(m->value + at + 16);
        }
    }
}

// out[width] = row times w [.][width]
static inline void
wide_dot(const float *values,
         const uint32_t *index,
         size_t n,
         const float *restrict w,
         size_t width,
         float *restrict out)
{
    for (size_t k = 0; k < width; k++)
        out[k] = 0;
    for (size_t i = 0; i < n; i++) {
        const float value = values != NULL ? values[i] : 1.0F;
        const float *restrict row = w + (size_t)index[i] * width;
        for (size_t k = 0; k < width; k++)
            out[k] += value * row[k];
    }
}

static inline void
wide_axpy(const float *values,
          const uint32_t *index,
          size_t n,
          const float *restrict coefficient,
          size_t width,
          float *restrict y)
{
    for (size_t i = 0; i < n; i++) {
        const float value = values != NULL ? values[i] : 1.0F;
        float *restrict row = y + (size_t)index[i] * width;
        for (size_t k = 0; k < width; k++)
            row[k] += value * coefficient[k];
    }
}

static void
csr_dot(const tt_vec_csr *m, const float *w, size_t width, float *out)
{
    for (size_t i = 0; i < m->count; i++) {
        csr_prefetch(m, i);
        const uint64_t r = csr_row(m, i), begin = m->begin[r];
        const size_t n = (size_t)(m->begin[r + 1] - begin);
        const float *values = m->value != NULL ? m->value + begin : NULL;
        if (width == 1)
            out[i] = sparse_dot(values, m->index + begin, n, w);
        else
            wide_dot(values, m->index + begin, n, w, width, out + i * width);
    }
}

static void
csr_axpy(const tt_vec_csr *m, const float *coefficient, size_t width, float *y)
{
    for (size_t i = 0; i < m->count; i++) {
        const uint64_t r = csr_row(m, i), begin = m->begin[r];
        const size_t n = (size_t)(m->begin[r + 1] - begin);
        const float *values = m->value != NULL ? m->value + begin : NULL;
        if (width == 1)
            sparse_axpy(coefficient[i], values, m->index + begin, n, y);
        else
            wide_axpy(values, m->index + begin, n, coefficient + i * width, width, y);
    }
}
