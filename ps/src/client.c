// The worker's client: its operations from the first request to the last answer.
#include "client_core.h"
#include <math.h>
#include <string.h>

tt_status
tt_ps_client_open(const tt_ps_table *table,
                  uint32_t node,
                  uint32_t node_count,
                  uint32_t max_keys,
                  tt_outbox outbox,
                  tt_ps_hooks hooks,
                  tt_ps_client **out,
                  tt_error *err)
{
    *out = NULL;
    tt_ps_client *client = tt_mem_zalloc(1, sizeof *client);
    if (client == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for worker %u", node);
    *client = (tt_ps_client){
        .table = table, .node = node, .node_count = node_count, .outbox = outbox, .hooks = hooks};
    client->in_flight = 4;
    client->attempt = TT_MAX(hooks.attempt, 1u);
    client->max_keys = max_keys;
    size_t floats = (size_t)max_keys * table->width;
    size_t scattered = table->kind == TT_PS_SPARSE ? floats : 0;
    client->routes = tt_mem_zalloc(table->partition_count, sizeof *client->routes);
    client->attempts = tt_mem_zalloc(TT_MAX(node_count, 1u), sizeof *client->attempts);
    client->requests = tt_mem_zalloc(table->partition_count, sizeof *client->requests);
    client->loans = tt_mem_zalloc(table->partition_count, sizeof *client->loans);
    // Not zeroed: pages are taken as far as they are used.
    tt_status status = tti_client_lists_open(client);
    client->partition_of_key =
        tt_mem_alloc(((size_t)max_keys + 1) * sizeof *client->partition_of_key);
    client->packed = tt_mem_alloc((scattered + 1) * sizeof(float));
    client->halves = tt_mem_alloc((floats + 2) * sizeof(tt_bf16));
    if (client->routes == NULL || client->requests == NULL || client->attempts == NULL ||
        client->loans == NULL || status != TT_OK || client->partition_of_key == NULL ||
        client->packed == NULL || client->halves == NULL) {
        tt_ps_client_close(client);
        return tt_error_set(err, TT_NOMEM, NULL, "lower batch_size or cluster.nodes",
                            "no memory for the buffers of worker %u", node);
    }
    *out = client;
    return TT_OK;
}

void
tt_ps_client_close(tt_ps_client *client)
{
    if (client == NULL)
        return;
    for (uint32_t p = 0; client->routes != NULL && p < client->table->partition_count; p++) {
        tt_mem_free(client->routes[p].carry_flags);
        tt_mem_free(client->routes[p].carry_state);
    }
    if (client->loans != NULL)
        tti_client_free_gradients(client);
    tt_mem_free(client->loans);
    tt_mem_free(client->routes);
    tt_mem_free(client->attempts);
    tt_mem_free(client->requests);
    tti_client_lists_close(client);
    tt_mem_free(client->partition_of_key);
    tt_mem_free(client->packed);
    tt_mem_free(client->halves);
    tt_mem_free(client->cells);
    tt_mem_free(client);
}

void
tt_ps_client_set(tt_ps_client *client, uint32_t in_flight, int bf16)
{
    client->in_flight = TT_MAX(in_flight, 1u);
    client->bf16 = bf16;
}

void
tt_ps_client_time(tt_ps_client *client, uint64_t now_ns)
{
    client->now_ns = now_ns;
}

// ---- operations -------------------------------------------------------------------------------

static void
advance(tt_ps_client *client)
{
    while (client->outstanding < client->in_flight && client->next < client->request_count) {
        tti_request *request = &client->requests[client->next++];
        request->state = TTI_REQUEST_SENT;
        request->first_sent_ns = client->now_ns;
        client->outstanding++;
        tti_client_send(client, request);
    }
    if (client->done == client->request_count)
        client->operation = TTI_IDLE;
}

static void
begin(tt_ps_client *client, tti_operation operation)
{
    client->operation = operation;
    client->next = client->outstanding = client->done = 0;
    for (uint32_t i = 0; i < client->request_count; i++) {
        client->requests[i].state = TTI_REQUEST_TODO;
        client->requests[i].moving = 0;
        client->requests[i].lends = client->requests[i].in_vain = 0;
        client->requests[i].sends = 0;
    }
    advance(client);
}

void
tt_ps_client_pull(tt_ps_client *client, tt_ps_keys keys, uint32_t need, int read_only, float *out)
{
    TT_ASSERT(client->operation == TTI_IDLE);
    client->keys = keys;
    client->need = need;
    client->read_only = read_only;
    client->out = out;
    client->operation_number++;
    client->late = 0;
    tti_count(&client->counters.pulls, 1);
    tti_client_group(client);
    begin(client, TTI_PULLING);
}

void
tt_ps_client_push(tt_ps_client *client, const float *gradients, uint32_t clock, uint32_t detail)
{
    TT_ASSERT(client->operation == TTI_IDLE && !client->read_only);
    client->gradients = gradients;
    client->clock = clock;
    client->detail = detail;
    client->probing = 0;
    client->staleness = client->staleness_parts = 0;
    tti_count(&client->counters.pushes, 1);
    // Under BSP and SSP every partition must hear of every slice or iteration, also those it does
    // not touch.
    if (client->table->consistency != TT_PS_ASP)
        for (uint32_t p = 0; p < client->table->partition_count; p++)
            if (client->routes[p].request == UINT32_MAX)
                tti_client_add_request(client, p, 0, 0);
    for (uint32_t i = 0; i < client->request_count; i++)
        client->routes[client->requests[i].partition].sequence++;
    begin(client, TTI_PUSHING);
}

void
tt_ps_client_name_batch(tt_ps_client *client, uint32_t worker, tt_ps_batch batch)
{
    client->batch = (tti_push_batch){.batch = batch, .worker = worker};
}

void
tt_ps_client_probe(tt_ps_client *client, uint32_t round, uint32_t slice)
{
    static const uint32_t no_rows[1];
    TT_ASSERT(client->operation == TTI_IDLE && client->table->consistency == TT_PS_BSP);
    client->keys = (tt_ps_keys){.rows = no_rows};
    client->read_only = 0;
    client->clock = round;
    client->detail = slice;
    client->probing = 1;
    client->had = 0;
    tti_client_group(client);
    for (uint32_t p = 0; p < client->table->partition_count; p++) {
        tti_client_add_request(client, p, 0, 0);
        client->routes[p].sequence++;
    }
    begin(client, TTI_PUSHING);
}

int
tt_ps_client_had(const tt_ps_client *client)
{
    return client->had == client->table->partition_count;
}

int
tt_ps_client_is_late(const tt_ps_client *client)
{
    return client->late;
}

void
tt_ps_client_announce(tt_ps_client *client, uint32_t clock)
{
    static const uint32_t no_rows[1];
    TT_ASSERT(client->operation == TTI_IDLE);
    if (client->table->consistency != TT_PS_SSP)
        return;
    client->keys = (tt_ps_keys){.rows = no_rows};
    client->read_only = 0;
    client->batch = (tti_push_batch){0};
    tti_client_group(client);
    tt_ps_client_push(client, client->packed, clock, 0);
}

void
tt_ps_client_end(tt_ps_client *client)
{
    tt_ps_client_announce(client, UINT32_MAX);
}

// ---- receiving --------------------------------------------------------------------------------

static uint32_t
wait_bucket(uint64_t wait_ns)
{
    double halves = wait_ns > 1000 ? 2 * log2(1e-3 * (double)wait_ns) : 0;
    return (uint32_t)TT_MIN(halves, (double)(TT_PS_WAIT_BUCKETS - 1));
}

double
tt_ps_wait_bucket_s(uint32_t bucket)
{
    return 1e-6 * exp2(0.5 * bucket + 0.25);
}

static void
finish_request(tt_ps_client *client, tti_request *request)
{
    if (request->moving) {
        uint64_t waited = client->now_ns - request->first_sent_ns;
        tti_count(&client->counters.moving_waits[wait_bucket(waited)], 1);
        tti_count(&client->counters.moving_wait_count, 1);
        client->longest_wait_ns = TT_MAX(client->longest_wait_ns, waited);
        if (waited > client->counters.moving_wait_max_ns)
            tt_store_relaxed(&client->counters.moving_wait_max_ns, waited);
    }
    request->state = TTI_REQUEST_DONE;
    client->outstanding--;
    client->done++;
    advance(client);
}

static void
keep_originals(tt_ps_client *client,
               const tti_request *request,
               const tt_frame *frame,
               const uint8_t *flags)
{
    tti_route *route = &client->routes[request->partition];
    size_t flag_bytes = tti_padded(request->count);
    size_t value_bytes = (size_t)request->count * client->table->width * sizeof(float);
    size_t state_bytes = frame->payload_bytes - value_bytes - flag_bytes;
    if (route->carry_flags_capacity < flag_bytes + 1) {
        tt_mem_free(route->carry_flags);
        route->carry_flags = tt_mem_alloc(flag_bytes + 1);
        route->carry_flags_capacity = flag_bytes + 1;
    }
    if (route->carry_state_capacity < state_bytes + 1) {
        tt_mem_free(route->carry_state);
        route->carry_state = tt_mem_alloc(state_bytes + 1);
        route->carry_state_capacity = state_bytes + 1;
    }
    route->carry_of = 0;
    if (route->carry_flags == NULL || route->carry_state == NULL) {
        // Without memory for the originals the update goes bare; the new owner fetches them.
        route->carry_flags_capacity = route->carry_flags == NULL ? 0 : route->carry_flags_capacity;
        route->carry_state_capacity = route->carry_state == NULL ? 0 : route->carry_state_capacity;
        return;
    }
    memcpy(route->carry_flags, flags, flag_bytes);
    memcpy(route->carry_state, flags + flag_bytes, state_bytes);
    int licensed = 0;
    for (uint32_t i = 0; i < request->count; i++)
        licensed |= route->carry_flags[i] & TTI_ROW_LICENSED;
    if (licensed)
        route->carry_of = frame->extra;
}

static void
take_values(tt_ps_client *client,
            const tti_request *request,
            const tt_frame *frame,
            const uint8_t *payload)
{
    size_t width = client->table->width, floats = request->count * width;
    int scattered = !tti_client_is_whole(client) && client->table->kind == TT_PS_SPARSE;
    float *target = scattered ? client->packed : client->out + request->begin * width;
    const float *packed = (const float *)(const void *)payload;
    if ((frame->flags & TT_FRAME_BF16) != 0) {
        tt_vec_best()->bf16_decode((const tt_bf16 *)(const void *)payload, target, floats);
        packed = target;
    }
    if (scattered)
        tti_client_scatter(client, request, packed, client->out);
    else if (packed != target)
        memcpy(target, packed, floats * sizeof(float));
}

static tti_request *
request_of(tt_ps_client *client, const tt_frame *frame)
{
    if (frame->partition >= client->table->partition_count)
        return NULL;
    uint32_t index = client->routes[frame->partition].request;
    if (index == UINT32_MAX || client->requests[index].state != TTI_REQUEST_SENT)
        return NULL;
    return &client->requests[index];
}

static void
on_reply(tt_ps_client *client, const tt_frame *frame, const uint8_t *payload)
{
    tti_request *request = request_of(client, frame);
    if (client->operation != TTI_PULLING || request == NULL ||
        frame->sequence != client->operation_number || frame->count != request->count ||
        !tti_reply_is_sound(client->table, frame, payload))
        return;
    tti_route *route = &client->routes[frame->partition];
    route->carry_of = 0;
    route->pulled_in = client->operation_number;
    route->pulled_at = frame->detail;
    if ((frame->flags & TT_FRAME_LOST) != 0) {
        client->late = 1;
        finish_request(client, request);
        return;
    }
    if ((frame->flags & TT_FRAME_LENT) == 0) {
        take_values(client, request, frame, payload);
    } else if (!tti_client_read(client, request, frame, payload)) {
        tti_client_send(client, request);
        return;
    }
    if ((frame->flags & TT_FRAME_SEALED) != 0) {
        request->moving = 1;
        keep_originals(client, request, frame,
                       payload + (size_t)request->count * client->table->width * sizeof(float));
    } else if (frame->sender == route->push_to) {
        route->pull_from = route->push_to; // the new owner answers
        route->drains = 0;
    }
    finish_request(client, request);
}

// The acknowledgement says how many iterations its partition stands at with this push.
static void
note_staleness(tt_ps_client *client, const tti_request *request, const tt_frame *frame)
{
    const tti_route *route = &client->routes[frame->partition];
    const uint32_t between = frame->detail - route->pulled_at - client->detail;
    if (client->table->consistency == TT_PS_BSP || request->count == 0 ||
        route->pulled_in != client->operation_number)
        return;
    if (between > INT32_MAX)
        return; // it was taken from a checkpoint meanwhile
    client->staleness += between;
    client->staleness_parts++;
}

static void
on_ack(tt_ps_client *client, const tt_frame *frame)
{
    tti_request *request = request_of(client, frame);
    tti_route *route = &client->routes[frame->partition];
    if (client->operation != TTI_PUSHING || request == NULL || frame->sequence != route->sequence)
        return;
    if (frame->sender == route->push_to) {
        route->pull_from = route->push_to; // any acknowledgement of the new owner turns the route,
                                           // for the whole partition
        route->drains = 0;
    }
    route->carry_of = 0;
    note_staleness(client, request, frame);
    tti_client_end_loan(client, frame->partition);
    client->had += client->probing && (frame->flags & TT_FRAME_BEFORE) != 0;
    finish_request(client, request);
}

// The request that an answer of no consequence, which names its kind and sequence, is about, or
// NULL.
static tti_request *
request_named(tt_ps_client *client, const tt_frame *frame)
{
    tti_request *request = request_of(client, frame);
    tt_frame_kind mine = client->operation == TTI_PULLING ? TT_FRAME_PULL : TT_FRAME_PUSH;
    if (client->operation == TTI_IDLE || request == NULL || frame->clock != (uint32_t)mine)
        return NULL;
    uint64_t sequence = client->operation == TTI_PULLING
                            ? client->operation_number
                            : client->routes[frame->partition].sequence;
    return frame->sequence == sequence ? request : NULL;
}

static void
on_want_keys(tt_ps_client *client, const tt_frame *frame)
{
    tti_request *request = request_named(client, frame);
    if (request == NULL)
        return;
    tti_count(&client->counters.lists_unknown, 1);
    tti_client_send(client, request);
}

static void
on_moved(tt_ps_client *client, const tt_frame *frame)
{
    tti_request *request = request_named(client, frame);
    if (request == NULL || frame->detail >= client->node_count)
        return;
    tti_route *route = &client->routes[frame->partition];
    if (frame->extra < route->moved_at)
        return; // older news than ours
    if (tti_client_loan_refused(client, frame->partition, frame->sender))
        request->lends = 0; // it can be lent to another
    if (client->operation == TTI_PUSHING && frame->count > route->restored_at) {
        tti_route_count_anew(route, frame->count);
        route->sequence++;
    }
    if (route->carry_of != frame->extra)
        route->carry_of = 0; // originals of another seal are worth nothing there (rule 4)
    route->moved_at = frame->extra;
    route->pull_from = route->push_to = (uint16_t)frame->detail;
    tti_route_by_the_newest(client, route, frame);
    tti_count(&client->counters.redirected, 1);
    request->moving = 1;
    tti_client_send(client, request);
    request->moving = 1;
}

void
tt_ps_client_receive(tt_ps_client *client, const tt_frame *frame, const uint8_t *payload)
{
    if (frame->partition >= client->table->partition_count || frame->attempt != client->attempt)
        return;
    if (frame->kind == TT_FRAME_PULL_REPLY)
        on_reply(client, frame, payload);
    else if (frame->kind == TT_FRAME_PUSH_ACK)
        on_ack(client, frame);
    else if (frame->kind == TT_FRAME_MOVED)
        on_moved(client, frame);
    else if (frame->kind == TT_FRAME_WANT_KEYS)
        on_want_keys(client, frame);
}

void
tt_ps_client_tick(tt_ps_client *client, uint64_t retry_ns)
{
    if (client->operation == TTI_IDLE || client->now_ns < client->next_look_ns)
        return;
    client->next_look_ns = client->now_ns + retry_ns / 8;
    for (uint32_t i = 0; i < client->request_count; i++) {
        tti_request *request = &client->requests[i];
        if (request->state != TTI_REQUEST_SENT || client->now_ns - request->sent_ns < retry_ns)
            continue;
        tti_count(&client->counters.resent, 1);
        tti_client_send(client, request);
    }
}

int
tt_ps_client_done(const tt_ps_client *client)
{
    return client->operation == TTI_IDLE;
}

void
tt_ps_client_abandon(tt_ps_client *client)
{
    for (uint32_t p = 0; client->operation == TTI_PUSHING && p < client->table->partition_count;
         p++)
        tti_client_recall(client, client->view, p);
    client->operation = TTI_IDLE;
}

void
tt_ps_client_counters_read(const tt_ps_client *client, tt_ps_client_counters *out)
{
    const tt_ps_client_counters *counters = &client->counters;
    *out = (tt_ps_client_counters){
        .pulls = tt_load_relaxed(&counters->pulls),
        .pushes = tt_load_relaxed(&counters->pushes),
        .resent = tt_load_relaxed(&counters->resent),
        .redirected = tt_load_relaxed(&counters->redirected),
        .carried = tt_load_relaxed(&counters->carried),
        .lists_again = tt_load_relaxed(&counters->lists_again),
        .lists_unknown = tt_load_relaxed(&counters->lists_unknown),
        .lent = tt_load_relaxed(&counters->lent),
        .read = tt_load_relaxed(&counters->read),
        .read_in_vain = tt_load_relaxed(&counters->read_in_vain),
        .moving_wait_count = tt_load_relaxed(&counters->moving_wait_count),
        .moving_wait_max_ns = tt_load_relaxed(&counters->moving_wait_max_ns)};
    for (uint32_t b = 0; b < TT_PS_WAIT_BUCKETS; b++)
        out->moving_waits[b] = tt_load_relaxed(&counters->moving_waits[b]);
}

double
tt_ps_client_staleness(const tt_ps_client *client)
{
    return client->staleness_parts > 0 ? (double)client->staleness / client->staleness_parts : NAN;
}

uint64_t
tt_ps_client_take_longest_wait(tt_ps_client *client)
{
    uint64_t longest = client->longest_wait_ns;
    client->longest_wait_ns = 0;
    return longest;
}
