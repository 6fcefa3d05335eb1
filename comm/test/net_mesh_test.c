// Goal: a mesh over TCP carries what it is given whole and in order, survives the end and return of
// its ends, and lets nobody in who has not the job's key; what strangers send changes nothing and
// costs little. Method: ends in threads of this process, each with sockets of its own, open and
// encrypted; messages with checkable contents; sockets of the test that send nonsense, damaged and
// repeated bytes at every stage of a connection.
#include "handshake.h"
#include "net.h"
#include "tt/comm_net.h"
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { ENDS = 3, PACKS = 1, MESSAGES = 300, WAIT_NS = 1000000 };
#ifdef TT_TSAN // every byte is looked at, and an end that only looks at bytes is cut off
enum { LARGEST = 600000 };
#else
enum { LARGEST = 3000000 };
#endif
#define JOB     UINT64_C(77)
#define LIMIT_S 20.0

typedef struct world {
    tt_net_key key;
    tt_net_address address[ENDS];
    int listener[ENDS]; // the test's; a mesh gets a copy
    int is_open;
    uint32_t done; // ends that have heard everything
} world;

typedef struct end {
    world *w;
    uint32_t index;
    tt_mesh *mesh;
    uint64_t next[ENDS]; // sequence expected
    uint64_t heard, bad;
    uint32_t byes;
} end;

static void
open_world(world *w, int is_open)
{
    tt_error err = {0};
    *w = (world){.is_open = is_open};
    tt_net_key_draw(&w->key);
    for (uint32_t n = 0; n < ENDS; n++) {
        assert_int_equal(tt_net_resolve("127.0.0.1", 0, &w->address[n], &err), TT_OK);
        assert_int_equal(tt_net_listen(&w->address[n], &w->listener[n], &err), TT_OK);
    }
}

static void
close_world(world *w)
{
    for (uint32_t n = 0; n < ENDS; n++)
        (void)close(w->listener[n]);
}

static void
open_end(end *e, world *w, uint32_t index)
{
    tt_error err = {0};
    uint8_t is_here[ENDS] = {0};
    tt_mesh *rings;
    *e = (end){.w = w, .index = index};
    is_here[index] = 1;
    assert_int_equal(tt_mesh_open(ENDS, &rings, &err), TT_OK);
    const tt_net_options options = {.rings = rings,
                                    .node_count = ENDS,
                                    .node = index,
                                    .is_here = is_here,
                                    .address = w->address,
                                    .listener = dup(w->listener[index]),
                                    .job = JOB,
                                    .key = w->key,
                                    .is_open = w->is_open,
                                    .timeout_ns = UINT64_C(3000000000)};
    assert_int_equal(tt_net_mesh_open(&options, &e->mesh, &err), TT_OK);
    tt_mesh_set_packing(e->mesh, index, index == PACKS);
}

static uint32_t
size_of(uint64_t sequence)
{
    tt_rng rng;
    tt_rng_init(&rng, 7, TT_RNG_TEST, sequence);
    return (uint32_t)tt_rng_below(&rng, sequence % 16 == 0 ? LARGEST : 3000);
}

static void
send_one(end *e, uint32_t to, uint64_t sequence)
{
    static _Thread_local uint8_t bytes[LARGEST];
    uint32_t size = size_of(sequence), head = size / 3;
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + sequence + e->index);
    tt_frame frame = {.kind = TT_FRAME_PUSH, .sequence = sequence};
    const tt_span spans[] = {{bytes, head}, {bytes + head, size - head}};
    tt_outbox out = tt_mesh_outbox(e->mesh, e->index);
    out.send(out.self, to, &frame, spans, 2);
}

