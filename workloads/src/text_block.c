// Blocks of text: memory, places of problems, labels.
#include "text_block.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tt_status
tti_text_block_reserve(tti_text_block *block, size_t text_bytes, int tokens)
{
    if (text_bytes <= block->text_capacity)
        return TT_OK;
    char *text = tt_mem_realloc(block->text, text_bytes + TTI_TEXT_PADDING);
    if (text == NULL)
        return TT_NOMEM;
    block->text = text;
    // An entry takes two bytes at least (a CSV field and its delimiter), and so does a row;
    // untouched pages cost nothing.
    size_t entries = text_bytes / 2 + 1, rows = text_bytes / 2 + 1;
    tt_mem_free(block->index);
    tt_mem_free(block->value);
    tt_mem_free(block->token);
    tt_mem_free(block->row_length);
    tt_mem_free(block->label);
    block->text_capacity = 0;
    block->index = tt_mem_alloc(entries * sizeof *block->index);
    block->value = tt_mem_alloc(entries * sizeof *block->value);
    block->token = tokens ? tt_mem_alloc(entries * sizeof *block->token) : NULL;
    block->row_length = tt_mem_alloc(rows * sizeof *block->row_length);
    block->label = tt_mem_alloc(rows * sizeof *block->label);
    if (block->index == NULL || block->value == NULL || block->row_length == NULL ||
        block->label == NULL || (tokens && block->token == NULL))
        return TT_NOMEM;
    block->text_capacity = text_bytes;
    return TT_OK;
}

void
tti_text_block_fini(tti_text_block *block)
{
    tt_mem_free(block->text);
    tt_mem_free(block->index);
    tt_mem_free(block->value);
    tt_mem_free(block->token);
    tt_mem_free(block->row_length);
    tt_mem_free(block->label);
    *block = (tti_text_block){0};
}

void
tti_text_block_reset(tti_text_block *block)
{
    block->row_count = block->entry_count = block->token_count = 0;
    block->line_count = 0;
    block->width = block->label_count = 0;
    block->unknown_entries = block->unknown_rows = 0;
    block->all_ones = 1;
    block->problem.status = TT_OK;
}

void
tti_text_word(char word[32], const char *p)
{
    uint32_t n = 0;
    for (; n < 31 && *p != ' ' && *p != '\t' && *p != '\n' && *p != '\r'; p++)
        word[n++] = (char)(*p > ' ' && *p < 127 ? *p : '?');
    word[n] = '\0';
}

static uint64_t
column_of(const tti_text_block *block, const char *at)
{
    const char *line = at;
    while (line > block->text && line[-1] != '\n')
        line--;
    return (uint64_t)(at - line) + 1;
}

const char *
tti_text_fail(tti_text_block *block,
              const char *at,
              tt_status status,
              const char *advice,
              const char *format,
              ...)
{
    tti_problem *problem = &block->problem;
    problem->status = status;
    problem->line = block->line_count + 1;
    problem->column = column_of(block, at);
    problem->advice = advice;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(problem->what, sizeof problem->what, format, args);
    va_end(args);
    return NULL;
}

static int
is_non_finite(const char *p)
{
    p += *p == '-' || *p == '+';
    return strncasecmp(p, "nan", 3) == 0 || strncasecmp(p, "inf", 3) == 0;
}

const char *
tti_text_fail_number(tti_text_block *block,
                     const char *at,
                     const char *what,
                     double parsed,
                     const char *missing_advice)
{
    char word[32];
    tti_text_word(word, at);
    if (is_non_finite(at))
        return tti_text_fail(block, at, TT_RANGE, "remove it or put a finite number there",
                             "%s '%s' is not finite", what, word);
    if (isinf(parsed))
        return tti_text_fail(block, at, TT_RANGE, "scale the data; float32 holds up to 3.4e38",
                             "%s '%s' is too large", what, word);
    if (word[0] == '\0')
        return tti_text_fail(block, at, TT_SYNTAX, missing_advice, "expected a %s after the colon",
                             what);
    return tti_text_fail(block, at, TT_SYNTAX, "write a decimal number like 1, -0.25 or 3e-5",
                         "%s '%s' is not a number", what, word);
}

static void
add_label(tti_text_block *block, const char *at, double label)
{
    uint32_t i = block->label_count++;
    block->label_value[i] = label;
    block->label_line[i] = block->line_count + 1;
    block->label_column[i] = column_of(block, at);
}

uint32_t
tti_text_label(tti_text_block *block, const char *at, double label)
{
    if (block->unlabelled)
        return 0;
    for (uint32_t i = 0; i < block->label_count; i++)
        if (block->label_value[i] == label)
            return i;
    add_label(block, at, label);
    return block->label_count - 1;
}
