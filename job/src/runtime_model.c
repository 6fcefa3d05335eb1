// The model read out of the servers, and what else comes to the master's end of the mesh.
#include "runtime.h"
#include <string.h>

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    tti_runtime *rt = self;
    switch ((tt_frame_kind)frame->kind) {
    case TT_FRAME_SAVED:
        if (rt->copier != NULL)
            tt_ps_copier_receive(rt->copier, frame, payload);
        break;
    case TT_FRAME_RESTORE:
        tt_ps_state_answer(&rt->job->table, rt->membership.state, frame,
                           tt_mesh_outbox(rt->mesh, rt->node_count));
        break;
    default:
        tt_ps_client_receive(rt->reader, frame, payload);
        break;
    }
}

uint32_t
tti_runtime_receive(tti_runtime *rt)
{
    uint32_t handled = tt_mesh_receive(rt->mesh, rt->node_count, 64, on_frame, rt);
    tt_mesh_flush(rt->mesh, rt->node_count);
    return handled;
}

static uint32_t *
every_row(const tti_runtime *rt)
{
    uint32_t *rows = tt_mem_alloc(rt->job->table.rows * sizeof *rows);
    for (uint32_t i = 0; rows != NULL && i < rt->job->table.rows; i++)
        rows[i] = i;
    return rows;
}

void
tti_runtime_peek_model(const tti_runtime *rt, float *out)
{
    memset(out, 0, (size_t)rt->job->table.rows * rt->job->table.width * sizeof *out);
    for (int sealed = 1; sealed >= 0; sealed--)
        for (uint32_t n = 0; n < rt->node_count; n++)
            if (rt->processes[n].node.server != NULL && !rt->newest->view->is_gone[n])
                tt_ps_server_read(rt->processes[n].node.server, sealed, out);
}

tt_status
tti_runtime_deserted(tt_error *err)
{
    return tt_error_set(err, TT_PEER, NULL, "trimtab run --resume goes on from the last checkpoint",
                        "there are not two nodes left to train on");
}

tt_status
tti_runtime_read_model(tti_runtime *rt, float *out, tt_error *err)
{
    tt_ps_keys keys = {.count = (uint32_t)rt->job->table.rows};
    uint32_t *rows = rt->job->table.kind == TT_PS_SPARSE ? every_row(rt) : NULL;
    keys.rows = rows;
    if (rt->store != NULL) {
        tt_ps_store_read(rt->store, keys, out);
    } else {
        tt_ps_client_time(rt->reader, tt_clock_now(&rt->clock));
        tt_ps_client_adopt(rt->reader, rt->newest->view);
        tt_ps_client_pull(rt->reader, keys, 0, 1, out);
        while (!tt_ps_client_done(
            rt->reader)) { // servers answer as long as they run, and they outlive this call
            if (tti_runtime_receive(rt) == 0)
                tt_mesh_wait(rt->mesh, rt->node_count, 5000000);
            tti_membership_watch(rt);
            if (rt->membership.must_fail || rt->membership.must_go_back)
                tt_ps_client_abandon(rt->reader);
            tt_ps_client_time(rt->reader, tt_clock_now(&rt->clock));
            tt_ps_client_tick(rt->reader, rt->board.retry_ns);
            tt_mesh_flush(rt->mesh, rt->node_count);
        }
    }
    tt_mem_free(rows);
    if (rt->membership.must_go_back)
        return tt_error_set(err, TT_BUSY, NULL, NULL, "the nodes go back to a checkpoint");
    return rt->membership.must_fail ? tti_runtime_deserted(err) : TT_OK;
}
