// Goal: plans say what a change sets in motion and move no more than they must; transitions end
// when, and only when, everything has arrived. Method: a space of the built-in knobs over a view of
// eight nodes.
#include "tt/reconfig.h"

// cmocka wants setjmp.h before it
#include <math.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

static int
accept_all(void *impl, const char *name, double value)
{
    TT_UNUSED(impl);
    TT_UNUSED(name);
    TT_UNUSED(value);
    return 0;
}

static int
get_zero(void *impl, const char *name, double *out)
{
    TT_UNUSED(impl);
    TT_UNUSED(name);
    *out = 0;
    return 0;
}

static const void *
runtime_extension(const tt_knob_host *host, const char *name)
{
    TT_UNUSED(host);
    static const tt_knob_runtime runtime = {
        .struct_size = sizeof runtime, .set = accept_all, .get = get_zero};
    return strcmp(name, TT_KNOB_RUNTIME) == 0 ? &runtime : NULL;
}

struct fixture {
    tt_knob_registry *registry;
    tt_space space;
    tt_knob_host host;
    tt_knob_set *checker;
    tt_ps_table table;
    tt_ps_view *view;
    tt_setting start;
};

static void
open_fixture(struct fixture *f)
{
    tt_error err = {0};
    memset(f, 0, sizeof *f);
    assert_int_equal(tt_knob_registry_open(&f->registry, &err), TT_OK);
    tt_space_init(&f->space, f->registry);
    int servers = tt_space_find(&f->space, "servers");
    assert_true(servers >= 0);
    f->space.knob[servers].max = 7;
    f->space.knob[servers].start = 2;
    f->host = (tt_knob_host){.struct_size = sizeof f->host, .get_extension = runtime_extension};
    assert_int_equal(tt_knob_set_open(&f->space, &f->host, &f->checker, &err), TT_OK);
    f->table = (tt_ps_table){.kind = TT_PS_DENSE, .rows = 1000, .width = 1, .partition_count = 28};
    uint8_t roles[TT_PS_NODES_MAX];
    tt_reconfig_roles(2, 8, NULL, roles);
    assert_int_equal(tt_ps_view_first(&f->table, 8, roles, &f->view), TT_OK);
    tt_space_start(&f->space, &f->start);
}

static void
close_fixture(struct fixture *f)
{
    tt_ps_view_free(f->view);
    tt_knob_set_close(f->checker);
    tt_knob_registry_close(f->registry);
}

static void
a_setting_alone_moves_nothing(void **state)
{
    TT_UNUSED(state);
    struct fixture f;
    open_fixture(&f);
    tt_setting to = f.start;
    to.value[tt_space_find(&f.space, "in_flight")] = 8;
    tt_reconfig_plan plan;
    tt_error err = {0};
    assert_int_equal(
        tt_reconfig_plan_make(&f.space, f.checker, &f.start, &to, f.view, 0, 0, &plan, &err),
        TT_OK);
    assert_int_equal(plan.partitions_moved, 0);
    assert_int_equal(plan.knobs_changed, 1);
    assert_string_equal(tt_reconfig_kind(plan.effect), "setting");
    assert_int_equal(plan.view->generation, 2);
    tt_reconfig_plan_fini(&plan);
    close_fixture(&f);
}

