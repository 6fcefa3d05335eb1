// Goal: orders and reports are read as they were written, and damaged ones do no harm. Method:
// there and back; every shorter piece; 20,000 changed bytes, in memory of their own for the address
// sanitizer.
#include "control.h"
#include "tt/core.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static tti_generation *
make_generation(void)
{
    static const uint8_t is_server[5] = {1, 0, 0, 1, 0};
    const tt_ps_table table = {.kind = TT_PS_DENSE,
                               .rows = 100,
                               .width = 1,
                               .partition_count = 8,
                               .consistency = TT_PS_BSP,
                               .slice_count = 3};
    tti_generation *generation = tt_mem_zalloc(1, sizeof *generation);
    assert_non_null(generation);
    assert_int_equal(tt_ps_view_first(&table, 5, is_server, &generation->view), TT_OK);
    generation->view->effective_round = 17;
    generation->view->redo_until = 19;
    generation->view->ended_before = 13;
    generation->setting = (tt_setting){.count = 2, .value = {3, 0.25}};
    return generation;
}

static void
write_order(tti_generation *generation, tt_archive *out)
{
    static const uint32_t rows[4] = {5, 6, 7, 80};
    const tti_order order = {.number = 9,
                             .gate = 3,
                             .hold_round = 12,
                             .row_first = 40,
                             .row_count = 4,
                             .has_generation = generation != NULL,
                             .generation = 1};
    tti_order_write(&order, rows, generation, out);
    assert_int_equal(out->status, TT_OK);
}

static void
an_order_is_read_as_it_was_written(void **state)
{
    TT_UNUSED(state);
    tti_generation *generation = make_generation();
    tt_archive out = {0};
    tti_order_parts parts;
    uint32_t rows[4];
    write_order(generation, &out);
    assert_int_equal(tti_order_read(out.bytes, out.count, &parts), TT_OK);
    assert_int_equal(parts.order.number, 9);
    assert_int_equal(parts.order.hold_round, 12);
    memcpy(rows, parts.rows, sizeof rows);
    assert_int_equal(rows[3], 80);
    const tt_ps_view *a = generation->view, *b = parts.generation->view;
    assert_int_equal(b->effective_round, 17);
    assert_int_equal(b->redo_until, 19);
    assert_int_equal(b->ended_before, 13);
    assert_memory_equal(a->owner, b->owner, 8 * sizeof *a->owner);
    assert_memory_equal(a->is_worker, b->is_worker, 5);
    assert_memory_equal(a->slice_owner, b->slice_owner, 3 * sizeof *a->slice_owner);
    assert_true(parts.generation->setting.value[1] == 0.25);
    tti_generations_free(parts.generation);
    tti_generations_free(generation);
    tt_archive_fini(&out);
}

static void
try_order(const uint8_t *bytes, size_t count, int whole)
{
    tti_order_parts parts;
    uint8_t *copy = tt_mem_alloc(TT_MAX(count, (size_t)1));
    assert_non_null(copy);
    memcpy(copy, bytes, count);
    tt_status status = tti_order_read(copy, count, &parts);
    assert_true(whole || status != TT_OK);
    if (status == TT_OK)
        tti_generations_free(parts.generation);
    tt_mem_free(copy);
}

static void
damaged_orders_are_refused(void **state)
{
    TT_UNUSED(state);
    tti_generation *generation = make_generation();
    tt_archive out = {0};
    tt_rng rng;
    write_order(generation, &out);
    for (size_t count = 0; count < out.count; count++)
        try_order(out.bytes, count, 0);
    tt_rng_init(&rng, 1, TT_RNG_SCHEDULE, 3);
    for (int i = 0; i < 20000; i++) {
        size_t at = tt_rng_below(&rng, (uint32_t)out.count);
        uint8_t before = out.bytes[at];
        out.bytes[at] ^= (uint8_t)(1 + tt_rng_below(&rng, 255));
        try_order(out.bytes, out.count, 1); // which may mean something else
        out.bytes[at] = before;
    }
    tti_generations_free(generation);
    tt_archive_fini(&out);
}

static void
a_report_is_read_as_it_was_written(void **state)
{
    TT_UNUSED(state);
    const tti_record records[2] = {{.sequence = 4, .loss = 0.5f}, {.sequence = 5, .examples = 9}};
    const float losses[3] = {1, 2, 3};
    const tti_end ends[1] = {{.partition = 3, .generation = 7}};
    const tti_report report = {.number = 2,
                               .record_count = 2,
                               .end_count = 1,
                               .loss_count = 3,
                               .record_first = 11,
                               .wanted = 70};
    tti_report_parts parts;
    tt_archive out = {0};
    tti_record record;
    tti_end end;
    tti_report_write(&report, records, losses, ends, &out);
    assert_int_equal(tti_report_read(out.bytes, out.count, &parts), TT_OK);
    assert_int_equal(parts.report.record_first, 11);
    memcpy(&record, (const uint8_t *)parts.records + sizeof record, sizeof record);
    assert_int_equal(record.examples, 9);
    assert_memory_equal(parts.losses, losses, sizeof losses);
    memcpy(&end, parts.ends, sizeof end);
    assert_int_equal(end.generation, 7);
    for (size_t count = 0; count < out.count; count++) {
        uint8_t *copy = tt_mem_alloc(TT_MAX(count, (size_t)1));
        assert_non_null(copy);
        memcpy(copy, out.bytes, count);
        assert_int_equal(tti_report_read(copy, count, &parts), TT_CORRUPT);
        tt_mem_free(copy);
    }
    tt_archive_fini(&out);
}

static int
order_fits(const tt_job *job, uint32_t row, tti_generation *generation)
{
    const tti_order_parts parts = {
        .order = {.row_count = 1}, .rows = &row, .generation = generation};
    return tti_order_fits(job, &parts);
}

// An agent takes rows and a generation as they come: those of another job are not let in.
static void
orders_of_another_job_are_refused(void **state)
{
    TT_UNUSED(state);
    tt_dataset data = {.row_count = 81};
    tt_job job = {.train = &data, .node_count = 5, .space.count = 2};
    job.spec.batch_size = 12;
    job.spec.slices = 3;
    job.table = (tt_ps_table){.partition_count = 8, .consistency = TT_PS_BSP, .slice_count = 3};
    tti_generation *g = make_generation();
    assert_true(order_fits(&job, 80, g));
    assert_true(order_fits(&job, 80, NULL));
    assert_false(order_fits(&job, 81, NULL));
    g->setting.value[1] = NAN;
    assert_false(order_fits(&job, 80, g));
    g->setting = (tt_setting){.count = 3};
    assert_false(order_fits(&job, 80, g));
    g->setting.count = 2;
    job.table.slice_count = 4;
    assert_false(order_fits(&job, 80, g));
    job.table.slice_count = 3;
    job.table.partition_count = 7;
    assert_false(order_fits(&job, 80, g));
    job.table.partition_count = 8;
    job.node_count = 6;
    assert_false(order_fits(&job, 80, g));
    tti_generations_free(g);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_is_read_as_it_was_written),
        cmocka_unit_test(damaged_orders_are_refused),
        cmocka_unit_test(orders_of_another_job_are_refused),
        cmocka_unit_test(a_report_is_read_as_it_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
