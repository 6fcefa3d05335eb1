// The agent of a node's process: a thread beside the node's.
#include "process.h"
#include "simulated.h"
#include <string.h>

// ---- a new attempt -----------------------------------------------------------------------------

// What the old process held is lost with it.
static void
end_process(tti_process *process)
{
    process->end_node(process);
    if (process->begun)
        tti_node_close(&process->node);
    process->begun = 0;
}

static void
forget_board(tti_board *board)
{
    board->stop = board->pause = board->stop_servers = board->discard = 0;
    board->gate = board->rest_call = 0;
    board->round_limit = board->hold_round = UINT32_MAX;
}

static void
forget_standing(tti_standing *standing)
{
    uint64_t iterations = standing->iterations; // of this host: its luck goes on
    tti_records records = standing->records;
    tti_records_forget(&records);
    *standing = (tti_standing){.iterations = iterations, .records = records};
}

static void
forget_backlog(tti_backlog *backlog)
{
    backlog->record_count = backlog->end_count = backlog->loss_count = 0;
    backlog->record_first = backlog->record_sent = 0;
    backlog->end_first = backlog->end_sent = 0;
    backlog->wait_max_ns = 0;
}

// Its node is opened when the first order has said how the job stands.
static void
begin_attempt(tti_process *process)
{
    tti_node *node = &process->node;
    end_process(process);
    tt_mesh_counters_read(process->board.mesh, node->index, &process->before);
    node->adopted = NULL;
    node->working = 0;
    node->clock_ended = node->clock_unknown = 0;
    node->leased_before = 0;
    node->attempt = process->pulse.attempt;
    forget_board(&process->board);
    forget_standing(&process->standing);
    forget_backlog(&process->backlog);
    tti_loss_ring_forget(&process->losses);
    tti_lease_forget(&process->lease);
    process->order_heard = process->report_heard = process->news_number = 0;
    process->last = (tti_report){0};
    process->reported_ns = 0;
    tti_generations_free(process->newest);
    process->newest = NULL;
    process->board.current = NULL;
}

static void
begin_node(tti_process *process)
{
    tt_error err;
    if (process->rt != NULL)
        tti_simulated_share(process);
    tt_status status = tti_process_open_node(process, 1, &err);
    if (status == TT_OK)
        status = tti_node_start(&process->node, &err);
    if (status == TT_OK)
        return;
    uint32_t index = process->node.index;
    tt_log(TT_LOG_WARN, "node %u does not begin anew: %s", index, err.what);
    process->pulse =
        tt_pulse_begin(index, 0, process->pulse.period_ns, tt_clock_now(&process->board.clock));
}

// ---- orders ------------------------------------------------------------------------------------

static void
drop_heard(tti_backlog *backlog, const tti_order *order)
{
    uint64_t records = order->records_heard - backlog->record_first;
    if (order->records_heard > backlog->record_first && records <= backlog->record_count) {
        backlog->record_count -= (uint32_t)records;
        memmove(backlog->records, backlog->records + records,
                backlog->record_count * sizeof *backlog->records);
        backlog->record_first = order->records_heard;
    }
    pthread_mutex_lock(&backlog->lock);
    uint64_t ends = order->ends_heard - backlog->end_first;
    if (order->ends_heard > backlog->end_first && ends <= backlog->end_count) {
        backlog->end_count -= (uint32_t)ends;
        memmove(backlog->ends, backlog->ends + ends, backlog->end_count * sizeof *backlog->ends);
        backlog->end_first = order->ends_heard;
    }
    pthread_mutex_unlock(&backlog->lock);
}

void
tti_agent_write_board(tti_board *board, const tti_order *order)
{
    tt_store_relaxed(&board->round_limit, order->round_limit);
    tt_store_release(&board->discard, (int)order->discard);
    tt_store_release(&board->hold_round, order->hold_round);
    tt_store_release(&board->pause, (int)order->pause);
    tt_store_seq(&board->gate, order->gate);
    tt_store_release(&board->rest_call, order->rest_call);
    tt_store_release(&board->stop, (int)order->stop);
    tt_store_release(&board->stop_servers, (int)order->stop_servers);
    tt_event_signal(&board->resume);
}

static void
obey(tti_process *process, tti_order_parts *parts)
{
    const tti_order *order = &parts->order;
    uint32_t known = process->newest != NULL ? process->newest->view->generation : 0;
    process->report_heard = TT_MAX(process->report_heard, order->report_heard);
    // The gate may be open again for those who know what was published behind it.
    if (order->number <= process->order_heard ||
        (parts->generation == NULL && known < order->generation))
        return;
    process->order_heard = order->number;
    process->backlog.wait_max_ns = 0; // was heard with the report that this answers, or nearly
    drop_heard(&process->backlog, order);
    tti_lease_receive(&process->lease, order->lease, order->row_first, parts->rows,
                      order->row_count, (int)order->dry, &order->again);
    if (parts->generation != NULL && parts->generation->view->generation > known) {
        tti_process_learn(process, parts->generation);
        parts->generation = NULL;
    }
    tti_agent_write_board(&process->board, order);
    if (!process->begun && process->newest != NULL && !order->stop)
        begin_node(process);
    tt_mesh_wake(process->board.mesh, process->node.index);
}

