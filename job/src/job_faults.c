// The list of faults of a simulated job: simulation.faults (docs/simulation.md).
#include "job_internal.h"
#include <math.h>
#include <stdlib.h>

enum { FAULTS_MAX = 10000 };

typedef struct fault_spec {
    int kind;
    double share, seconds, factor, drift, at, lasts;
    int64_t from, to, after;
} fault_spec;

#define AT(field) offsetof(fault_spec, field)

// The last one is nothing that the simulation does: the job's master dies, and there is another.
static const char *const kinds[] = {"drop", "duplicate", "delay", "reorder", "cut_off", "pause",
                                    "slow", "crash",     "skew",  "narrow",  "master",  NULL};
enum { KIND_MASTER = TT_COUNT_OF(kinds) - 2 };
static const tt_sim_fault_kind kind_of[] = {
    TT_SIM_DROP,  TT_SIM_DUPLICATE, TT_SIM_DELAY, TT_SIM_REORDER, TT_SIM_CUT_OFF,
    TT_SIM_PAUSE, TT_SIM_SLOW,      TT_SIM_CRASH, TT_SIM_SKEW,    TT_SIM_NARROW};
static const tt_config_key keys[] = {
    {.path = "kind",
     .kind = TT_CONFIG_ENUM,
     .offset = AT(kind),
     .values = kinds,
     .flags = TT_CONFIG_REQUIRED},
    {.path = "share",
     .kind = TT_CONFIG_REAL,
     .offset = AT(share),
     .min = 0,
     .max = 1,
     .default_text = "1%",
     .flags = TT_CONFIG_PERCENT},
    {.path = "by",
     .kind = TT_CONFIG_DURATION,
     .offset = AT(seconds),
     .min = 0,
     .max = 3600,
     .default_text = "10ms"},
    {.path = "factor",
     .kind = TT_CONFIG_REAL,
     .offset = AT(factor),
     .min = 1,
     .max = 1e6,
     .default_text = "4"},
    {.path = "drift",
     .kind = TT_CONFIG_REAL,
     .offset = AT(drift),
     .min = 0,
     .max = 1,
     .default_text = "0"},
    {.path = "from",
     .kind = TT_CONFIG_INT,
     .offset = AT(from),
     .min = -1,
     .max = 100000,
     .default_text = "-1"},
    {.path = "to",
     .kind = TT_CONFIG_INT,
     .offset = AT(to),
     .min = -1,
     .max = 100000,
     .default_text = "-1"},
    {.path = "after",
     .kind = TT_CONFIG_INT,
     .offset = AT(after),
     .min = 0,
     .max = 1000000000000,
     .default_text = "0"},
    {.path = "at",
     .kind = TT_CONFIG_DURATION,
     .offset = AT(at),
     .min = 0,
     .max = 3e7,
     .default_text = "0s"},
    {.path = "for", .kind = TT_CONFIG_DURATION, .offset = AT(lasts), .min = 0, .max = 3e7},
};

static int
is_of_hosts(tt_sim_fault_kind kind)
{
    return kind == TT_SIM_CUT_OFF || kind == TT_SIM_PAUSE || kind == TT_SIM_SLOW ||
           kind == TT_SIM_CRASH || kind == TT_SIM_SKEW || kind == TT_SIM_NARROW;
}

static int
by_time(const void *a, const void *b)
{
    const tti_master_death *x = a, *y = b;
    return (x->at_s > y->at_s) - (x->at_s < y->at_s);
}

static void
add_master_death(tt_job *job, const tt_config_node *node, const fault_spec *f)
{
    if (f->from >= 0 || f->to >= 0 || f->after > 0)
        tt_config_complain(job->config, node, "for example {kind: master, at: 2s, for: 100ms}",
                           "the master is on no host, and dies at a time");
    if (job->spec.driver != TTI_DRIVER_MESSAGES)
        tt_config_complain(job->config, node, "use cluster.driver: messages",
                           "in place all nodes are one process with the master");
    job->master_deaths[job->master_death_count++] =
        (tti_master_death){.at_s = f->at, .for_s = isfinite(f->lasts) ? f->lasts : 0};
}

