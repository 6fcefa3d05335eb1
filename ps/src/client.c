// The worker client core: one pull or push at a time, as one request a partition, several of them
// in flight.
#include "server_core.h"
#include <string.h>

typedef enum request_state { REQUEST_TODO, REQUEST_SENT, REQUEST_DONE } request_state;

// One partition's part of the operation: entries [begin, begin + count) of `order`.
typedef struct client_request {
    uint32_t partition, begin, count;
    request_state state;
    int moving; // its partition was found moving
    uint64_t first_sent_ns, sent_ns;
} client_request;

// What the client knows of a partition.
typedef struct client_route {
    uint16_t pull_from, push_to;
    uint32_t moved_at;
    uint32_t restored_at; // generation in which it was last taken from a checkpoint, or 0
    int drains;           // it moves by a drain, and its new owner has not answered yet
    uint64_t sequence;    // last push sent; counted from tti_sequence_base(restored_at)
    uint32_t request;     // index of its request in this operation, or UINT32_MAX
    // originals of a seal, to be carried by the next push
    uint32_t carry_of; // generation of the seal, or 0
    uint8_t *carry_flags;
    float *carry_state;
    size_t carry_flags_capacity, carry_state_capacity, carry_state_floats;
} client_route;

typedef enum client_operation { IDLE, PULLING, PUSHING } client_operation;

struct tt_ps_client {
    const tt_ps_table *table;
    uint32_t node, node_count;
    uint32_t attempt; // which process of this number it is
    tt_outbox outbox;
    tt_ps_hooks hooks;
    const tt_ps_view *view;
    uint64_t now_ns, next_look_ns; // the latter for what has had no answer
    uint32_t in_flight;
    int bf16;
    client_route *routes;     // [partition_count]
    client_request *requests; // [partition_count]
    uint32_t request_count, next, outstanding, done;
    client_operation operation;
    uint64_t operation_number; // names the pulls of one operation
    tt_ps_keys keys;
    int read_only;
    uint32_t need;
    float *out;
    const float *gradients;
    uint32_t clock, detail;
    int probing;  // the push under way only asks
    uint32_t had; // partitions that answered a probe with yes
    int late;     // the last pull was of a round that is not kept
    // the keys in order of partition, and where each stands in the caller's arrays
    uint8_t *wire_keys; // [max_keys] of key bytes
    uint32_t *order;    // [max_keys]; sparse only
    uint32_t *partition_of_key;
    uint32_t max_keys;
    float *packed;   // [max_keys][width] one request's values in wire order; sparse only
    tt_bf16 *halves; // [max_keys][width]
    float *cells;    // carried originals being packed
    size_t cells_capacity;
    tt_ps_client_counters counters;
    uint64_t *waits;          // [TT_PS_WAITS_MAX]
    uint64_t longest_wait_ns; // since last asked
};

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
    client->requests = tt_mem_zalloc(table->partition_count, sizeof *client->requests);
    // Not zeroed: pages are taken as far as they are used.
    size_t keys = (size_t)max_keys + 1;
    client->wire_keys = tt_mem_alloc(keys * sizeof(uint64_t));
    client->order = tt_mem_alloc(keys * sizeof *client->order);
    client->partition_of_key = tt_mem_alloc(keys * sizeof *client->partition_of_key);
    client->packed = tt_mem_alloc((scattered + 1) * sizeof(float));
    client->halves = tt_mem_alloc((floats + 2) * sizeof(tt_bf16));
    client->waits = tt_mem_alloc(TT_PS_WAITS_MAX * sizeof *client->waits);
    if (client->routes == NULL || client->requests == NULL || client->wire_keys == NULL ||
        client->order == NULL || client->partition_of_key == NULL || client->packed == NULL ||
        client->halves == NULL || client->waits == NULL) {
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
    tt_mem_free(client->routes);
    tt_mem_free(client->requests);
    tt_mem_free(client->wire_keys);
    tt_mem_free(client->order);
    tt_mem_free(client->partition_of_key);
    tt_mem_free(client->packed);
    tt_mem_free(client->halves);
    tt_mem_free(client->cells);
    tt_mem_free(client->waits);
    tt_mem_free(client);
}

