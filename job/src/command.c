// Orders out, reports in.
#include "runtime.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

tt_status
tti_command_open(tti_runtime *rt, tt_error *err)
{
    tti_command *c = &rt->command;
    const uint32_t rows = tti_worker_rows_max(rt->job);
    c->nodes = tt_mem_zalloc(rt->node_count, sizeof *c->nodes);
    c->rows = tt_mem_zalloc(rows, sizeof *c->rows);
    c->losses = tt_mem_zalloc(rows, sizeof *c->losses);
    return c->nodes != NULL && c->rows != NULL && c->losses != NULL
               ? TT_OK
               : tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job's nodes");
}

void
tti_command_succeed(tti_runtime *rt)
{
    for (uint32_t n = 0; n < rt->node_count; n++)
        rt->command.nodes[n].last.number = (uint64_t)(rt->books.masters - 1) << 40;
}

void
tti_command_close(tti_runtime *rt)
{
    tti_command *c = &rt->command;
    tt_mem_free(c->nodes);
    tt_mem_free(c->rows);
    tt_mem_free(c->losses);
    tt_mem_free(c->pending);
    tt_archive_fini(&c->out);
    c->nodes = NULL;
    c->rows = NULL;
    c->losses = NULL;
}

static int
is_reached(const tti_runtime *rt, uint32_t n)
{
    tt_member_state state = rt->membership.members.member[n].state;
    return state == TT_MEMBER_HERE || state == TT_MEMBER_BACK;
}

// ---- rows --------------------------------------------------------------------------------------

// Rows of which none has more in advance near the end, so that all end at about the same time
// (guided self-scheduling: Polychronopoulos, Kuck 1987).
static uint64_t
fair_share(const tti_runtime *rt)
{
    uint64_t limit = tt_load_relaxed(&rt->work.example_limit);
    uint64_t taken = tt_ledger_examples(rt->work.ledger);
    uint64_t left = limit > taken ? limit - taken : 0;
    return left / (2 * TT_MAX(tti_runtime_workers(rt), 1u));
}

// What one who died had begun goes to the first who wants rows. *whose: such a one, or node_count.
static void
grant_again(tti_runtime *rt, uint32_t n, uint32_t *whose)
{
    const tti_account *account = &rt->books.nodes[n].account;
    if (*whose == rt->node_count || account->again.batch.rows > 0 ||
        rt->command.nodes[n].wanted <= account->granted ||
        tti_account_room(account) < rt->books.left[*whose].count)
        return;
    tti_books_take_again(rt, n, *whose);
    *whose = tti_left_find_begun(rt);
}

static void
grant(tti_runtime *rt, uint32_t n, uint64_t fair)
{
    tti_reach *reach = &rt->command.nodes[n];
    const tti_account *account = &rt->books.nodes[n].account;
    uint64_t unit = TT_MAX(reach->unit, 1u);
    uint64_t wanted = TT_MIN(reach->wanted, account->trained + TT_MAX(fair, 2 * unit));
    if (wanted < account->granted + unit)
        return;
    wanted -= account->granted;
    wanted -= wanted % unit;
    // A batch at a time: so do rows come back that were taken and not trained.
    for (reach->dry = 0; wanted > 0 && !reach->dry;) {
        uint32_t batch = (uint32_t)unit;
        if (tti_account_room(account) < batch)
            return;
        uint32_t taken = tti_books_take(rt, n, batch);
        wanted -= TT_MIN(taken, wanted);
        reach->dry = taken < batch;
    }
}

// What the dead have left is given out when whoever could still count what they send refuses it.
static void
settle(tti_runtime *rt)
{
    const tt_ps_view *view = rt->newest->view;
    if (!tti_left_doubts(rt))
        return;
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (!view->is_gone[n] && rt->standings[n].adopted_generation < rt->books.doubt_generation)
            return;
    tti_books_settle(rt);
}

void
tti_command_grant(tti_runtime *rt)
{
    if (rt->job->table.consistency == TT_PS_BSP)
        return;
    settle(rt);
    uint64_t fair = fair_share(rt);
    uint32_t begun = tti_left_find_begun(rt);
    for (uint32_t n = 0; !rt->board.stop && n < rt->node_count; n++) {
        // Who has left something comes back when that is settled.
        if (!is_reached(rt, n) || rt->newest->view->is_gone[n])
            continue;
        grant_again(rt, n, &begun);
        grant(rt, n, fair);
    }
}

