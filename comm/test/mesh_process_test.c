// Goal: a mesh of shared memory carries messages between processes as one between threads does, and
// a process that is killed at any moment harms nobody: what arrives is whole and in order, from it
// and from its successor. Method: forked processes that send each other messages with checkable
// contents, in many chunks; SIGKILL at random moments, on the sender's and on the receiver's side.
#include "tt/comm.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NODES = 3, MESSAGES = 300, LARGEST = 200000, DEATHS = 40, CHUNK = 4096 };

typedef struct seen {
    uint32_t index;
    uint64_t next[NODES];    // sequence expected from each peer
    uint32_t attempt[NODES]; // of its process
    uint64_t done, bad, byes;
} seen;

static uint32_t
size_of(uint64_t sequence)
{
    tt_rng rng;
    tt_rng_init(&rng, 7, TT_RNG_TEST, sequence);
    return (uint32_t)tt_rng_below(&rng, sequence % 4 == 0 ? LARGEST : 500);
}

static void
send_one(tt_mesh *mesh, uint32_t from, uint32_t to, uint32_t attempt, uint64_t sequence)
{
    static uint8_t bytes[LARGEST];
    uint32_t size = size_of(sequence);
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + sequence + from + attempt);
    tt_frame frame = {.kind = TT_FRAME_PUSH, .sequence = sequence, .attempt = attempt};
    tt_span span = {bytes, size};
    tt_outbox out = tt_mesh_outbox(mesh, from);
    out.send(out.self, to, &frame, &span, 1);
}

// Whole, and in order; the first message of another process may have any number.
static void
check_message(void *self, const tt_frame *frame, const uint8_t *payload)
{
    seen *s = self;
    uint32_t from = frame->sender;
    if (frame->kind == TT_FRAME_PUSH_ACK) {
        s->byes++;
        return;
    }
    int is_next = frame->sequence == s->next[from] || frame->attempt > s->attempt[from] ||
                  s->next[from] == UINT64_MAX;
    s->bad += !is_next || frame->attempt < s->attempt[from] ||
              frame->payload_bytes != size_of(frame->sequence);
    for (uint32_t i = 0; s->bad == 0 && i < frame->payload_bytes; i++)
        s->bad += payload[i] != (uint8_t)(i * 7 + frame->sequence + from + frame->attempt);
    s->next[from] = frame->sequence + 1;
    s->attempt[from] = frame->attempt;
    s->done++;
}

static tt_mesh *
attached(int fd)
{
    tt_mesh *mesh;
    tt_error err = {0};
    if (tt_mesh_attach(fd, &mesh, &err) != TT_OK)
        _exit(9);
    for (uint32_t n = 0; n < NODES; n++)
        tt_mesh_set_chunk(mesh, n, CHUNK);
    return mesh;
}

static int
shared_memory(void)
{
    int fd;
    tt_error err = {0};
    assert_int_equal(tt_mesh_share(NODES, &fd, &err), TT_OK);
    return fd;
}

