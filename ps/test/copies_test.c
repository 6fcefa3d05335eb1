// Goal: an owner believes that a node has a copy only if it has said so since it was last made a
// backup. A node that was none for a generation has forgotten its copy, which an owner that skips
// that generation does not see, and what it said before may still be on its way (the rules
// copies_since_then and acks_since_then of tests/model/moves_model.c). Who moves to the host of its
// backup leaves a copy where it was (stays_on_another_host). Method: servers and views by hand.
#include "server_core.h"

// cmocka wants setjmp.h before it
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 3, OWNER = 0, OTHER = 1, BACKUP = 2 };

typedef struct world {
    tt_ps_table table;
    tt_ps_view *views[4]; // by generation
    const tt_ps_view *newest;
    tt_ps_server *owner;
    uint32_t copies_sent, last_reign;
    uint64_t last_number;
    uint32_t backed_at; // generation of the last report
} world;

static void
post(void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count)
{
    world *w = self;
    TT_UNUSED(spans);
    TT_UNUSED(span_count);
    if (frame->kind != TT_FRAME_COPY || to != BACKUP)
        return;
    w->copies_sent++;
    w->last_reign = frame->extra;
    w->last_number = frame->sequence;
}

static const tt_ps_view *
newest(void *self)
{
    return ((world *)self)->newest;
}

static void
backed(void *self, uint32_t partition, uint32_t generation)
{
    assert_int_equal(partition, 0);
    ((world *)self)->backed_at = generation;
}

static tt_ps_view *
view_with_backup(const tt_ps_view *before, uint16_t backup)
{
    tt_ps_view *next;
    assert_int_equal(tt_ps_view_next(before, NULL, &next), TT_OK);
    next->backup[0] = backup;
    next->backup_at[0] = next->backup_since[0] = next->generation;
    return next;
}

static void
open_world(world *w)
{
    uint8_t is_server[TT_PS_NODES_MAX] = {1, 1, 1};
    static const uint16_t host[NODES] = {0, 0, 1};
    tt_error err;
    memset(w, 0, sizeof *w);
    w->table = (tt_ps_table){
        .kind = TT_PS_DENSE, .rows = 7, .width = 1, .partition_count = 1, .replicas = 1};
    assert_int_equal(tt_ps_view_first(&w->table, NODES, is_server, &w->views[1]), TT_OK);
    tt_ps_view_set_hosts(w->views[1], host);
    assert_int_equal(w->views[1]->owner[0], OWNER);
    assert_int_equal(w->views[1]->backup[0], BACKUP);
    w->views[2] = view_with_backup(w->views[1], OTHER);
    w->views[3] = view_with_backup(w->views[2], BACKUP);
    w->newest = w->views[1];
    tt_outbox outbox = {.self = w, .send = post};
    tt_ps_hooks hooks = {
        .self = w, .newest = newest, .backed = backed, .keeper = NODES, .attempt = 1};
    assert_int_equal(tt_ps_server_open(&w->table, OWNER, NODES + 1, outbox, hooks, &w->owner, &err),
                     TT_OK);
    assert_int_equal(tt_ps_server_start(w->owner, w->views[1]), TT_OK);
}

static void
close_world(world *w)
{
    tt_ps_server_close(w->owner);
    for (uint32_t g = 1; g <= 3; g++)
        tt_ps_view_free(w->views[g]);
}

// The backup, in this generation, says that it has the copy it was sent last.
static void
acknowledge(world *w, uint32_t generation)
{
    tt_frame ack = {.kind = TT_FRAME_COPY_ACK,
                    .sender = BACKUP,
                    .attempt = 1,
                    .generation = generation,
                    .sequence = w->last_number,
                    .count = 1,
                    .extra = w->last_reign};
    tt_ps_server_receive(w->owner, &ack, NULL);
}

static void
a_copy_from_before_a_pause_does_not_count(void **state)
{
    TT_UNUSED(state);
    world w;
    open_world(&w);
    assert_int_equal(w.copies_sent, 1);
    assert_int_equal(w.backed_at, 0);
    acknowledge(&w, 1);
    assert_int_equal(w.backed_at, 1);
    w.newest = w.views[3];
    tt_ps_server_adopt(w.owner, w.views[3]); // from 1 to 3
    assert_int_equal(w.copies_sent, 2);
    assert_int_equal(w.backed_at, 1);
    acknowledge(&w, 1); // sent before
    assert_int_equal(w.backed_at, 1);
    acknowledge(&w, 3);
    assert_int_equal(w.backed_at, 3);
    close_world(&w);
}

static void
a_copy_without_a_pause_goes_on(void **state)
{
    TT_UNUSED(state);
    world w;
    open_world(&w);
    acknowledge(&w, 1);
    tt_ps_view *same;
    assert_int_equal(tt_ps_view_next(w.views[1], NULL, &same), TT_OK);
    tt_ps_server_adopt(w.owner, same);
    assert_int_equal(w.copies_sent, 1);
    close_world(&w);
    tt_ps_view_free(same);
}