static void
check_message(void *self, const tt_frame *frame, const uint8_t *payload)
{
    end *e = self;
    uint32_t from = frame->sender;
    if (frame->kind == TT_FRAME_PUSH_ACK) {
        e->byes++;
        return;
    }
    e->bad += from >= ENDS || frame->sequence < e->next[from % ENDS] ||
              frame->payload_bytes != size_of(frame->sequence) || ((uintptr_t)payload & 15) != 0;
    for (uint32_t i = 0; e->bad == 0 && i < frame->payload_bytes; i++)
        e->bad += payload[i] != (uint8_t)(i * 7 + frame->sequence + from);
    e->next[from % ENDS] = frame->sequence + 1;
    e->heard++;
}

static tt_net_counters
counters_of(const end *e)
{
    tt_net_counters counters;
    tt_net_mesh_counters(e->mesh, &counters);
    return counters;
}

static double
now_s(void)
{
    const tt_clock clock = tt_clock_monotonic();
    return 1e-9 * (double)tt_clock_now(&clock);
}

// Till `heard` messages have come, or it takes too long.
static void
listen_for(end *e, uint64_t heard)
{
    double begin = now_s();
    while (e->heard < heard && now_s() - begin < LIMIT_S)
        if (tt_mesh_receive(e->mesh, e->index, 64, check_message, e) == 0)
            tt_mesh_wait(e->mesh, e->index, WAIT_NS);
}

// One sends to the other while both look after their connections, till it is heard or for so long.
static void
send_and_listen(end *from, uint64_t sequence, end *to, double seconds)
{
    uint64_t heard = to->heard;
    double begin = now_s();
    send_one(from, to->index, sequence);
    tt_mesh_flush(from->mesh, from->index);
    while (to->heard == heard && now_s() - begin < seconds) {
        (void)tt_mesh_receive(from->mesh, from->index, 64, check_message, from);
        if (tt_mesh_receive(to->mesh, to->index, 64, check_message, to) == 0)
            tt_mesh_wait(to->mesh, to->index, WAIT_NS);
    }
}

// ---- all with all ------------------------------------------------------------------------------

static void *
talk_to_all(void *self)
{
    end *e = self;
    double begin = now_s();
    for (uint64_t i = 0; i < MESSAGES; i++) {
        for (uint32_t to = 0; to < ENDS; to++)
            send_one(e, to, i);
        tt_mesh_flush(e->mesh, e->index);
        (void)tt_mesh_receive(e->mesh, e->index, 8, check_message, e);
    }
    listen_for(e, (uint64_t)MESSAGES * ENDS);
    // Nobody looks away before everybody has everything: what waits to be sent is sent by its end.
    tt_outbox out = tt_mesh_outbox(e->mesh, e->index);
    for (uint32_t to = 0; to < ENDS; to++)
        out.send(out.self, to, &(tt_frame){.kind = TT_FRAME_PUSH_ACK}, NULL, 0);
    for (int is_done = 0; tt_load_acquire(&e->w->done) < ENDS && now_s() - begin < 2 * LIMIT_S;) {
        if (tt_mesh_receive(e->mesh, e->index, 64, check_message, e) == 0)
            tt_mesh_wait(e->mesh, e->index, WAIT_NS);
        if (!is_done && e->byes == ENDS) {
            is_done = 1;
            (void)tt_add_acq_rel(&e->w->done, 1);
        }
    }
    return NULL;
}

static void
check_all_with_all(int is_open)
{
    world w;
    end e[ENDS];
    tt_thread thread[ENDS] = {{0}};
    tt_error err = {0};
    open_world(&w, is_open);
    for (uint32_t n = 0; n < ENDS; n++)
        open_end(&e[n], &w, n);
    for (uint32_t n = 0; n < ENDS; n++)
        assert_int_equal(tt_thread_start(&thread[n], "end", talk_to_all, &e[n], &err), TT_OK);
    for (uint32_t n = 0; n < ENDS; n++)
        tt_thread_join(&thread[n]);
    for (uint32_t n = 0; n < ENDS; n++) {
        tt_net_counters counters;
        tt_net_mesh_counters(e[n].mesh, &counters);
        assert_int_equal(e[n].bad, 0);
        assert_int_equal(e[n].heard, MESSAGES * ENDS);
        assert_int_equal(e[n].byes, ENDS);
        assert_int_equal(counters.opened, ENDS - 1);
        assert_int_equal(counters.accepted, ENDS - 1);
        assert_int_equal(counters.refused + counters.damaged + counters.dropped, 0);
    }
    // All send the same, and it repeats itself every 256 bytes.
    tt_mesh_counters packs, other;
    tt_mesh_counters_read(e[PACKS].mesh, PACKS, &packs);
    tt_mesh_counters_read(e[0].mesh, 0, &other);
    assert_int_equal(packs.frames, other.frames);
    assert_true(packs.bytes < other.bytes / 2);
    for (uint32_t n = 0; n < ENDS; n++)
        tt_mesh_close(e[n].mesh);
    close_world(&w);
}

