// A worker's client and memory that it shares with servers of its host: gradients that are lent for
// the time of a push, and parameters that are read where they lie.
//
// A loan ends with the answer, for a server answers a push when it is done with it (or has copied
// it), and a ring keeps the order: whatever is sent again goes by copy behind the loan, so that no
// answer overtakes it. A push that is given up (its server died, another worker did, the job stops)
// has no answer; it is recalled. If it is just being read then, by a server that may live, the
// memory is in doubt, and gradients are written elsewhere until it is not. A server that was
// declared dead may read what it likes: its state is lost, and it writes to nobody's memory but its
// own.
#include "client_core.h"
#include "lend.h"
#include <string.h>

// Pulls that go by copy after a partition changed while it was read: doubled each time.
enum { PATIENCE_MIN = 1, PATIENCE_MAX = 64 };

// ---- where gradients are written ---------------------------------------------------------------

static int
is_gone(const tt_ps_view *view, const tti_loan *loan)
{
    return loan->to < view->node_count &&
           (view->is_gone[loan->to] || view->attempt[loan->to] != loan->attempt);
}

static int
is_over(const tt_ps_client *client, const tt_ps_view *view, uint32_t p)
{
    const tti_loan *loan = &client->loans[p];
    return tt_pool_recall(client->outbox.pool, p, loan->ticket) || is_gone(view, loan);
}

static int
in_doubt(tt_ps_client *client)
{
    for (uint32_t p = 0; client->doubts > 0 && p < client->table->partition_count; p++)
        if (client->loans[p].state == TTI_LOAN_IN_DOUBT && is_over(client, client->view, p)) {
            client->loans[p].state = TTI_LOAN_NONE;
            client->doubts--;
        }
    return client->doubts > 0;
}

// In memory of its own, of which pages are taken when they are used.
static float *
open_room(tt_ps_client *client)
{
    size_t bytes = ((size_t)client->max_keys * client->table->width + 16) * sizeof(float);
    if (client->outbox.pool != NULL)
        client->shared_gradients = tt_pool_take(client->outbox.pool, bytes);
    client->own_gradients =
        client->shared_gradients == NULL ? tt_mem_zalloc_vector(bytes, 1) : tt_mem_alloc(bytes);
    return client->own_gradients;
}

float *
tt_ps_client_gradients(tt_ps_client *client)
{
    if (client->own_gradients == NULL && open_room(client) == NULL)
        return NULL;
    int shares = client->shared_gradients != NULL && !in_doubt(client);
    return shares ? client->shared_gradients : client->own_gradients;
}

void
tti_client_free_gradients(tt_ps_client *client)
{
    tt_mem_free(client->own_gradients);
    if (client->shared_gradients == NULL)
        return;
    for (uint32_t p = 0; client->view != NULL && p < client->table->partition_count; p++)
        tti_client_recall(client, client->view, p);
    if (!in_doubt(client)) // else it is kept until all this memory goes
        tt_pool_give_back(client->outbox.pool, client->shared_gradients);
}

// ---- loans -------------------------------------------------------------------------------------

int
tti_client_lend(tt_ps_client *client, uint32_t partition, uint32_t to, tt_span *gradients)
{
    tt_pool *pool = tt_outbox_pool(&client->outbox, to);
    tti_loan *loan = &client->loans[partition];
    tti_place *place = &client->place;
    uint64_t offset;
    if (pool == NULL || partition >= TT_POOL_WORDS || loan->state != TTI_LOAN_NONE ||
        gradients->size < TTI_LEND_MIN_BYTES ||
        !tt_pool_find(pool, gradients->bytes, gradients->size, &offset))
        return 0;
    loan->ticket = tt_pool_lend(pool, partition);
    loan->to = (uint16_t)to;
    loan->attempt = client->view->attempt[to];
    loan->state = TTI_LOAN_OUT;
    *place = (tti_place){offset, gradients->size, loan->ticket, partition, 0};
    *gradients = (tt_span){place, sizeof *place};
    tti_count(&client->counters.lent, 1);
    return 1;
}

void
tti_client_end_loan(tt_ps_client *client, uint32_t partition)
{
    tti_loan *loan = &client->loans[partition];
    if (loan->state == TTI_LOAN_OUT)
        loan->state = TTI_LOAN_NONE;
}

int
tti_client_loan_refused(tt_ps_client *client, uint32_t partition, uint32_t by)
{
    const tti_loan *loan = &client->loans[partition];
    if (loan->state != TTI_LOAN_OUT || loan->to != by)
        return 0;
    tti_client_end_loan(client, partition);
    return 1;
}

void
tti_client_recall(tt_ps_client *client, const tt_ps_view *view, uint32_t partition)
{
    tti_loan *loan = &client->loans[partition];
    if (loan->state != TTI_LOAN_OUT)
        return;
    loan->state = is_over(client, view, partition) ? TTI_LOAN_NONE : TTI_LOAN_IN_DOUBT;
    client->doubts += loan->state == TTI_LOAN_IN_DOUBT;
}

// ---- parameters --------------------------------------------------------------------------------

int
tti_client_may_read(tt_ps_client *client, const tti_request *request, uint32_t from)
{
    tti_loan *loan = &client->loans[request->partition];
    if (!tti_client_is_whole(client) || client->bf16 || client->read_only || request->in_vain ||
        tt_outbox_pool(&client->outbox, from) == NULL)
        return 0;
    if (loan->patience_left == 0)
        return 1;
    loan->patience_left--;
    return 0;
}

int
tti_client_read(tt_ps_client *client,
                tti_request *request,
                const tt_frame *frame,
                const uint8_t *payload)
{
    tti_loan *loan = &client->loans[request->partition];
    tt_pool *pool = tt_outbox_pool(&client->outbox, frame->sender);
    tti_place place;
    size_t width = client->table->width;
    // What came later is as good, and better, but for rounds, whose values are those of one moment.
    int newer = client->table->consistency != TT_PS_BSP;
    if (pool != NULL && frame->payload_bytes == sizeof place) {
        memcpy(&place, payload, sizeof place);
        if (place.size == request->count * width * sizeof(float) &&
            tt_pool_copy(pool, frame->sender, place.index, place.mark, place.offset, place.size,
                         newer, client->out + request->begin * width)) {
            loan->patience = 0;
            tti_count(&client->counters.read, 1);
            return 1;
        }
    }
    request->in_vain = 1;
    loan->patience = TT_MIN(TT_MAX(2 * loan->patience, PATIENCE_MIN), PATIENCE_MAX);
    loan->patience_left = (uint32_t)loan->patience;
    tti_count(&client->counters.read_in_vain, 1);
    return 0;
}
