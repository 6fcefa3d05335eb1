// Goal: a table saved on some servers is the same table on any others: equal parameters, optimiser
// state and averages, also under another cut into partitions, and it goes on bit by bit as before
// where the cut is the same; damaged bytes are refused. Method: tables of every kind are trained by
// random gradients on two servers, saved, and read back on one, on five, cut otherwise and in
// place.
#include "server_core.h"
#include "table_state.h"

// cmocka wants setjmp.h before it
#include <math.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include "tt/core_rng.h"

enum { ROWS = 211, WIDTH = 3, STEPS = 23, NODES = 8 };

typedef struct cluster {
    tt_ps_table table;
    tt_ps_view *view;
    tt_ps_server *servers[NODES];
} cluster;

static void
cluster_open(cluster *c, const tt_ps_table *table, uint32_t partitions, uint32_t servers)
{
    uint8_t is_server[TT_PS_NODES_MAX] = {0};
    memset(is_server, 1, servers);
    *c = (cluster){.table = *table};
    c->table.partition_count = partitions;
    assert_int_equal(tt_ps_view_first(&c->table, NODES, is_server, &c->view), TT_OK);
    for (uint32_t n = 0; n < NODES; n++) {
        assert_int_equal(tt_ps_server_open(&c->table, n, NODES, (tt_outbox){0}, (tt_ps_hooks){0},
                                           &c->servers[n], NULL),
                         TT_OK);
        assert_int_equal(tt_ps_server_start(c->servers[n], c->view), TT_OK);
    }
}

static void
cluster_close(cluster *c)
{
    for (uint32_t n = 0; n < NODES; n++)
        tt_ps_server_close(c->servers[n]);
    tt_ps_view_free(c->view);
}

static tti_partition *
partition_of(const cluster *c, uint32_t p)
{
    return c->servers[c->view->owner[p]]->slots[p].partition;
}

static uint64_t
key_of(const tt_ps_table *table, uint32_t i)
{
    return table->kind == TT_PS_SPARSE ? 1000003u * (uint64_t)(i + 1) : i;
}

// One step of every row; sparse tables have two thirds of theirs touched.
static void
train(cluster *c, uint32_t step)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        float g[WIDTH];
        tt_rng rng;
        tt_rng_init(&rng, 17, TT_RNG_TEST, step * ROWS + i);
        for (int j = 0; j < WIDTH; j++)
            g[j] = (float)(2 * tt_rng_uniform(&rng) - 1);
        uint64_t key = key_of(&c->table, i);
        if (c->table.kind == TT_PS_SPARSE && i % 3 == 2)
            continue;
        tti_partition *partition = partition_of(c, tt_ps_partition_of(&c->table, key));
        uint32_t row = tti_partition_find_or_create(partition, key - partition->first);
        tti_partition_step(partition, tt_vec_best(), &row, 1, g, 1);
    }
}

static void
save(const cluster *c, tt_archive *out)
{
    uint64_t count = 0, bytes, all = 0;
    tt_archive_write(out, 0);
    for (uint32_t n = 0; n < NODES; n++) {
        count += tt_ps_server_save_count(c->servers[n], &bytes);
        all += bytes;
    }
    TT_ARCHIVE(out, count);
    for (uint32_t n = 0; n < NODES; n++)
        tt_ps_server_save(c->servers[n], out);
    assert_int_equal(out->status, TT_OK);
    assert_true(out->count <= all + sizeof count);
}

static void
load(cluster *c, const tt_archive *saved)
{
    tt_archive in;
    tt_ps_state *state;
    tt_archive_read(&in, saved->bytes, saved->count);
    assert_int_equal(tt_ps_state_open(&c->table, &in, &state, NULL), TT_OK);
    for (uint32_t n = 0; n < NODES; n++)
        assert_int_equal(tt_ps_server_load(c->servers[n], state), TT_OK);
    tt_ps_state_close(state);
}

