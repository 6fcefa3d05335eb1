// The LIBSVM parser. The fast path is one pass without a table or a copy; places of problems are
// worked out only when there is one.
#include "libsvm_parse.h"
#include "number_parse.h"
#include <math.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define COLD        __attribute__((noinline, cold))
// Called from one hot place and from a cold one; a call instead costs 6 % of reading a9a.
#define HOT inline __attribute__((always_inline))

static const char missing_value[] = "write features as index:value (LIBSVM format)";

static int
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

// Whether a token may end before c.
static int
is_end(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '#';
}

static COLD const char *
fail_index(tti_text_block *block, const char *at, uint64_t index, uint32_t last)
{
    if (index == 0)
        return tti_text_fail(block, at, TT_RANGE, "indices start at 1 (LIBSVM format)", "index 0");
    if (index > block->index_limit && !(block->ignore_unknown && index <= TTI_FEATURES_MAX)) {
        if (block->limit_advice != NULL)
            return tti_text_fail(block, at, TT_RANGE, block->limit_advice,
                                 "index %llu is beyond the %u features", (unsigned long long)index,
                                 block->index_limit);
        return tti_text_fail(block, at, TT_RANGE, "the largest index is 2147483646",
                             "index %llu is too large", (unsigned long long)index);
    }
    if (index == last)
        return tti_text_fail(block, at, TT_SYNTAX,
                             "indices must increase within a row (LIBSVM format)",
                             "index %u occurs twice", last);
    return tti_text_fail(block, at, TT_SYNTAX, "indices must increase within a row (LIBSVM format)",
                         "index %llu after index %u", (unsigned long long)index, last);
}

static COLD const char *
fail_entry(tti_text_block *block, const char *at)
{
    char word[32];
    tti_text_word(word, at);
    if (strncmp(at, "qid:", 4) == 0)
        return tti_text_fail(
            block, at, TT_UNSUPPORTED,
            "qid belongs to ranking data, which is not trained here; remove the column", "'%s'",
            word);
    if (*at == '\r')
        return tti_text_fail(block, at, TT_SYNTAX, "end lines with LF or CR LF",
                             "a carriage return inside a line");
    return tti_text_fail(block, at, TT_SYNTAX,
                         "write features as index:value with blanks between (LIBSVM format)",
                         "expected index:value, found '%s'", word);
}

// ---- Labels ----

// Whatever is not a plain short number; returns what follows, or NULL and a problem.
static COLD const char *
parse_label_slowly(tti_text_block *block, const char *p, double *label)
{
    const char *end = tti_number_parse(p, label);
    if (end > p && *end == ':' && block->unlabelled)
        return p; // an index already
    if (end > p && *end == ':')
        return tti_text_fail(block, p, TT_SYNTAX,
                             "begin the line with the label of the row (LIBSVM format)",
                             "expected a label before the first index:value");
    if (end == p || !is_end(*end) || isinf(*label))
        return tti_text_fail_number(block, p, "label", end > p ? *label : 0.0, missing_value);
    return end;
}

static const char *
parse_label(tti_text_block *block, const char *p, uint32_t *label_index)
{
    double label;
    const char *end = tti_number_parse_short(p + ((*p == '+') & (p[1] != '-')), &label);
    if (UNLIKELY(end == NULL || !is_end(*end))) {
        end = parse_label_slowly(block, p, &label);
        if (end == NULL)
            return NULL;
    }
    *label_index = tti_text_label(block, p, label);
    return end;
}

// ---- Entries ----

// 8 digits or more; returns what follows.
static COLD const char *
parse_index_slowly(const char *p, uint64_t *index)
{
    *index = 0;
    for (; (unsigned char)(*p - '0') <= 9; p++) {
        *index = *index * 10 + (uint64_t)(*p - '0');
        *index = TT_MIN(*index, (uint64_t)1 << 53);
    }
    return p;
}

static COLD const char *
parse_value_slowly(tti_text_block *block, const char *p, double *value)
{
    const char *end = tti_number_parse(p, value);
    if (end == p || !is_end(*end))
        return tti_text_fail_number(block, p, "value", 0.0, missing_value);
    if (isinf((float)*value))
        return tti_text_fail_number(block, p, "value", INFINITY, missing_value);
    return end;
}

static HOT const char *
parse_value(tti_text_block *block, const char *p, float *value)
{
    if (LIKELY(p[0] == '1' && (p[1] == ' ' || p[1] == '\n'))) {
        *value = 1.0f;
        return p + 1;
    }
    double parsed;
    const char *end = tti_number_parse_short(p, &parsed);
    if (UNLIKELY(end == NULL || !is_end(*end))) {
        end = parse_value_slowly(block, p, &parsed);
        if (end == NULL)
            return NULL;
    }
    *value = (float)parsed;
    block->all_ones &= *value == 1.0f;
    return end;
}

