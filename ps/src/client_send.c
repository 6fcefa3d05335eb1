// What a worker's client sends: keys, gradients and carried originals as they travel.
#include "client_core.h"
#include <string.h>

static tt_span
wire_keys_of(const tt_ps_client *client, const tti_request *request)
{
    size_t key_bytes = tti_key_bytes(client->table);
    if (tti_client_is_whole(client))
        return (tt_span){NULL, 0};
    return (tt_span){client->list->wire_keys + request->begin * key_bytes,
                     request->count * key_bytes};
}

// What a server must have adopted to understand the request: a redirection may be ahead of our own
// view.
static uint32_t
newest_known(const tt_ps_client *client, const tti_route *route)
{
    return TT_MAX(client->view->generation, route->moved_at);
}

// spans: the name, the keys.
static void
name_list(tt_ps_client *client,
          const tti_request *request,
          uint32_t to,
          tt_frame *frame,
          tti_list_name *name,
          tt_span *spans)
{
    if (!tti_client_name(client, request, to, name))
        return;
    frame->flags |= TT_FRAME_NAMED;
    spans[0] = (tt_span){name, sizeof *name};
    if (!name->has_keys)
        spans[1] = (tt_span){NULL, 0};
}

static void
send_pull(tt_ps_client *client, const tti_request *request)
{
    const tti_route *route = &client->routes[request->partition];
    tt_frame frame = {.kind = TT_FRAME_PULL,
                      .attempt = client->attempt,
                      .generation = newest_known(client, route),
                      .partition = (uint16_t)request->partition,
                      .sequence = client->operation_number,
                      .clock = client->need,
                      .count = request->count};
    if (tti_client_is_whole(client))
        frame.flags |= TT_FRAME_WHOLE;
    if (client->bf16)
        frame.flags |= TT_FRAME_BF16;
    if (client->read_only)
        frame.flags |= TT_FRAME_READONLY;
    if (tti_client_may_read(client, request, route->pull_from))
        frame.flags |= TT_FRAME_LENT;
    tti_list_name name;
    tt_span spans[2] = {{0}, wire_keys_of(client, request)};
    name_list(client, request, route->pull_from, &frame, &name, spans);
    client->outbox.send(client->outbox.self, route->pull_from, &frame, spans, 2);
}

// Gradients of one request in wire order, as they travel.
static tt_span
pack_gradients(tt_ps_client *client, const tti_request *request)
{
    size_t width = client->table->width, floats = request->count * width;
    const float *source = client->gradients + request->begin * width;
    if (client->table->kind == TT_PS_SPARSE && !tti_client_is_whole(client)) {
        tti_client_gather(client, request, client->gradients, client->packed);
        source = client->packed;
    }
    if (!client->bf16)
        return (tt_span){source, floats * sizeof(float)};
    tt_vec_best()->bf16_encode(source, client->halves, floats);
    client->halves[floats] = (tt_bf16){0};
    return (tt_span){client->halves, tti_padded(floats * sizeof(tt_bf16))};
}

// Originals licensed to this worker: values from the pull's answer, state as it came. Returns the
// packed cells.
static tt_span
pack_originals(tt_ps_client *client, const tti_request *request, const tti_route *route)
{
    size_t width = client->table->width,
           cell_floats = width * (1 + tt_ps_state_count(client->table));
    if (client->cells_capacity < request->count * cell_floats) {
        tt_mem_free(client->cells);
        client->cells_capacity = request->count * cell_floats;
        client->cells = tt_mem_zalloc_vector(client->cells_capacity, sizeof(float));
        TT_ASSERT(client->cells != NULL); // as large as what was just received
    }
    float *cell = client->cells;
    const float *state = route->carry_state;
    for (uint32_t i = 0; i < request->count; i++) {
        if (route->carry_flags[i] != (TTI_ROW_EXISTS | TTI_ROW_LICENSED))
            continue;
        // The caller may use the pulled values but must not change them before the push is done.
        memcpy(cell, client->out + tti_client_position(client, request, i) * width,
               width * sizeof(float));
        memcpy(cell + width, state, (cell_floats - width) * sizeof(float));
        state += cell_floats - width;
        cell += cell_floats;
    }
    return (tt_span){client->cells, (size_t)(cell - client->cells) * sizeof(float)};
}

static void
send_push(tt_ps_client *client, tti_request *request)
{
    tti_route *route = &client->routes[request->partition];
    tt_frame frame = {.kind = TT_FRAME_PUSH,
                      .attempt = client->attempt,
                      .generation = newest_known(client, route),
                      .partition = (uint16_t)request->partition,
                      .sequence = route->sequence,
                      .clock = client->clock,
                      .detail = client->detail,
                      .count = request->count};
    tti_list_name name;
    tt_span spans[6] = {{0}, wire_keys_of(client, request)};
    if (client->probing) {
        frame.flags = TT_FRAME_PROBE;
        client->outbox.send(client->outbox.self, route->push_to, &frame, NULL, 0);
        return;
    }
    if (tti_client_is_whole(client))
        frame.flags |= TT_FRAME_WHOLE;
    if (client->bf16)
        frame.flags |= TT_FRAME_BF16;
    spans[2] = pack_gradients(client, request);
    if (route->carry_of != 0) {
        frame.flags |= TT_FRAME_CARRY;
        frame.extra = route->carry_of;
        spans[3] = (tt_span){route->carry_flags, tti_padded(request->count)};
        spans[4] = pack_originals(client, request, route);
        tti_count(&client->counters.carried, 1);
    } else if (tti_client_is_whole(client) && !client->bf16 && !request->lends &&
               tti_client_lend(client, request->partition, route->push_to, &spans[2])) {
        frame.flags |= TT_FRAME_LENT;
    } else {
        name_list(client, request, route->push_to, &frame, &name, spans);
    }
    if (client->batch.batch.rows > 0) {
        frame.flags |= TT_FRAME_BATCH;
        spans[5] = (tt_span){&client->batch, sizeof client->batch};
    }
    request->lends = 1; // whatever is sent again goes by copy
    client->outbox.send(client->outbox.self, route->push_to, &frame, spans, 6);
}

void
tti_client_send(tt_ps_client *client, tti_request *request)
{
    const tti_route *route = &client->routes[request->partition];
    request->moving |= route->drains || route->pull_from != route->push_to;
    request->sent_ns = client->now_ns;
    if (client->operation == TTI_PULLING)
        send_pull(client, request);
    else
        send_push(client, request);
    request->sends++;
}