// Weights, state and average of a row; tolerance 0: bit by bit.
static void
check_row(const cluster *a, const cluster *b, uint32_t i, double tolerance)
{
    float left[4 * WIDTH] = {0}, right[4 * WIDTH] = {0}, saved[2][WIDTH];
    const cluster *both[2] = {a, b};
    float *cells[2] = {left, right};
    uint64_t key = key_of(&a->table, i);
    int found = 0;
    for (int k = 0; k < 2; k++) {
        const tti_partition *p = partition_of(both[k], tt_ps_partition_of(&both[k]->table, key));
        uint32_t row = tti_partition_find(p, key - p->first);
        tti_partition_gather_saved(p, &row, 1, saved[k]);
        if (row == TTI_NO_ROW)
            continue;
        found++;
        tti_partition_export(p, row, cells[k]);
    }
    assert_true(found == 2 || found == 0);
    uint32_t floats = WIDTH * (1 + tt_ps_state_count(&a->table) - (a->table.averaging != 0));
    assert_memory_equal(left, right, floats * sizeof(float));
    for (int j = 0; j < WIDTH; j++)
        assert_true(fabs((double)saved[0][j] - (double)saved[1][j]) <=
                    tolerance * fmax(1, fabs((double)saved[0][j])));
}

static void
check_equal(const cluster *a, const cluster *b, double tolerance)
{
    for (uint32_t i = 0; i < ROWS; i++)
        check_row(a, b, i, tolerance);
}

static void
check_in_place(const cluster *c, const tt_archive *saved)
{
    tt_archive in;
    tt_ps_state *state;
    tt_ps_store *store;
    tt_ps_table table = c->table;
    table.partition_count = 1;
    tt_archive_read(&in, saved->bytes, saved->count);
    assert_int_equal(tt_ps_store_open(&table, NODES, &store, NULL), TT_OK);
    assert_int_equal(tt_ps_state_open(&table, &in, &state, NULL), TT_OK);
    assert_int_equal(tt_ps_store_load(store, state), TT_OK);
    tt_ps_state_close(state);
    for (uint32_t i = 0; i < ROWS; i++) {
        float here[WIDTH], there[WIDTH];
        uint64_t key = key_of(&table, i);
        uint32_t row32 = (uint32_t)key;
        tt_ps_keys keys = {.count = 1};
        if (table.kind == TT_PS_SPARSE)
            keys.keys = &key;
        else
            keys.rows = &row32;
        tt_ps_store_read(store, keys, here);
        const tti_partition *p = partition_of(c, tt_ps_partition_of(&c->table, key));
        uint32_t row = tti_partition_find(p, key - p->first);
        tti_partition_gather_saved(p, &row, 1, there);
        for (int j = 0; j < WIDTH; j++) // the average is kept to float32 accuracy
            assert_true(fabs((double)here[j] - (double)there[j]) <=
                        1e-5 * fmax(1, fabs((double)there[j])));
    }
    tt_ps_store_close(store);
}

static void
check_table(const tt_ps_table *table)
{
    cluster two, one, five, other;
    tt_archive saved;
    cluster_open(&two, table, 8, 2);
    for (uint32_t step = 0; step < STEPS; step++)
        train(&two, step);
    save(&two, &saved);
    cluster_open(&one, table, 8, 1);
    load(&one, &saved);
    check_equal(&two, &one, 0);
    cluster_open(&five, table, 8, 5);
    load(&five, &saved);
    check_equal(&two, &five, 0);
    cluster_open(&other, table, 20, 5);
    load(&other, &saved);
    check_equal(&two, &other, 1e-5); // averages are rescaled in float32
    check_in_place(&two, &saved);
    for (uint32_t step = STEPS; step < 2 * STEPS; step++) {
        train(&two, step);
        train(&five, step);
    }
    check_equal(&two, &five, 0);
    cluster *const all[] = {&two, &one, &five, &other};
    for (size_t i = 0; i < TT_COUNT_OF(all); i++)
        cluster_close(all[i]);
    tt_archive_fini(&saved);
}

