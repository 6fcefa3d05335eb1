// Goal: every optimiser does what its paper says, on whole tables, on rows and on memory that is
// shared, with and without averaging; a row that moves takes its state along. Method: thirty steps
// of random gradients beside the algorithms as their papers print them, in double precision.
#include "partition.h"

// cmocka wants setjmp.h before it
#include <math.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include "tt/core_rng.h"

enum { ROWS = 7, WIDTH = 3, FLOATS = ROWS * WIDTH, STEPS = 30 };

// One parameter as the paper keeps it.
typedef struct reference {
    double w, a, b;     // a, b: the algorithm's own
    double sum, weight; // polynomial-decay average
} reference;

static double
sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static void
adam(reference *r, const tt_ps_table *table, double rate, double g, int t)
{
    r->a = table->beta1 * r->a + (1 - table->beta1) * g;
    r->b = table->beta2 * r->b + (1 - table->beta2) * g * g;
    double mean = r->a / (1 - pow(table->beta1, t)), square = r->b / (1 - pow(table->beta2, t));
    r->w -= rate * mean / (sqrt(square) + table->epsilon);
}

static void
ftrl(reference *r, const tt_ps_table *table, double rate, double g)
{
    double sigma = (sqrt(r->b + g * g) - sqrt(r->b)) / rate;
    r->a += g - sigma * r->w;
    r->b += g * g;
    r->w = fabs(r->a) <= table->l1
               ? 0
               : -(r->a - sign(r->a) * table->l1) / ((table->ftrl_beta + sqrt(r->b)) / rate);
}

// Step t = 1, 2, ... of one parameter.
static void
reference_step(reference *r, const tt_ps_table *table, double g, int t)
{
    double rate = tt_ps_learning_rate(table, (uint64_t)(t - 1));
    switch (table->optimizer) {
    case TT_PS_ADD:
        r->w += g;
        break;
    case TT_PS_SGD:
        r->w -= rate * g;
        break;
    case TT_PS_MOMENTUM: {
        r->a = table->momentum * r->a + g;
        r->w -= rate * (table->nesterov ? g + table->momentum * r->a : r->a);
        break;
    }
    case TT_PS_ADAGRAD:
        r->a += g * g;
        r->w -= rate * g / (sqrt(r->a) + table->epsilon);
        break;
    case TT_PS_ADAM:
        adam(r, table, rate, g, t);
        break;
    case TT_PS_FTRL:
        ftrl(r, table, rate, g);
        break;
    }
    double weight = pow(t, 3);
    r->weight += weight;
    r->sum += weight * r->w;
}

static void
expect_near(const tt_ps_table *table, const reference *r, const tti_partition *p, const char *how)
{
    float saved[FLOATS];
    tti_partition_gather_saved(p, NULL, ROWS, saved);
    for (int i = 0; i < FLOATS; i++) {
        double expected = table->averaging ? r[i].sum / r[i].weight : r[i].w;
        if (fabs((double)saved[i] - expected) > 2e-5 * (1 + fabs(expected)))
            fail_msg("optimiser %d, %s, averaging %d: parameter %d is %g, must be %g",
                     (int)table->optimizer, how, table->averaging, i, (double)saved[i], expected);
    }
}

static void
racy_step(tti_partition *p, const float *g)
{
    tti_step step = tti_step_at(p->table, p->steps++, p->iterations++);
    tti_step_apply_racy(&step, &p->cells, g, FLOATS);
}

// The partition's rows in another partition, through the cells that travel.
static tti_partition *
moved(tti_partition *from)
{
    tti_partition *to;
    float cell[WIDTH * TTI_CELL_ARRAYS];
    assert_int_equal(tti_partition_alloc(from->table, 0, NULL, &to), TT_OK);
    assert_true(tti_partition_cell_floats(from) <= TT_COUNT_OF(cell));
    for (uint32_t row = 0; row < ROWS; row++) {
        tti_partition_export(from, row, cell);
        tti_partition_import(to, row, cell);
    }
    to->steps = from->steps;
    to->iterations = from->iterations;
    tti_partition_free(from);
    return to;
}