static void
take_order(tti_process *process, const tt_frame *frame, const uint8_t *payload)
{
    tti_order_parts parts;
    if (frame->attempt != process->pulse.attempt || process->pulse.attempt == 0)
        return; // to one that was before
    if (tti_order_read(payload, frame->payload_bytes, &parts) != TT_OK)
        return; // it will be said again
    if (tti_order_fits(process->job, &parts))
        obey(process, &parts);
    tti_generations_free(parts.generation);
}

static void
on_frame(void *self, const tt_frame *frame, const uint8_t *payload)
{
    tti_process *process = self;
    if (frame->kind == TT_FRAME_ORDER) {
        take_order(process, frame, payload);
        return;
    }
    switch (tt_pulse_receive(&process->pulse, frame, tt_clock_now(&process->board.clock))) {
    case TT_PULSE_WELCOME:
        begin_attempt(process);
        break;
    case TT_PULSE_REFUSED:
        end_process(process);
        break;
    case TT_PULSE_FINE:
        break;
    }
}

// ---- reports -----------------------------------------------------------------------------------

// How the node stands: before its records are taken, so that they tell all that led to it.
static void
look(const tti_process *process, tti_report *report)
{
    const tti_standing *s = &process->standing;
    int64_t ahead_ns = tt_load_relaxed(&process->node.ahead_ns);
    report->looked_ns = tt_clock_now(&process->board.clock) - (uint64_t)ahead_ns;
    const tti_lease *lease = &process->lease;
    report->order = process->order_heard;
    report->generation = process->newest != NULL ? process->newest->view->generation : 0;
    report->adopted_generation = tt_load_acquire(&s->adopted_generation);
    report->working = tt_load_acquire(&s->working_seen);
    report->resting = tt_load_acquire(&s->resting);
    report->finished = (uint32_t)tt_load_acquire(&s->finished);
    report->left = (uint32_t)tt_load_acquire(&s->left);
    report->ended = (uint32_t)tt_load_acquire(&s->ended);
    report->clock = tt_load_relaxed(&s->clock_seen);
    report->gate = tt_load_seq(&process->board.gate); // then what was begun (may_begin_round)
    report->round_begun = tt_load_seq(&s->round_begun);
    report->round_lost = (uint32_t)tt_load_acquire(&s->round_lost);
    report->lease = lease->number;
    report->lease_closed = tt_load_acquire(&lease->closed);
    report->unit = tt_load_relaxed(&lease->unit);
    report->received = lease->received;
    report->wanted = tti_lease_wanted(lease);
}

static int
differs(const tti_process *process, const tti_report *a)
{
    const tti_report *b = &process->last;
    return a->generation != b->generation || a->adopted_generation != b->adopted_generation ||
           a->working != b->working || a->resting != b->resting || a->finished != b->finished ||
           a->left != b->left || a->ended != b->ended || a->gate != b->gate ||
           a->round_lost != b->round_lost || a->lease_closed != b->lease_closed ||
           (a->wanted != b->wanted && tti_lease_is_low(&process->lease));
}

static void
count(tti_process *process, tti_report *report)
{
    tti_standing *s = &process->standing;
    tti_backlog *backlog = &process->backlog;
    tt_mesh_counters control;
    if (process->begun)
        tti_node_count(&process->node, &report->counts);
    tt_mesh_counters_read(process->board.control, process->board.end, &control);
    report->counts.refused += control.refused;
    // The mesh of a simulation goes on counting when a process begins anew.
    report->counts.frames -= process->before.frames;
    report->counts.bytes -= process->before.bytes;
    report->counts.chunks -= process->before.chunks;
    report->counts.sleeps -= process->before.sleeps;
    backlog->wait_max_ns = TT_MAX(backlog->wait_max_ns, tt_swap_seq(&s->wait_max_ns, 0u));
    report->wait_max_ns = backlog->wait_max_ns;
}

// They were sent with their records.
static void
forget_losses(tti_backlog *backlog)
{
    for (uint32_t i = 0; i < backlog->record_count; i++)
        backlog->records[i].losses = 0;
    backlog->loss_count = 0;
}

