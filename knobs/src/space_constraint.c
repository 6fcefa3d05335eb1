// Conditions on whole settings: a recursive descent into a list of instructions, which a stack of
// truth values evaluates.
//
//     condition  = all {"or" all}
//     all        = one {"and" one}
//     one        = "not" one | "(" condition ")" | comparison | BOOL KNOB
//     comparison = sum ("<" | "<=" | ">" | ">=" | "==" | "!=") sum | ENUM KNOB ("==" | "!=") NAME
//     sum        = ["-"] product {("+" | "-") product}
//     product    = NUMBER ["*" KNOB] | KNOB ["*" NUMBER]
#include "space_constraint.h"
#include "tt/core_config.h" // tt_config_nearest
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32, WORD_MAX = 64 };

typedef enum operation { COMPARE, BOTH, EITHER, NEGATE } operation;
typedef enum relation { LESS, AT_MOST, MORE, AT_LEAST, EQUAL, UNEQUAL } relation;

// COMPARE pushes  sum of factor x knob + constant  RELATION  0; the others act on what was pushed.
typedef struct instruction {
    operation operation;
    relation relation;
    double constant, factor[TT_KNOBS_MAX];
} instruction;

struct tti_constraint {
    uint32_t knobs;
    size_t count, capacity;
    instruction *code;
};

typedef enum token_kind { END, WORD, QUOTED, NUMBER, SIGN, BAD } token_kind;

typedef struct parser {
    const tt_space *space;
    const char *text, *at; // whole text; behind the token
    token_kind kind;
    const char *begin; // of the token
    char word[WORD_MAX];
    double number;
    int depth;
    tti_constraint *out;
    tt_error *err;
} parser;

// ---- tokens ----------------------------------------------------------------------------------

static tt_status
fail(parser *p, const char *at, const char *what)
{
    char found[WORD_MAX];
    (void)snprintf(found, sizeof found, "%.24s", at);
    if (*at == '\0')
        return tt_error_set(p->err, TT_SYNTAX, NULL, NULL, "%s expected at the end", what);
    return tt_error_set(p->err, TT_SYNTAX, NULL, NULL, "%s expected at column %d, before '%s'",
                        what, (int)(at - p->text) + 1, found);
}

static void
keep_word(parser *p, const char *from, size_t length)
{
    (void)snprintf(p->word, sizeof p->word, "%.*s", (int)TT_MIN(length, (size_t)WORD_MAX), from);
}

static size_t
word_length(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    return length;
}

static void
next(parser *p)
{
    const char *s = p->at + strspn(p->at, " \t");
    p->begin = s;
    size_t length = 1;
    p->kind = SIGN;
    if (*s == '\0') {
        p->kind = END;
        length = 0;
    } else if (isdigit((unsigned char)*s) || (*s == '.' && isdigit((unsigned char)s[1]))) {
        char *end;
        p->number = strtod(s, &end);
        length = (size_t)(end - s);
        p->kind = NUMBER;
    } else if (isalpha((unsigned char)*s) || *s == '_') {
        length = word_length(s);
        p->kind = WORD;
        keep_word(p, s, length);
    } else if (*s == '\'' || *s == '"') {
        size_t inside = strcspn(s + 1, *s == '\'' ? "'" : "\"");
        p->kind = s[1 + inside] != '\0' ? QUOTED : BAD;
        length = inside + (p->kind == QUOTED ? 2 : 1);
        keep_word(p, s + 1, inside);
    } else if (strchr("<>=!", *s) != NULL && s[1] == '=') {
        length = 2;
    }
    p->at = s + length;
}

static int
is_sign(const parser *p, const char *sign)
{
    size_t length = strlen(sign);
    return p->kind == SIGN && (size_t)(p->at - p->begin) == length &&
           memcmp(p->begin, sign, length) == 0;
}

static int
is_word(const parser *p, const char *word)
{
    return p->kind == WORD && strcmp(p->word, word) == 0;
}

static int
is_keyword(const parser *p)
{
    return is_word(p, "and") || is_word(p, "or") || is_word(p, "not");
}

// ---- comparisons -----------------------------------------------------------------------------

static tt_status
emit(parser *p, const instruction *code)
{
    tti_constraint *c = p->out;
    if (tt_mem_grow((void **)&c->code, &c->capacity, c->count, sizeof *c->code) != TT_OK)
        return tt_error_set(p->err, TT_NOMEM, NULL, NULL, "no memory for a constraint");
    c->code[c->count++] = *code;
    return TT_OK;
}