// What was pushed before a restore is gone with the state it went to.
static void
count_anew(client_route *route, uint32_t restored_at)
{
    if (restored_at <= route->restored_at)
        return;
    route->restored_at = restored_at;
    route->sequence = tti_sequence_base(restored_at);
    route->carry_of = 0;
}

static int
is_gone(const tt_ps_view *view, uint16_t node)
{
    return node < view->node_count && view->is_gone[node];
}

// After a death: nobody is asked who is not there, nor for what was restored since. True when that
// changes the route.
static int
route_around_the_dead(client_route *route, const tt_ps_view *view, uint32_t p)
{
    if (view->restored_at[p] <= route->restored_at && !is_gone(view, route->pull_from) &&
        !is_gone(view, route->push_to))
        return 0;
    count_anew(route, view->restored_at[p]);
    route->moved_at = view->moved_at[p];
    route->pull_from = route->push_to = view->owner[p];
    route->drains = 0;
    route->carry_of = 0;
    return 1;
}

void
tt_ps_client_adopt(tt_ps_client *client, const tt_ps_view *view)
{
    TT_ASSERT(client->operation == IDLE);
    if (client->view != NULL && view->generation <= client->view->generation)
        return;
    int first = client->view == NULL;
    client->view = view;
    for (uint32_t p = 0; p < client->table->partition_count; p++) {
        client_route *route = &client->routes[p];
        if (first)
            count_anew(route, view->restored_at[p]);
        else if (route_around_the_dead(route, view, p))
            continue;
        if (!first && view->moved_at[p] <= route->moved_at)
            continue;
        route->moved_at = view->moved_at[p];
        route->push_to = view->owner[p];
        // A drain is not waited for where it comes from: nothing can be carried.
        route->drains = !first && view->moved_by[p] == TT_PS_MOVE_DRAIN;
        int at_owner = first || route->drains || is_gone(view, view->previous[p]);
        route->pull_from = at_owner ? view->owner[p] : view->previous[p];
        route->carry_of = 0;
    }
}

static void send_request(tt_ps_client *client, client_request *request);

