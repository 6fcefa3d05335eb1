// Goal: whoever reads what a master has left knows what it knew, whenever it ended: after any
// entry, and killed at any instruction. Method: random changes of the books, and a successor's that
// must be equal to the byte; processes that are killed in the middle, after which no row may be
// missing or there twice.
#include "job_test_util.h"
#include "runtime.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { NODES = 6, UNIT = 20 };

#ifdef TT_TSAN // who is killed is to have done something
enum { SLOWER = 5 };
#else
enum { SLOWER = 1 };
#endif

static const char job_text[] = "data: {format: clicklog, rows: 3000, columns: 500, fields: 5}\n"
                               "model: {kind: logistic_regression}\n"
                               "optimizer: {kind: sgd, learning_rate: 0.1, batch_size: 20}\n"
                               "stop: {max_epochs: 30}\n"
                               "cluster: {engine: local, nodes: 6, replicas: 1}\n";

static tt_job *
open_job(const char *consistency)
{
    char path[] = "/tmp/tt-books-test-XXXXXX", which[64];
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, job_text, sizeof job_text - 1), sizeof job_text - 1);
    assert_int_equal(close(file), 0);
    (void)snprintf(which, sizeof which, "consistency=%s", consistency);
    const char *files[] = {path}, *overrides[] = {which};
    tt_job_source source = {
        .files = files, .file_count = 1, .overrides = overrides, .override_count = 1};
    tt_job *job;
    tt_error err;
    assert_int_equal(tt_job_open(&source, stderr, &job, &err), TT_OK);
    assert_int_equal(unlink(path), 0);
    return job;
}

// ---- a master without nodes --------------------------------------------------------------------

static void
retired(void *self, uint32_t partition, uint32_t generation)
{
    tti_runtime *rt = self;
    if (generation == 0 || rt->moving[partition] != generation)
        return;
    rt->moving[partition] = 0;
    rt->unretired--;
}

static tti_runtime *
open_master(const tt_job *job)
{
    tti_runtime *rt = tt_mem_zalloc_vector(1, sizeof *rt);
    tt_error err;
    assert_non_null(rt);
    rt->job = job;
    rt->node_count = NODES;
    rt->apart = 1;
    rt->board.retired = retired;
    rt->board.self = rt;
    rt->standings = tt_mem_zalloc_vector(NODES, sizeof *rt->standings);
    rt->moving = tt_mem_zalloc(job->table.partition_count, sizeof *rt->moving);
    rt->backed = tt_mem_zalloc(job->table.partition_count, sizeof *rt->backed);
    assert_true(rt->standings != NULL && rt->moving != NULL && rt->backed != NULL);
    assert_int_equal(tti_work_open(job->shards, NODES, 64, &rt->work, &err), TT_OK);
    tt_ledger_set_limit(rt->work.ledger, 30);
    assert_int_equal(tti_command_open(rt, &err), TT_OK);
    assert_int_equal(tti_books_open(rt, &err), TT_OK);
    return rt;
}

static void
begin_first_generation(tti_runtime *rt)
{
    static const uint8_t is_server[NODES] = {1, 1};
    uint32_t moved;
    rt->newest = tt_mem_zalloc(1, sizeof *rt->newest);
    assert_non_null(rt->newest);
    assert_int_equal(tt_ps_view_first(&rt->job->table, NODES, is_server, &rt->newest->view), TT_OK);
    tt_space_start(&rt->job->space, &rt->newest->setting);
    uint16_t *owner = tt_mem_zalloc(tt_shards_count(rt->job->shards), sizeof *owner);
    (void)tt_ledger_plan(rt->work.ledger, rt->newest->view->is_worker, owner);
    moved = tt_ledger_assign(rt->work.ledger, owner);
    assert_int_equal(moved, tt_shards_count(rt->job->shards));
    tt_mem_free(owner);
}

static void
close_master(tti_runtime *rt)
{
    tti_command_close(rt);
    tti_books_close(rt);
    tti_work_close(&rt->work);
    tti_generations_free(rt->newest);
    tt_mem_free(rt->standings);
    tt_mem_free(rt->moving);
    tt_mem_free(rt->backed);
    tt_mem_free(rt);
}