static void
follow(const tt_ps_table *table, uint64_t seed)
{
    tti_partition *whole, *keyed, *racy;
    static const uint32_t rows[ROWS] = {0, 1, 2, 3, 4, 5, 6};
    reference r[FLOATS] = {{0}};
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 0);
    assert_int_equal(tti_partition_alloc(table, 0, NULL, &whole), TT_OK);
    assert_int_equal(tti_partition_alloc(table, 0, NULL, &keyed), TT_OK);
    assert_int_equal(tti_partition_alloc(table, 0, NULL, &racy), TT_OK);
    for (int t = 1; t <= STEPS; t++) {
        float g[FLOATS];
        for (int i = 0; i < FLOATS; i++) {
            g[i] = (float)(tt_rng_normal(&rng) * pow(4, i % 5 - 2));
            reference_step(&r[i], table, (double)g[i], t);
        }
        tti_partition_step(whole, tt_vec_best(), NULL, ROWS, g, 1);
        tti_partition_step(keyed, tt_vec_best(), rows, ROWS, g, 1);
        racy_step(racy, g);
        if (t % 11 == 0)
            keyed = moved(keyed);
    }
    expect_near(table, r, whole, "whole");
    expect_near(table, r, keyed, "rows that moved");
    expect_near(table, r, racy, "shared");
    tti_partition_free(whole);
    tti_partition_free(keyed);
    tti_partition_free(racy);
}

static tt_ps_table
table_of(tt_ps_optimizer_kind optimizer, int variant)
{
    return (tt_ps_table){.rows = ROWS,
                         .width = WIDTH,
                         .partition_count = 1,
                         .optimizer = optimizer,
                         .learning_rate = 0.07,
                         .schedule = (tt_ps_schedule)(variant / 4),
                         .decay = 0.03,
                         .epsilon = 1e-6,
                         .momentum = 0.9,
                         .nesterov = variant / 2 % 2,
                         .beta1 = 0.9,
                         .beta2 = 0.999,
                         .l1 = variant / 2 % 2 ? 0.8 : 0,
                         .ftrl_beta = 1,
                         .averaging = variant % 2};
}

static void
every_optimiser_follows_its_paper(void **state)
{
    TT_UNUSED(state);
    static const tt_ps_optimizer_kind kinds[] = {TT_PS_SGD,      TT_PS_ADAGRAD, TT_PS_ADD,
                                                 TT_PS_MOMENTUM, TT_PS_ADAM,    TT_PS_FTRL};
    for (size_t k = 0; k < TT_COUNT_OF(kinds); k++)
        for (int variant = 0; variant < 16; variant++) {
            tt_ps_table table = table_of(kinds[k], variant);
            follow(&table, 100 * k + (uint64_t)variant);
        }
}

// At the first step Adam moves every parameter by the learning rate, whatever the gradient's size.
static void
adam_begins_with_the_learning_rate(void **state)
{
    TT_UNUSED(state);
    tt_ps_table table = table_of(TT_PS_ADAM, 0);
    table.epsilon = 1e-12;
    tti_partition *p;
    float g[FLOATS], w[FLOATS];
    for (int i = 0; i < FLOATS; i++)
        g[i] = (float)(pow(10, i % 7 - 3) * (i % 2 ? -1 : 1));
    assert_int_equal(tti_partition_alloc(&table, 0, NULL, &p), TT_OK);
    tti_partition_step(p, tt_vec_best(), NULL, ROWS, g, 1);
    tti_partition_gather(p, NULL, ROWS, w);
    for (int i = 0; i < FLOATS; i++)
        assert_true(fabs((double)w[i] - (i % 2 ? 0.07 : -0.07)) < 1e-6);
    tti_partition_free(p);
}

// A weight whose gradients stay small together is exactly zero.
static void
ftrl_keeps_weak_weights_at_zero(void **state)
{
    TT_UNUSED(state);
    tt_ps_table table = table_of(TT_PS_FTRL, 2);
    tti_partition *p;
    float g[FLOATS], w[FLOATS];
    assert_int_equal(tti_partition_alloc(&table, 0, NULL, &p), TT_OK);
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < FLOATS; i++)
            g[i] = i % 2 ? (float)(t % 2 ? -0.5 : 0.5) : 0.5F; // alternating, or always one way
        tti_partition_step(p, tt_vec_best(), NULL, ROWS, g, 1);
    }
    tti_partition_gather(p, NULL, ROWS, w);
    for (int i = 0; i < FLOATS; i++)
        assert_true(i % 2 ? w[i] == 0 : w[i] < 0);
    tti_partition_free(p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_optimiser_follows_its_paper),
        cmocka_unit_test(adam_begins_with_the_learning_rate),
        cmocka_unit_test(ftrl_keeps_weak_weights_at_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
