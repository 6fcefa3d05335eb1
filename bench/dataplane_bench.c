// What moving parameters between processes costs: a worker that pulls or pushes whole partitions of
// a dense table, or random keys of a sparse one, over rings in shared memory and over TCP on
// loopback, open and encrypted, beside memcpy over the same pool and bare sockets, which take turns
// with them. One JSON line a case; the ratio of rings is to memcpy, that of TCP to a bare TCP
// socket.
//
//     dataplane_bench [--seconds S] [--rounds N] [--only TEXT]
//
// A case is an operation, the bytes of a partition, how many requests are in flight, and servers x
// workers; each is a process, which waits awake for as many pauses as suit so many of them on two
// processors (the knob `spin`). The pool of a worker is size x in flight bytes at each server.
// Rates are of the parameters' bytes that all workers move; a pull and a push of a partition count
// as two. The server applies what is pushed (w += g). Of sparse tables whose lists of keys are new,
// and where there are several, a push is a pull and a push, counted once.
#include "tt/comm_net.h"
#include "tt/ps.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS_MAX = 51, SIDES_MAX = 2, SPARSE_KEYS = 10000, SPARSE_RANGE = 10000000 };

typedef enum operation { PULL, PUSH, BOTH, SPARSE_PULL, SPARSE_PUSH, ROUND_TRIP } operation;

static const char *const operation_names[] = {"pull",        "push",        "both",
                                              "sparse pull", "sparse push", "round trip"};

typedef struct bench_case {
    operation op;
    uint32_t size, in_flight, sides;
    uint32_t lists; // sparse: how many lists of keys there are; 0: each is new
} bench_case;

// How processes reach each other.
typedef enum way { BY_RINGS, BY_TCP, BY_SEALED_TCP } way;

typedef struct connections {
    way by;
    int rings;                   // the descriptor of their memory
    int listener[2 * SIDES_MAX]; // else
    tt_net_address address[2 * SIDES_MAX];
    tt_net_key key;
} connections;

typedef struct options {
    double seconds;
    int rounds;
    const char *only;
} options;

// What the parent and its children share.
typedef struct board {
    uint32_t go, stop, ready; // release
    uint64_t operations[SIDES_MAX];
} board;

static _Noreturn void
stop_with(const char *what)
{
    (void)fprintf(stderr, "dataplane_bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t
now_ns(void)
{
    tt_clock clock = tt_clock_monotonic();
    return tt_clock_now(&clock);
}

static void
sleep_s(double seconds)
{
    const struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (double)(long)seconds))};
    (void)nanosleep(&time, NULL);
}

static board *
new_board(void)
{
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        stop_with("no shared memory");
    return b;
}

// ---- the parameter server
// -------------------------------------------------------------------------

typedef struct actor {
    const bench_case *c;
    board *b;
    tt_ps_table table;
    tt_ps_view *view;
    tt_mesh *mesh;
    uint32_t index;
    tt_ps_server *server;
    tt_ps_client *client;
    uint64_t *keys;
    uint64_t key_sets;
    float *values;
} actor;

static int
is_sparse(const bench_case *c)
{
    return c->op == SPARSE_PULL || c->op == SPARSE_PUSH;
}

static const tt_ps_view *
newest(void *self)
{
    return ((const actor *)self)->view;
}

static void
retired(void *self, uint32_t partition, uint32_t generation)
{
    TT_UNUSED(self);
    TT_UNUSED(partition);
    TT_UNUSED(generation);
}

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    actor *a = self;
    if (a->client != NULL)
        tt_ps_client_receive(a->client, frame, payload);
    else
        tt_ps_server_receive(a->server, frame, payload);
}

static tt_status
open_mesh(const connections *by, uint32_t index, uint32_t ends, tt_mesh **out, tt_error *err)
{
    uint8_t is_here[2 * SIDES_MAX] = {0};
    tt_mesh *rings;
    if (by->by == BY_RINGS)
        return tt_mesh_attach(by->rings, out, err);
    is_here[index] = 1;
    TT_TRY(tt_mesh_open(ends, &rings, err));
    const tt_net_options wanted = {.rings = rings,
                                   .node_count = ends,
                                   .node = index,
                                   .is_here = is_here,
                                   .address = by->address,
                                   .listener = dup(by->listener[index]),
                                   .key = by->key,
                                   .is_open = by->by == BY_TCP,
                                   .timeout_ns = UINT64_C(3000000000)};
    return tt_net_mesh_open(&wanted, out, err);
}