static void
save(tti_runtime *rt, tt_archive *out)
{
    tt_archive_rewind(out);
    tti_books_save(rt, 12345, out);
    assert_int_equal(out->status, TT_OK);
}

static void
leave(tti_runtime *rt)
{
    tt_archive out = {0};
    tt_error err;
    save(rt, &out);
    const tt_span piece = {out.bytes, out.count};
    assert_int_equal(tti_journal_begin(rt->books.journal, &piece, 1, &err), TT_OK);
    tt_archive_fini(&out);
}

static tti_runtime *
succeed(const tt_job *job, tti_journal *journal)
{
    tti_runtime *rt = open_master(job);
    uint8_t *base;
    size_t size;
    tt_archive in;
    tt_error err = {0};
    assert_int_equal(tti_journal_read(journal, &base, &size, &err), TT_OK);
    tt_archive_read(&in, base, size);
    rt->books.journal = journal;
    assert_int_equal(tti_generation_read(&in, &rt->newest), TT_OK);
    assert_true(tti_generation_fits(job, rt->newest));
    assert_int_equal(tti_books_load(rt, &in, &err), TT_OK);
    assert_int_equal(rt->books.job_begin_ns, 12345);
    tt_mem_free(base);
    return rt;
}

// ---- what happens ------------------------------------------------------------------------------

static int
is_worker(const tti_runtime *rt, uint32_t n)
{
    return rt->newest->view->is_worker[n] && !rt->newest->view->is_gone[n];
}

static void
publish(tti_runtime *rt, tt_ps_view *view)
{
    uint32_t moved;
    tti_generation *generation = tt_mem_zalloc(1, sizeof *generation);
    assert_non_null(generation);
    *generation = (tti_generation){.view = view, .setting = rt->newest->setting};
    generation->setting.value[0] += 1;
    if (!tti_generation_fits(rt->job, generation))
        generation->setting = rt->newest->setting;
    assert_int_equal(tti_runtime_take_generation(rt, generation, &moved), TT_OK);
    tti_books_enter_generation(rt);
    tti_generations_free(generation->previous);
    generation->previous = NULL;
}

static void
die(tti_runtime *rt, uint32_t n)
{
    uint8_t is_dead[NODES] = {0}, moving[1024] = {0};
    tt_ps_view *view;
    assert_true(rt->job->table.partition_count <= sizeof moving);
    is_dead[n] = 1;
    for (uint32_t p = 0; p < rt->job->table.partition_count; p++)
        moving[p] = rt->moving[p] != 0;
    if (rt->newest->view->is_gone[n] ||
        tt_ps_view_without(rt->newest->view, is_dead, moving, rt->backed, 2, &view) != TT_OK)
        return;
    if (rt->job->table.consistency == TT_PS_BSP)
        tti_books_count_rounds(rt, 1, 2);
    publish(rt, view);
    assert_true(tti_books_bury(rt, n));
}

static void
come_back(tti_runtime *rt, uint32_t n)
{
    uint8_t is_back[NODES] = {0}, is_server[NODES];
    uint32_t attempt[NODES];
    tt_ps_view *view;
    const tt_ps_view *now = rt->newest->view;
    if (!now->is_gone[n] || tti_left_some(rt))
        return;
    is_back[n] = 1;
    for (uint32_t i = 0; i < NODES; i++) {
        attempt[i] = now->attempt[i] + (i == n);
        is_server[i] = !now->is_gone[i] && !now->is_worker[i];
    }
    assert_int_equal(tt_ps_view_with(now, is_back, attempt, is_server, &view), TT_OK);
    publish(rt, view);
}

static void
train(tti_runtime *rt, uint32_t n, tt_rng *rng)
{
    int bsp = rt->job->table.consistency == TT_PS_BSP;
    uint64_t untrained = tti_account_untrained(&rt->books.nodes[n].account);
    tti_record record = {.examples = (uint32_t)TT_MIN(untrained, (uint64_t)UNIT),
                         .slice = (uint32_t)tt_rng_below(rng, 4),
                         .sequence = tt_rng_below(rng, 60)};
    if (!bsp && untrained == 0)
        return;
    tti_books_hear_record(rt, n, &record);
    if (!bsp)
        (void)tti_work_count(&rt->work, 1, record.examples);
}