// The knob that the word is, or an error that names those there are.
static tt_status
knob_of(parser *p, uint32_t *out)
{
    const char *known[TT_KNOBS_MAX + 1] = {NULL};
    for (uint32_t k = 0; k < p->space->count; k++)
        known[k] = p->space->knob[k].knob->id;
    int index = tt_space_find(p->space, p->word);
    if (index < 0) {
        const char *near = tt_config_nearest(p->word, known);
        return tt_error_set(p->err, TT_SYNTAX, NULL, NULL, "no knob is called '%s'%s%s%s", p->word,
                            near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                            near != NULL ? "'?" : "");
    }
    *out = (uint32_t)index;
    return TT_OK;
}

static tt_status
read_factor(parser *p, double *factor)
{
    *factor = 1;
    if (!is_sign(p, "*"))
        return TT_OK;
    next(p);
    if (p->kind != NUMBER)
        return fail(p, p->begin, "a number");
    *factor = p->number;
    next(p);
    return TT_OK;
}

static tt_status
read_product(parser *p, double sign, instruction *sum)
{
    uint32_t knob;
    double factor = sign;
    if (p->kind == NUMBER) {
        factor *= p->number;
        next(p);
        if (!is_sign(p, "*")) {
            sum->constant += factor;
            return TT_OK;
        }
        next(p);
    }
    if (p->kind != WORD || is_keyword(p))
        return fail(p, p->begin, "a knob or a number");
    TT_TRY(knob_of(p, &knob));
    if (p->space->knob[knob].knob->kind == TT_KNOB_ENUM)
        return tt_error_set(
            p->err, TT_SYNTAX, NULL, NULL,
            "'%s' is an enum: compare it alone with one of its values, by == or !=", p->word);
    next(p);
    double further;
    TT_TRY(read_factor(p, &further));
    sum->factor[knob] += factor * further;
    return TT_OK;
}

static tt_status
read_sum(parser *p, double sign, instruction *sum)
{
    double own = sign;
    if (is_sign(p, "-")) {
        own = -sign;
        next(p);
    }
    TT_TRY(read_product(p, own, sum));
    while (is_sign(p, "+") || is_sign(p, "-")) {
        own = is_sign(p, "-") ? -sign : sign;
        next(p);
        TT_TRY(read_product(p, own, sum));
    }
    return TT_OK;
}

static int
read_relation(parser *p, relation *out)
{
    static const char *const signs[] = {"<", "<=", ">", ">=", "==", "!="};
    for (size_t i = 0; i < TT_COUNT_OF(signs); i++)
        if (is_sign(p, signs[i])) {
            *out = (relation)i;
            next(p);
            return 1;
        }
    return 0;
}

static tt_status
read_enum(parser *p, uint32_t knob)
{
    const char *const *values = p->space->knob[knob].knob->values;
    instruction code = {.operation = COMPARE};
    code.factor[knob] = 1;
    next(p);
    const char *at = p->begin;
    if (!read_relation(p, &code.relation) || (code.relation != EQUAL && code.relation != UNEQUAL))
        return fail(p, at, "== or !=");
    // A name may also begin with a digit: whatever stands there is read as one word.
    if (p->kind == NUMBER) {
        size_t length = word_length(p->begin);
        keep_word(p, p->begin, length);
        p->at = p->begin + length;
    } else if (p->kind != WORD && p->kind != QUOTED) {
        return fail(p, p->begin, "the name of a value");
    }
    uint32_t value = 0;
    while (values[value] != NULL && strcmp(values[value], p->word) != 0)
        value++;
    if (values[value] == NULL) {
        const char *near = tt_config_nearest(p->word, values);
        return tt_error_set(p->err, TT_SYNTAX, NULL, NULL, "%s has no value '%s'%s%s%s",
                            p->space->knob[knob].knob->id, p->word,
                            near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                            near != NULL ? "'?" : "");
    }
    code.constant = -(double)value;
    next(p);
    return emit(p, &code);
}

