// What dead workers have left behind: see left.h.
#include "runtime.h"
#include <string.h>

static void
forget(tti_left *left)
{
    tt_mem_free(left->rows);
    *left = (tti_left){0};
}

// ---- rows --------------------------------------------------------------------------------------

// Rows that lie from `begin` to `end` of those a process was given, but what is to be done again
// (`again`; rows 0: nothing).
static void
return_rows(
    tti_runtime *rt, const uint32_t *rows, uint64_t begin, uint64_t end, const tti_again *again)
{
    uint64_t before = end, after = end; // of what is not returned
    if (again->batch.rows > 0 && again->at < end) {
        before = TT_MAX(begin, again->at);
        after = TT_MAX(begin, again->at + again->batch.rows);
    }
    tti_work_return(&rt->work, rows, before - begin);
    tti_work_return(&rt->work, rows + (after - begin), end > after ? end - after : 0);
}

static uint32_t *
copy_untrained(const tti_account *account)
{
    uint32_t count = (uint32_t)tti_account_untrained(account);
    uint32_t *rows = tt_mem_alloc(TT_MAX(count, 1u) * sizeof *rows);
    TT_ASSERT(rows != NULL); // without it examples would be lost
    tti_account_copy(account, account->trained, rows, count);
    return rows;
}

// ---- deaths ------------------------------------------------------------------------------------

int
tti_left_leave(tti_runtime *rt, uint32_t n, uint32_t attempt)
{
    const tti_account *account = &rt->books.nodes[n].account;
    tti_left *left = &rt->books.left[n];
    if (tti_account_untrained(account) == 0)
        return 1;
    if (left->state != TTI_LEFT_NOTHING)
        return 0;
    *left = (tti_left){.state = TTI_LEFT_IN_DOUBT,
                       .attempt = attempt,
                       .holder = TTI_NO_HOLDER,
                       .count = (uint32_t)tti_account_untrained(account),
                       .first = account->before + account->trained,
                       .rows = copy_untrained(account),
                       .again = account->again};
    left->again.at += account->before;
    return 1;
}

void
tti_left_hear(tti_runtime *rt, uint32_t worker, const tt_ps_batch *batch)
{
    tti_left *left = &rt->books.left[worker];
    if (batch->rows > tti_worker_rows_max(rt->job))
        return; // nothing of ours says so
    if (left->state == TTI_LEFT_IN_DOUBT && batch->attempt == left->attempt &&
        batch->end > left->batch.end)
        left->batch = *batch;
}

// ---- settling ----------------------------------------------------------------------------------

// They are in everywhere, and whoever measured them is dead.
static void
count_unmeasured(tti_runtime *rt, uint64_t examples)
{
    uint64_t size = (uint64_t)rt->job->spec.batch_size;
    while (examples > 0) {
        uint32_t batch = (uint32_t)TT_MIN(examples, size);
        (void)tti_work_count(&rt->work, 1, batch);
        examples -= batch;
    }
}

// What the dead one was doing again of another's is in, or is for others. Returns the end of what
// is known to be in.
static uint64_t
settle_again(tti_runtime *rt, const tti_left *left, uint64_t done)
{
    const tti_again *again = &left->again;
    if (again->batch.rows == 0)
        return done;
    tti_left *other = &rt->books.left[again->worker];
    if (done <= again->at) {
        other->holder = TTI_NO_HOLDER;
        return done;
    }
    forget(other);
    return TT_MAX(done, again->at + again->batch.rows);
}

static void
keep_begun(tti_left *left, uint64_t begin, uint64_t end)
{
    left->count = (uint32_t)(end - begin);
    memmove(left->rows, left->rows + (begin - left->first), left->count * sizeof *left->rows);
    left->first = begin;
    left->state = TTI_LEFT_BEGUN;
    left->holder = TTI_NO_HOLDER;
    left->again = (tti_again){0};
}

static void
settle(tti_runtime *rt, tti_left *left)
{
    const uint64_t first = left->first, end = first + left->count;
    uint64_t done = first, begun = first; // ends: of what is in everywhere; of what is in somewhere
    if (left->batch.rows > 0 && left->batch.end > first) {
        begun = TT_MIN(left->batch.end, end);
        done = begun - TT_MIN((uint64_t)left->batch.rows, begun);
        if (done < first) // of which a part was heard: all of it is in
            done = begun;
    }
    done = settle_again(rt, left, done);
    begun = TT_MAX(begun, done);
    count_unmeasured(rt, done - first);
    return_rows(rt, left->rows + (begun - first), begun, end, &left->again);
    if (begun > done)
        keep_begun(left, done, begun);
    else
        forget(left);
}

void
tti_left_settle(tti_runtime *rt)
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (rt->books.left[n].state == TTI_LEFT_IN_DOUBT)
            settle(rt, &rt->books.left[n]);
}