static void
another_split_moves_only_what_it_must(void **state)
{
    TT_UNUSED(state);
    struct fixture f;
    open_fixture(&f);
    tt_setting to = f.start;
    to.value[tt_space_find(&f.space, "servers")] = 4;
    tt_reconfig_plan plan;
    tt_error err = {0};
    assert_int_equal(
        tt_reconfig_plan_make(&f.space, f.checker, &f.start, &to, f.view, 17, 0, &plan, &err),
        TT_OK);
    assert_string_equal(tt_reconfig_kind(plan.effect), "data and model");
    assert_int_equal(plan.partitions_moved, 14); // 28 over 2 -> 28 over 4: half of them
    uint32_t held[8] = {0};
    for (uint32_t p = 0; p < 28; p++) {
        held[plan.view->owner[p]]++;
        if (plan.view->owner[p] != f.view->owner[p])
            assert_int_equal(plan.view->moved_at[p], 2);
    }
    for (uint32_t n = 0; n < 8; n++) {
        assert_int_equal(held[n], n < 4 ? 7 : 0);
        assert_int_equal(plan.view->is_worker[n], n >= 4);
    }
    tt_ps_view *second = tt_reconfig_plan_take_view(&plan);
    tt_setting back = to;
    back.value[tt_space_find(&f.space, "servers")] = 2;
    assert_int_equal(
        tt_reconfig_plan_make(&f.space, f.checker, &to, &back, second, 17, 0, &plan, &err), TT_OK);
    assert_int_equal(plan.view->join_clock[2], 17); // nodes 2 and 3 work again
    assert_int_equal(plan.view->joined_at[3], 3);
    tt_reconfig_plan_fini(&plan);
    tt_ps_view_free(second);
    close_fixture(&f);
}

static void
the_method_travels_with_what_moves(void **state)
{
    TT_UNUSED(state);
    struct fixture f;
    open_fixture(&f);
    tt_setting to = f.start;
    to.value[tt_space_find(&f.space, "servers")] = 4;
    tt_reconfig_plan plan;
    tt_error err = {0};
    assert_int_equal(
        tt_reconfig_plan_make(&f.space, f.checker, &f.start, &to, f.view, 0, 0, &plan, &err),
        TT_OK);
    assert_int_equal(plan.method, TT_RECONFIG_ON_DEMAND);
    tt_reconfig_plan_by(&plan, TT_RECONFIG_DRAIN);
    assert_int_equal(plan.method, TT_RECONFIG_DRAIN);
    for (uint32_t p = 0; p < 28; p++)
        assert_int_equal(plan.view->moved_by[p], plan.view->owner[p] != f.view->owner[p]
                                                     ? TT_PS_MOVE_DRAIN
                                                     : TT_PS_MOVE_ON_DEMAND);
    // Who adopts a later generation only still learns how the partitions moved in this one.
    tt_ps_view *drained = tt_reconfig_plan_take_view(&plan);
    tt_setting later = to;
    later.value[tt_space_find(&f.space, "in_flight")] = 8;
    assert_int_equal(
        tt_reconfig_plan_make(&f.space, f.checker, &to, &later, drained, 0, 0, &plan, &err), TT_OK);
    for (uint32_t p = 0; p < 28; p++)
        assert_int_equal(plan.view->moved_by[p],
                         plan.view->moved_at[p] == 2 ? TT_PS_MOVE_DRAIN : TT_PS_MOVE_ON_DEMAND);
    tt_reconfig_plan_fini(&plan);
    tt_ps_view_free(drained);
    close_fixture(&f);
}

static void
parts_of_a_restart_add_up(void **state)
{
    TT_UNUSED(state);
    tt_reconfig_plan plan = {.method = TT_RECONFIG_CHECKPOINT};
    tt_reconfig_transition transition = {0};
    tt_reconfig_begin(&transition, &plan, 3, 1, 0, 2.5, 0, 0, 0);
    assert_true(isnan(transition.cost.checkpoint_s));
    tt_reconfig_restarted(&transition, 0.125, 0.25, 0.0625);
    assert_false(tt_reconfig_finished(&transition, 3.25, 4, 0, 0, 0));
    tt_reconfig_adopted(&transition, 1);
    assert_true(tt_reconfig_finished(&transition, 3.5, 4, 0, 0, 0));
    assert_true(transition.cost.restart_s == 1 - 0.125 - 0.25 - 0.0625);
    assert_string_equal(tt_reconfig_done_by(&transition.cost), "checkpoint"); // without moves, too
}