static tt_status
read_comparison(parser *p)
{
    instruction code = {.operation = COMPARE};
    uint32_t knob = 0;
    int alone = -1; // the knob that the comparison begins with
    if (p->kind == WORD && !is_keyword(p)) {
        TT_TRY(knob_of(p, &knob));
        if (p->space->knob[knob].knob->kind == TT_KNOB_ENUM)
            return read_enum(p, knob);
        alone = p->space->knob[knob].knob->kind == TT_KNOB_BOOL ? (int)knob : -1;
    }
    TT_TRY(read_sum(p, 1, &code));
    int bare = p->kind == END || is_sign(p, ")") || is_keyword(p);
    if (alone >= 0 && bare && code.constant == 0) {
        code.relation = UNEQUAL;
        return emit(p, &code);
    }
    if (!read_relation(p, &code.relation))
        return fail(p, p->begin, "one of < <= > >= == !=");
    TT_TRY(read_sum(p, -1, &code));
    return emit(p, &code);
}

// ---- conditions ------------------------------------------------------------------------------

static tt_status read_condition(parser *p);

static tt_status
read_one(parser *p)
{
    if (p->depth >= DEPTH_MAX)
        return tt_error_set(p->err, TT_SYNTAX, NULL, NULL, "it is nested more than %d deep",
                            DEPTH_MAX);
    p->depth++;
    tt_status status;
    if (is_word(p, "not")) {
        next(p);
        status = read_one(p);
        if (status == TT_OK)
            status = emit(p, &(instruction){.operation = NEGATE});
    } else if (is_sign(p, "(")) {
        next(p);
        status = read_condition(p);
        if (status == TT_OK && !is_sign(p, ")"))
            status = fail(p, p->begin, "and, or or )");
        next(p);
    } else {
        status = read_comparison(p);
    }
    p->depth--;
    return status;
}

static tt_status
read_all(parser *p)
{
    TT_TRY(read_one(p));
    while (is_word(p, "and")) {
        next(p);
        TT_TRY(read_one(p));
        TT_TRY(emit(p, &(instruction){.operation = BOTH}));
    }
    return TT_OK;
}

static tt_status
read_condition(parser *p)
{
    TT_TRY(read_all(p));
    while (is_word(p, "or")) {
        next(p);
        TT_TRY(read_all(p));
        TT_TRY(emit(p, &(instruction){.operation = EITHER}));
    }
    return TT_OK;
}

tt_status
tti_constraint_parse(const tt_space *space, const char *text, tti_constraint **out, tt_error *err)
{
    *out = NULL;
    tti_constraint *constraint = tt_mem_zalloc(1, sizeof *constraint);
    if (constraint == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a constraint");
    constraint->knobs = space->count;
    parser p = {.space = space, .text = text, .at = text, .out = constraint, .err = err};
    next(&p);
    tt_status status = read_condition(&p);
    if (status == TT_OK && p.kind != END)
        status = fail(&p, p.begin, "and, or or the end");
    if (status != TT_OK) {
        tti_constraint_free(constraint);
        return status;
    }
    *out = constraint;
    return TT_OK;
}

void
tti_constraint_free(tti_constraint *constraint)
{
    if (constraint != NULL)
        tt_mem_free(constraint->code);
    tt_mem_free(constraint);
}

// ---- evaluation ------------------------------------------------------------------------------

static int
compare(const instruction *code, uint32_t knobs, const tt_setting *setting)
{
    double sum = code->constant;
    for (uint32_t k = 0; k < knobs; k++)
        if (code->factor[k] != 0)
            sum += code->factor[k] * setting->value[k];
    switch (code->relation) {
    case LESS:
        return sum < 0;
    case AT_MOST:
        return sum <= 0;
    case MORE:
        return sum > 0;
    case AT_LEAST:
        return sum >= 0;
    case EQUAL:
        return sum == 0;
    default:
        return sum != 0;
    }
}

// What waits on the stack: at each level of nesting the left side of an "or" and of an "and".
int
tti_constraint_holds(const tti_constraint *constraint, const tt_setting *setting)
{
    int stack[2 * DEPTH_MAX + 3], top = 0;
    for (size_t i = 0; i < constraint->count; i++) {
        const instruction *code = &constraint->code[i];
        switch (code->operation) {
        case COMPARE:
            TT_ASSERT(top < (int)TT_COUNT_OF(stack));
            stack[top++] = compare(code, constraint->knobs, setting);
            break;
        case NEGATE:
            stack[top - 1] = !stack[top - 1];
            break;
        default:
            top--;
            stack[top - 1] = code->operation == BOTH ? stack[top - 1] && stack[top]
                                                     : stack[top - 1] || stack[top];
            break;
        }
    }
    return stack[0];
}