static void
read_fault(tt_job *job, const tt_config_node *node)
{
    fault_spec f;
    tt_sim_fault *out = &job->faults[job->fault_count];
    if (tt_config_node_kind_of(node) != TT_CONFIG_MAPPING) {
        tt_config_complain(job->config, node, "for example {kind: drop, share: 1%}",
                           "a fault must be a mapping");
        return;
    }
    if (tt_config_read_at(job->config, node, keys, TT_COUNT_OF(keys), &f) != TT_OK)
        return;
    if (f.kind == KIND_MASTER) {
        add_master_death(job, node, &f);
        return;
    }
    job->fault_count++;
    tt_sim_fault_kind kind = kind_of[f.kind];
    int64_t hosts = tti_job_simulated_hosts(job);
    if (f.from >= hosts || f.to >= hosts)
        tt_config_complain(job->config, node, "hosts are counted from 0",
                           "there is no host %lld: there are %lld", (long long)TT_MAX(f.from, f.to),
                           (long long)hosts);
    if (is_of_hosts(kind) && f.from < 0 && kind != TT_SIM_NARROW)
        tt_config_complain(job->config, node, "add from: HOST, and to: HOST for several",
                           "%s does not say which host", kinds[f.kind]);
    if (is_of_hosts(kind) && f.to < 0)
        f.to = f.from;
    if (kind == TT_SIM_PAUSE && !(f.lasts < 3e7))
        tt_config_complain(job->config, node, "add for: 500ms", "a pause must end");
    if (f.after > 0 && kind != TT_SIM_CRASH)
        tt_config_complain(job->config, node, "use at: 2s",
                           "only a crash comes after a number of messages");
    if (kind == TT_SIM_CRASH && job->spec.driver != TTI_DRIVER_MESSAGES)
        tt_config_complain(job->config, node, "use cluster.driver: messages",
                           "in place all nodes are one process: none can crash alone");
    double end_s = isfinite(f.lasts) ? f.at + f.lasts : INFINITY;
    *out = (tt_sim_fault){.kind = kind,
                          .from = f.from < 0 ? TT_SIM_ANY : (uint32_t)f.from,
                          .to = f.to < 0 ? TT_SIM_ANY : (uint32_t)f.to,
                          .share = f.share,
                          .seconds = f.seconds,
                          .factor = kind == TT_SIM_SKEW ? 1 + f.drift : f.factor,
                          .messages = (uint64_t)f.after,
                          .begin_s = f.at,
                          .end_s = end_s};
}

tt_status
tti_job_faults(tt_job *job, tt_error *err)
{
    const tt_config_node *list = job->spec.simulation.faults;
    if (list == NULL)
        return TT_OK;
    if (tt_config_node_kind_of(list) != TT_CONFIG_SEQUENCE ||
        tt_config_node_count(list) > FAULTS_MAX) {
        tt_config_complain(job->config, list, "for example [{kind: drop, share: 1%}]",
                           "simulation.faults must be a list of at most %d faults", FAULTS_MAX);
        return TT_OK;
    }
    size_t count = tt_config_node_count(list);
    job->faults = tt_mem_zalloc(TT_MAX(count, (size_t)1), sizeof *job->faults);
    job->master_deaths = tt_mem_zalloc(TT_MAX(count, (size_t)1), sizeof *job->master_deaths);
    if (job->faults == NULL || job->master_deaths == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the faults");
    for (size_t i = 0; i < count; i++)
        read_fault(job, tt_config_node_at(list, i));
    qsort(job->master_deaths, job->master_death_count, sizeof *job->master_deaths, by_time);
    return TT_OK;
}