// From the first that was never sent, or everything that was not heard.
static void
send_report(tti_process *process, tti_report *report, int all)
{
    tti_backlog *backlog = &process->backlog;
    count(process, report);
    report->record_first = all ? backlog->record_first : backlog->record_sent;
    uint32_t skip = (uint32_t)(report->record_first - backlog->record_first);
    report->record_count = backlog->record_count - skip;
    backlog->record_sent = backlog->record_first + backlog->record_count;
    report->number = process->last.number + 1;
    tt_archive_rewind(&process->out);
    pthread_mutex_lock(&backlog->lock);
    report->end_first = backlog->end_first;
    report->end_count = backlog->end_count;
    backlog->end_sent = backlog->end_first + backlog->end_count;
    report->loss_count = backlog->loss_count;
    tti_report_write(report, backlog->records + skip, backlog->losses, backlog->ends,
                     &process->out);
    forget_losses(backlog);
    pthread_mutex_unlock(&backlog->lock);
    process->last = *report;
    if (process->out.status != TT_OK)
        return; // without memory now: said again
    tt_frame frame = {.kind = TT_FRAME_REPORT,
                      .attempt = process->pulse.attempt,
                      .generation = (uint32_t)report->adopted_generation,
                      .sequence = report->number,
                      .clock = report->resting,
                      .detail = report->round_begun,
                      .extra = report->gate,
                      .count = report->record_count};
    tt_span span = {process->out.bytes, process->out.count};
    tt_outbox outbox = tt_mesh_outbox(process->board.control, process->board.end);
    outbox.send(outbox.self, process->board.node_count, &frame, &span, 1);
}

static int
has_new_ends(tti_backlog *backlog)
{
    pthread_mutex_lock(&backlog->lock);
    int some = backlog->end_first + backlog->end_count > backlog->end_sent;
    pthread_mutex_unlock(&backlog->lock);
    return some;
}

// Something is new, and was not said or not heard.
static int
has_news(tti_process *process, const tti_report *report, uint64_t now)
{
    if (differs(process, report) || has_new_ends(&process->backlog))
        return 1;
    return process->news_number > process->report_heard &&
           now - process->news_ns > process->board.retry_ns;
}

static void
take_records(tti_process *process)
{
    tti_backlog *backlog = &process->backlog;
    tti_record *record = backlog->records + backlog->record_count;
    uint32_t count =
        tti_records_take(&process->standing.records, record, TTI_BACKLOG - backlog->record_count);
    backlog->record_count += count;
    for (; count > 0; count--, record++) {
        if (backlog->loss_count + record->losses > TTI_LOSSES) {
            tti_loss_ring_skip(&process->losses, record->losses);
            record->losses = 0;
        }
        tti_loss_ring_take(&process->losses, backlog->losses + backlog->loss_count, record->losses);
        backlog->loss_count += record->losses;
    }
}

// beat: a heartbeat was sent just now.
static void
report_if_due(tti_process *process, int beat)
{
    tti_backlog *backlog = &process->backlog;
    tti_report report = {0};
    look(process, &report);
    take_records(process);
    uint64_t now = tt_clock_now(&process->board.clock);
    int rests = now - process->reported_ns < process->report_period_ns; // no haste
    int records = backlog->record_first + backlog->record_count > backlog->record_sent;
    int owes = process->order_heard > process->last.order;
    report.news = (uint32_t)has_news(process, &report, now);
    if (!beat && !report.news && (rests || !(records || owes)))
        return;
    // What was not heard by the next heartbeat, or when news is said again, may be lost.
    int all = beat || process->news_number > process->report_heard;
    process->reported_ns = now;
    send_report(process, &report, all);
    if (report.news) {
        process->news_number = report.number;
        process->news_ns = now;
    }
}

// ---- its thread --------------------------------------------------------------------------------

static uint64_t
sleep_ns(const tti_process *process)
{
    uint64_t now = tt_clock_now(&process->board.clock);
    uint64_t beat = process->pulse.next_ns > now ? process->pulse.next_ns - now : 1;
    return process->begun ? TT_MIN(beat, process->report_period_ns) : beat;
}

// One that has a process to itself ends when the master knows that its node has.
static int
has_ended(tti_process *process)
{
    return process->is_alone && process->last.ended &&
           process->report_heard >= process->news_number;
}

void *
tti_agent_main(void *self)
{
    tti_process *process = self;
    tt_mesh *control = process->board.control;
    uint32_t end = process->board.end;
    tti_simulated_enter(&process->node);
    tt_mesh_set_spin(control, end, 0);
    tt_outbox outbox = tt_mesh_outbox(control, end);
    while (!tt_load_acquire(&process->stop_agent) && // released by who opened it
           !has_ended(process)) {
        tt_frame beat;
        (void)tt_mesh_receive(control, end, 64, on_frame, process);
        tt_store_relaxed(&process->node.ahead_ns, tt_pulse_ahead_ns(&process->pulse));
        int due = tt_pulse_due(&process->pulse, tt_clock_now(&process->board.clock), &beat);
        if (due)
            outbox.send(outbox.self, process->board.node_count, &beat, NULL, 0);
        if (process->pulse.attempt != 0)
            report_if_due(process, due);
        tt_mesh_flush(control, end);
        tt_mesh_wait(control, end, sleep_ns(process));
    }
    return NULL;
}
