// How a run stands while it goes on, for `trimtab status`: a small file in its directory, replaced
// once a second and removed at its end. Reports are not made from it. The master must not wait for
// a disk (to replace a file took 0.1 s and more where what it covered is discarded at once): a
// thread writes.
#include "training.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *
real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static uint32_t
most_iterations(const tti_runtime *rt)
{
    uint32_t most = 0;
    for (uint32_t n = 0; n < rt->node_count; n++)
        if (rt->newest->view->is_worker[n])
            most = TT_MAX(most, tt_load_relaxed(&rt->standings[n].clock_seen));
    return most;
}

// Of a process: which, where, and when it was last heard from.
static void
add_process(const tti_runtime *rt, uint32_t n, json_t *node)
{
    char host[64];
    int pid = 0;
    if (!rt->apart)
        return;
    const tt_member *member = &rt->membership.members.member[n];
    uint64_t silent_ns = tt_clock_now(&rt->clock) - member->heard_at_ns;
    (void)json_object_set_new(node, "heard_seconds_ago", real_or_null(1e-9 * (double)silent_ns));
    (void)json_object_set_new(node, "attempt", json_integer(member->attempt));
    if (tti_processes_where(rt, n, &pid, host, sizeof host)) {
        (void)json_object_set_new(node, "host", json_string(host));
        (void)json_object_set_new(node, "pid", pid > 0 ? json_integer(pid) : json_null());
    }
}

static json_t *
describe_node(const tti_runtime *rt, uint32_t n, uint32_t most)
{
    const tt_ps_view *view = rt->newest->view;
    const tti_standing *standing = &rt->standings[n];
    tti_counts counts = standing->counts;
    uint32_t iterations = tt_load_relaxed(&standing->clock_seen), partitions = 0;
    if (!rt->apart)
        tti_node_count(&rt->processes[n].node, &counts);
    for (uint32_t p = 0; p < view->partition_count; p++)
        partitions += view->owner[p] == n;
    int heard = !rt->apart || tti_membership_hears(rt, n);
    const char *state = view->is_gone[n] ? "dead" : heard ? "alive" : "suspect";
    json_t *node = json_pack("{s:i, s:s, s:s}", "node", (int)n, "role",
                             view->is_worker[n] ? "worker" : "server", "state", state);
    if (node == NULL)
        return NULL;
    if (view->is_worker[n] && !view->is_gone[n]) {
        (void)json_object_set_new(node, "iterations", json_integer(iterations));
        (void)json_object_set_new(node, "behind", json_integer(most - TT_MIN(iterations, most)));
    } else if (!view->is_gone[n])
        (void)json_object_set_new(node, "partitions", json_integer(partitions));
    (void)json_object_set_new(node, "messages_sent", json_integer((json_int_t)counts.frames));
    (void)json_object_set_new(node, "bytes_sent", json_integer((json_int_t)counts.bytes));
    add_process(rt, n, node);
    return node;
}

static json_t *
describe(const tti_training *tr)
{
    const tti_runtime *rt = tr->rt;
    json_t *nodes = json_array();
    uint32_t most = most_iterations(rt);
    for (uint32_t n = 0; n < rt->node_count; n++)
        (void)json_array_append_new(nodes, describe_node(rt, n, most));
    double samples = (double)TT_MAX(tr->iterations, UINT64_C(1));
    json_t *all = json_pack(
        "{s:s, s:I, s:s, s:s, s:f, s:I, s:f, s:s, s:I, s:f, s:i, s:i}", "run", tr->identity->run_id,
        "written_at", (json_int_t)tt_clock_wall_seconds(), "engine",
        tti_engine_names[tr->job->spec.engine], "consistency",
        tti_consistency_names[tr->job->table.consistency], "elapsed_seconds", tti_training_now(tr),
        "iterations", (json_int_t)tti_runtime_iterations(rt), "epochs", tti_training_epochs(tr),
        "setting", tr->setting_text, "generation", (json_int_t)rt->newest->view->generation,
        "staleness_mean", tr->staleness_sum / samples, "deaths", (int)tr->tally.deaths, "returns",
        (int)tr->tally.returns);
    if (all == NULL) {
        json_decref(nodes);
        return NULL;
    }
    (void)json_object_set_new(all, "loss", real_or_null(tr->last_loss));
    (void)json_object_set_new(all, "partitions_moving",
                              json_integer(tt_load_acquire(&rt->unretired))); // partition_retired
    if (tr->job->table.replicas > 0)
        (void)json_object_set_new(all, "partitions_unbacked",
                                  json_integer(tti_runtime_unbacked(rt)));
    (void)json_object_set_new(all, "connections_refused",
                              json_integer((json_int_t)tti_runtime_refused(rt)));
    (void)json_object_set_new(all, "nodes", nodes);
    return all;
}

static void
paths_of(const tti_training *tr, tti_status_file *file)
{
    (void)snprintf(file->path, sizeof file->path, "%s/status.json", tr->identity->run_dir);
    (void)snprintf(file->beside, sizeof file->beside, "%s.new", file->path);
}

// What cannot be written now is written in a second; nothing depends on it, and nothing of it is
// left.
static void *
writer_main(void *self)
{
    tti_status_file *file = self;
    FILE *out = fopen(file->beside, "we");
    int failed = out == NULL || fputs(file->text, out) < 0;
    failed |= out != NULL && fclose(out) != 0;
    if (failed || rename(file->beside, file->path) != 0)
        (void)unlink(file->beside);
    tt_store_release(&file->written, 1); // acquired in tti_training_write_status
    return NULL;
}

static void
finish_status(tti_status_file *file)
{
    if (!file->writing)
        return;
    tt_thread_join(&file->thread);
    free(file->text);
    file->writing = 0;
}

void
tti_training_write_status(tti_training *tr)
{
    tti_status_file *file = &tr->status_file;
    tt_error err;
    if (tr->store == NULL || tr->job->sim != NULL || tr->rt == NULL ||
        (file->writing && !tt_load_acquire(&file->written))) // released in writer_main
        return;
    finish_status(file);
    json_t *all = describe(tr);
    file->text = all != NULL ? json_dumps(all, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(all);
    if (file->text == NULL)
        return;
    paths_of(tr, file);
    file->written = 0;
    file->writing = tt_thread_start(&file->thread, "tt-status", writer_main, file, &err) == TT_OK;
    if (!file->writing)
        free(file->text);
}

void
tti_training_remove_status(tti_training *tr)
{
    finish_status(&tr->status_file);
    // (Recording may have failed since.)
    if (tr->identity == NULL || tr->identity->run_dir[0] == '\0' || tr->job->sim != NULL)
        return;
    paths_of(tr, &tr->status_file);
    (void)unlink(tr->status_file.path);
    (void)unlink(tr->status_file.beside); // of a master that was killed while it wrote
}