// Of somebody who died: of the batches it had it has begun one, or none.
static void
tell_last_batch(tti_runtime *rt, uint32_t n, tt_rng *rng)
{
    uint32_t whose = (uint32_t)tt_rng_below(rng, NODES);
    const tti_left *left = &rt->books.left[whose];
    uint32_t rows = 1 + (uint32_t)tt_rng_below(rng, UNIT);
    uint64_t end = left->first + tt_rng_below(rng, left->count + 1);
    const tti_end told = {.kind = TTI_END_BATCH,
                          .worker = whose,
                          .batch = {end, rows, left->attempt - (tt_rng_below(rng, 8) == 0)}};
    // Another's batch is not begun under a name of its own.
    if (left->state != TTI_LEFT_IN_DOUBT || left->again.batch.rows > 0)
        return;
    tti_books_hear_end(rt, n, &told);
}

static void
happen(tti_runtime *rt, tt_rng *rng)
{
    uint32_t n = (uint32_t)tt_rng_below(rng, NODES);
    uint32_t p = (uint32_t)tt_rng_below(rng, rt->job->table.partition_count);
    uint32_t begun = tti_left_find_begun(rt), newest = rt->newest->view->generation;
    const tti_end end = {.kind = TTI_END_MOVE, .partition = p, .generation = rt->moving[p]},
                  backed = {.kind = TTI_END_BACKED, .partition = p, .generation = newest};
    switch (tt_rng_below(rng, 13)) {
    case 0:
        die(rt, n);
        break;
    case 1:
        come_back(rt, n);
        break;
    case 2:
        if (!rt->newest->view->is_gone[n])
            tti_books_hear_end(rt, n, tt_rng_below(rng, 2) ? &end : &backed);
        break;
    case 3:
        if (tti_left_doubts(rt) && tt_rng_below(rng, 2))
            tti_books_settle(rt);
        else if (tti_left_doubts(rt) && !rt->newest->view->is_gone[n])
            tell_last_batch(rt, n, rng);
        break;
    case 4:
        if (is_worker(rt, n))
            tti_books_take_back(rt, n);
        break;
    case 5:
        rt->board.gate++;
        rt->board.rest_call++;
        tti_books_enter_board(rt);
        break;
    case 6:
        if (begun < NODES && is_worker(rt, n) && rt->books.nodes[n].account.again.batch.rows == 0 &&
            tti_account_room(&rt->books.nodes[n].account) >= rt->books.left[begun].count)
            tti_books_take_again(rt, n, begun);
        break;
    case 12:
    case 7:
    case 8:
        if (is_worker(rt, n))
            train(rt, n, rng);
        break;
    default:
        if (rt->job->table.consistency != TT_PS_BSP && is_worker(rt, n) &&
            tti_account_room(&rt->books.nodes[n].account) >= UNIT)
            (void)tti_books_take(rt, n, UNIT);
    }
}

// ---- the tests ---------------------------------------------------------------------------------

static void
assert_equal_books(tti_runtime *a, tti_runtime *b)
{
    tt_archive first = {0}, second = {0};
    // A successor's is open, and nobody has heard of it.
    assert_int_equal(b->board.gate % 2, 0);
    assert_true(b->board.gate > a->board.gate);
    b->board.gate = a->board.gate;
    save(a, &first);
    save(b, &second);
    assert_int_equal(first.count, second.count);
    assert_memory_equal(first.bytes, second.bytes, first.count);
    assert_int_equal(a->unretired, b->unretired);
    tt_archive_fini(&first);
    tt_archive_fini(&second);
}

static void
compare_for(const char *consistency, uint64_t seed)
{
    tt_job *job = open_job(consistency);
    tti_runtime *rt = open_master(job);
    tti_journal journal;
    tt_error err;
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 0);
    assert_int_equal(tti_journal_open(&journal, &err), TT_OK);
    begin_first_generation(rt);
    rt->books.journal = &journal;
    leave(rt);
    for (int i = 0; i < 3000; i++) {
        happen(rt, &rng);
        if (tt_rng_below(&rng, 200) == 0)
            leave(rt);
        if (tt_rng_below(&rng, 30) != 0)
            continue;
        tti_runtime *successor = succeed(job, &journal);
        assert_equal_books(rt, successor);
        close_master(successor);
    }
    close_master(rt);
    tti_journal_close(&journal);
    tt_job_close(job);
}

