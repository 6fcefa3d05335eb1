// Goal: an owner believes that a node has a copy only if it has said so since it was last made a
// backup. A node that was none for a generation has forgotten its copy, which an owner that skips
// that generation does not see, and what it said before may still be on its way (the rules
// copies_since_then and acks_since_then of tests/model/moves_model.c). Method: one server, views by
// hand.
#include "tt/ps.h"

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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_from_before_a_pause_does_not_count),
        cmocka_unit_test(a_copy_without_a_pause_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