// Servers are the first ends.
static void
open_actor(actor *a, const bench_case *c, board *b, const connections *by, uint32_t index)
{
    tt_error err = {0};
    uint8_t is_server[TT_PS_NODES_MAX] = {0};
    uint32_t partitions = is_sparse(c) ? 4 * c->sides : c->sides * c->in_flight;
    *a = (actor){.c = c, .b = b, .index = index};
    a->table = (tt_ps_table){.kind = is_sparse(c) ? TT_PS_SPARSE : TT_PS_DENSE,
                             .rows = is_sparse(c) ? SPARSE_RANGE : partitions * (c->size / 4),
                             .width = 1,
                             .partition_count = partitions,
                             .consistency = TT_PS_ASP,
                             .optimizer = TT_PS_ADD};
    memset(is_server, 1, c->sides);
    tt_status status = tt_ps_view_first(&a->table, 2 * c->sides, is_server, &a->view);
    if (status == TT_OK)
        status = open_mesh(by, index, 2 * c->sides, &a->mesh, &err);
    if (status != TT_OK)
        exit(9);
    tt_mesh_set_spin(a->mesh, index, c->sides == 1 ? 4000 : 200);
    tt_mesh_set_chunk(a->mesh, index, 256 << 10);
    tt_outbox outbox = tt_mesh_outbox(a->mesh, index);
    tt_ps_hooks hooks = {.self = a, .newest = newest, .retired = retired};
    uint32_t keys = is_sparse(c) ? SPARSE_KEYS : 1;
    if (index < c->sides) {
        status = tt_ps_server_open(&a->table, index, 2 * c->sides, outbox, hooks, &a->server, &err);
        if (status != TT_OK || tt_ps_server_start(a->server, a->view) != TT_OK)
            exit(9);
        return;
    }
    status = tt_ps_client_open(&a->table, index, 2 * c->sides,
                               is_sparse(c) ? keys : (uint32_t)a->table.rows, outbox, hooks,
                               &a->client, &err);
    if (status != TT_OK)
        exit(9);
    tt_ps_client_adopt(a->client, a->view);
    tt_ps_client_set(a->client, is_sparse(c) ? partitions : c->in_flight * c->sides, 0);
}

static _Noreturn void
serve(actor *a)
{
    (void)tt_add_acq_rel(&a->b->ready, 1u);
    while (!tt_load_acquire(&a->b->stop))
        if (tt_mesh_receive(a->mesh, a->index, 64, on_frame, a) > 0)
            tt_mesh_flush(a->mesh, a->index);
        else
            tt_mesh_wait(a->mesh, a->index, 1000000);
    exit(0);
}

static void
await(actor *a)
{
    tt_mesh_flush(a->mesh, a->index);
    while (!tt_ps_client_done(a->client)) {
        if (tt_mesh_receive(a->mesh, a->index, 64, on_frame, a) == 0)
            tt_mesh_wait(a->mesh, a->index, 1000000);
        else
            tt_mesh_flush(a->mesh, a->index);
        if (tt_load_acquire(&a->b->stop))
            exit(0);
    }
}

// Sets of keys are drawn before the clock runs; a run goes round.
enum { KEY_SETS = 16 };

static int
by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void
draw_keys(actor *a)
{
    tt_rng rng;
    tt_rng_init(&rng, 1, TT_RNG_TEST, a->index);
    a->keys = tt_mem_alloc((size_t)KEY_SETS * SPARSE_KEYS * sizeof *a->keys);
    if (a->keys == NULL)
        exit(9);
    for (uint32_t set = 0; set < KEY_SETS; set++) {
        uint64_t *keys = a->keys + (size_t)set * SPARSE_KEYS;
        for (uint32_t i = 0; i < SPARSE_KEYS; i++)
            keys[i] = (i + tt_rng_below(&rng, 1000) / 1000) * (SPARSE_RANGE / SPARSE_KEYS) +
                      tt_rng_below(&rng, SPARSE_RANGE / SPARSE_KEYS);
        qsort(keys, SPARSE_KEYS, sizeof *keys, by_value);
    }
}

static tt_ps_keys
next_keys(actor *a)
{
    if (!is_sparse(a->c))
        return (tt_ps_keys){.count = (uint32_t)a->table.rows};
    uint64_t *keys = a->keys + (a->key_sets++ % TT_MAX(a->c->lists, 1u)) * SPARSE_KEYS;
    if (a->c->lists == 0)
        keys[0] = SPARSE_RANGE + a->key_sets; // none that was there before
    return (tt_ps_keys){.keys = keys, .count = SPARSE_KEYS};
}