static void
a_successor_knows_what_the_master_knew(void **state)
{
    TT_UNUSED(state);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        compare_for("asp", seed);
        compare_for("bsp", seed);
    }
}

// Rows that the work has given out are trained, with somebody, or nobody's.
static void
assert_every_row_is_somewhere(tti_runtime *rt)
{
    uint64_t there =
        rt->work.examples_trained + tti_books_untrained_count(rt) + rt->work.orphan_count;
    assert_int_equal(tt_ledger_examples(rt->work.ledger), there);
}

_Noreturn static void
go_on_for_ever(const tt_job *job, tti_journal *journal, uint64_t seed)
{
    tti_runtime *rt = succeed(job, journal);
    tt_rng rng;
    tt_rng_init(&rng, seed, TT_RNG_TEST, 1);
    for (;;) {
        happen(rt, &rng);
        if (tt_rng_below(&rng, 100) == 0)
            leave(rt);
    }
}

static void
a_master_may_be_killed_anywhere(void **state)
{
    TT_UNUSED(state);
    tt_job *job = open_job("asp");
    tti_runtime *rt = open_master(job);
    tti_journal journal, other;
    tt_error err;
    tt_rng rng;
    tt_rng_init(&rng, 1, TT_RNG_TEST, 2);
    assert_int_equal(tti_journal_open(&journal, &err), TT_OK);
    begin_first_generation(rt);
    rt->books.journal = &journal;
    leave(rt);
    close_master(rt);
    uint64_t trained = 0;
    for (uint64_t i = 1; i <= 60; i++) {
        pid_t child = fork();
        if (child == 0)
            go_on_for_ever(job, &journal, i);
        const double least = (double)SLOWER * 5e6, more = (double)SLOWER * 2e7;
        const struct timespec pause = {.tv_nsec = (long)(least + more * tt_rng_uniform(&rng))};
        (void)nanosleep(&pause, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_int_equal(tti_journal_map(dup(journal.descriptor), &other, &err), TT_OK);
        rt = succeed(job, &other);
        assert_every_row_is_somewhere(rt);
        assert_true(rt->work.examples_trained >= trained);
        trained = rt->work.examples_trained;
        leave(rt);
        close_master(rt);
        tti_journal_close(&other);
    }
    assert_true(trained > 0);
    tti_journal_close(&journal);
    tt_job_close(job);
}

static void
without_whole_entries_there_is_no_successor(void **state)
{
    TT_UNUSED(state);
    static uint8_t large[1 << 20];
    tti_journal journal;
    tt_error err;
    uint8_t *base;
    size_t size, cursor = 0;
    const tt_span piece = {large, sizeof large}, little = {"base", 4};
    assert_int_equal(tti_journal_open(&journal, &err), TT_OK);
    assert_int_equal(tti_journal_read(&journal, &base, &size, &err), TT_NOTFOUND);
    assert_int_equal(tti_journal_begin(&journal, &little, 1, &err), TT_OK);
    assert_null(tti_journal_next(&journal, &cursor, &size));
    for (int i = 0; i < 20; i++)
        tti_journal_add(&journal, &piece, 1);
    assert_true(tti_journal_is_long(&journal));
    assert_int_equal(tti_journal_read(&journal, &base, &size, &err), TT_OK);
    tt_mem_free(base);
    for (int i = 0; i < 20; i++)
        tti_journal_add(&journal, &piece, 1);
    assert_int_equal(tti_journal_read(&journal, &base, &size, &err), TT_NOTFOUND);
    assert_int_equal(tti_journal_begin(&journal, &little, 1, &err), TT_OK); // and all is well again
    assert_int_equal(tti_journal_read(&journal, &base, &size, &err), TT_OK);
    assert_int_equal(size, 4);
    assert_memory_equal(base, "base", 4);
    tt_mem_free(base);
    assert_int_equal(tti_journal_map(dup(STDIN_FILENO), &journal, &err), TT_CORRUPT);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_successor_knows_what_the_master_knew),
        cmocka_unit_test(a_master_may_be_killed_anywhere),
        cmocka_unit_test(without_whole_entries_there_is_no_successor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