// ---- doing it again ----------------------------------------------------------------------------

uint32_t
tti_left_find_begun(const tti_runtime *rt)
{
    uint32_t n = 0;
    while (n < rt->node_count &&
           (rt->books.left[n].state != TTI_LEFT_BEGUN || rt->books.left[n].holder != TTI_NO_HOLDER))
        n++;
    return n;
}

void
tti_left_grant(tti_runtime *rt, uint32_t n, uint32_t whose)
{
    tti_left *left = &rt->books.left[whose];
    tti_account *account = &rt->books.nodes[n].account;
    account->again = (tti_again){.at = account->granted, .batch = left->batch, .worker = whose};
    account->again.batch.rows = left->count;
    tti_account_grant(account, left->rows, left->count);
    left->holder = n;
}

void
tti_left_trained(tti_runtime *rt, uint32_t n)
{
    tti_account *account = &rt->books.nodes[n].account;
    const tti_again *again = &account->again;
    if (again->batch.rows == 0 || account->trained < again->at + again->batch.rows)
        return;
    forget(&rt->books.left[again->worker]);
    account->again = (tti_again){0};
}

void
tti_left_take_back(tti_runtime *rt, uint32_t n)
{
    const tti_account *account = &rt->books.nodes[n].account;
    uint32_t *rows = copy_untrained(account);
    return_rows(rt, rows, account->trained, account->granted, &account->again);
    if (account->again.batch.rows > 0)
        rt->books.left[account->again.worker].holder = TTI_NO_HOLDER;
    tt_mem_free(rows);
}

// ---- what there is -----------------------------------------------------------------------------

int
tti_left_some(const tti_runtime *rt)
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (rt->books.left[n].state != TTI_LEFT_NOTHING)
            return 1;
    return 0;
}

int
tti_left_doubts(const tti_runtime *rt)
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (rt->books.left[n].state == TTI_LEFT_IN_DOUBT)
            return 1;
    return 0;
}

// Not among the rows of another: of who has it, or of who had it and died.
static int
is_here(const tti_left *left)
{
    return left->state == TTI_LEFT_IN_DOUBT ||
           (left->state == TTI_LEFT_BEGUN && left->holder == TTI_NO_HOLDER);
}

uint64_t
tti_left_count(const tti_runtime *rt)
{
    uint64_t count = 0;
    for (uint32_t n = 0; n < rt->node_count; n++)
        count += is_here(&rt->books.left[n]) ? rt->books.left[n].count : 0;
    return count;
}

void
tti_left_save_rows(const tti_runtime *rt, tt_archive *out)
{
    for (uint32_t n = 0; n < rt->node_count; n++) {
        const tti_left *left = &rt->books.left[n];
        if (is_here(left))
            tt_archive_field(out, left->rows, left->count * sizeof *left->rows);
    }
}

// ---- as bytes ----------------------------------------------------------------------------------

static void
visit(tti_left *left, tt_archive *archive)
{
    TT_ARCHIVE(archive, left->state);
    TT_ARCHIVE(archive, left->attempt);
    TT_ARCHIVE(archive, left->holder);
    TT_ARCHIVE(archive, left->count);
    TT_ARCHIVE(archive, left->first);
    TT_ARCHIVE(archive, left->batch);
    TT_ARCHIVE(archive, left->again);
}

void
tti_left_save(const tti_runtime *rt, tt_archive *out)
{
    for (uint32_t n = 0; n < rt->node_count; n++) {
        tti_left copy = rt->books.left[n];
        visit(&copy, out);
        if (copy.count > 0)
            tt_archive_field(out, copy.rows, copy.count * sizeof *copy.rows);
    }
}

void
tti_left_load(tti_runtime *rt, tt_archive *in)
{
    for (uint32_t n = 0; in->status == TT_OK && n < rt->node_count; n++) {
        tti_left *left = &rt->books.left[n];
        visit(left, in);
        if (left->state > TTI_LEFT_BEGUN || left->again.worker >= rt->node_count ||
            (left->holder >= rt->node_count && left->holder != TTI_NO_HOLDER))
            tt_archive_damaged(in);
        uint32_t count = left->count;
        left->count = 0;
        const uint8_t *rows = tt_archive_borrow(in, count * sizeof *left->rows);
        if (rows == NULL || count == 0)
            continue;
        left->rows = tt_mem_alloc(count * sizeof *left->rows);
        TT_ASSERT(left->rows != NULL); // as much as the last master had
        memcpy(left->rows, rows, count * sizeof *left->rows);
        left->count = count;
    }
}

void
tti_left_close(tti_runtime *rt)
{
    for (uint32_t n = 0; rt->books.left != NULL && n < rt->node_count; n++)
        tt_mem_free(rt->books.left[n].rows);
    tt_mem_free(rt->books.left);
    rt->books.left = NULL;
}