void
tt_ps_client_lose(tt_ps_client *client, const tt_ps_view *view)
{
    for (uint32_t p = 0; p < client->table->partition_count; p++) {
        client_route *route = &client->routes[p];
        uint32_t restored_at = route->restored_at;
        if (!route_around_the_dead(route, view, p) || client->operation == IDLE ||
            route->request == UINT32_MAX)
            continue;
        client_request *request = &client->requests[route->request];
        if (request->state == REQUEST_DONE)
            continue;
        if (client->operation == PUSHING && route->restored_at > restored_at)
            route->sequence++; // its number among the new ones
        client->counters.redirected += request->state == REQUEST_SENT;
        if (request->state == REQUEST_SENT)
            send_request(client, request);
    }
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

// ---- grouping the keys of an operation by partition -------------------------------------------

static int
is_whole(const tt_ps_client *client)
{
    return client->keys.rows == NULL && client->keys.keys == NULL;
}

static client_request *
add_request(tt_ps_client *client, uint32_t partition, uint32_t begin, uint32_t count)
{
    client_request *request = &client->requests[client->request_count];
    *request = (client_request){.partition = partition, .begin = begin, .count = count};
    client->routes[partition].request = client->request_count++;
    return request;
}

static void
group_dense(tt_ps_client *client)
{
    const uint32_t *rows = client->keys.rows;
    uint32_t *wire = (uint32_t *)(void *)client->wire_keys;
    uint32_t i = 0;
    while (i < client->keys.count) {
        uint32_t p = tt_ps_partition_of(client->table, rows[i]), begin = i;
        uint32_t first = (uint32_t)tt_ps_partition_first(client->table, p);
        uint32_t end_row = (uint32_t)tt_ps_partition_first(client->table, p + 1);
        for (; i < client->keys.count && rows[i] < end_row; i++) {
            TT_DASSERT(i == 0 || rows[i] > rows[i - 1]);
            wire[i] = rows[i] - first;
        }
        add_request(client, p, begin, i - begin);
    }
}

static uint64_t
key_of(const tt_ps_client *client, uint32_t i)
{
    return client->keys.keys != NULL ? client->keys.keys[i] : client->keys.rows[i];
}

// Counting sort of the keys by partition.
static void
group_sparse(tt_ps_client *client)
{
    uint32_t partition_count = client->table->partition_count, begin = 0;
    uint64_t *wire = (uint64_t *)(void *)client->wire_keys;
    for (uint32_t p = 0; p < partition_count; p++)
        client->requests[p].count = 0;
    for (uint32_t i = 0; i < client->keys.count; i++) {
        uint32_t p = tt_ps_partition_of(client->table, key_of(client, i));
        client->partition_of_key[i] = p;
        client->requests[p].count++;
    }
    uint32_t starts[1024 + 1];
    TT_ASSERT(partition_count <= 1024);
    for (uint32_t p = 0; p < partition_count; p++) {
        starts[p] = begin;
        begin += client->requests[p].count;
    }
    starts[partition_count] = begin;
    for (uint32_t i = 0; i < client->keys.count; i++) {
        uint32_t at = starts[client->partition_of_key[i]]++;
        client->order[at] = i;
        wire[at] = key_of(client, i);
    }
    begin = 0;
    for (uint32_t p = 0; p < partition_count; p++) {
        if (starts[p] > begin)
            add_request(client, p, begin, starts[p] - begin);
        begin = starts[p];
    }
}

static void
group(tt_ps_client *client)
{
    for (uint32_t i = 0; i < client->request_count; i++)
        client->routes[client->requests[i].partition].request = UINT32_MAX;
    client->request_count = 0;
    for (uint32_t p = 0; p < client->table->partition_count; p++)
        client->routes[p].request = UINT32_MAX;
    if (!is_whole(client)) {
        TT_ASSERT(client->keys.count <= client->max_keys);
        if (client->table->kind == TT_PS_DENSE)
            group_dense(client);
        else
            group_sparse(client);
        return;
    }
    for (uint32_t p = 0; p < client->table->partition_count; p++) {
        uint32_t first = (uint32_t)tt_ps_partition_first(client->table, p);
        add_request(client, p, first,
                    (uint32_t)tt_ps_partition_first(client->table, p + 1) - first);
    }
}

// ---- sending ----------------------------------------------------------------------------------

static const uint8_t *
wire_keys_of(const tt_ps_client *client, const client_request *request)
{
    return client->wire_keys + request->begin * tti_key_bytes(client->table);
}

// Where the request's values stand in the caller's array, or NULL when they are scattered over it.
static size_t
position(const tt_ps_client *client, const client_request *request, uint32_t i)
{
    if (is_whole(client) || client->table->kind == TT_PS_DENSE)
        return request->begin + i;
    return client->order[request->begin + i];
}

// What a server must have adopted to understand the request: a redirection may be ahead of our own
// view.
static uint32_t
newest_known(const tt_ps_client *client, const client_route *route)
{
    return TT_MAX(client->view->generation, route->moved_at);
}

static void
send_pull(tt_ps_client *client, const client_request *request)
{
    const client_route *route = &client->routes[request->partition];
    tt_frame frame = {.kind = TT_FRAME_PULL,
                      .attempt = client->attempt,
                      .generation = newest_known(client, route),
                      .partition = (uint16_t)request->partition,
                      .sequence = client->operation_number,
                      .clock = client->need,
                      .count = request->count};
    if (is_whole(client))
        frame.flags |= TT_FRAME_WHOLE;
    if (client->bf16)
        frame.flags |= TT_FRAME_BF16;
    if (client->read_only)
        frame.flags |= TT_FRAME_READONLY;
    tt_span span = {wire_keys_of(client, request),
                    is_whole(client) ? 0 : request->count * tti_key_bytes(client->table)};
    client->outbox.send(client->outbox.self, route->pull_from, &frame, &span, 1);
}

// Gradients of one request in wire order, as they travel.
static tt_span
pack_gradients(tt_ps_client *client, const client_request *request)
{
    size_t width = client->table->width, floats = request->count * width;
    const float *source = client->gradients + request->begin * width;
    if (client->table->kind == TT_PS_SPARSE) {
        for (uint32_t i = 0; i < request->count; i++)
            memcpy(client->packed + i * width,
                   client->gradients + position(client, request, i) * width, width * sizeof(float));
        source = client->packed;
    }
    if (!client->bf16)
        return (tt_span){source, floats * sizeof(float)};
    tt_vec_best()->bf16_encode(source, client->halves, floats);
    client->halves[floats] = (tt_bf16){0};
    return (tt_span){client->halves, (floats * sizeof(tt_bf16) + 3) & ~(size_t)3};
}

// Originals licensed to this worker: values from the pull's answer, state as it came. Returns the
// packed cells.
static tt_span
pack_originals(tt_ps_client *client, const client_request *request, const client_route *route)
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
        memcpy(cell, client->out + position(client, request, i) * width, width * sizeof(float));
        memcpy(cell + width, state, (cell_floats - width) * sizeof(float));
        state += cell_floats - width;
        cell += cell_floats;
    }
    return (tt_span){client->cells, (size_t)(cell - client->cells) * sizeof(float)};
}