static _Noreturn void
work(actor *a)
{
    a->values = tt_ps_client_gradients(a->client); // what is pushed is what was pulled
    if (a->values == NULL)
        exit(9);
    if (is_sparse(a->c))
        draw_keys(a);
    operation op = a->c->op;
    int pulls = op != PUSH && op != SPARSE_PUSH,
        pushes = op == PUSH || op == BOTH || op == SPARSE_PUSH;
    uint64_t *done = &a->b->operations[a->index - a->c->sides];
    // Pushes are of what was pulled; rows of a sparse table are there once they were pushed.
    for (uint32_t i = 0; i < TT_MAX(a->c->lists, 1u); i++) {
        tt_ps_client_pull(a->client, next_keys(a), 0, 0, a->values);
        await(a);
        if (!is_sparse(a->c))
            continue;
        tt_ps_client_push(a->client, a->values, 1, 1);
        await(a);
    }
    (void)tt_add_acq_rel(&a->b->ready, 1u);
    for (;;) {
        if (pulls || (pushes && is_sparse(a->c) && a->c->lists != 1)) {
            tt_ps_client_pull(a->client, next_keys(a), 0, 0, a->values);
            await(a);
        }
        if (pushes) {
            tt_ps_client_push(a->client, a->values, 1, 1);
            await(a);
        }
        tt_store_relaxed(done, *done + 1);
    }
}

static void
run_child(const bench_case *c, board *b, const connections *by, uint32_t index)
{
    static actor a;
    open_actor(&a, c, b, by, index);
    if (index < c->sides)
        serve(&a);
    work(&a);
}

static void
end_children(board *b, const pid_t *child, uint32_t count)
{
    int status;
    tt_store_release(&b->stop, 1u);
    for (uint32_t i = 0; i < count; i++) {
        (void)waitpid(child[i], &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            errno = ENOMEM;
            stop_with("a process failed");
        }
    }
}

static void
open_connections(way by, uint32_t ends, connections *out)
{
    tt_error err = {0};
    *out = (connections){.by = by, .rings = -1};
    if (by == BY_RINGS) {
        if (tt_mesh_share(ends, &out->rings, &err) != TT_OK)
            stop_with("no shared memory for rings");
        return;
    }
    tt_net_key_draw(&out->key);
    for (uint32_t i = 0; i < ends; i++)
        if (tt_net_resolve("127.0.0.1", 0, &out->address[i], &err) != TT_OK ||
            tt_net_listen(&out->address[i], &out->listener[i], &err) != TT_OK)
            stop_with("cannot listen");
}

static void
close_connections(connections *by, uint32_t ends)
{
    if (by->by == BY_RINGS)
        (void)close(by->rings);
    for (uint32_t i = 0; by->by != BY_RINGS && i < ends; i++)
        (void)close(by->listener[i]);
}

// Operations a second, of all workers.
static double
measure_mesh(const bench_case *c, way by, const options *o)
{
    pid_t child[2 * SIDES_MAX];
    board *b = new_board();
    connections links;
    open_connections(by, 2 * c->sides, &links);
    for (uint32_t i = 0; i < 2 * c->sides; i++) {
        child[i] = fork();
        if (child[i] < 0)
            stop_with("fork");
        if (child[i] == 0)
            run_child(c, b, &links, i);
    }
    while (tt_load_acquire(&b->ready) < 2 * c->sides)
        sleep_s(1e-3);
    sleep_s(0.1 * o->seconds);
    uint64_t before = 0, after = 0, begin_ns = now_ns();
    for (uint32_t i = 0; i < c->sides; i++)
        before += tt_load_relaxed(&b->operations[i]);
    sleep_s(o->seconds);
    for (uint32_t i = 0; i < c->sides; i++)
        after += tt_load_relaxed(&b->operations[i]);
    double seconds = 1e-9 * (double)(now_ns() - begin_ns);
    end_children(b, child, 2 * c->sides);
    close_connections(&links, 2 * c->sides);
    (void)munmap(b, sizeof *b);
    return (double)(after - before) / seconds;
}

// ---- what it is compared with
// ---------------------------------------------------------------------