static void
take_back(tti_runtime *rt, uint32_t n)
{
    tti_reach *reach = &rt->command.nodes[n];
    tti_books_take_back(rt, n);
    reach->rows_sent = reach->rows_heard = reach->wanted = 0;
    reach->dry = 0;
}

void
tti_command_bury(tti_runtime *rt, uint32_t n)
{
    int done = tti_books_bury(rt, n);
    TT_ASSERT(done); // who has left something has not come back (deal_roles)
    tti_runtime_lose_counts(rt, n);
    rt->command.nodes[n] = (tti_reach){0};
    tti_standing *standing = &rt->standings[n];
    tti_records records = standing->records;
    *standing = (tti_standing){.records = records};
}

// ---- orders ------------------------------------------------------------------------------------

static tti_order
order_for(const tti_runtime *rt, uint32_t n)
{
    const tti_board *board = &rt->board;
    const tti_reach *reach = &rt->command.nodes[n];
    const tti_book *book = &rt->books.nodes[n];
    return (tti_order){.number = reach->last.number,
                       .stop = (uint32_t)board->stop,
                       .pause = (uint32_t)board->pause,
                       .stop_servers = (uint32_t)board->stop_servers,
                       .discard = (uint32_t)board->discard,
                       .round_limit = board->round_limit,
                       .gate = board->gate,
                       .hold_round = board->hold_round,
                       .rest_call = board->rest_call,
                       .records_heard = book->records_heard,
                       .ends_heard = book->ends_heard,
                       .report_heard = reach->report_number,
                       .lease = book->account.number,
                       .dry = (uint32_t)reach->dry,
                       .row_first = reach->rows_sent,
                       .again = book->account.again,
                       .generation = rt->newest->view->generation};
}

tti_order
tti_command_first(tti_runtime *rt, uint32_t n)
{
    tti_order order = order_for(rt, n);
    rt->command.nodes[n].generation = rt->newest->view->generation;
    order.has_generation = 1;
    return order;
}

// That records were heard is said with the next order, or when they would be said again.
static int
says_the_same(const tti_order *order, const tti_order *last)
{
    tti_order other = *last;
    other.records_heard = order->records_heard;
    other.ends_heard = order->ends_heard;
    other.report_heard = order->report_heard;
    other.row_first = order->row_first;
    other.row_count = order->row_count;
    other.has_generation = order->has_generation;
    return memcmp(order, &other, sizeof other) == 0;
}

static void
send_order(tti_runtime *rt, uint32_t n, tti_order *order, const uint32_t *rows)
{
    tti_command *c = &rt->command;
    tti_reach *reach = &c->nodes[n];
    order->number++;
    tt_archive_rewind(&c->out);
    tti_order_write(order, rows, rt->newest, &c->out);
    if (c->out.status != TT_OK)
        return; // without memory for it now: at the next turn
    reach->last = *order;
    reach->owes = 0;
    reach->rows_sent = order->row_first + order->row_count;
    reach->sent_ns = tt_clock_now(&rt->clock);
    if (order->row_count > 0)
        reach->rows_ns = reach->sent_ns;
    if (order->has_generation) {
        reach->told_generation = rt->newest->view->generation;
        reach->told_ns = reach->sent_ns;
    }
    tt_frame frame = {.kind = TT_FRAME_ORDER,
                      .attempt = rt->membership.members.member[n].attempt,
                      .generation = rt->newest->view->generation,
                      .sequence = order->number,
                      .clock = order->rest_call,
                      .detail = order->hold_round,
                      .extra = order->gate,
                      .count = order->row_count};
    tt_span span = {c->out.bytes, c->out.count};
    tt_outbox outbox = tt_mesh_outbox(rt->membership.control, rt->node_count);
    outbox.send(outbox.self, n, &frame, &span, 1);
}

// What was said so long ago and not heard was lost, or came after what was said later.
static int
is_overdue(const tti_runtime *rt, uint64_t said_ns, uint64_t now_ns)
{
    uint64_t beat_ns = (uint64_t)(1e9 * rt->job->spec.heartbeat);
    return now_ns - said_ns > 2 * TT_MIN(rt->board.retry_ns, beat_ns);
}