static void
send_push(tt_ps_client *client, const client_request *request)
{
    client_route *route = &client->routes[request->partition];
    tt_frame frame = {.kind = TT_FRAME_PUSH,
                      .attempt = client->attempt,
                      .generation = newest_known(client, route),
                      .partition = (uint16_t)request->partition,
                      .sequence = route->sequence,
                      .clock = client->clock,
                      .detail = client->detail,
                      .count = request->count};
    tt_span spans[4] = {{0}};
    if (client->probing) {
        frame.flags = TT_FRAME_PROBE;
        client->outbox.send(client->outbox.self, route->push_to, &frame, NULL, 0);
        return;
    }
    if (is_whole(client))
        frame.flags |= TT_FRAME_WHOLE;
    else
        spans[0] =
            (tt_span){wire_keys_of(client, request), request->count * tti_key_bytes(client->table)};
    if (client->bf16)
        frame.flags |= TT_FRAME_BF16;
    spans[1] = pack_gradients(client, request);
    if (route->carry_of != 0) {
        frame.flags |= TT_FRAME_CARRY;
        frame.extra = route->carry_of;
        spans[2] = (tt_span){route->carry_flags, (request->count + 3u) & ~(size_t)3};
        spans[3] = pack_originals(client, request, route);
        client->counters.carried++;
    }
    client->outbox.send(client->outbox.self, route->push_to, &frame, spans, 4);
}

static void
send_request(tt_ps_client *client, client_request *request)
{
    const client_route *route = &client->routes[request->partition];
    request->moving |= route->drains || route->pull_from != route->push_to;
    request->sent_ns = client->now_ns;
    if (client->operation == PULLING)
        send_pull(client, request);
    else
        send_push(client, request);
}

static void
advance(tt_ps_client *client)
{
    while (client->outstanding < client->in_flight && client->next < client->request_count) {
        client_request *request = &client->requests[client->next++];
        request->state = REQUEST_SENT;
        request->first_sent_ns = client->now_ns;
        client->outstanding++;
        send_request(client, request);
    }
    if (client->done == client->request_count)
        client->operation = IDLE;
}

static void
begin(tt_ps_client *client, client_operation operation)
{
    client->operation = operation;
    client->next = client->outstanding = client->done = 0;
    for (uint32_t i = 0; i < client->request_count; i++) {
        client->requests[i].state = REQUEST_TODO;
        client->requests[i].moving = 0;
    }
    advance(client);
}