// Bytes a second of one thread that copies `size` bytes at a time from one pool to another.
static double
measure_memcpy(size_t size, uint32_t in_flight, const options *o)
{
    size_t pool = size * in_flight;
    uint8_t *from = tt_mem_zalloc_vector(pool, 1), *to = tt_mem_zalloc_vector(pool, 1);
    if (from == NULL || to == NULL)
        stop_with("no memory");
    memset(from, 1, pool);
    memset(to, 1, pool);
    uint64_t copied = 0, begin_ns = now_ns(), end_ns = begin_ns + (uint64_t)(1e9 * o->seconds / 3);
    while (now_ns() < end_ns)
        for (uint32_t turn = 0; turn < TT_MAX((1u << 20) / pool, 1u); turn++)
            for (size_t at = 0; at < pool; at += size) {
                memcpy(to + at, from + at, size);
                __asm__ volatile("" ::: "memory"); // nobody looks at it
                copied += size;
            }
    double seconds = 1e-9 * (double)(now_ns() - begin_ns);
    tt_mem_free(from);
    tt_mem_free(to);
    return (double)copied / seconds;
}

static int
send_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return 0;
        bytes += sent;
        size -= (size_t)sent;
    }
    return 1;
}

static int
receive_all(int fd, uint8_t *bytes, size_t size)
{
    return size == 0 || recv(fd, bytes, size, MSG_WAITALL) == (ssize_t)size;
}

// Answers each message of `size` bytes with `answer` bytes, until the other end is closed.
static _Noreturn void
answer_socket(int fd, size_t size, size_t answer)
{
    uint8_t *bytes = calloc(TT_MAX(size, answer), 1);
    while (bytes != NULL && receive_all(fd, bytes, size) && send_all(fd, bytes, answer))
        ;
    exit(0);
}

static void
tcp_pair(int *ends)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int on = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || ends[0] < 0 ||
        bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        connect(ends[0], (struct sockaddr *)&address, sizeof address) != 0)
        stop_with("no TCP connection to this host");
    ends[1] = accept(listener, NULL, NULL);
    for (int i = 0; i < 2; i++)
        (void)setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)close(listener);
}

// Messages of `size` bytes a second, so many on their way, each answered with `answer` bytes.
static double
measure_socket(int is_tcp, size_t size, size_t answer, uint32_t in_flight, const options *o)
{
    int ends[2];
    if (is_tcp)
        tcp_pair(ends);
    else if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        stop_with("socketpair");
    pid_t child = fork();
    if (child < 0)
        stop_with("fork");
    if (child == 0) {
        (void)close(ends[0]);
        answer_socket(ends[1], size, answer);
    }
    (void)close(ends[1]);
    uint8_t *bytes = calloc(TT_MAX(size, answer), 1);
    if (bytes == NULL)
        stop_with("no memory");
    uint64_t done = 0, begin_ns = now_ns(), end_ns = begin_ns + (uint64_t)(1e9 * o->seconds / 2);
    for (uint32_t i = 0; i < in_flight; i++)
        if (!send_all(ends[0], bytes, size))
            stop_with("send");
    for (; now_ns() < end_ns; done++)
        if (!receive_all(ends[0], bytes, answer) || !send_all(ends[0], bytes, size))
            stop_with("a socket");
    double seconds = 1e-9 * (double)(now_ns() - begin_ns);
    (void)close(ends[0]);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    free(bytes);
    return (double)done / seconds;
}

// ---- cases
// ----------------------------------------------------------------------------------------

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct figures {
    double value[ROUNDS_MAX];
    int count;
} figures;

static double
quantile(figures *f, int of_4)
{
    qsort(f->value, (size_t)f->count, sizeof *f->value, by_size);
    return f->value[(f->count - 1) * of_4 / 4];
}

static void
name_of(const bench_case *c, char *out, size_t size)
{
    static const char *const kinds[] = {"new lists", "one list"};
    if (is_sparse(c))
        (void)snprintf(out, size, "%s %d keys of %d, %s, %ux%u", operation_names[c->op],
                       SPARSE_KEYS, SPARSE_RANGE, c->lists < 2 ? kinds[c->lists] : "16 lists",
                       c->sides, c->sides);
    else if (c->op == ROUND_TRIP)
        (void)snprintf(out, size, "%s 64 B", operation_names[c->op]);
    else
        (void)snprintf(out, size, "%s %u KiB, %u in flight, %ux%u", operation_names[c->op],
                       c->size >> 10, c->in_flight, c->sides, c->sides);
}

// What an operation of the case moves, in the unit of its line.
static double
amount_of(const bench_case *c)
{
    if (is_sparse(c))
        return 1e-6 * SPARSE_KEYS;
    if (c->op == ROUND_TRIP)
        return 1;
    return 1e-9 * c->size * c->in_flight * c->sides * (c->op == BOTH ? 2 : 1);
}