// Whether it is said now; what it says besides is filled in.
static int
is_due(tti_runtime *rt, uint32_t n, uint64_t now_ns, tti_order *order, const uint32_t **rows)
{
    tti_reach *reach = &rt->command.nodes[n];
    uint32_t newest = rt->newest->view->generation;
    if (reach->rows_heard < reach->rows_sent && is_overdue(rt, reach->rows_ns, now_ns))
        reach->rows_sent = reach->rows_heard;
    *order = order_for(rt, n);
    order->row_count = tti_account_rows(&rt->books.nodes[n].account, order->row_first, rows);
    order->has_generation = reach->generation < newest && (reach->told_generation < newest ||
                                                           is_overdue(rt, reach->told_ns, now_ns));
    if (reach->owes || order->row_count > 0 || order->has_generation ||
        !says_the_same(order, &reach->last))
        return 1;
    if (reach->heard < reach->last.number && is_overdue(rt, reach->sent_ns, now_ns))
        return 1;
    uint64_t unsaid = order->records_heard - reach->last.records_heard +
                      (order->ends_heard - reach->last.ends_heard);
    return unsaid > TTI_BACKLOG / 4 ||
           (unsaid > 0 && now_ns - reach->sent_ns > (uint64_t)(5e8 * rt->job->spec.heartbeat));
}

void
tti_command_send(tti_runtime *rt)
{
    tti_books_enter_board(rt);
    uint64_t now_ns = tt_clock_now(&rt->clock);
    const uint32_t *rows;
    tti_order order;
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (is_reached(rt, n) && is_due(rt, n, now_ns, &order, &rows))
            send_order(rt, n, &order, rows);
    tt_mesh_flush(rt->membership.control, rt->node_count);
}

// ---- reports -----------------------------------------------------------------------------------

static void
keep_record(tti_command *c, const tti_record *record)
{
    if (c->pending_count == c->pending_capacity) {
        size_t capacity = TT_MAX(2 * c->pending_capacity, (size_t)1024);
        tti_record *grown = tt_mem_realloc(c->pending, capacity * sizeof *grown);
        TT_ASSERT(grown != NULL); // what was trained must count
        c->pending = grown;
        c->pending_capacity = capacity;
    }
    c->pending[c->pending_count++] = *record;
}

// The loss over all rows, by those that record was measured on: the oldest that node n has.
static float
level_of(tti_runtime *rt, uint32_t n, const tti_record *record, const uint8_t *losses)
{
    tti_command *c = &rt->command;
    const tti_account *account = &rt->books.nodes[n].account;
    if (record->losses == 0 || record->losses != record->examples ||
        record->losses > tti_account_untrained(account) ||
        record->losses > tti_worker_rows_max(rt->job))
        return NAN;
    tti_account_copy(account, account->trained, c->rows, record->losses);
    memcpy(c->losses, losses, record->losses * sizeof *c->losses); // at any address
    return (float)tti_row_losses_note(&rt->work.row_losses, c->rows, c->losses, record->losses);
}

static void
hear_records(tti_runtime *rt, uint32_t n, const tti_report_parts *parts)
{
    const tti_book *book = &rt->books.nodes[n];
    const tti_report *report = &parts->report;
    if (report->record_first > book->records_heard)
        return; // some before these were lost, and will be said again
    uint64_t skip = book->records_heard - report->record_first;
    uint32_t losses = 0; // of the records before
    for (uint64_t i = 0; i < report->record_count; i++) {
        tti_record record;
        memcpy(&record, (const uint8_t *)parts->records + i * sizeof record, sizeof record);
        if (record.losses > report->loss_count - losses)
            record.losses = 0; // nothing of ours says so
        losses += record.losses;
        if (i < skip)
            continue;
        record.level =
            level_of(rt, n, &record,
                     (const uint8_t *)parts->losses + (losses - record.losses) * sizeof(float));
        keep_record(&rt->command, &record);
        tti_books_hear_record(rt, n, &record);
    }
}

static void
hear_ends(tti_runtime *rt, uint32_t n, const tti_report_parts *parts)
{
    const tti_book *book = &rt->books.nodes[n];
    const tti_report *report = &parts->report;
    if (report->end_first > book->ends_heard)
        return;
    for (uint64_t i = book->ends_heard - report->end_first; i < report->end_count; i++) {
        tti_end end;
        memcpy(&end, (const uint8_t *)parts->ends + i * sizeof end, sizeof end);
        tti_books_hear_end(rt, n, &end);
    }
}