static inline int
is_row_end(const char *p)
{
    return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n');
}

// The index at p into *index. Returns what follows it, which is a colon; NULL on a problem, or
// (with no problem recorded) at the end of the row. Blanks before the index are skipped here, off
// the fast path, for there is one at most that parse_entries did not see.
static HOT const char *
parse_index(tti_text_block *block, const char **start, uint64_t *index)
{
    const char *p = *start;
    uint32_t count = tti_digit_count8(p);
    if (UNLIKELY(count == 0)) {
        while (is_blank(*p))
            p++;
        *start = p;
        if (is_row_end(p))
            return NULL;
        count = tti_digit_count8(p);
        if (count == 0)
            return fail_entry(block, p);
    }
    if (LIKELY(count < 8)) {
        *index = tti_digits8(p, count);
        p += count;
    } else {
        p = parse_index_slowly(p, index);
    }
    return LIKELY(*p == ':') ? p : fail_entry(block, *start);
}

static void
end_row(tti_text_block *block, size_t count, uint32_t last)
{
    block->row_length[block->row_count] = (uint32_t)count;
    block->entry_count += count;
    block->width = TT_MAX(block->width, last);
}

// The index at p is too small, or beyond the features there are. So are all that follow it in the
// row, for indices increase: where such features do not count, the row ends before p with `count`
// entries, and the rest is only looked at.
static COLD const char *
end_row_early(tti_text_block *block, const char *p, uint64_t parsed, uint32_t last, size_t count)
{
    if (!block->ignore_unknown || parsed <= last)
        return fail_index(block, p, parsed, last);
    const uint32_t width = last;
    uint64_t unknown = 0;
    for (const char *colon; (colon = parse_index(block, &p, &parsed)) != NULL;) {
        float value;
        if (parsed <= last || parsed > TTI_FEATURES_MAX)
            return fail_index(block, p, parsed, last);
        last = (uint32_t)parsed;
        p = parse_value(block, colon + 1, &value);
        if (p == NULL)
            return NULL;
        unknown++;
    }
    if (block->problem.status != TT_OK)
        return NULL;
    block->unknown_entries += unknown;
    block->unknown_rows++;
    end_row(block, count, width);
    return p;
}

// Entries up to the end of the row, at whose newline, comment or carriage return it returns.
static const char *
parse_entries(tti_text_block *block, const char *p)
{
    uint32_t *index = block->index + block->entry_count, *first = index;
    float *value = block->value + block->entry_count;
    uint32_t last = 0, limit = block->index_limit;
    for (;;) {
        uint64_t parsed;
        const char *colon = parse_index(block, &p, &parsed);
        if (colon == NULL)
            break;
        if (UNLIKELY(parsed <= last || parsed > limit))
            return end_row_early(block, p, parsed, last, (size_t)(index - first));
        last = (uint32_t)parsed;
        p = parse_value(block, colon + 1, value);
        if (p == NULL)
            return NULL;
        // A loop and not an addition: a branch is foreseen, a sum is waited for.
        while (*p == ' ')
            p++;
        *index++ = last - 1;
        value++;
    }
    if (block->problem.status != TT_OK)
        return NULL;
    end_row(block, (size_t)(index - first), last);
    return p;
}

// One line at p, row or not; returns the beginning of the next.
static const char *
parse_line(tti_text_block *block, const char *p)
{
    while (is_blank(*p))
        p++;
    if (!is_row_end(p)) {
        uint32_t label;
        p = parse_label(block, p, &label);
        // The row of the label that is one too many is not kept: its place is in the table.
        if (p == NULL || label == TTI_CLASSES_MAX)
            return NULL;
        p = parse_entries(block, p);
        if (p == NULL)
            return NULL;
        block->label[block->row_count++] = (uint16_t)label;
    }
    if (*p == '#')
        p = memchr(p, '\n', (size_t)(block->text + block->text_bytes - p));
    p += *p == '\r';
    block->line_count++;
    return p + 1;
}

void
tti_libsvm_parse(tti_text_block *block)
{
    tti_text_block_reset(block);
    const char *p = block->text, *end = block->text + block->text_bytes;
    TT_ASSERT(p == end || end[-1] == '\n');
    while (p != NULL && p < end)
        p = parse_line(block, p);
}