static void
test_all_talk_with_all_openly(void **state)
{
    TT_UNUSED(state);
    check_all_with_all(1);
}

static void
test_all_talk_with_all_encrypted(void **state)
{
    TT_UNUSED(state);
    check_all_with_all(0);
}

// ---- long messages alone -----------------------------------------------------------------------

// Nothing comes after it that would wake whoever waits for more than is still to come.
static void
check_long_alone(int is_open)
{
    enum { LONG = 60 };
    world w;
    end a, b;
    open_world(&w, is_open);
    open_end(&a, &w, 0);
    open_end(&b, &w, 2);
    for (uint64_t i = 0; i < LONG; i++) {
        send_and_listen(&a, 16 * i, &b, LIMIT_S);
        assert_int_equal(b.heard, i + 1);
        assert_int_equal(b.bad, 0);
    }
    tt_mesh_close(a.mesh);
    tt_mesh_close(b.mesh);
    close_world(&w);
}

static void
test_long_messages_come_alone_openly(void **state)
{
    TT_UNUSED(state);
    check_long_alone(1);
}

static void
test_long_messages_come_alone_encrypted(void **state)
{
    TT_UNUSED(state);
    check_long_alone(0);
}

// ---- ends that go and come ---------------------------------------------------------------------

// Till one of e's messages, of which it sends more and more, has come.
static uint64_t
send_till_heard(end *from, end *to, uint64_t sequence)
{
    double begin = now_s();
    uint64_t heard = to->heard;
    while (to->heard == heard && now_s() - begin < LIMIT_S) {
        send_one(from, to->index, sequence++);
        (void)tt_mesh_receive(from->mesh, from->index, 8, check_message, from);
        tt_mesh_flush(from->mesh, from->index);
        for (int i = 0; i < 20 && to->heard == heard; i++)
            if (tt_mesh_receive(to->mesh, to->index, 64, check_message, to) == 0)
                tt_mesh_wait(to->mesh, to->index, WAIT_NS);
    }
    assert_true(to->heard > heard);
    return sequence;
}

static void
test_ends_come_back(void **state)
{
    TT_UNUSED(state);
    world w;
    end a, b;
    uint64_t there = 0, back = 0;
    open_world(&w, 0);
    open_end(&a, &w, 0);
    for (int life = 0; life < 8; life++) {
        open_end(&b, &w, 1);
        b.next[0] = 0;
        a.next[1] = 0;
        there = send_till_heard(&a, &b, there);
        back = send_till_heard(&b, &a, back);
        tt_mesh_close(b.mesh);
        assert_int_equal(b.bad, 0);
        for (int i = 0; i < 3; i++) // to nobody
            send_one(&a, 1, there++);
        tt_mesh_flush(a.mesh, 0);
    }
    tt_net_counters counters;
    tt_net_mesh_counters(a.mesh, &counters);
    assert_int_equal(a.bad, 0);
    assert_true(counters.opened >= 8);
    assert_int_equal(counters.refused + counters.damaged, 0);
    tt_mesh_close(a.mesh);
    close_world(&w);
}