static void
costs_are_kept_by_method_and_kind(void **state)
{
    TT_UNUSED(state);
    static tt_reconfig_costs costs;
    tt_reconfig_cost cost = {.effect = TT_KNOB_MOVES_MODEL, .duration_s = 0.385};
    tt_reconfig_costs_add(&costs, &cost, 0.125);
    tt_reconfig_costs_add(&costs, &cost, -0.0625);
    assert_string_equal(tt_reconfig_done_by(&cost), "publish"); // nothing had to move
    cost.method = TT_RECONFIG_DRAIN;
    cost.partitions_moved = 3;
    tt_reconfig_costs_add(&costs, &cost, 0.5);
    assert_string_equal(tt_reconfig_done_by(&cost), "drain");
    const tt_reconfig_sum *carried = &costs.of[TT_RECONFIG_ON_DEMAND][TT_KNOB_MOVES_MODEL];
    assert_int_equal(carried->count, 2);
    assert_true(carried->lost_s == 0.0625 && carried->duration_s == 0.77);
    assert_int_equal(costs.of[TT_RECONFIG_DRAIN][TT_KNOB_MOVES_MODEL].count, 1);
    assert_int_equal(costs.of[TT_RECONFIG_DRAIN][TT_KNOB_MOVES_DATA].count, 0);
}

static void
a_setting_outside_the_space_is_refused(void **state)
{
    TT_UNUSED(state);
    struct fixture f;
    open_fixture(&f);
    tt_setting to = f.start;
    to.value[tt_space_find(&f.space, "servers")] = 8;
    tt_reconfig_plan plan;
    tt_error err = {0};
    assert_int_equal(
        tt_reconfig_plan_make(&f.space, f.checker, &f.start, &to, f.view, 0, 0, &plan, &err),
        TT_INVALID);
    assert_null(plan.view);
    close_fixture(&f);
}

static void
a_transition_ends_when_all_has_arrived(void **state)
{
    TT_UNUSED(state);
    tt_reconfig_plan plan = {.partitions_moved = 2, .effect = TT_KNOB_MOVES_MODEL};
    tt_reconfig_transition transition = {0};
    tt_reconfig_begin(&transition, &plan, 5, 3, 1, 10.0, 1000, 50, 70);
    for (uint32_t n = 0; n < 3; n++) {
        assert_false(tt_reconfig_finished(&transition, 10.1, 1010, 50, 70, 0));
        tt_reconfig_adopted(&transition, n + 1);
        tt_reconfig_adopted(&transition, n); // an older count is no news
    }
    tt_reconfig_retired(&transition, 10.2);
    assert_false(tt_reconfig_finished(&transition, 10.2, 1015, 60, 75, 0));
    tt_reconfig_retired(&transition, 10.25);
    assert_true(tt_reconfig_finished(&transition, 10.3, 1020, 90, 100, 0.004));
    assert_false(tt_reconfig_finished(&transition, 10.4, 1030, 90, 100, 0));
    assert_int_equal(transition.cost.iterations_during, 20);
    assert_int_equal(transition.cost.bytes_carried, 40);
    assert_int_equal(transition.cost.bytes_drained, 30);
    assert_true(transition.cost.last_key_live_s > 0.249 && transition.cost.last_key_live_s < 0.251);
    double lost = tt_reconfig_lost_s(&transition.cost, 0.01); // 0.3 s - 20 x 10 ms
    assert_true(lost > 0.0999 && lost < 0.1001);
    assert_true(tt_reconfig_lost_s(&transition.cost, 0.02) < 0); // not floored
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_alone_moves_nothing),
        cmocka_unit_test(another_split_moves_only_what_it_must),
        cmocka_unit_test(the_method_travels_with_what_moves),
        cmocka_unit_test(parts_of_a_restart_add_up),
        cmocka_unit_test(costs_are_kept_by_method_and_kind),
        cmocka_unit_test(a_setting_outside_the_space_is_refused),
        cmocka_unit_test(a_transition_ends_when_all_has_arrived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
