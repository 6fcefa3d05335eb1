// Rows that are put into memory at once and brought to the disk by a thread of the store's own. A
// disk may stall any call for as long as it likes (syncing the log, folding it into the file, a
// full page cache), and whoever drives a job must not stall with it.
//
// Two buffers: the owner fills one, the thread writes the other as one transaction. `is_busy` says
// whose the second one is, and with it the store's connection, statements and sample block.
#include "store_private.h"
#include "tt/atomic.h"
#include "tt/core_archive.h"
#include "tt/core_thread.h"
#include <string.h>

enum { WAITING_BYTES_MAX = 64 << 20, WAIT_NS = 1000000000 };

enum { SAMPLE = TTI_STORE_STATEMENT_COUNT }; // beside the statements: a tt_store_sample

// One row in a buffer; its cells or its sample come after it, then the cells' texts.
typedef struct row {
    uint32_t bytes; // of all that, up to the next row
    uint32_t which;
    uint64_t cell_count;
} row;

struct tti_store_behind {
    tt_thread thread;
    tt_archive filling; // the owner's
    tt_archive writing;
    int in_batch;           // the owner's: between begin and commit
    size_t batch_at;        // the owner's: where in `filling` the open batch begins
    int64_t last_iteration; // the owner's: of the samples
    int is_busy;            // set by the owner, taken back by the thread
    int must_end;
    tt_event given, done;
    tt_status status; // of the last batch
    tt_error failure;
};

// ---- the thread
// ----------------------------------------------------------------------------------

static tt_status
write_row(tt_store *store, row *r, tt_error *err)
{
    void *content = r + 1;
    if (r->which == SAMPLE)
        return tti_store_put_sample_now(store, content, err);
    tti_store_cell *cells = content;
    for (uint64_t i = 0; i < r->cell_count; i++)
        if (cells[i].type == TTI_CELL_TEXT)
            cells[i].text = cells[i].integer >= 0 ? (const char *)r + cells[i].integer : NULL;
    return tti_store_write_now(store, (tti_store_statement)r->which, cells, r->cell_count, err);
}

// The first error of a batch is the one that is told.
static void
keep_first(tti_store_behind *b, tt_status status, const tt_error *err)
{
    if (status == TT_OK || b->status != TT_OK)
        return;
    b->status = status;
    b->failure = *err;
}

// All of the batch; after a fault of the disk, nothing of it.
static void
write_batch(tt_store *store)
{
    tti_store_behind *b = store->behind;
    tt_error err = {0};
    b->status = TT_OK;
    keep_first(b, tti_store_begin_now(store, &err), &err);
    for (size_t at = 0; at < b->writing.count && store->in_transaction;) {
        row *r = (row *)(void *)(b->writing.bytes + at);
        at += r->bytes;
        keep_first(b, write_row(store, r, &err), &err);
    }
    keep_first(b, tti_store_commit_now(store, &err), &err);
}

static void *
writer_main(void *self)
{
    tt_store *store = self;
    tti_store_behind *b = store->behind;
    tt_thread_set_background();
    for (;;) {
        uint32_t seen = tt_event_read(&b->given);
        if (tt_load_acquire(&b->is_busy)) { // released in hand_over
            write_batch(store);
            tt_store_release(&b->is_busy, 0); // acquired in is_idle
            tt_event_signal(&b->done);
        } else if (tt_load_acquire(&b->must_end)) // released in tti_store_end_behind
            return NULL;
        else
            (void)tt_event_wait(&b->given, seen, 0, WAIT_NS);
    }
}

// ---- the owner
// -----------------------------------------------------------------------------------

static int
is_idle(const tti_store_behind *b)
{
    return !tt_load_acquire(&b->is_busy); // released in writer_main
}

// What is waiting goes to the thread, if it has ended the last batch; that one's failure is told.
static tt_status
hand_over(tti_store_behind *b, tt_error *err)
{
    if (!is_idle(b))
        return TT_OK; // with the next batch, then
    tt_status status = b->status;
    if (status != TT_OK && err != NULL)
        *err = b->failure;
    b->status = TT_OK;
    if (b->filling.count == 0)
        return status;
    tt_archive other = b->writing;
    b->writing = b->filling;
    b->filling = other;
    tt_archive_rewind(&b->filling);
    b->batch_at = 0;
    tt_store_release(&b->is_busy, 1); // acquired in writer_main
    tt_event_signal(&b->given);
    return status;
}

static void
await_idle(tti_store_behind *b)
{
    while (!is_idle(b)) {
        uint32_t seen = tt_event_read(&b->done);
        if (!is_idle(b))
            (void)tt_event_wait(&b->done, seen, 0, WAIT_NS);
    }
}

