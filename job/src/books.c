// The master's books: see books.h.
#include "books.h"
#include "runtime.h"
#include <string.h>

typedef enum entry_kind {
    ENTRY_TAKE,         // rows of a batch
    ENTRY_TAKE_BACK,    //
    ENTRY_TAKE_AGAIN,   // whose
    ENTRY_BURY,         //
    ENTRY_SETTLE,       //
    ENTRY_RECORD,       // examples; BSP also slice and round
    ENTRY_END,          // behind it: the end
    ENTRY_COUNT_ROUNDS, // slice, round
    ENTRY_GO_BACK,      //
    ENTRY_BOARD,        // gate, call to rest
    ENTRY_GENERATION,   // behind it: the generation
} entry_kind;

typedef struct entry {
    uint32_t kind, node;
    uint32_t value[4];
} entry;

static int
is_bsp(const tti_runtime *rt)
{
    return rt->job->table.consistency == TT_PS_BSP;
}

static void
enter_pieces(const tti_runtime *rt, const tt_span *pieces, uint32_t count)
{
    if (rt->books.journal != NULL && !rt->books.is_replaying)
        tti_journal_add(rt->books.journal, pieces, count);
}

static void
enter(const tti_runtime *rt, entry_kind kind, uint32_t n, uint32_t a, uint32_t b, uint32_t c)
{
    const entry what = {kind, n, {a, b, c, 0}};
    const tt_span piece = {&what, sizeof what};
    enter_pieces(rt, &piece, 1);
}

// ---- opening and closing -----------------------------------------------------------------------

