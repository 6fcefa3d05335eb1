// Rows on their way to a node and at it.
#include "lease.h"
#include <string.h>

// What a node has prepared, and as much again on its way.
enum { BATCHES = 20 };

static tt_status
open_rows(uint32_t batch_rows, uint32_t **rows, uint32_t *capacity)
{
    uint64_t wanted = 1024;
    while (wanted < (uint64_t)BATCHES * batch_rows)
        wanted *= 2;
    if (wanted > UINT32_MAX)
        return TT_NOMEM;
    *capacity = (uint32_t)wanted;
    *rows = tt_mem_zalloc(wanted, sizeof **rows);
    return *rows != NULL ? TT_OK : TT_NOMEM;
}

// Rows from `first` on that lie in one piece of a ring, at most `count`.
static uint32_t
in_one_piece(uint32_t capacity, uint64_t first, uint64_t count)
{
    uint64_t to_end = capacity - first % capacity;
    return (uint32_t)TT_MIN(to_end, count);
}

static void
put_in_ring(uint32_t *ring, uint32_t capacity, uint64_t at, const uint32_t *rows, uint32_t count)
{
    for (uint32_t done = 0; done < count;) {
        uint32_t part = in_one_piece(capacity, at + done, count - done);
        memcpy(ring + (at + done) % capacity, rows + done, part * sizeof *rows);
        done += part;
    }
}

static void
get_from_ring(const uint32_t *ring, uint32_t capacity, uint64_t at, uint32_t *rows, uint32_t count)
{
    for (uint32_t done = 0; done < count;) {
        uint32_t part = in_one_piece(capacity, at + done, count - done);
        memcpy(rows + done, ring + (at + done) % capacity, part * sizeof *rows);
        done += part;
    }
}

// ---- the node's side ---------------------------------------------------------------------------

tt_status
tti_lease_open(tti_lease *lease, uint32_t batch_rows)
{
    *lease = (tti_lease){.number = 1, .unit = 1};
    return open_rows(batch_rows, &lease->rows, &lease->capacity);
}

void
tti_lease_forget(tti_lease *lease)
{
    *lease = (tti_lease){.number = 1, .unit = 1, .rows = lease->rows, .capacity = lease->capacity};
}

void
tti_lease_close(tti_lease *lease)
{
    tt_mem_free(lease->rows);
    lease->rows = NULL;
}

// The fields are written one by one: what is said of a row is there when the row is.
static void
copy_again(tti_again *to, const tti_again *from)
{
    tt_store_relaxed(&to->at, tt_load_relaxed(&from->at));
    tt_store_relaxed(&to->batch.end, tt_load_relaxed(&from->batch.end));
    tt_store_relaxed(&to->batch.rows, tt_load_relaxed(&from->batch.rows));
    tt_store_relaxed(&to->batch.attempt, tt_load_relaxed(&from->batch.attempt));
    tt_store_relaxed(&to->worker, tt_load_relaxed(&from->worker));
}

uint32_t
tti_lease_cut(const tti_lease *lease, uint64_t position, uint32_t count, tti_again *again)
{
    copy_again(again, &lease->again);
    if (again->batch.rows > 0 && again->at == position)
        return again->batch.rows;
    int is_ahead = again->batch.rows > 0 && again->at > position;
    uint64_t most = is_ahead ? again->at - position : count;
    again->batch.rows = 0;
    return (uint32_t)TT_MIN(most, count);
}

uint32_t
tti_lease_take(tti_lease *lease, uint32_t count, uint32_t *rows, int *later, tti_again *again)
{
    *later = 0;
    again->batch.rows = 0;
    tt_store_relaxed(&lease->unit, count);
    // The last lease is still being given back: rows of the next one will come.
    if (lease->closed == tt_load_acquire(&lease->number)) { // released in tti_lease_receive
        *later = 1;
        return 0;
    }
    int dry = tt_load_acquire(&lease->dry) != 0; // before what was received
    uint64_t there = tt_load_acquire(&lease->received) - lease->taken;
    count = tti_lease_cut(lease, lease->taken, count, again);
    // Another's batch is done as a whole.
    if (there < count && (!dry || again->batch.rows > 0)) {
        again->batch.rows = 0;
        *later = 1;
        return 0;
    }
    count = (uint32_t)TT_MIN(there, count);
    get_from_ring(lease->rows, lease->capacity, lease->taken, rows, count);
    tt_store_release(&lease->taken, lease->taken + count);
    return count;
}