static int
exit_code(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// ---- all with all ------------------------------------------------------------------------------

// To everybody, who has taken everything from this one when he says so himself.
static int
say_bye(tt_mesh *mesh, uint32_t index)
{
    tt_outbox out = tt_mesh_outbox(mesh, index);
    for (uint32_t to = 0; to < NODES; to++) {
        tt_frame frame = {.kind = TT_FRAME_PUSH_ACK};
        out.send(out.self, to, &frame, NULL, 0);
    }
    return 1;
}

static _Noreturn void
talk_to_all(int fd, uint32_t index)
{
    tt_mesh *mesh = attached(fd);
    seen s = {.index = index};
    int said = 0;
    for (uint64_t i = 0; i < MESSAGES; i++) {
        for (uint32_t to = 0; to < NODES; to++)
            send_one(mesh, index, to, 0, i);
        tt_mesh_flush(mesh, index);
        (void)tt_mesh_receive(mesh, index, 64, check_message, &s);
    }
    for (uint32_t idle = 0; s.byes < NODES && idle < 30000;) {
        if (s.done == (uint64_t)MESSAGES * NODES && !said)
            said = say_bye(mesh, index);
        if (tt_mesh_receive(mesh, index, 64, check_message, &s) == 0) {
            idle++;
            tt_mesh_wait(mesh, index, 1000000);
        }
    }
    tt_mesh_flush(mesh, index);
    tt_mesh_close(mesh);
    _exit(s.bad > 0 ? 2 : s.byes == NODES ? 0 : 3);
}

static void
processes_talk(void **state)
{
    pid_t child[NODES];
    int fd = shared_memory();
    TT_UNUSED(state);
    for (uint32_t n = 0; n < NODES; n++) {
        child[n] = fork();
        assert_true(child[n] >= 0);
        if (child[n] == 0)
            talk_to_all(fd, n);
    }
    for (uint32_t n = 0; n < NODES; n++)
        assert_int_equal(exit_code(child[n]), 0);
    assert_int_equal(close(fd), 0);
}

// ---- deaths ------------------------------------------------------------------------------------

static void
count_answer(void *self, const tt_frame *frame, const uint8_t *payload)
{
    TT_UNUSED(frame);
    TT_UNUSED(payload);
    ++*(uint64_t *)self;
}

static _Noreturn void
send_for_ever(int fd, uint32_t attempt)
{
    tt_mesh *mesh = attached(fd);
    uint64_t answers = 0;
    for (uint64_t sent = 0;;) {
        if (sent < answers + 20) // or a few more, by answers to its predecessor
            send_one(mesh, 1, 0, attempt, sent++);
        tt_mesh_flush(mesh, 1);
        if (tt_mesh_receive(mesh, 1, 64, count_answer, &answers) == 0 && sent >= answers + 20)
            tt_mesh_wait(mesh, 1, 1000000);
    }
}

static void
senders_die(void **state)
{
    int fd = shared_memory();
    tt_mesh *mesh = attached(fd);
    tt_rng rng;
    seen s = {.index = 0};
    tt_clock clock = tt_clock_monotonic();
    TT_UNUSED(state);
    tt_rng_init(&rng, 11, TT_RNG_TEST, 0);
    for (uint32_t attempt = 1; attempt <= DEATHS; attempt++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            send_for_ever(fd, attempt);
        uint64_t before = s.done, until_ns = 0;
        while (until_ns == 0 || tt_clock_now(&clock) < until_ns) {
            if (tt_mesh_receive(mesh, 0, 1, check_message, &s) > 0)
                send_one(mesh, 0, 1, 0, 1);
            else
                tt_mesh_wait(mesh, 0, 1000000);
            tt_mesh_flush(mesh, 0);
            if (until_ns == 0 && s.done > before)
                until_ns = tt_clock_now(&clock) + tt_rng_below(&rng, 5000000);
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(exit_code(child), 128 + SIGKILL);
        assert_int_equal(s.bad, 0);
        assert_true(s.attempt[1] == attempt);
        while (tt_mesh_receive(mesh, 0, 64, check_message, &s) > 0)
            ; // what it had sent
        s.next[1] = UINT64_MAX;
    }
    assert_true(s.done > DEATHS);
    tt_mesh_close(mesh);
    assert_int_equal(close(fd), 0);
}

static _Noreturn void
receive_for_ever(int fd)
{
    tt_mesh *mesh = attached(fd);
    seen s = {.index = 2, .next = {UINT64_MAX, UINT64_MAX, UINT64_MAX}};
    for (;;) {
        if (tt_mesh_receive(mesh, 2, 1, check_message, &s) == 0)
            tt_mesh_wait(mesh, 2, 1000000);
        else
            send_one(mesh, 2, 0, 0, 1); // small: it lives, and has received
        tt_mesh_flush(mesh, 2);
        if (s.bad > 0)
            _exit(2);
    }
}

static void
receivers_die(void **state)
{
    int fd = shared_memory();
    tt_mesh *mesh = attached(fd);
    tt_rng rng;
    uint64_t sequence = 0, answers = 0;
    TT_UNUSED(state);
    tt_rng_init(&rng, 12, TT_RNG_TEST, 0);
    for (int death = 0; death < DEATHS; death++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            receive_for_ever(fd);
        uint64_t wanted = answers + 1 + tt_rng_below(&rng, 60);
        for (int idle = 0; answers < wanted && idle < 5000; idle++) {
            // No more than is taken: the ring is left full of half a message now and then.
            if (sequence < answers + 100 + 10 * (uint64_t)death)
                send_one(mesh, 0, 2, 0, sequence++);
            tt_mesh_flush(mesh, 0);
            if (tt_mesh_receive(mesh, 0, 64, count_answer, &answers) > 0)
                idle = 0;
            else
                tt_mesh_wait(mesh, 0, 1000000);
        }
        assert_true(answers >= wanted);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(exit_code(child), 128 + SIGKILL);
    }
    tt_mesh_close(mesh);
    assert_int_equal(close(fd), 0);
}

static void
other_memory_is_refused(void **state)
{
    tt_mesh *mesh;
    tt_error err = {0};
    int pipes[2], fd = shared_memory();
    TT_UNUSED(state);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(tt_mesh_attach(pipes[0], &mesh, &err), TT_CORRUPT);
    assert_null(mesh);
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(tt_mesh_attach(fd, &mesh, &err), TT_CORRUPT);
    assert_int_equal(tt_mesh_attach(-1, &mesh, &err), TT_CORRUPT);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    (void)close(fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_talk),
        cmocka_unit_test(senders_die),
        cmocka_unit_test(receivers_die),
        cmocka_unit_test(other_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