void
tt_ps_client_pull(tt_ps_client *client, tt_ps_keys keys, uint32_t need, int read_only, float *out)
{
    TT_ASSERT(client->operation == IDLE);
    client->keys = keys;
    client->need = need;
    client->read_only = read_only;
    client->out = out;
    client->operation_number++;
    client->late = 0;
    client->counters.pulls++;
    group(client);
    begin(client, PULLING);
}

void
tt_ps_client_push(tt_ps_client *client, const float *gradients, uint32_t clock, uint32_t detail)
{
    TT_ASSERT(client->operation == IDLE && !client->read_only);
    client->gradients = gradients;
    client->clock = clock;
    client->detail = detail;
    client->probing = 0;
    client->counters.pushes++;
    // Under BSP and SSP every partition must hear of every slice or iteration, also those it does
    // not touch.
    if (client->table->consistency != TT_PS_ASP)
        for (uint32_t p = 0; p < client->table->partition_count; p++)
            if (client->routes[p].request == UINT32_MAX)
                add_request(client, p, 0, 0);
    for (uint32_t i = 0; i < client->request_count; i++)
        client->routes[client->requests[i].partition].sequence++;
    begin(client, PUSHING);
}

void
tt_ps_client_probe(tt_ps_client *client, uint32_t round, uint32_t slice)
{
    static const uint32_t no_rows[1];
    TT_ASSERT(client->operation == IDLE && client->table->consistency == TT_PS_BSP);
    client->keys = (tt_ps_keys){.rows = no_rows};
    client->read_only = 0;
    client->clock = round;
    client->detail = slice;
    client->probing = 1;
    client->had = 0;
    group(client);
    for (uint32_t p = 0; p < client->table->partition_count; p++) {
        add_request(client, p, 0, 0);
        client->routes[p].sequence++;
    }
    begin(client, PUSHING);
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
    TT_ASSERT(client->operation == IDLE);
    if (client->table->consistency != TT_PS_SSP)
        return;
    client->keys = (tt_ps_keys){.rows = no_rows};
    client->read_only = 0;
    group(client);
    tt_ps_client_push(client, client->packed, clock, 0);
}

void
tt_ps_client_end(tt_ps_client *client)
{
    tt_ps_client_announce(client, UINT32_MAX);
}

// ---- receiving --------------------------------------------------------------------------------

static void
finish_request(tt_ps_client *client, client_request *request)
{
    if (request->moving) {
        uint64_t waited = client->now_ns - request->first_sent_ns;
        client->waits[client->counters.moving_wait_count++ % TT_PS_WAITS_MAX] = waited;
        client->longest_wait_ns = TT_MAX(client->longest_wait_ns, waited);
        client->counters.moving_wait_max_ns = TT_MAX(client->counters.moving_wait_max_ns, waited);
    }
    request->state = REQUEST_DONE;
    client->outstanding--;
    client->done++;
    advance(client);
}

static void
keep_originals(tt_ps_client *client,
               const client_request *request,
               const tt_frame *frame,
               const uint8_t *flags)
{
    client_route *route = &client->routes[request->partition];
    size_t flag_bytes = (request->count + 3u) & ~(size_t)3;
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
            const client_request *request,
            const tt_frame *frame,
            const uint8_t *payload)
{
    size_t width = client->table->width, floats = request->count * width;
    int scattered = !is_whole(client) && client->table->kind == TT_PS_SPARSE;
    float *target = scattered ? client->packed : client->out + request->begin * width;
    if ((frame->flags & TT_FRAME_BF16) != 0)
        tt_vec_best()->bf16_decode((const tt_bf16 *)(const void *)payload, target, floats);
    else
        memcpy(target, payload, floats * sizeof(float));
    for (uint32_t i = 0; scattered && i < request->count; i++)
        memcpy(client->out + position(client, request, i) * width, client->packed + i * width,
               width * sizeof(float));
}

