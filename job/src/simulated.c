// The cost model of a simulated job (docs/simulation.md): hosts from the job file, gradients by
// example and stored value, messages by what is in them. Knobs act through what they do: kernel and
// compute_threads on gradients; chunk_bytes, compression, bf16_transfer and in_flight on messages;
// spin on waits; prefetch, push_aggregation, staleness and servers by themselves, for the code that
// obeys them is the real one.
#include "simulated.h"
#include "runtime.h"
#include <errno.h>
#include <math.h>
#include <string.h>

uint32_t
tti_job_simulated_hosts(const tt_job *job)
{
    int64_t hosts = job->spec.simulation.hosts;
    return hosts > 0 ? (uint32_t)hosts : job->node_count;
}

uint32_t
tti_simulated_host(const tt_job *job, uint32_t node)
{
    return node % tti_job_simulated_hosts(job);
}

// ---- hosts -------------------------------------------------------------------------------------

// Which hosts are stragglers depends on the seed alone.
static void
describe_hosts(const tt_job *job, tt_sim_host *hosts, uint32_t count)
{
    const tti_simulation_spec *s = &job->spec.simulation;
    uint32_t left = (uint32_t)llround(s->stragglers * count);
    tt_rng rng;
    tt_rng_init(&rng, (uint64_t)job->spec.seed, TT_RNG_SIMULATION, 0);
    for (uint32_t h = 0; h < count; h++) {
        // Each of the rest is one with the probability that leaves the right number.
        int is_slow = left > 0 && tt_rng_below(&rng, count - h) < left;
        left -= (uint32_t)is_slow;
        hosts[h] = (tt_sim_host){s->cores, s->speed * (is_slow ? s->straggler_speed : 1)};
    }
}

static tt_status
open_trace(const tt_job *job, FILE **out, tt_error *err)
{
    const char *path = job->spec.simulation.trace;
    *out = path != NULL ? fopen(path, "w") : NULL;
    if (path == NULL || *out != NULL)
        return TT_OK;
    return tt_error_set(err, TT_IO, path, "choose another file for simulation.trace",
                        "cannot write the trace: %s", tt_errno_text(errno));
}