// Room for a row with `content` bytes behind its head, zeroed. A disk that stalls for so long that
// much is waiting is waited for.
static tt_status
begin_row(tti_store_behind *b, uint32_t which, size_t content, row **out, tt_error *err)
{
    size_t bytes = (sizeof **out + content + 7) / 8 * 8;
    if (b->filling.count + bytes > WAITING_BYTES_MAX) {
        await_idle(b);
        TT_TRY(hand_over(b, err));
    }
    row *r = tt_archive_room(&b->filling, bytes);
    if (r == NULL) {
        b->filling.status = TT_OK; // what is in it stays
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for rows that wait to be stored");
    }
    memset(r, 0, bytes);
    r->bytes = (uint32_t)bytes;
    r->which = which;
    *out = r;
    return TT_OK;
}

static tt_status
end_row(tti_store_behind *b, tt_error *err)
{
    return b->in_batch ? TT_OK : hand_over(b, err);
}

tt_status
tti_store_row_behind(tt_store *store,
                     tti_store_statement which,
                     const tti_store_cell *cells,
                     size_t count,
                     tt_error *err)
{
    size_t text_at = sizeof(row) + count * sizeof *cells, content = count * sizeof *cells;
    for (size_t i = 0; i < count; i++)
        if (cells[i].type == TTI_CELL_TEXT && cells[i].text != NULL)
            content += strlen(cells[i].text) + 1;
    row *r;
    TT_TRY(begin_row(store->behind, which, content, &r, err));
    r->cell_count = count;
    tti_store_cell *copies = (tti_store_cell *)(void *)(r + 1);
    for (size_t i = 0; i < count; i++) {
        copies[i] = cells[i];
        if (cells[i].type != TTI_CELL_TEXT)
            continue;
        copies[i].integer = -1; // where its text lies, from the row's begin
        if (cells[i].text == NULL)
            continue;
        size_t bytes = strlen(cells[i].text) + 1;
        memcpy((char *)r + text_at, cells[i].text, bytes);
        copies[i].integer = (int64_t)text_at;
        text_at += bytes;
    }
    return end_row(store->behind, err);
}

tt_status
tti_store_sample_behind(tt_store *store, const tt_store_sample *sample, tt_error *err)
{
    tti_store_behind *b = store->behind;
    row *r;
    TT_TRY(tti_store_check_order(store, &b->last_iteration, sample, err));
    TT_TRY(begin_row(b, SAMPLE, sizeof *sample, &r, err));
    memcpy(r + 1, sample, sizeof *sample);
    return end_row(b, err);
}

void
tti_store_begin_behind(tt_store *store)
{
    TT_ASSERT(!store->behind->in_batch);
    store->behind->in_batch = 1;
    store->behind->batch_at = store->behind->filling.count;
}

void
tti_store_abandon_behind(tt_store *store)
{
    store->behind->in_batch = 0;
    store->behind->filling.count = store->behind->batch_at;
}

tt_status
tti_store_commit_behind(tt_store *store, tt_error *err)
{
    store->behind->in_batch = 0;
    return hand_over(store->behind, err);
}

int
tti_store_is_in_batch(const tt_store *store)
{
    return store->behind->in_batch;
}

// ---- begin and end
// -------------------------------------------------------------------------------

tt_status
tt_store_write_behind(tt_store *store, tt_error *err)
{
    TT_ASSERT(store->writable && !store->in_transaction && store->behind == NULL);
    tti_store_behind *b = tt_mem_zalloc(1, sizeof *b);
    if (b == NULL)
        return tt_error_set(err, TT_NOMEM, store->path, NULL, "no memory to write it behind");
    b->last_iteration = store->last_iteration;
    store->behind = b;
    tt_status status = tt_thread_start(&b->thread, "tt-store", writer_main, store, err);
    if (status == TT_OK)
        return TT_OK;
    store->behind = NULL;
    tt_mem_free(b);
    return status;
}

tt_status
tt_store_catch_up(tt_store *store, tt_error *err)
{
    tti_store_behind *b = store->behind;
    if (b == NULL)
        return TT_OK;
    await_idle(b);
    tt_status first = hand_over(b, err); // of an earlier batch
    await_idle(b);
    tt_status last = hand_over(b, first == TT_OK ? err : NULL);
    return first != TT_OK ? first : last;
}

tt_status
tti_store_end_behind(tt_store *store, tt_error *err)
{
    tti_store_behind *b = store->behind;
    if (b == NULL)
        return TT_OK;
    tt_status status = tt_store_catch_up(store, err);
    tt_store_release(&b->must_end, 1); // acquired in writer_main
    tt_event_signal(&b->given);
    tt_thread_join(&b->thread);
    tt_archive_fini(&b->filling);
    tt_archive_fini(&b->writing);
    store->behind = NULL;
    tt_mem_free(b);
    return status;
}
