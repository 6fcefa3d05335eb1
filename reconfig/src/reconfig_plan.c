// Plans: what has to happen between two settings.
#include "tt/reconfig.h"
#include <string.h>

void
tt_reconfig_roles(uint32_t servers, uint32_t node_count, const uint8_t *is_gone, uint8_t *is_server)
{
    uint32_t there = 0, chosen = 0;
    for (uint32_t n = 0; n < node_count; n++)
        there += is_gone == NULL || !is_gone[n];
    uint32_t wanted = there > 1 ? TT_MIN(servers, there - 1) : servers;
    for (uint32_t n = 0; n < node_count; n++) {
        is_server[n] = chosen < wanted && (is_gone == NULL || !is_gone[n]);
        chosen += is_server[n];
    }
}

uint32_t
tt_reconfig_servers(const tt_space *space, const tt_setting *setting)
{
    int knob = tt_space_find(space, "servers");
    return knob >= 0 ? (uint32_t)setting->value[knob] : 0;
}

const char *
tt_reconfig_kind(unsigned effect)
{
    switch (effect & (TT_KNOB_MOVES_DATA | TT_KNOB_MOVES_MODEL)) {
    case TT_KNOB_MOVES_DATA:
        return "data";
    case TT_KNOB_MOVES_MODEL:
        return "model";
    case TT_KNOB_MOVES_DATA | TT_KNOB_MOVES_MODEL:
        return "data and model";
    default:
        return "setting";
    }
}

const char *
tt_reconfig_method_name(tt_reconfig_method method)
{
    static const char *const names[] = {"on demand", "drain", "checkpoint"};
    _Static_assert(TT_COUNT_OF(names) == TT_RECONFIG_METHODS, "every method has a name");
    return names[method];
}

static void
diff(const tt_space *space, tt_reconfig_plan *plan)
{
    for (uint32_t k = 0; k < space->count; k++) {
        if (plan->from.value[k] == plan->to.value[k])
            continue;
        plan->effect |= space->knob[k].knob->effect;
        plan->knobs_changed++;
    }
}

tt_status
tt_reconfig_plan_make(const tt_space *space,
                      tt_knob_set *checker,
                      const tt_setting *from,
                      const tt_setting *to,
                      const tt_ps_view *view,
                      uint32_t join_clock,
                      uint32_t effective_round,
                      tt_reconfig_plan *out,
                      tt_error *err)
{
    *out = (tt_reconfig_plan){.from = *from, .to = *to};
    if (!tt_space_valid(space, to))
        return tt_error_set(err, TT_INVALID, NULL, NULL,
                            "a setting outside the job's search space");
    diff(space, out);
    TT_TRY(tt_knob_set_prepare(checker, to, err));
    out->servers_from = tt_reconfig_servers(space, from);
    out->servers_to = tt_reconfig_servers(space, to);
    uint8_t is_server[TT_PS_NODES_MAX];
    tt_reconfig_roles(out->servers_to, view->node_count, view->is_gone, is_server);
    int roles_change = out->servers_from != out->servers_to;
    if (tt_ps_view_next(view, roles_change ? is_server : NULL, &out->view) != TT_OK) {
        tt_knob_set_rollback(checker);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the next generation");
    }
    tt_knob_set_commit(checker);
    out->view->effective_round = effective_round;
    for (uint32_t n = 0; n < view->node_count; n++)
        if (out->view->joined_at[n] == out->view->generation)
            out->view->join_clock[n] = join_clock;
    out->partitions_moved = tt_ps_view_moves(view, out->view);
    return TT_OK;
}

static uint16_t
next_server(const tt_ps_view *view, uint16_t server)
{
    uint32_t n = server;
    do
        n = n + 1 < view->node_count ? n + 1 : 0;
    while (view->is_worker[n] || view->is_gone[n]);
    return (uint16_t)n;
}

void
tt_reconfig_plan_rotate(tt_reconfig_plan *plan, const tt_ps_view *view, uint32_t count)
{
    TT_ASSERT(plan->servers_from == plan->servers_to);
    uint32_t partitions = view->partition_count;
    for (uint32_t i = 0; i < TT_MIN(count, partitions); i++) {
        uint32_t p = (view->generation * count + i) % partitions;
        uint16_t owner = view->owner[p], target = next_server(view, owner);
        if (target == owner)
            continue;
        tt_ps_view_give(plan->view, p, target);
    }
    plan->partitions_moved = tt_ps_view_moves(view, plan->view);
    plan->effect |= plan->partitions_moved > 0 ? TT_KNOB_MOVES_MODEL : 0;
}

void
tt_reconfig_plan_by(tt_reconfig_plan *plan, tt_reconfig_method method)
{
    // With replicas nothing is carried (tt_ps_view_give).
    int drains = method == TT_RECONFIG_DRAIN ||
                 (method == TT_RECONFIG_ON_DEMAND && plan->view->replicas > 0);
    plan->method = drains ? TT_RECONFIG_DRAIN : method;
    tt_ps_view_move_by(plan->view, drains ? TT_PS_MOVE_DRAIN : TT_PS_MOVE_ON_DEMAND);
}

tt_ps_view *
tt_reconfig_plan_take_view(tt_reconfig_plan *plan)
{
    tt_ps_view *view = plan->view;
    plan->view = NULL;
    return view;
}

void
tt_reconfig_plan_fini(tt_reconfig_plan *plan)
{
    tt_ps_view_free(plan->view);
    plan->view = NULL;
}
