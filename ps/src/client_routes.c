// Where a worker's client finds each partition: by the generations it adopts and the deaths it
// hears of.
#include "client_core.h"
#include <string.h>

void
tti_route_count_anew(tti_route *route, uint32_t restored_at)
{
    if (restored_at <= route->restored_at)
        return;
    route->restored_at = restored_at;
    route->sequence = tti_sequence_base(restored_at);
    route->carry_of = 0;
}

// It, or the process that had its number when it was last looked for.
static int
is_gone(const tt_ps_client *client, const tt_ps_view *view, uint16_t node)
{
    return node < view->node_count &&
           (view->is_gone[node] || view->attempt[node] != client->attempts[node]);
}

static void
see_attempts(tt_ps_client *client, const tt_ps_view *view)
{
    memcpy(client->attempts, view->attempt, view->node_count * sizeof *view->attempt);
}

// After a death: nobody is asked who is not there, nor for what was restored since. True when that
// changes the route.
static int
route_around_the_dead(const tt_ps_client *client,
                      tti_route *route,
                      const tt_ps_view *view,
                      uint32_t p)
{
    if (view->restored_at[p] <= route->restored_at && !is_gone(client, view, route->pull_from) &&
        !is_gone(client, view, route->push_to))
        return 0;
    tti_route_count_anew(route, view->restored_at[p]);
    route->moved_at = view->moved_at[p];
    route->pull_from = route->push_to = view->owner[p];
    route->drains = 0;
    route->carry_of = 0;
    return 1;
}

void
tti_route_by_the_newest(const tt_ps_client *client, tti_route *route, const tt_frame *frame)
{
    const tt_ps_view *lost = client->lost;
    uint32_t p = frame->partition;
    if (lost == NULL || frame->generation >= lost->lost_at || lost->moved_at[p] <= route->moved_at)
        return;
    route->moved_at = lost->moved_at[p];
    route->pull_from = route->push_to = lost->owner[p];
}

// The old owner serves until the new one is ready, and says when that was.
static int
is_offered(const tt_ps_client *client, const tt_ps_view *view, uint32_t p)
{
    return tti_ps_view_offers(view, client->table, p) && !view->is_gone[view->previous[p]] &&
           tt_outbox_pool(&client->outbox, view->previous[p]) != NULL &&
           tt_outbox_pool(&client->outbox, view->owner[p]) != NULL;
}

void
tt_ps_client_adopt(tt_ps_client *client, const tt_ps_view *view)
{
    TT_ASSERT(client->operation == TTI_IDLE);
    if (client->view != NULL && view->generation <= client->view->generation)
        return;
    int first = client->view == NULL;
    client->lost = NULL;
    client->view = view;
    if (first)
        see_attempts(client, view);
    for (uint32_t p = 0; p < client->table->partition_count; p++) {
        tti_route *route = &client->routes[p];
        if (first)
            tti_route_count_anew(route, view->restored_at[p]);
        else if (route_around_the_dead(client, route, view, p))
            continue;
        if (!first && view->moved_at[p] <= route->moved_at)
            continue;
        route->moved_at = view->moved_at[p];
        route->push_to = !first && is_offered(client, view, p) ? view->previous[p] : view->owner[p];
        // A drain is not waited for where it comes from: nothing can be carried.
        route->drains = !first && view->moved_by[p] == TT_PS_MOVE_DRAIN;
        int at_owner = first || route->drains || view->is_gone[view->previous[p]];
        route->pull_from = at_owner ? view->owner[p] : view->previous[p];
        route->carry_of = 0;
    }
    see_attempts(client, view);
}

void
tt_ps_client_lose(tt_ps_client *client, const tt_ps_view *view)
{
    client->lost = view;
    for (uint32_t p = 0; p < client->table->partition_count; p++) {
        tti_route *route = &client->routes[p];
        uint32_t restored_at = route->restored_at;
        if (!route_around_the_dead(client, route, view, p) || client->operation == TTI_IDLE ||
            route->request == UINT32_MAX)
            continue;
        tti_request *request = &client->requests[route->request];
        if (request->state == TTI_REQUEST_DONE)
            continue;
        if (client->operation == TTI_PUSHING && route->restored_at > restored_at)
            route->sequence++; // its number among the new ones
        tti_client_recall(client, view, p);
        tti_count(&client->counters.redirected, request->state == TTI_REQUEST_SENT);
        if (request->state == TTI_REQUEST_SENT)
            tti_client_send(client, request);
    }
    see_attempts(client, view);
}