static uint64_t
wanted_ahead(const tti_lease *lease)
{
    uint64_t ahead = (uint64_t)tt_load_relaxed(&lease->unit) * tt_load_relaxed(&lease->ahead);
    return TT_MIN(ahead, (uint64_t)lease->capacity / 2);
}

int
tti_lease_is_low(const tti_lease *lease)
{
    uint64_t taken = tt_load_acquire(&lease->taken); // of those that were received by then
    return 2 * (tt_load_acquire(&lease->received) - taken) < wanted_ahead(lease);
}

void
tti_lease_give_back(tti_lease *lease)
{
    tt_store_release(&lease->closed, tt_load_acquire(&lease->number));
}

void
tti_lease_receive(tti_lease *lease,
                  uint32_t number,
                  uint64_t first,
                  const uint32_t *rows,
                  uint32_t count,
                  int dry,
                  const tti_again *again)
{
    if (number < lease->number)
        return;
    if (number > lease->number) { // the node, which has given back the last one, waits for this
        tt_store_relaxed(&lease->dry, 0u);
        tt_store_relaxed(&lease->received, (uint64_t)0);
        tt_store_relaxed(&lease->taken, (uint64_t)0);
        tt_store_relaxed(&lease->ahead, 0u);      // till it wants some
        tt_store_release(&lease->number, number); // acquired in tti_lease_take
    }
    uint64_t known = lease->received;
    if (first > known)
        return;
    copy_again(&lease->again, again);
    uint32_t skipped = (uint32_t)TT_MIN(known - first, count);
    uint64_t free_rows = lease->capacity - (known - tt_load_acquire(&lease->taken));
    count = (uint32_t)TT_MIN(count - skipped, free_rows);
    put_in_ring(lease->rows, lease->capacity, known, rows + skipped, count);
    tt_store_release(&lease->received, known + count);
    tt_store_release(&lease->dry, (uint32_t)dry);
}

uint64_t
tti_lease_wanted(const tti_lease *lease)
{
    if (tt_load_acquire(&lease->closed) == lease->number)
        return lease->received;
    return tt_load_acquire(&lease->taken) + wanted_ahead(lease);
}

// ---- the master's side -------------------------------------------------------------------------

tt_status
tti_account_open(tti_account *account, uint32_t batch_rows)
{
    *account = (tti_account){.number = 1};
    return open_rows(batch_rows, &account->rows, &account->capacity);
}

void
tti_account_close(tti_account *account)
{
    tt_mem_free(account->rows);
    account->rows = NULL;
}

uint32_t
tti_account_room(const tti_account *account)
{
    return account->capacity - (uint32_t)(account->granted - account->trained);
}

void
tti_account_grant(tti_account *account, const uint32_t *rows, uint32_t count)
{
    put_in_ring(account->rows, account->capacity, account->granted, rows, count);
    account->granted += count;
}

uint32_t
tti_account_rows(const tti_account *account, uint64_t first, const uint32_t **rows)
{
    *rows = account->rows + first % account->capacity;
    return first < account->granted
               ? in_one_piece(account->capacity, first, account->granted - first)
               : 0;
}

void
tti_account_copy(const tti_account *account, uint64_t first, uint32_t *rows, uint32_t count)
{
    get_from_ring(account->rows, account->capacity, first, rows, count);
}

void
tti_account_trained(tti_account *account, uint64_t count)
{
    account->trained = TT_MIN(account->trained + count, account->granted);
}

uint64_t
tti_account_untrained(const tti_account *account)
{
    return account->granted - account->trained;
}

void
tti_account_next(tti_account *account)
{
    *account = (tti_account){.number = account->number + 1,
                             .before = account->before + account->trained,
                             .rows = account->rows,
                             .capacity = account->capacity};
}