static tt_status
open_simulation(tt_job *job, FILE *trace, tt_error *err)
{
    const tti_simulation_spec *s = &job->spec.simulation;
    uint32_t count = tti_job_simulated_hosts(job);
    tt_sim_host *hosts = tt_mem_zalloc(count, sizeof *hosts);
    if (hosts == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for %u simulated hosts", count);
    describe_hosts(job, hosts, count);
    const tt_sim_options options = {.host_count = count,
                                    .hosts = hosts,
                                    .fault_count = job->fault_count,
                                    .faults = job->faults,
                                    .seed = (uint64_t)job->spec.seed,
                                    .pause_s = s->pause,
                                    .wake_s = s->wake,
                                    .signal_s = s->signal,
                                    .change_s = s->change,
                                    .trace = trace};
    tt_status status = tt_sim_open(&options, &job->sim, err);
    tt_mem_free(hosts);
    return status;
}

static tt_status
run_simulation(const tt_job *job,
               void (*body)(void *argument),
               void *argument,
               tt_job_simulation *counters,
               tt_error *err)
{
    tt_sim_counters sim;
    tt_clock clock = tt_clock_monotonic(), simulated = tt_sim_clock(job->sim);
    uint64_t begin_ns = tt_clock_now(&clock);
    tt_status status = tt_sim_run(job->sim, body, argument, err);
    tt_sim_counters_read(job->sim, &sim);
    *counters =
        (tt_job_simulation){.events = sim.events,
                            .switches = sim.switches,
                            .fibers = sim.fibers,
                            .dropped = sim.dropped,
                            .duplicated = sim.duplicated,
                            .delayed = sim.delayed,
                            .crashes = sim.crashes,
                            .wall_seconds = 1e-9 * (double)(tt_clock_now(&clock) - begin_ns),
                            .virtual_seconds = 1e-9 * (double)tt_clock_now(&simulated)};
    return status;
}

tt_status
tti_simulate(tt_job *job,
             void (*body)(void *argument),
             void *argument,
             tt_job_simulation *counters,
             tt_error *err)
{
    FILE *trace;
    TT_TRY(open_trace(job, &trace, err));
    tt_status status = open_simulation(job, trace, err);
    if (status == TT_OK)
        status = run_simulation(job, body, argument, counters, err);
    if (status == TT_OK)
        tt_sim_load_read(job->sim, &job->load);
    tt_sim_close(job->sim);
    job->sim = NULL;
    if (trace != NULL && fclose(trace) != 0 && status == TT_OK)
        status = tt_error_set(err, TT_IO, job->spec.simulation.trace, NULL,
                              "cannot write the trace: %s", tt_errno_text(errno));
    return status;
}

void
tti_simulated_adopted(const tti_node *node)
{
    if (node->board->job->sim != NULL)
        tt_sim_trace(node->board->job->sim, "%u adopts generation %u, %s", node->index,
                     node->adopted->view->generation, node->working ? "a worker" : "a server");
}

void
tti_simulated_enter(const tti_node *node)
{
    if (node->board->job->sim != NULL)
        tt_sim_settle_on(node->board->job->sim, tti_simulated_host(node->board->job, node->index));
}

// All simulated nodes take turns, and none ends within tt_batch_fill.
void
tti_simulated_share(tti_process *process)
{
    const tti_runtime *rt = process->rt;
    process->node.beside = NULL;
    process->node.watch = &process->rt->watch;
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (rt->processes[n].node.batches[0] != NULL)
            process->node.beside = rt->processes[n].node.batches[0];
}

// ---- messages ----------------------------------------------------------------------------------

// What is done with the parameters in a message, by its sender and by its receiver.
static double
content_s(const tti_simulation_spec *s,
          const tt_ps_table *table,
          const tt_frame *frame,
          int sending)
{
    double values = (double)frame->count * table->width;
    double bf16 = (frame->flags & TT_FRAME_BF16) != 0 ? s->bf16 * values : 0;
    // A whole partition is sent from where it lies and written in one go: that is in its bytes.
    int whole = (frame->flags & TT_FRAME_WHOLE) != 0;
    if (whole && frame->kind == TT_FRAME_PULL_REPLY)
        return bf16;
    if (whole && frame->kind == TT_FRAME_PUSH)
        return (sending ? 0 : s->whole * values) + bf16;
    double keys = whole ? 0 : frame->count;
    switch ((tt_frame_kind)frame->kind) {
    case TT_FRAME_PULL: // the server looks the rows up when it answers
        return sending ? s->key * keys : 0;
    case TT_FRAME_PULL_REPLY:
        return s->value * values + (sending ? s->key * keys : 0) + bf16;
    case TT_FRAME_PUSH:
        return s->value * values + (sending ? 0 : s->key * keys + s->apply * values) + bf16;
    case TT_FRAME_PIECE:
        return s->value * values + s->key * keys;
    default:
        return 0;
    }
}

static double
message_s(void *self, uint32_t node, const tt_frame *frame, uint32_t chunks, int sending)
{
    const tt_job *job = self;
    const tti_simulation_spec *s = &job->spec.simulation;
    TT_UNUSED(node);
    double bytes = (double)(sizeof *frame + frame->payload_bytes);
    double packing = (frame->flags & TT_FRAME_PACKED) == 0 ? 0 : sending ? s->pack : s->unpack;
    return s->message + s->chunk * chunks + s->byte * bytes + packing * frame->payload_bytes +
           content_s(s, &job->table, frame, sending);
}

static tt_status
open_mesh(tti_runtime *rt, const tt_sim_network *network, tt_mesh **out, tt_error *err)
{
    uint32_t *host_of_node = tt_mem_alloc((rt->node_count + 1) * sizeof *host_of_node);
    if (host_of_node == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for %u nodes", rt->node_count);
    for (uint32_t n = 0; n < rt->node_count; n++)
        host_of_node[n] = tti_simulated_host(rt->job, n);
    host_of_node[rt->node_count] = TT_SIM_NOWHERE; // the master's end
    tt_status status =
        tt_sim_mesh_open(rt->job->sim, network, rt->node_count + 1, host_of_node, out, err);
    tt_mem_free(host_of_node);
    return status;
}

tt_status
tti_simulated_control(tti_runtime *rt, tt_mesh **out, tt_error *err)
{
    const tti_simulation_spec *s = &rt->job->spec.simulation;
    const tt_sim_network network = {.bytes_per_s = (double)s->rate,
                                    .latency_s = s->latency,
                                    .oversubscription = 1,
                                    .nowhere_is_far = 1};
    return open_mesh(rt, &network, out, err);
}

void
tti_simulated_gone(const tti_runtime *rt, uint8_t *is_gone)
{
    const tt_sim *sim = rt->job->sim;
    for (uint32_t n = 0; n < rt->node_count; n++)
        is_gone[n] = !tt_sim_host_is_up(sim, tti_simulated_host(rt->job, n));
}

tt_status
tti_simulated_mesh(tti_runtime *rt, tt_error *err)
{
    const tti_simulation_spec *s = &rt->job->spec.simulation;
    const tt_sim_network network = {.bytes_per_s = (double)s->rate,
                                    .latency_s = s->latency,
                                    .local_latency_s = s->local_latency,
                                    .oversubscription = s->oversubscription,
                                    .jitter = s->network_jitter,
                                    .cost_s = message_s,
                                    .cost_self = (void *)(uintptr_t)rt->job}; // which only reads it
    return open_mesh(rt, &network, &rt->mesh, err);
}

// ---- computing ---------------------------------------------------------------------------------

// Drawn by (host, iteration), whatever else happens: runs of equal seeds under different settings
// meet the same luck.
static double
luck(const tti_node *node)
{
    const tt_job *job = node->board->job;
    double spread = job->spec.simulation.jitter;
    if (!(spread > 0))
        return 1;
    tt_rng rng;
    tt_rng_init(&rng, (uint64_t)job->spec.seed, TT_RNG_SIMULATION,
                ((uint64_t)(tti_simulated_host(node->board->job, node->index) + 1) << 40) +
                    node->standing->iterations);
    return exp(spread * tt_rng_normal(&rng) - 0.5 * spread * spread);
}

// Seconds that one thread multiplies for a gradient, its rows being at hand.
static double
products_s(const tti_node *node, const tti_compute_task *task)
{
    const tt_job *job = node->board->job;
    const tti_simulation_spec *s = &job->spec.simulation;
    uint32_t kernel = TT_MIN((uint32_t)node->now.ops->variant, 2u);
    int sparse = job->train->layout == TT_DATA_SPARSE;
    double products = (double)tt_batch_nonzeros(task->batch) * job->table.width;
    return (sparse ? s->nonzero[kernel] : s->cell[kernel]) * products +
           (sparse ? 0 : s->dense * (double)tt_batch_nonzeros(task->batch));
}

void
tti_simulated_gradient(tti_node *node, const tti_compute_task *task)
{
    const tt_job *job = node->board->job;
    if (job->sim == NULL)
        return;
    const tti_simulation_spec *s = &job->spec.simulation;
    double alone = s->example * tt_batch_rows(task->batch) + products_s(node, task);
    uint32_t threads = node->now.compute_threads;
    double together = alone * (s->serial + (1 - s->serial) / threads) + s->helper * (threads - 1);
    tt_sim_work(job->sim, together * luck(node), threads);
}

void
tti_simulated_probe(tti_node *node, const tti_compute_task *task)
{
    enum { GRADIENTS = 8 };
    const tt_job *job = node->board->job;
    if (job->sim != NULL)
        tt_sim_work(job->sim, GRADIENTS * products_s(node, task) * luck(node), 1);
}

void
tti_simulated_prepare(const tti_node *node, const tt_batch *batch)
{
    const tt_job *job = node->board->job;
    if (job->sim != NULL && tt_model_keyed(job->model))
        tt_sim_owe(job->sim, job->spec.simulation.prepare * (double)tt_batch_nonzeros(batch));
}

void
tti_simulated_applied(const tti_node *node, uint32_t slot)
{
    const tti_watch *watch = node->watch;
    const tt_job *job = node->board->job;
    if (watch == NULL || watch->every == 0)
        return;
    int bsp = job->table.consistency == TT_PS_BSP;
    uint32_t rows = tt_batch_rows(node->batches[slot]), micro = node->batch_micro[slot];
    uint64_t before = bsp ? tti_work_count_slice(watch->seen, node->batch_slice[slot],
                                                 node->batch_round[slot], rows)
                          : tti_work_count(watch->seen, micro, rows);
    uint64_t unit = bsp ? (uint64_t)job->spec.slices : 1;
    uint64_t from = before / unit, to = watch->seen->applied / unit;
    if (from / watch->every != to / watch->every)
        watch->look(watch->self, to);
}