// Two ends of which one has begun to connect to the other, with a message.
static void
open_call(world *w, end *caller, end *busy)
{
    open_world(w, 0);
    open_end(caller, w, 0);
    open_end(busy, w, 2);
    send_one(caller, 2, 0);
    tt_mesh_flush(caller->mesh, 0);
}

static void
close_call(world *w, end *caller, end *busy)
{
    tt_mesh_close(caller->mesh);
    tt_mesh_close(busy->mesh);
    close_world(w);
}

// All three messages, over the one connection that was begun.
static void
check_heard_in_spite(end *caller, end *busy)
{
    send_and_listen(caller, 1, busy, LIMIT_S);
    send_and_listen(caller, 2, busy, LIMIT_S);
    assert_int_equal(busy->heard, 3);
    assert_int_equal(busy->bad, 0);
    assert_int_equal(counters_of(busy).refused, 0);
    assert_int_equal(counters_of(caller).opened, 1);
}

// Greets in time and speaks; the other end is busy, and looks when the time is over.
static void
test_who_was_busy_hears_what_came_meanwhile(void **state)
{
    TT_UNUSED(state);
    world w;
    end caller, busy;
    open_call(&w, &caller, &busy);
    double begin = now_s();
    while (counters_of(&caller).opened == 0 && now_s() - begin < LIMIT_S) {
        (void)tt_mesh_receive(busy.mesh, 2, 64, check_message, &busy);
        (void)tt_mesh_receive(caller.mesh, 0, 64, check_message, &caller);
    }
    assert_int_equal(counters_of(&busy).accepted, 0); // it has not read the confirmation
    (void)usleep((useconds_t)(TTI_NET_GREETING_NS / 1000) + 100000);
    check_heard_in_spite(&caller, &busy);
    close_call(&w, &caller, &busy);
}

// Two seconds late with its greeting, and one with what follows: each in time.
static void
test_who_was_answered_may_confirm(void **state)
{
    enum { LATE_US = 2000000 };
    TT_UNUSED(state);
    world w;
    end caller, busy;
    open_call(&w, &caller, &busy);
    (void)tt_mesh_receive(busy.mesh, 2, 64, check_message, &busy); // accepts
    (void)usleep(LATE_US);
    (void)tt_mesh_receive(caller.mesh, 0, 64, check_message, &caller); // greets
    (void)tt_mesh_receive(busy.mesh, 2, 64, check_message, &busy);     // answers
    (void)usleep((useconds_t)(TTI_NET_GREETING_NS / 1000) - LATE_US + 100000);
    (void)tt_mesh_receive(busy.mesh, 2, 64, check_message, &busy); // does not give him up
    assert_int_equal(counters_of(&caller).opened, 0);
    check_heard_in_spite(&caller, &busy);
    close_call(&w, &caller, &busy);
}

// Who is flooded with messages lets others in meanwhile.
static void
test_a_flood_keeps_nobody_out(void **state)
{
    enum { FLOOD = 60 };
    TT_UNUSED(state);
    world w;
    end loud, caller, flooded;
    open_world(&w, 0);
    open_end(&loud, &w, 0);
    open_end(&caller, &w, 1);
    open_end(&flooded, &w, 2);
    send_and_listen(&loud, 1, &flooded, LIMIT_S);
    for (uint64_t i = 0; i < FLOOD; i++)
        send_one(&loud, 2, 2 + i + (i + 1) / 15); // short ones
    tt_mesh_flush(loud.mesh, 0);
    send_one(&caller, 2, 1);
    tt_mesh_flush(caller.mesh, 1);
    for (int i = 0; i < FLOOD / 2; i++) {
        (void)tt_mesh_receive(flooded.mesh, 2, 1, check_message, &flooded);
        (void)tt_mesh_receive(caller.mesh, 1, 1, check_message, &caller);
        tt_mesh_wait(caller.mesh, 1, WAIT_NS);
    }
    assert_int_equal(flooded.bad, 0);
    assert_true(flooded.heard <= 1 + FLOOD / 2);
    assert_int_equal(counters_of(&caller).opened, 1);
    tt_mesh_close(loud.mesh);
    tt_mesh_close(caller.mesh);
    tt_mesh_close(flooded.mesh);
    close_world(&w);
}

