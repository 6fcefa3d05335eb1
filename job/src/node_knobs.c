// What a node's knobs reach: the extension "tt.runtime/1".
#include "node.h"
#include <string.h>

// NaN is 0.
static uint32_t
whole_of(double value)
{
    return value > 0 ? (uint32_t)TT_MIN(value, (double)UINT32_MAX) : 0;
}

static void
set_pinning(tti_node *node, double value)
{
    node->now.pinning = value != 0;
    (void)tt_thread_pin(node->now.pinning ? (int)node->index : -1);
}

static void
set_compute_threads(tti_node *node, double value)
{
    uint32_t threads = TT_MIN(TT_MAX(whole_of(value), 1u), (uint32_t)TTI_COMPUTE_MAX);
    // Simulated hosts have cores that nobody need start a thread on.
    if (node->board->job->sim != NULL) {
        node->now.compute_threads = threads;
        return;
    }
    // Without memory for a helper the pool stays smaller: slower, never wrong.
    if (tti_compute_resize(node->compute, threads, node->now.pinning ? (int)node->index : -1) !=
        TT_OK)
        tt_log(TT_LOG_WARN, "node %u: no memory for %u compute threads", node->index, threads);
    node->now.compute_threads = threads;
}

static void
set_kernel(tti_node *node, double value)
{
    node->now.ops = tt_vec_ops_for((tt_vec_variant)whole_of(value));
    if (node->server != NULL)
        tt_ps_server_set_ops(node->server, node->now.ops);
}

// Returns -1 for a name that is not here.
static int
runtime_set(void *impl, const char *name, double value)
{
    tti_node *node = impl;
    tti_node_setting *now = &node->now;
    uint32_t whole = whole_of(value);
    if (strcmp(name, "servers") == 0)
        return 0; // carried out by the placement of the generation
    if (strcmp(name, "compute_threads") == 0)
        set_compute_threads(node, value);
    else if (strcmp(name, "bf16_transfer") == 0)
        now->bf16 = value != 0;
    else if (strcmp(name, "chunk_bytes") == 0 && node->board->mesh != NULL)
        tt_mesh_set_chunk(node->board->mesh, node->index, whole);
    else if (strcmp(name, "compression") == 0 && node->board->mesh != NULL)
        tt_mesh_set_packing(node->board->mesh, node->index, value != 0);
    else if (strcmp(name, "spin") == 0)
        now->spin = whole;
    else if (strcmp(name, "in_flight") == 0)
        now->in_flight = whole;
    else if (strcmp(name, "prefetch") == 0)
        now->prefetch = TT_MIN(whole, TTI_BATCHES_MAX - 2u);
    else if (strcmp(name, "push_aggregation") == 0)
        now->aggregation = TT_MIN(TT_MAX(whole, 1u), (uint32_t)TTI_AGGREGATION_MAX);
    else if (strcmp(name, "staleness") == 0)
        now->staleness = whole;
    else if (strcmp(name, "kernel") == 0)
        set_kernel(node, value);
    else if (strcmp(name, "pinning") == 0)
        set_pinning(node, value);
    else
        return -1;
    if (node->board->mesh != NULL)
        tt_mesh_set_spin(node->board->mesh, node->index, now->spin);
    if (node->client != NULL)
        tt_ps_client_set(node->client, now->in_flight, now->bf16);
    return 0;
}

static int
runtime_get(void *impl, const char *name, double *out)
{
    const tti_node *node = impl;
    const tti_node_setting *now = &node->now;
    const struct {
        const char *name;
        double value;
    } known[] = {
        {"servers", 0},
        {"compute_threads", now->compute_threads},
        {"bf16_transfer", now->bf16},
        {"chunk_bytes", 0},
        {"compression", 0},
        {"spin", now->spin},
        {"in_flight", now->in_flight},
        {"prefetch", now->prefetch},
        {"push_aggregation", now->aggregation},
        {"staleness", now->staleness},
        {"kernel", now->ops != NULL ? (double)now->ops->variant : 0},
        {"pinning", now->pinning},
        {"node", node->index},
    };
    for (size_t i = 0; i < TT_COUNT_OF(known); i++)
        if (strcmp(known[i].name, name) == 0) {
            *out = known[i].value;
            return 0;
        }
    return -1;
}

const void *
tti_node_extension(const tt_knob_host *host, const char *name)
{
    static const tt_knob_runtime runtime = {
        .struct_size = sizeof runtime, .set = runtime_set, .get = runtime_get};
    TT_UNUSED(host);
    return strcmp(name, TT_KNOB_RUNTIME) == 0 ? &runtime : NULL;
}
