// Where a worker's client finds each partition: by the generations it adopts and the deaths it
// hears of.
#include "client_core.h"

void
tti_route_count_anew(tti_route *route, uint32_t restored_at)
{
    if (restored_at <= route->restored_at)
        return;
    route->restored_at = restored_at;
    route->sequence = tti_sequence_base(restored_at);
    route->carry_of = 0;
}

static int
is_gone(const tt_ps_view *view, uint16_t node)
{
    return node < view->node_count && view->is_gone[node];
}

// After a death: nobody is asked who is not there, nor for what was restored since. True when that
// changes the route.
static int
route_around_the_dead(tti_route *route, const tt_ps_view *view, uint32_t p)
{
    if (view->restored_at[p] <= route->restored_at && !is_gone(view, route->pull_from) &&
        !is_gone(view, route->push_to))
        return 0;
    tti_route_count_anew(route, view->restored_at[p]);
    route->moved_at = view->moved_at[p];
    route->pull_from = route->push_to = view->owner[p];
    route->drains = 0;
    route->carry_of = 0;
    return 1;
}

void
tt_ps_client_adopt(tt_ps_client *client, const tt_ps_view *view)
{
    TT_ASSERT(client->operation == TTI_IDLE);
    if (client->view != NULL && view->generation <= client->view->generation)
        return;
    int first = client->view == NULL;
    client->view = view;
    for (uint32_t p = 0; p < client->table->partition_count; p++) {
        tti_route *route = &client->routes[p];
        if (first)
            tti_route_count_anew(route, view->restored_at[p]);
        else if (route_around_the_dead(route, view, p))
            continue;
        if (!first && view->moved_at[p] <= route->moved_at)
            continue;
        route->moved_at = view->moved_at[p];
        route->push_to = view->owner[p];
        // A drain is not waited for where it comes from: nothing can be carried.
        route->drains = !first && view->moved_by[p] == TT_PS_MOVE_DRAIN;
        int at_owner = first || route->drains || is_gone(view, view->previous[p]);
        route->pull_from = at_owner ? view->owner[p] : view->previous[p];
        route->carry_of = 0;
    }
}

void
tt_ps_client_lose(tt_ps_client *client, const tt_ps_view *view)
{
    for (uint32_t p = 0; p < client->table->partition_count; p++) {
        tti_route *route = &client->routes[p];
        uint32_t restored_at = route->restored_at;
        if (!route_around_the_dead(route, view, p) || client->operation == TTI_IDLE ||
            route->request == UINT32_MAX)
            continue;
        tti_request *request = &client->requests[route->request];
        if (request->state == TTI_REQUEST_DONE)
            continue;
        if (client->operation == TTI_PUSHING && route->restored_at > restored_at)
            route->sequence++; // its number among the new ones
        tti_count(&client->counters.redirected, request->state == TTI_REQUEST_SENT);
        if (request->state == TTI_REQUEST_SENT)
            tti_client_send(client, request);
    }
}