static void
print_line(const char *name, const char *what, const char *unit, figures *f, double baseline)
{
    double median = quantile(f, 2);
    (void)printf(
        "{\"bench\": \"dataplane\", \"case\": \"%s\", \"params\": \"%s\", \"seed\": 1, \"n\": "
        "%d, \"median\": %.4g, \"p25\": %.4g, \"p75\": %.4g, \"unit\": \"%s\"",
        name, what, f->count, median, quantile(f, 1), quantile(f, 3), unit);
    if (baseline > 0)
        (void)printf(", \"baseline\": %.4g, \"ratio\": %.4g", baseline, median / baseline);
    (void)printf("}\n");
    (void)fflush(stdout);
}

static void
add(figures *f, double value)
{
    f->value[f->count++] = value;
}

static void
run_case(const bench_case *c, const options *o)
{
    enum { RING, TCP_MESH, SEALED_MESH, MEMCPY, UNIX_SOCKET, TCP, SERIES };
    static const char *const series[] = {"ring",   "tcp mesh",    "tcp mesh, encrypted",
                                         "memcpy", "unix socket", "tcp socket"};
    char name[96];
    figures f[SERIES] = {0};
    name_of(c, name, sizeof name);
    if (o->only != NULL && strstr(name, o->only) == NULL)
        return;
    int trip = c->op == ROUND_TRIP, compared = !is_sparse(c) && c->sides == 1 && c->op != BOTH;
    size_t there = c->op == PULL ? 64 : c->size, back = c->op == PULL ? c->size : 64;
    double bytes = 1e-9 * c->size;
    for (int round = 0; round < o->rounds; round++) {
        for (way by = BY_RINGS; by <= BY_SEALED_TCP; by++) {
            double operations = measure_mesh(c, by, o);
            add(&f[RING + by], trip ? 1e6 / operations : operations * amount_of(c));
        }
        if (!is_sparse(c) && !trip)
            add(&f[MEMCPY], 1e-9 * measure_memcpy(c->size, c->in_flight, o));
        for (int tcp = 0; compared && tcp < 2; tcp++) {
            double messages =
                measure_socket(tcp, trip ? 64 : there, trip ? 64 : back, c->in_flight, o);
            add(&f[UNIX_SOCKET + tcp], trip ? 1e6 / messages : messages * bytes);
        }
    }
    const char *unit = trip ? "us" : is_sparse(c) ? "M keys/s" : "GB/s";
    double memory = f[MEMCPY].count > 0 ? quantile(&f[MEMCPY], 2) : 0;
    double socket = f[TCP].count > 0 ? quantile(&f[TCP], 2) : 0;
    for (int i = 0; i < SERIES; i++) {
        int is_mesh = i == TCP_MESH || i == SEALED_MESH;
        if (f[i].count > 0)
            print_line(name, series[i], unit, &f[i], is_mesh ? socket : i == MEMCPY ? 0 : memory);
    }
}

static options
parse(int argc, char **argv)
{
    options o = {.seconds = 0.3, .rounds = 5};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            o.seconds = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--rounds") == 0)
            o.rounds = (int)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0)
            o.only = argv[i + 1];
        else
            argc = 0;
    }
    if (argc % 2 == 0 || !(o.seconds > 0) || o.rounds < 1 || o.rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "dataplane_bench [--seconds S] [--rounds 1..%d] [--only TEXT]\n",
                      ROUNDS_MAX);
        exit(2);
    }
    return o;
}

int
main(int argc, char **argv)
{
    static const uint32_t sizes[] = {1 << 10, 64 << 10, 1 << 20, 4 << 20};
    static const operation dense[] = {PUSH, PULL, BOTH};
    static const uint32_t lists[] = {0, 1, KEY_SETS};
    options o = parse(argc, argv);
    run_case(&(bench_case){ROUND_TRIP, 64, 1, 1, 0}, &o);
    for (uint32_t sides = 1; sides <= SIDES_MAX; sides++)
        for (size_t s = 0; s < TT_COUNT_OF(sizes); s++)
            for (uint32_t in_flight = 1; in_flight <= 8; in_flight += 7)
                for (size_t op = 0; op < TT_COUNT_OF(dense); op++)
                    run_case(&(bench_case){dense[op], sizes[s], in_flight, sides, 0}, &o);
    for (uint32_t sides = 1; sides <= SIDES_MAX; sides++)
        for (size_t l = 0; l < TT_COUNT_OF(lists); l++)
            for (operation op = SPARSE_PULL; op <= SPARSE_PUSH; op++)
                run_case(&(bench_case){op, 0, 4, sides, lists[l]}, &o);
    return 0;
}