// complete: all that led to it is known, too.
static void
hear_standing(tti_standing *standing, const tti_report *report, int complete)
{
    standing->adopted_generation = report->adopted_generation;
    standing->working_seen = report->working;
    standing->clock_seen = report->clock;
    standing->round_begun = report->round_begun;
    standing->gate_heard = report->gate;
    standing->looked_ns = complete ? report->looked_ns : standing->looked_ns;
    standing->round_lost = (int)report->round_lost;
    standing->counts = report->counts;
    standing->wait_max_ns = TT_MAX(standing->wait_max_ns, report->wait_max_ns);
    standing->resting = complete ? report->resting : 0;
    standing->told_all = complete;
    standing->finished = complete && report->finished;
    standing->left = complete && report->left;
    standing->ended = complete && report->ended;
}

static void
hear_rows(tti_runtime *rt, uint32_t n, const tti_report *report, int complete)
{
    tti_reach *reach = &rt->command.nodes[n];
    const tti_account *account = &rt->books.nodes[n].account;
    if (report->lease != account->number)
        return;
    reach->rows_heard = TT_MIN(report->received, account->granted);
    reach->wanted = report->wanted;
    reach->unit = TT_MIN(report->unit, tti_worker_rows_max(rt->job));
    if (complete && report->lease_closed == report->lease)
        take_back(rt, n);
}

void
tti_command_hear(tti_runtime *rt, uint32_t n, const tt_frame *frame, const uint8_t *payload)
{
    tti_reach *reach = &rt->command.nodes[n];
    tti_report_parts parts;
    if (!is_reached(rt, n) || frame->attempt != rt->membership.members.member[n].attempt ||
        tti_report_read(payload, frame->payload_bytes, &parts) != TT_OK)
        return;
    const tti_report *report = &parts.report;
    if (report->number <= reach->report_number)
        return; // overtaken by a later one
    reach->report_number = report->number;
    reach->owes |= report->news != 0;
    reach->heard = report->order;
    reach->generation = report->generation;
    hear_records(rt, n, &parts);
    hear_ends(rt, n, &parts);
    int complete = rt->books.nodes[n].records_heard >= report->record_first + report->record_count;
    hear_standing(&rt->standings[n], report, complete);
    if (rt->job->table.consistency != TT_PS_BSP)
        hear_rows(rt, n, report, complete);
}

void
tti_command_hear_last(tti_runtime *rt, uint32_t n)
{
    const tt_pool *pool = tt_mesh_outbox(rt->membership.control, rt->node_count).pool;
    tti_record record;
    if (pool == NULL)
        return;
    const tti_record_ring *ring =
        tt_pool_see(pool, n, 0, tti_records_bytes(rt->node_count)); // process.c
    const tti_book *book = &rt->books.nodes[n];
    while (tti_records_left(ring, rt->node_count, book->records_heard, &record)) {
        keep_record(&rt->command, &record);
        tti_books_hear_record(rt, n, &record);
    }
    tti_command_count(rt);
}

// ---- counting ----------------------------------------------------------------------------------

static int
by_time(const void *a, const void *b)
{
    const tti_record *x = a, *y = b;
    if (x->done_ns != y->done_ns)
        return x->done_ns < y->done_ns ? -1 : 1;
    return x->worker != y->worker ? (x->worker < y->worker ? -1 : 1)
                                  : (x->sequence < y->sequence ? -1 : x->sequence > y->sequence);
}

static void
count_record(tti_runtime *rt, tti_record *record)
{
    if (rt->job->table.consistency != TT_PS_BSP)
        record->sequence = tti_work_count(&rt->work, 1, record->examples);
    if (record->worker < rt->node_count && !isnan(record->loss))
        tti_records_put(&rt->standings[record->worker].records, record);
}

void
tti_command_count(tti_runtime *rt)
{
    tti_command *c = &rt->command;
    if (c->pending_count == 0)
        return;
    qsort(c->pending, c->pending_count, sizeof *c->pending, by_time);
    for (size_t i = 0; i < c->pending_count; i++)
        count_record(rt, &c->pending[i]);
    c->pending_count = 0;
}