// A host that loses its power ends no connection: what is sent into it is sent to nobody, though
// another process is there by then.
static void
test_dead_peers_are_dropped(void **state)
{
    TT_UNUSED(state);
    world w;
    end sender, dead, next, late;
    open_world(&w, 0);
    open_end(&sender, &w, 0);
    open_end(&dead, &w, 1);
    send_and_listen(&sender, 0, &dead, LIMIT_S);
    assert_int_equal(dead.heard, 1); // and looks after nothing from now on
    open_end(&next, &w, 1);
    send_and_listen(&sender, 1, &next, 0.2);
    assert_int_equal(next.heard, 0);
    tt_mesh_drop(sender.mesh, 0, 1);
    send_and_listen(&sender, 2, &next, LIMIT_S);
    assert_int_equal(next.heard, 1);
    // While it is being connected, too: nobody answers there yet.
    send_one(&sender, 2, 0);
    tt_mesh_flush(sender.mesh, 0);
    tt_mesh_drop(sender.mesh, 0, 2);
    tt_mesh_drop(sender.mesh, 0, 2);
    tt_mesh_drop(sender.mesh, 0, 0); // itself is in memory
    open_end(&late, &w, 2);
    send_and_listen(&sender, 1, &late, LIMIT_S);
    assert_int_equal(late.heard, 1);
    assert_int_equal(dead.bad + next.bad + late.bad, 0);
    tt_net_counters counters;
    tt_net_mesh_counters(sender.mesh, &counters);
    assert_int_equal(counters.opened, 3);
    assert_int_equal(counters.broken + counters.dropped, 0);
    tt_mesh_close(sender.mesh);
    tt_mesh_close(dead.mesh);
    tt_mesh_close(next.mesh);
    tt_mesh_close(late.mesh);
    close_world(&w);
}

static void
test_nobody_waits_for_who_is_not_there(void **state)
{
    TT_UNUSED(state);
    world w;
    end a;
    open_world(&w, 0);
    open_end(&a, &w, 0);
    (void)close(w.listener[2]); // who connects is refused
    w.listener[2] = -1;
    double begin = now_s();
    for (uint64_t i = 1; i < 1000; i++) {
        send_one(&a, 1, 16 * i + 1); // listens, but never answers
        send_one(&a, 2, 16 * i + 1);
        tt_mesh_flush(a.mesh, 0);
        (void)tt_mesh_receive(a.mesh, 0, 8, check_message, &a);
    }
    assert_true(now_s() - begin < LIMIT_S);
    tt_mesh_close(a.mesh);
    close_world(&w);
}

// ---- strangers ---------------------------------------------------------------------------------

static int
connect_to(const world *w, uint32_t to)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(w->address[to].port)};
    memcpy(&where.sin_addr, w->address[to].bytes, 4);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof where), 0);
    return fd;
}

static void
say(int fd, const void *bytes, size_t size)
{
    (void)!send(fd, bytes, size, MSG_NOSIGNAL); // he may have hung up
}

// Connections admitted, refused and cut, and messages.
static uint64_t
happened(const end *e)
{
    tt_net_counters counters = counters_of(e);
    return counters.accepted + counters.refused + counters.damaged + e->heard;
}

static void
pump(end *e)
{
    if (tt_mesh_receive(e->mesh, e->index, 64, check_message, e) == 0)
        tt_mesh_wait(e->mesh, e->index, WAIT_NS);
}

// Till so much has happened, or `seconds` have passed.
static void
pump_till(end *e, uint64_t events, double seconds)
{
    double begin = now_s();
    while (happened(e) < events && now_s() - begin < seconds)
        pump(e);
}