static const tt_ps_table base = {.rows = ROWS,
                                 .width = WIDTH,
                                 .partition_count = 8,
                                 .learning_rate = 0.0731,
                                 .epsilon = 1e-7,
                                 .momentum = 0.83,
                                 .beta1 = 0.87,
                                 .beta2 = 0.991,
                                 .l1 = 0.013,
                                 .ftrl_beta = 1.1};

static void
test_every_table(void **unused)
{
    TT_UNUSED(unused);
    for (int kind = TT_PS_DENSE; kind <= TT_PS_SPARSE; kind++)
        for (int optimizer = TT_PS_SGD; optimizer <= TT_PS_FTRL; optimizer++)
            for (int averaging = 0; averaging < 2; averaging++) {
                tt_ps_table table = base;
                table.kind = (tt_ps_table_kind)kind;
                table.optimizer = (tt_ps_optimizer_kind)optimizer;
                table.averaging = averaging;
                check_table(&table);
            }
}

static void
saved_sparse(cluster *c, tt_archive *saved)
{
    tt_ps_table table = base;
    table.kind = TT_PS_SPARSE;
    table.optimizer = TT_PS_ADAGRAD;
    cluster_open(c, &table, 8, 2);
    train(c, 0);
    save(c, saved);
}

static tt_status
open_state(const tt_ps_table *table, const void *bytes, size_t count, tt_error *err)
{
    tt_archive in;
    tt_ps_state *state;
    tt_archive_read(&in, bytes, count);
    tt_status status = tt_ps_state_open(table, &in, &state, err);
    tt_ps_state_close(state);
    return status;
}

static void
test_damage_is_refused(void **unused)
{
    TT_UNUSED(unused);
    cluster c;
    tt_archive saved;
    saved_sparse(&c, &saved);
    for (size_t count = 0; count < saved.count; count++) {
        // In memory of exactly this size, so that a sanitizer sees a read beyond it.
        uint8_t *cut = tt_mem_alloc(count + 1);
        memcpy(cut, saved.bytes, count);
        cut = tt_mem_realloc(cut, count > 0 ? count : 1);
        assert_int_equal(open_state(&c.table, cut, count, NULL), TT_CORRUPT);
        tt_mem_free(cut);
    }
    tt_archive_fini(&saved);
    cluster_close(&c);
}

static void
test_another_table_is_refused(void **unused)
{
    TT_UNUSED(unused);
    cluster c;
    tt_archive saved;
    tt_error err = {0};
    saved_sparse(&c, &saved);
    tt_ps_table table = c.table;
    table.optimizer = TT_PS_SGD;
    assert_int_equal(open_state(&table, saved.bytes, saved.count, &err), TT_INVALID);
    assert_non_null(strstr(err.what, "another model or optimizer"));
    table = c.table;
    table.width = 2;
    assert_int_equal(open_state(&table, saved.bytes, saved.count, &err), TT_INVALID);
    tt_archive_fini(&saved);
    cluster_close(&c);
}

static void
test_memory_failures(void **unused)
{
    TT_UNUSED(unused);
    cluster c;
    tt_archive saved, in;
    saved_sparse(&c, &saved);
    for (uint64_t n = 1; n < 4; n++) {
        tt_ps_state *state;
        tt_archive_read(&in, saved.bytes, saved.count);
        tt_mem_fail_nth(n);
        tt_status status = tt_ps_state_open(&c.table, &in, &state, NULL);
        if (!tt_mem_fail_pending())
            assert_int_equal(status, TT_NOMEM);
        tt_mem_fail_nth(0);
        tt_ps_state_close(state);
    }
    tt_archive_fini(&saved);
    cluster_close(&c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_table),
        cmocka_unit_test(test_damage_is_refused),
        cmocka_unit_test(test_another_table_is_refused),
        cmocka_unit_test(test_memory_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