tt_status
tti_books_open(tti_runtime *rt, tt_error *err)
{
    tti_books *books = &rt->books;
    books->masters = 1;
    books->nodes = tt_mem_zalloc(rt->node_count, sizeof *books->nodes);
    books->left = tt_mem_zalloc(rt->node_count, sizeof *books->left);
    tt_status status = books->nodes != NULL && books->left != NULL ? TT_OK : TT_NOMEM;
    for (uint32_t n = 0; status == TT_OK && n < rt->node_count; n++)
        status = tti_account_open(&books->nodes[n].account, tti_worker_rows_max(rt->job));
    books->batch = tt_mem_zalloc(tti_worker_rows_max(rt->job), sizeof *books->batch);
    if (status != TT_OK || books->batch == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
    return TT_OK;
}

void
tti_books_close(tti_runtime *rt)
{
    tti_books *books = &rt->books;
    for (uint32_t n = 0; books->nodes != NULL && n < rt->node_count; n++)
        tti_account_close(&books->nodes[n].account);
    tt_mem_free(books->nodes);
    tt_mem_free(books->batch);
    tti_left_close(rt);
    *books = (tti_books){0};
}

// ---- rows --------------------------------------------------------------------------------------

uint32_t
tti_books_take(tti_runtime *rt, uint32_t n, uint32_t unit)
{
    tti_books *books = &rt->books;
    uint32_t taken = tti_work_take(&rt->work, n, unit, books->batch);
    tti_account_grant(&books->nodes[n].account, books->batch, taken);
    enter(rt, ENTRY_TAKE, n, unit, 0, 0);
    return taken;
}

void
tti_books_take_back(tti_runtime *rt, uint32_t n)
{
    tti_left_take_back(rt, n);
    tt_ledger_release(rt->work.ledger, n);
    tti_account_next(&rt->books.nodes[n].account);
    enter(rt, ENTRY_TAKE_BACK, n, 0, 0, 0);
}

int
tti_books_bury(tti_runtime *rt, uint32_t n)
{
    tti_books *books = &rt->books;
    const tt_ps_view *view = rt->newest->view;
    if (!tti_left_leave(rt, n, view->attempt[n] - 1)) // rule 8: the next one's
        return 0;
    tti_account account = books->nodes[n].account;
    books->doubt_generation = view->generation;
    tt_ledger_release(rt->work.ledger, n);
    tti_account_next(&account);
    account.number = 1; // as a new process counts
    account.before = 0;
    books->nodes[n] = (tti_book){.account = account};
    enter(rt, ENTRY_BURY, n, 0, 0, 0);
    return 1;
}

void
tti_books_settle(tti_runtime *rt)
{
    tti_left_settle(rt);
    enter(rt, ENTRY_SETTLE, 0, 0, 0, 0);
}

void
tti_books_take_again(tti_runtime *rt, uint32_t n, uint32_t whose)
{
    tti_left_grant(rt, n, whose);
    enter(rt, ENTRY_TAKE_AGAIN, n, whose, 0, 0);
}

uint64_t
tti_books_untrained_count(const tti_runtime *rt)
{
    uint64_t count = tti_left_count(rt);
    for (uint32_t n = 0; n < rt->node_count; n++)
        count += tti_account_untrained(&rt->books.nodes[n].account);
    return count;
}

// Whole batches, the next one last, for it is taken first; within a batch in order.
static void
save_account(const tti_account *account, uint32_t unit, uint32_t *batch_rows, tt_archive *out)
{
    uint64_t end = account->granted;
    while (end > account->trained) {
        uint64_t size = TT_MAX(unit, 1u), batch = (end - account->trained - 1) / size;
        uint64_t begin = account->trained + batch * size;
        uint32_t count = (uint32_t)(end - begin);
        tti_account_copy(account, begin, batch_rows, count);
        tt_archive_field(out, batch_rows, count * sizeof *batch_rows);
        end = begin;
    }
}

void
tti_books_save_untrained(const tti_runtime *rt, tt_archive *out)
{
    const tti_books *books = &rt->books;
    tti_left_save_rows(rt, out);
    for (uint32_t n = 0; n < rt->node_count; n++)
        save_account(&books->nodes[n].account, rt->command.nodes[n].unit, books->batch, out);
}

// ---- what was heard ----------------------------------------------------------------------------

void
tti_books_hear_record(tti_runtime *rt, uint32_t n, const tti_record *record)
{
    tti_book *book = &rt->books.nodes[n];
    uint32_t slice = TT_MIN(record->slice, (uint32_t)TT_PS_SLICES_MAX - 1);
    book->records_heard++;
    if (is_bsp(rt))
        (void)tti_work_count_slice(&rt->work, slice, (uint32_t)record->sequence, record->examples);
    else
        tti_account_trained(&book->account, record->examples);
    tti_left_trained(rt, n);
    enter(rt, ENTRY_RECORD, n, record->examples, slice, (uint32_t)record->sequence);
}

void
tti_books_hear_end(tti_runtime *rt, uint32_t n, const tti_end *end)
{
    const entry what = {.kind = ENTRY_END, .node = n};
    const tt_span pieces[] = {{&what, sizeof what}, {end, sizeof *end}};
    rt->books.nodes[n].ends_heard++;
    if (end->kind == TTI_END_BATCH && end->worker < rt->node_count)
        tti_left_hear(rt, end->worker, &end->batch);
    else if (end->kind == TTI_END_MOVE && end->partition < rt->job->table.partition_count)
        rt->board.retired(rt->board.self, end->partition, end->generation);
    else if (end->kind == TTI_END_BACKED && end->partition < rt->job->table.partition_count)
        tti_runtime_backed(rt, n, end->partition, end->generation);
    enter_pieces(rt, pieces, 2);
}

void
tti_books_count_rounds(tti_runtime *rt, uint32_t slice, uint32_t round)
{
    tti_work_count_slice_before(&rt->work, slice, round, tti_job_slice_rows(rt->job, slice));
    enter(rt, ENTRY_COUNT_ROUNDS, 0, slice, round, 0);
}

void
tti_books_go_back(tti_runtime *rt)
{
    rt->membership.must_go_back = 1;
    enter(rt, ENTRY_GO_BACK, 0, 0, 0, 0);
}

void
tti_books_give_up(tti_runtime *rt)
{
    if (rt->books.journal != NULL)
        tti_journal_give_up(rt->books.journal);
}

// ---- what is in force --------------------------------------------------------------------------

void
tti_books_enter_generation(tti_runtime *rt)
{
    tti_books *books = &rt->books;
    const entry what = {.kind = ENTRY_GENERATION};
    tt_archive bytes = {0};
    if (books->journal == NULL || books->is_replaying)
        return;
    tti_generation_write(rt->newest, &bytes);
    const tt_span pieces[] = {{&what, sizeof what}, {bytes.bytes, bytes.count}};
    if (bytes.status == TT_OK)
        tti_journal_add(books->journal, pieces, 2);
    else // without memory for it: what follows would make no sense
        tti_journal_give_up(books->journal);
    tt_archive_fini(&bytes);
}

void
tti_books_enter_board(tti_runtime *rt)
{
    tti_books *books = &rt->books;
    uint32_t gate = tt_load_relaxed(&rt->board.gate);
    uint32_t rest_call = tt_load_relaxed(&rt->board.rest_call);
    if (gate == books->gate && rest_call == books->rest_call)
        return;
    books->gate = gate;
    books->rest_call = rest_call;
    enter(rt, ENTRY_BOARD, 0, gate, rest_call, 0);
}

// ---- everything --------------------------------------------------------------------------------

static void
visit_rows(tt_archive *archive, uint32_t *rows, uint64_t count)
{
    if (count > 0)
        tt_archive_field(archive, rows, count * sizeof *rows);
}

// What it has granted and not heard to be trained, [batch rows] at a time.
static void
save_book(const tti_books *books, const tti_book *book, uint32_t most, tt_archive *out)
{
    tti_book copy = *book;
    TT_ARCHIVE(out, copy.account.number);
    TT_ARCHIVE(out, copy.account.granted);
    TT_ARCHIVE(out, copy.account.trained);
    TT_ARCHIVE(out, copy.account.before);
    TT_ARCHIVE(out, copy.account.again);
    TT_ARCHIVE(out, copy.records_heard);
    TT_ARCHIVE(out, copy.ends_heard);
    for (uint64_t at = copy.account.trained; at < copy.account.granted;) {
        uint32_t count = (uint32_t)TT_MIN(copy.account.granted - at, (uint64_t)most);
        tti_account_copy(&book->account, at, books->batch, count);
        visit_rows(out, books->batch, count);
        at += count;
    }
}

static void
load_book(const tti_books *books, tti_book *book, uint32_t most, tt_archive *in)
{
    uint64_t granted = 0;
    tti_account *account = &book->account;
    TT_ARCHIVE(in, account->number);
    TT_ARCHIVE(in, granted);
    TT_ARCHIVE(in, account->trained);
    TT_ARCHIVE(in, account->before);
    TT_ARCHIVE(in, account->again);
    TT_ARCHIVE(in, book->records_heard);
    TT_ARCHIVE(in, book->ends_heard);
    account->granted = account->trained;
    if (granted < account->trained || granted - account->trained > account->capacity)
        tt_archive_damaged(in);
    while (in->status == TT_OK && account->granted < granted) {
        uint32_t count = (uint32_t)TT_MIN(granted - account->granted, (uint64_t)most);
        visit_rows(in, books->batch, count);
        tti_account_grant(account, books->batch, count);
    }
}

static void
visit_moves(tti_runtime *rt, tt_archive *archive)
{
    uint32_t partitions = rt->job->table.partition_count;
    tt_archive_tag(archive, partitions);
    tt_archive_field(archive, rt->moving, partitions * sizeof *rt->moving);
    tt_archive_field(archive, rt->backed, partitions * sizeof *rt->backed);
    rt->unretired = 0;
    for (uint32_t p = 0; p < partitions; p++)
        rt->unretired += rt->moving[p] != 0;
}

static void
visit_counts(tti_runtime *rt, tt_archive *archive)
{
    TT_ARCHIVE(archive, rt->work.applied);
    TT_ARCHIVE(archive, rt->work.examples_trained);
    TT_ARCHIVE(archive, rt->work.slice_counts);
    TT_ARCHIVE(archive, rt->board.gate);
    TT_ARCHIVE(archive, rt->board.rest_call);
    TT_ARCHIVE(archive, rt->books.doubt_generation);
}

void
tti_books_save(tti_runtime *rt, uint64_t job_begin_ns, tt_archive *out)
{
    tti_books *books = &rt->books;
    tti_work *work = &rt->work;
    uint64_t orphans = work->orphan_count;
    TT_ASSERT(rt->command.pending_count == 0);
    tti_generation_write(rt->newest, out);
    TT_ARCHIVE(out, job_begin_ns);
    tt_ledger_save(work->ledger, out);
    tt_ledger_save_owners(work->ledger, out);
    visit_counts(rt, out);
    visit_moves(rt, out);
    TT_ARCHIVE(out, orphans);
    visit_rows(out, work->orphans, orphans);
    tti_left_save(rt, out);
    for (uint32_t n = 0; n < rt->node_count; n++)
        save_book(books, &books->nodes[n], tti_worker_rows_max(rt->job), out);
}

// ---- a successor's -----------------------------------------------------------------------------

// Rows that are nobody's.
static void
load_orphans(tti_runtime *rt, tt_archive *in)
{
    uint64_t left = 0, most = tti_worker_rows_max(rt->job);
    TT_ARCHIVE(in, left);
    while (in->status == TT_OK && left > 0) {
        uint32_t count = (uint32_t)TT_MIN(left, most);
        visit_rows(in, rt->books.batch, count);
        if (in->status == TT_OK)
            tti_work_return(&rt->work, rt->books.batch, count);
        left -= count;
    }
}

static tt_status
load_base(tti_runtime *rt, tt_archive *in)
{
    tti_books *books = &rt->books;
    TT_ARCHIVE(in, books->job_begin_ns);
    TT_TRY(tt_ledger_load(rt->work.ledger, in));
    TT_TRY(tt_ledger_load_owners(rt->work.ledger, in));
    visit_counts(rt, in);
    visit_moves(rt, in);
    load_orphans(rt, in);
    tti_left_load(rt, in);
    for (uint32_t n = 0; in->status == TT_OK && n < rt->node_count; n++)
        load_book(books, &books->nodes[n], tti_worker_rows_max(rt->job), in);
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (books->nodes[n].account.again.worker >= rt->node_count)
            tt_archive_damaged(in);
    return in->status;
}

static tt_status
do_generation(tti_runtime *rt, const uint8_t *bytes, size_t size)
{
    tt_archive in;
    tti_generation *generation;
    uint32_t shards_moved;
    tt_archive_read(&in, bytes, size);
    TT_TRY(tti_generation_read(&in, &generation));
    if (!tti_generation_fits(rt->job, generation)) {
        tti_generations_free(generation);
        return TT_CORRUPT;
    }
    tt_status status = tti_runtime_take_generation(rt, generation, &shards_moved);
    if (status != TT_OK)
        tti_generations_free(generation);
    return status;
}

static void
do_record(tti_runtime *rt, const entry *e)
{
    const tti_record record = {
        .examples = e->value[0], .slice = e->value[1], .sequence = e->value[2]};
    tti_books_hear_record(rt, e->node, &record);
    if (!is_bsp(rt))
        (void)tti_work_count(&rt->work, 1, record.examples);
}

static tt_status
do_take_again(tti_runtime *rt, uint32_t n, uint32_t whose)
{
    const tti_account *account = &rt->books.nodes[n].account;
    if (whose >= rt->node_count || rt->books.left[whose].state != TTI_LEFT_BEGUN ||
        account->again.batch.rows > 0 || tti_account_room(account) < rt->books.left[whose].count)
        return TT_CORRUPT;
    tti_books_take_again(rt, n, whose);
    return TT_OK;
}

static tt_status
do_again(tti_runtime *rt, const entry *e, const uint8_t *more, size_t size)
{
    const uint32_t *value = e->value;
    tti_end end;
    if (e->node >= rt->node_count)
        return TT_CORRUPT;
    switch ((entry_kind)e->kind) {
    case ENTRY_TAKE:
        if (tti_account_room(&rt->books.nodes[e->node].account) < value[0] ||
            value[0] > tti_worker_rows_max(rt->job))
            return TT_CORRUPT;
        (void)tti_books_take(rt, e->node, value[0]);
        break;
    case ENTRY_TAKE_BACK:
        tti_books_take_back(rt, e->node);
        break;
    case ENTRY_BURY:
        if (!tti_books_bury(rt, e->node))
            return TT_CORRUPT;
        break;
    case ENTRY_TAKE_AGAIN:
        return do_take_again(rt, e->node, value[0]);
    case ENTRY_SETTLE:
        tti_books_settle(rt);
        break;
    case ENTRY_RECORD:
        do_record(rt, e);
        break;
    case ENTRY_END:
        if (size < sizeof end)
            return TT_CORRUPT;
        memcpy(&end, more, sizeof end);
        tti_books_hear_end(rt, e->node, &end);
        break;
    case ENTRY_COUNT_ROUNDS:
        if (value[0] >= TT_PS_SLICES_MAX)
            return TT_CORRUPT;
        tti_books_count_rounds(rt, value[0], value[1]);
        break;
    case ENTRY_GO_BACK:
        tti_books_go_back(rt);
        break;
    case ENTRY_BOARD:
        rt->board.gate = value[0];
        rt->board.rest_call = value[1];
        break;
    case ENTRY_GENERATION:
        return do_generation(rt, more, size);
    }
    return TT_OK;
}

static tt_status
replay(tti_runtime *rt)
{
    size_t cursor = 0, size;
    const uint8_t *bytes;
    tt_status status = TT_OK;
    rt->books.is_replaying = 1;
    while (status == TT_OK &&
           (bytes = tti_journal_next(rt->books.journal, &cursor, &size)) != NULL) {
        entry e;
        status = size >= sizeof e ? TT_OK : TT_CORRUPT;
        if (status == TT_OK) {
            memcpy(&e, bytes, sizeof e);
            status = do_again(rt, &e, bytes + sizeof e, size - sizeof e);
        }
    }
    rt->books.is_replaying = 0;
    return status;
}

// As it is before a process has begun.
static int
is_blank(const tti_book *book)
{
    const tti_account *account = &book->account;
    return account->number == 1 && account->granted == 0 && book->records_heard == 0 &&
           book->ends_heard == 0;
}

// The last master was killed when it had told of a death and had not yet taken note of what the
// dead one had.
static tt_status
bury_the_gone(tti_runtime *rt)
{
    const tt_ps_view *view = rt->newest->view;
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (view->is_gone[n] && !is_blank(&rt->books.nodes[n]) && !tti_books_bury(rt, n))
            return TT_CORRUPT;
    return TT_OK;
}

// The gate is open for those who wait at it, under a number that nobody has heard.
static void
open_board(tti_runtime *rt)
{
    tti_books *books = &rt->books;
    rt->board.gate += 2 - rt->board.gate % 2;
    books->masters = tti_journal_succeed(books->journal);
    tti_books_enter_board(rt);
}

tt_status
tti_books_load(tti_runtime *rt, tt_archive *in, tt_error *err)
{
    tt_status status = load_base(rt, in);
    if (status == TT_OK)
        status = replay(rt);
    if (status == TT_OK)
        status = bury_the_gone(rt);
    if (status != TT_OK)
        return tt_error_set(err, status, NULL, NULL, "what the last master left makes no sense");
    open_board(rt);
    return TT_OK;
}