// As end 1, with the job's key or another. Returns what the answer was.
static tt_status
shake_hands(end *e, int fd, const tt_net_key *key, tti_cipher *cipher)
{
    tti_handshake h;
    tti_hello answer;
    uint8_t confirmation[TTI_CONFIRM_BYTES];
    tti_handshake_call(&h, key, (tti_introduction){JOB, 0, 1, 0}, TTI_HELLO_SEALED);
    uint64_t before = happened(e);
    say(fd, &h.mine, sizeof h.mine);
    ssize_t got = -1;
    while (got < 0 && happened(e) == before) {
        pump(e);
        got = recv(fd, &answer, sizeof answer, MSG_DONTWAIT);
    }
    if (got != (ssize_t)sizeof answer)
        return TT_PEER;
    tt_status status = tti_handshake_confirm(&h, key, &answer, confirmation, cipher);
    say(fd, confirmation, sizeof confirmation);
    pump_till(e, before + 1, LIMIT_S);
    return status;
}

static void
test_nonsense_is_refused(void **state)
{
    TT_UNUSED(state);
    world w;
    end e;
    tt_rng rng;
    open_world(&w, 0);
    open_end(&e, &w, 0);
    tt_rng_init(&rng, 1, TT_RNG_TEST, 0);
    uint8_t bytes[4096];
    for (uint64_t i = 0; i < 200; i++) {
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)tt_rng_below(&rng, 256);
        int fd = connect_to(&w, 0);
        say(fd, bytes, 1 + (size_t)tt_rng_below(&rng, sizeof bytes));
        (void)shutdown(fd, SHUT_WR);
        pump_till(&e, i + 1, LIMIT_S);
        assert_int_equal(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0, 0); // not a word
        (void)close(fd);
        assert_int_equal(counters_of(&e).refused, i + 1);
    }
    assert_int_equal(counters_of(&e).accepted, 0);
    tt_mesh_close(e.mesh);
    close_world(&w);
}

static void
test_without_the_key_nobody_is_answered(void **state)
{
    TT_UNUSED(state);
    world w;
    end e;
    tt_net_key other;
    tti_cipher cipher;
    open_world(&w, 0);
    open_end(&e, &w, 0);
    tt_net_key_draw(&other);
    int fd = connect_to(&w, 0);
    assert_int_equal(shake_hands(&e, fd, &other, &cipher), TT_PEER);
    assert_int_equal(counters_of(&e).refused, 1);
    (void)close(fd);
    tt_mesh_close(e.mesh);
    close_world(&w);
}

// More of them than are kept, and then one who belongs here.
static void
test_the_silent_do_not_keep_others_out(void **state)
{
    TT_UNUSED(state);
    enum { SILENT = 100 };
    world w;
    end a, b;
    int fd[SILENT];
    open_world(&w, 0);
    open_end(&a, &w, 0);
    for (int i = 0; i < SILENT; i++) {
        fd[i] = connect_to(&w, 0);
        pump(&a);
    }
    assert_true(counters_of(&a).refused >= SILENT - 32);
    open_end(&b, &w, 1);
    (void)send_till_heard(&b, &a, 1);
    tt_mesh_close(b.mesh);
    double begin = now_s();
    while (counters_of(&a).refused < SILENT && now_s() - begin < LIMIT_S)
        pump(&a);
    assert_int_equal(counters_of(&a).refused, SILENT);
    for (int i = 0; i < SILENT; i++)
        (void)close(fd[i]);
    tt_mesh_close(a.mesh);
    close_world(&w);
}

// A frame of `size` bytes as it stands on a connection.
static uint32_t
frame_bytes(uint8_t *out, uint32_t sender, uint64_t sequence)
{
    uint32_t size = size_of(sequence);
    tt_frame frame = {.magic = TT_FRAME_MAGIC,
                      .version = TT_FRAME_VERSION,
                      .kind = TT_FRAME_PUSH,
                      .sender = (uint16_t)sender,
                      .sequence = sequence,
                      .payload_bytes = size};
    memset(out, 0, (sizeof frame + size + 15) & ~(size_t)15);
    memcpy(out, &frame, sizeof frame);
    for (uint32_t i = 0; i < size; i++)
        out[sizeof frame + i] = (uint8_t)(i * 7 + sequence + sender);
    return (uint32_t)((sizeof frame + size + 15) & ~(size_t)15);
}

