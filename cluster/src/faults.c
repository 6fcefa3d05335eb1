// Faults of a simulation: hosts that pause, slow down or crash, clocks that are wrong, messages
// that are lost, late, or come twice.
#include "sim.h"
#include <math.h>

static int
holds(const tt_sim *sim, const tt_sim_fault *fault)
{
    double now_s = 1e-9 * (double)sim->now_ns;
    return now_s >= fault->begin_s && now_s < fault->end_s;
}

static int
is_of_hosts(const tt_sim_fault *fault)
{
    return fault->kind == TT_SIM_PAUSE || fault->kind == TT_SIM_SLOW ||
           fault->kind == TT_SIM_CRASH || fault->kind == TT_SIM_SKEW ||
           fault->kind == TT_SIM_NARROW;
}

static int
in_range(const tt_sim_fault *fault, uint32_t host)
{
    return fault->from == TT_SIM_ANY || (host >= fault->from && host <= fault->to);
}

// ---- hosts -------------------------------------------------------------------------------------

static double
factor_of(const tt_sim *sim, tt_sim_fault_kind kind, uint32_t host)
{
    double factor = 1;
    for (uint32_t i = 0; i < sim->options.fault_count; i++) {
        const tt_sim_fault *fault = &sim->faults[i];
        if (fault->kind == kind && holds(sim, fault) && in_range(fault, host))
            factor *= fault->factor;
    }
    return factor;
}

double
tti_faults_narrowness(const tt_sim *sim, uint32_t host)
{
    return sim->narrows ? factor_of(sim, TT_SIM_NARROW, host) : 1;
}

uint64_t
tti_faults_skew_ns(const tt_sim *sim, uint32_t host)
{
    double now_s = 1e-9 * (double)sim->now_ns, ahead_s = 0;
    for (uint32_t i = 0; i < sim->options.fault_count; i++) {
        const tt_sim_fault *fault = &sim->faults[i];
        if (fault->kind == TT_SIM_SKEW && in_range(fault, host) && now_s >= fault->begin_s)
            ahead_s += fault->seconds +
                       (fault->factor - 1) * (TT_MIN(now_s, fault->end_s) - fault->begin_s);
    }
    return (uint64_t)llround(1e9 * ahead_s);
}

static void
come_back(void *self, uint64_t host)
{
    tt_sim *sim = self;
    if (!sim->hosts[host].is_down)
        return; // another fault has brought it back
    sim->hosts[host].is_down = 0;
    tt_sim_trace(sim, "host %u is there again", (unsigned)host);
    if (sim->on_host != NULL)
        sim->on_host(sim->on_host_self, (uint32_t)host, 1);
}

static void
crash(tt_sim *sim, const tt_sim_fault *fault, uint32_t host)
{
    if (sim->hosts[host].is_down)
        return;
    sim->hosts[host].is_down = 1;
    tt_sim_trace(sim, "host %u crashes", host);
    tti_sim_crash(sim, host);
    if (sim->on_host != NULL)
        sim->on_host(sim->on_host_self, host, 0);
    if (fault->end_s < 1e9) // later than any job ends
        tti_agenda_put(&sim->agenda, tti_sim_after(sim, fault->end_s - fault->begin_s), come_back,
                       sim, host);
}

// tag: the fault and its host.
static void
on_crash(void *self, uint64_t tag)
{
    tt_sim *sim = self;
    crash(sim, &sim->faults[tag >> 32], (uint32_t)tag);
}

static void
crash_soon(tt_sim *sim, uint32_t fault, uint32_t host, uint64_t at_ns)
{
    tti_agenda_put(&sim->agenda, at_ns, on_crash, sim, (uint64_t)fault << 32 | host);
}