static client_request *
request_of(tt_ps_client *client, const tt_frame *frame)
{
    if (frame->partition >= client->table->partition_count)
        return NULL;
    uint32_t index = client->routes[frame->partition].request;
    if (index == UINT32_MAX || client->requests[index].state != REQUEST_SENT)
        return NULL;
    return &client->requests[index];
}

static void
on_reply(tt_ps_client *client, const tt_frame *frame, const uint8_t *payload)
{
    client_request *request = request_of(client, frame);
    if (client->operation != PULLING || request == NULL ||
        frame->sequence != client->operation_number || frame->count != request->count)
        return;
    client_route *route = &client->routes[frame->partition];
    route->carry_of = 0;
    if ((frame->flags & TT_FRAME_LOST) != 0) {
        client->late = 1;
        finish_request(client, request);
        return;
    }
    take_values(client, request, frame, payload);
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

static void
on_ack(tt_ps_client *client, const tt_frame *frame)
{
    client_request *request = request_of(client, frame);
    client_route *route = &client->routes[frame->partition];
    if (client->operation != PUSHING || request == NULL || frame->sequence != route->sequence)
        return;
    if (frame->sender == route->push_to) {
        route->pull_from = route->push_to; // any acknowledgement of the new owner turns the route,
                                           // for the whole partition
        route->drains = 0;
    }
    route->carry_of = 0;
    client->had += client->probing && (frame->flags & TT_FRAME_BEFORE) != 0;
    finish_request(client, request);
}

static void
on_moved(tt_ps_client *client, const tt_frame *frame)
{
    client_request *request = request_of(client, frame);
    tt_frame_kind mine = client->operation == PULLING ? TT_FRAME_PULL : TT_FRAME_PUSH;
    uint64_t sequence = client->operation == PULLING ? client->operation_number
                                                     : client->routes[frame->partition].sequence;
    if (client->operation == IDLE || request == NULL || frame->clock != (uint32_t)mine ||
        frame->sequence != sequence || frame->detail >= client->node_count)
        return;
    client_route *route = &client->routes[frame->partition];
    if (frame->extra < route->moved_at)
        return; // older news than ours
    if (client->operation == PUSHING && frame->count > route->restored_at) {
        count_anew(route, frame->count);
        route->sequence++;
    }
    if (route->carry_of != frame->extra)
        route->carry_of = 0; // originals of another seal are worth nothing there (rule 4)
    route->moved_at = frame->extra;
    route->pull_from = route->push_to = (uint16_t)frame->detail;
    client->counters.redirected++;
    request->moving = 1;
    send_request(client, request);
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
}

void
tt_ps_client_tick(tt_ps_client *client, uint64_t retry_ns)
{
    if (client->operation == IDLE || client->now_ns < client->next_look_ns)
        return;
    client->next_look_ns = client->now_ns + retry_ns / 8;
    for (uint32_t i = 0; i < client->request_count; i++) {
        client_request *request = &client->requests[i];
        if (request->state != REQUEST_SENT || client->now_ns - request->sent_ns < retry_ns)
            continue;
        client->counters.resent++;
        send_request(client, request);
    }
}

int
tt_ps_client_done(const tt_ps_client *client)
{
    return client->operation == IDLE;
}

void
tt_ps_client_abandon(tt_ps_client *client)
{
    client->operation = IDLE;
}

void
tt_ps_client_counters_read(const tt_ps_client *client, tt_ps_client_counters *out)
{
    *out = client->counters;
}

uint64_t
tt_ps_client_take_longest_wait(tt_ps_client *client)
{
    uint64_t longest = client->longest_wait_ns;
    client->longest_wait_ns = 0;
    return longest;
}

uint32_t
tt_ps_client_waits(const tt_ps_client *client, uint64_t *out)
{
    uint32_t waits = (uint32_t)TT_MIN(client->counters.moving_wait_count, TT_PS_WAITS_MAX);
    memcpy(out, client->waits, waits * sizeof *out);
    return waits;
}