// Every so many bits of a record.
static void
test_damaged_records_cut_the_connection(void **state)
{
    TT_UNUSED(state);
    world w;
    end e;
    uint8_t text[8192], record[8192 + TTI_RECORD_EXTRA];
    open_world(&w, 0);
    open_end(&e, &w, 0);
    uint32_t size = frame_bytes(text, 1, 1);
    uint64_t damaged = 0;
    for (size_t bit = 0; bit < 8 * (size_t)(size + TTI_RECORD_EXTRA); bit += 97) {
        tti_cipher cipher;
        int fd = connect_to(&w, 0);
        assert_int_equal(shake_hands(&e, fd, &w.key, &cipher), TT_OK);
        tti_record_seal(&cipher, record, text, size);
        record[bit / 8] ^= (uint8_t)(1u << bit % 8);
        say(fd, record, size + TTI_RECORD_EXTRA);
        (void)shutdown(fd, SHUT_WR); // a longer length waits for bytes that never come
        int is_length = bit / 8 < TTI_RECORD_HEAD;
        pump_till(&e, happened(&e) + 1, is_length ? 0.2 : LIMIT_S);
        tt_net_counters counters = counters_of(&e);
        assert_true(counters.damaged == damaged + 1 || (is_length && counters.damaged == damaged));
        damaged = counters.damaged;
        (void)close(fd);
    }
    assert_int_equal(e.heard, 0);
    tt_mesh_close(e.mesh);
    close_world(&w);
}

static void
test_who_says_he_is_another_is_cut(void **state)
{
    TT_UNUSED(state);
    world w;
    end e;
    tti_cipher cipher;
    uint8_t text[8192], record[8192 + TTI_RECORD_EXTRA];
    open_world(&w, 0);
    open_end(&e, &w, 0);
    int fd = connect_to(&w, 0);
    assert_int_equal(shake_hands(&e, fd, &w.key, &cipher), TT_OK);
    uint32_t size = frame_bytes(text, 1, 1);
    tti_record_seal(&cipher, record, text, size);
    say(fd, record, size + TTI_RECORD_EXTRA);
    listen_for(&e, 1);
    assert_int_equal(e.heard, 1);
    size = frame_bytes(text, 2, 2);
    tti_record_seal(&cipher, record, text, size);
    say(fd, record, size + TTI_RECORD_EXTRA);
    pump_till(&e, happened(&e) + 1, LIMIT_S);
    assert_int_equal(e.heard, 1);
    assert_int_equal(counters_of(&e).damaged, 1);
    (void)close(fd);
    tt_mesh_close(e.mesh);
    close_world(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_talk_with_all_openly),
        cmocka_unit_test(test_all_talk_with_all_encrypted),
        cmocka_unit_test(test_long_messages_come_alone_openly),
        cmocka_unit_test(test_long_messages_come_alone_encrypted),
        cmocka_unit_test(test_ends_come_back),
        cmocka_unit_test(test_who_was_busy_hears_what_came_meanwhile),
        cmocka_unit_test(test_who_was_answered_may_confirm),
        cmocka_unit_test(test_a_flood_keeps_nobody_out),
        cmocka_unit_test(test_dead_peers_are_dropped),
        cmocka_unit_test(test_nobody_waits_for_who_is_not_there),
        cmocka_unit_test(test_nonsense_is_refused),
        cmocka_unit_test(test_without_the_key_nobody_is_answered),
        cmocka_unit_test(test_the_silent_do_not_keep_others_out),
        cmocka_unit_test(test_damaged_records_cut_the_connection),
        cmocka_unit_test(test_who_says_he_is_another_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