// ---- three servers -----------------------------------------------------------------------------

typedef struct letter {
    struct letter *next;
    uint32_t to;
    tt_frame frame;
    _Alignas(16) uint8_t payload[2048];
} letter;

typedef struct trio {
    tt_ps_table table;
    tt_ps_view *views[3]; // by generation
    tt_ps_server *server[NODES];
    letter *first, **end;
    uint32_t retired_at;
} trio;

// One of three that send.
typedef struct sender {
    trio *t;
    uint32_t node;
} sender;

static void
put_in_box(void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count)
{
    const sender *from = self;
    trio *t = from->t;
    letter *l = tt_mem_zalloc(1, sizeof *l);
    assert_non_null(l);
    size_t used = 0;
    for (uint32_t i = 0; i < span_count; i++) {
        assert_true(used + spans[i].size <= sizeof l->payload);
        memcpy(l->payload + used, spans[i].bytes, spans[i].size);
        used += spans[i].size;
    }
    l->to = to;
    l->frame = *frame;
    l->frame.sender = (uint16_t)from->node;
    l->frame.payload_bytes = (uint32_t)used;
    *t->end = l;
    t->end = &l->next;
}

static const tt_ps_view *
last_view(void *self)
{
    return ((const sender *)self)->t->views[2];
}

static void
note_retired(void *self, uint32_t partition, uint32_t generation)
{
    assert_int_equal(partition, 0);
    ((const sender *)self)->t->retired_at = generation;
}

static void
deliver_all(trio *t)
{
    while (t->first != NULL) {
        letter *l = t->first;
        t->first = l->next;
        if (t->first == NULL)
            t->end = &t->first;
        if (l->to < NODES)
            tt_ps_server_receive(t->server[l->to], &l->frame, l->payload);
        tt_mem_free(l);
    }
}

static void
expect_slot(const trio *t, uint32_t node, tti_slot_state state)
{
    const tti_slot *slot = &t->server[node]->slots[0];
    assert_int_equal(slot->state, state);
    assert_true(state != TTI_BACKUP || slot->copies.has_copy);
}

static void
a_move_to_the_backups_host_leaves_a_copy(void **state)
{
    TT_UNUSED(state);
    static const uint16_t host[NODES] = {0, 1, 1};
    uint8_t is_server[TT_PS_NODES_MAX] = {1, 1, 1};
    trio t = {.table = {.kind = TT_PS_DENSE,
                        .rows = 7,
                        .width = 1,
                        .partition_count = 1,
                        .optimizer = TT_PS_ADAGRAD,
                        .replicas = 1}};
    sender senders[NODES];
    tt_error err;
    t.end = &t.first;
    assert_int_equal(tt_ps_view_first(&t.table, NODES, is_server, &t.views[1]), TT_OK);
    tt_ps_view_set_hosts(t.views[1], host);
    uint16_t backup = t.views[1]->backup[0], target = backup == 1 ? 2 : 1;
    assert_int_equal(tt_ps_view_next(t.views[1], NULL, &t.views[2]), TT_OK);
    tt_ps_view_give(t.views[2], 0, target);
    for (uint32_t n = 0; n < NODES; n++) {
        senders[n] = (sender){&t, n};
        tt_outbox outbox = {.self = &senders[n], .send = put_in_box};
        tt_ps_hooks hooks = {.self = &senders[n],
                             .newest = last_view,
                             .retired = note_retired,
                             .keeper = NODES,
                             .attempt = 1};
        assert_int_equal(
            tt_ps_server_open(&t.table, n, NODES + 1, outbox, hooks, &t.server[n], &err), TT_OK);
        assert_int_equal(tt_ps_server_start(t.server[n], t.views[1]), TT_OK);
    }
    deliver_all(&t);
    expect_slot(&t, 0, TTI_SERVING);
    expect_slot(&t, backup, TTI_BACKUP);
    for (uint32_t n = 0; n < NODES; n++)
        tt_ps_server_adopt(t.server[n], t.views[2]);
    expect_slot(&t, 0, TTI_SEALED);
    (void)tt_ps_server_background(t.server[0]);
    deliver_all(&t);
    expect_slot(&t, 0, TTI_BACKUP);
    expect_slot(&t, backup, TTI_BACKUP);
    expect_slot(&t, target, TTI_SERVING);
    assert_int_equal(t.retired_at, 2);
    tt_ps_server_counters counters;
    tt_ps_server_counters_read(t.server[target], &counters);
    assert_int_equal(counters.bytes_drained, 7 * 2 * sizeof(float)); // values and AdaGrad's sums
    for (uint32_t n = 0; n < NODES; n++)
        tt_ps_server_close(t.server[n]);
    tt_ps_view_free(t.views[1]);
    tt_ps_view_free(t.views[2]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_from_before_a_pause_does_not_count),
        cmocka_unit_test(a_copy_without_a_pause_goes_on),
        cmocka_unit_test(a_move_to_the_backups_host_leaves_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
