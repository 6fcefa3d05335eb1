// Batches of workers that die while they push them. A push says which batch it is a part of, and a
// server remembers, for each partition and worker, the last one that is in. When the worker is
// dead, servers tell the last they have seen (tt_ps_hooks.last_batch): all before it are in
// everywhere, for a worker pushes a batch when the one before was acknowledged; it alone may be in
// at some partitions and not at others. Whoever is given it names it as the dead one did, and where
// it is in it counts no more: what arrives is a push of nothing. Source: duplicate filtering by
// client sequence numbers (Lampson 1981; RIFL, Lee et al. 2015), with the number taken over.
#include "push_batches.h"
#include "server_core.h"
#include <string.h>

// False: no node of this job.
int
tti_server_take_batch(tt_ps_server *server, tt_frame *frame, const uint8_t *payload)
{
    server->pushed = (tti_push_batch){0};
    if ((frame->flags & TT_FRAME_BATCH) == 0)
        return 1;
    frame->flags &= (uint16_t)~TT_FRAME_BATCH;
    frame->payload_bytes -= (uint32_t)sizeof server->pushed; // tti_server_frame_is_sound
    memcpy(&server->pushed, payload + frame->payload_bytes, sizeof server->pushed);
    return server->pushed.worker < server->node_count;
}

// One that another began.
static int
is_again(const tti_push_batch *pushed, const tt_frame *frame)
{
    return pushed->batch.rows > 0 &&
           (pushed->worker != frame->sender || pushed->batch.attempt != frame->attempt);
}

int
tti_server_has_batch(const tt_ps_server *server, const tti_slot *slot, const tt_frame *frame)
{
    const tti_push_batch *pushed = &server->pushed;
    return is_again(pushed, frame) && slot->batches != NULL &&
           !tti_batch_is_after(&pushed->batch, &slot->batches[pushed->worker]);
}

static void
note(tt_ps_server *server, tti_slot *slot, uint32_t worker, const tt_ps_batch *batch)
{
    if (slot->batches == NULL) {
        slot->batches = tt_mem_zalloc(server->node_count, sizeof *slot->batches);
        TT_ASSERT(slot->batches != NULL); // without it examples would count twice
    }
    if (tti_batch_is_after(batch, &slot->batches[worker]))
        slot->batches[worker] = *batch;
    if (tti_batch_is_after(batch, &server->last_batch[worker]))
        server->last_batch[worker] = *batch;
}

void
tti_server_note_batch(tt_ps_server *server, tti_slot *slot)
{
    if (server->pushed.batch.rows > 0)
        note(server, slot, server->pushed.worker, &server->pushed.batch);
}

void
tti_server_install_batches(tt_ps_server *server, tti_slot *slot, const uint8_t *batches)
{
    for (uint32_t n = 0; n < server->node_count; n++) {
        tt_ps_batch batch;
        memcpy(&batch, batches + n * sizeof batch, sizeof batch);
        if (batch.rows > 0)
            note(server, slot, n, &batch);
    }
}

void
tti_server_tell_batches(tt_ps_server *server)
{
    for (uint32_t n = 0; server->hooks.last_batch != NULL && n < server->node_count; n++) {
        const tt_ps_batch *last = &server->last_batch[n];
        if (last->attempt >= server->view->attempt[n] ||
            !tti_batch_is_after(last, &server->told_batch[n]))
            continue;
        server->told_batch[n] = *last;
        server->hooks.last_batch(server->hooks.self, n, last);
    }
}