void
tti_faults_count(tt_sim *sim, uint32_t host)
{
    int reached = 0;
    for (uint32_t i = 0; i < sim->options.fault_count; i++) {
        const tt_sim_fault *fault = &sim->faults[i];
        if (fault->kind != TT_SIM_CRASH || fault->messages == 0 || !in_range(fault, host) ||
            1e-9 * (double)sim->now_ns < fault->begin_s)
            continue;
        if (++sim->fault_count[i] == fault->messages) {
            crash_soon(sim, i, host, sim->now_ns);
            reached = 1;
        }
    }
    if (reached)
        tti_fiber_rest(sim->running); // what kills it is on the agenda
}

static void
begin_crash(tt_sim *sim, uint32_t index)
{
    const tt_sim_fault *fault = &sim->faults[index];
    if (fault->messages > 0) {
        sim->counts_messages = 1;
        return;
    }
    for (uint32_t h = 0; h < sim->options.host_count; h++)
        if (in_range(fault, h))
            crash_soon(sim, index, h, (uint64_t)llround(fault->begin_s * 1e9));
}

// Something begins or ends: what holds now is looked up.
static void
on_change(void *self, uint64_t index)
{
    tt_sim *sim = self;
    const tt_sim_fault *fault = &sim->faults[index];
    for (uint32_t h = 0; h < sim->options.host_count; h++) {
        if (!in_range(fault, h))
            continue;
        if (fault->kind == TT_SIM_SLOW)
            tti_processors_slow(&sim->hosts[h], factor_of(sim, TT_SIM_SLOW, h));
        else if (holds(sim, fault))
            tti_processors_pause(&sim->hosts[h], (uint64_t)llround(1e9 * fault->end_s));
    }
}

void
tti_faults_begin(tt_sim *sim)
{
    for (uint32_t i = 0; i < sim->options.fault_count; i++) {
        const tt_sim_fault *fault = &sim->faults[i];
        if (!is_of_hosts(fault))
            continue;
        if (fault->kind == TT_SIM_CRASH) {
            begin_crash(sim, i);
            continue;
        }
        if (fault->kind == TT_SIM_SKEW) {
            sim->skews_clocks = 1;
            continue;
        }
        if (fault->kind == TT_SIM_NARROW) {
            sim->narrows = 1;
            continue;
        }
        tti_agenda_put(&sim->agenda, (uint64_t)llround(1e9 * fault->begin_s), on_change, sim, i);
        if (fault->end_s < 1e9) // later than any job ends
            tti_agenda_put(&sim->agenda, (uint64_t)llround(1e9 * fault->end_s), on_change, sim, i);
    }
}

// ---- messages ----------------------------------------------------------------------------------

static int
concerns(const tt_sim_fault *fault, uint32_t from, uint32_t to)
{
    if (is_of_hosts(fault))
        return 0;
    if (fault->kind == TT_SIM_CUT_OFF)
        return in_range(fault, from) != in_range(fault, to);
    return (fault->from == TT_SIM_ANY || fault->from == from) &&
           (fault->to == TT_SIM_ANY || fault->to == to);
}

static double
exponential(tt_rng *rng, double mean)
{
    return -mean * log(1 - tt_rng_uniform(rng));
}

tti_fate
tti_faults_draw(tt_sim *sim, tt_rng *rng, uint32_t from, uint32_t to)
{
    tti_fate fate = {0};
    for (uint32_t i = 0; i < sim->options.fault_count; i++) {
        const tt_sim_fault *fault = &sim->faults[i];
        if (!concerns(fault, from, to) || !holds(sim, fault))
            continue;
        if (fault->kind != TT_SIM_CUT_OFF && tt_rng_uniform(rng) >= fault->share)
            continue;
        if (fault->kind == TT_SIM_DROP || fault->kind == TT_SIM_CUT_OFF) {
            fate.dropped = 1;
        } else if (fault->kind == TT_SIM_DUPLICATE) {
            fate.duplicated = 1;
            fate.duplicate_s = exponential(rng, fault->seconds);
        } else {
            fate.delay_s += exponential(rng, fault->seconds);
            fate.overtaken |= fault->kind == TT_SIM_REORDER;
        }
    }
    return fate;
}
