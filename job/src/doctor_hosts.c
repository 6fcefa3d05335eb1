// Whether the hosts of a job are fit for it: `trimtab node` is started on each, reads the job and
// its data, and calls back, as when the job runs.
#include "doctor.h"
#include "job_internal.h"
#include "remote.h"
#include "training.h"
#include <math.h>
#include <string.h>

enum { PATIENCE_S = 120, SIZE_TEXT = 24 };

// More makes times in reports of different hosts hard to compare; the job itself does not mind.
#define CLOCK_S 1.0

static void
say(tti_examination *e,
    const tti_remote_host *host,
    tt_job_health health,
    const char *advice,
    const char *found)
{
    char what[40];
    (void)snprintf(what, sizeof what, "host %.30s", host->name);
    tti_examine(e, health, what, advice, "%s", found);
}

static void
describe(tti_examination *e, const tti_remote *remote, uint32_t h, double seconds)
{
    const tti_remote_host *host = &remote->host[h];
    const tti_host_status *said = &host->said;
    char found[400], address[TT_NET_ADDRESS_TEXT], size[SIZE_TEXT], left[SIZE_TEXT];
    uint64_t wanted = tti_examine_node_bytes(remote->job, (uint32_t)said->node_count);
    double ahead_s = 1e-9 * (double)host->ahead_ns;
    int is_short = said->memory_bytes > 0 && wanted > said->memory_bytes;
    int is_late = fabs(ahead_s) > CLOCK_S;
    (void)snprintf(found, sizeof found,
                   "ready after %.1f s, calls from %s (%s); %llu nodes, %llu processors; about %s "
                   "are needed, %s are available; its clock is %.2f s %s",
                   seconds, tt_net_text(&said->address, address),
                   remote->is_open ? "authenticated" : "authenticated and encrypted",
                   (unsigned long long)said->node_count, (unsigned long long)said->processors,
                   tt_text_bytes((double)wanted, size, sizeof size),
                   tt_text_bytes((double)said->memory_bytes, left, sizeof left), fabs(ahead_s),
                   ahead_s < 0 ? "behind" : "ahead");
    say(e, host,
        is_short  ? TT_JOB_FAULTY
        : is_late ? TT_JOB_DOUBTFUL
                  : TT_JOB_FINE,
        is_short  ? "give it fewer nodes: name more hosts, or lower cluster.nodes"
        : is_late ? "set its clock (NTP)"
                  : NULL,
        found);
}

// What became of a host; 0: nothing yet.
static int
look(tti_examination *e, tti_remote *remote, uint32_t h, double seconds)
{
    tti_remote_host *host = &remote->host[h];
    char how[120], found[200];
    if (host->presence == TTI_HERE) {
        describe(e, remote, h, seconds);
        return 1;
    }
    if (host->presence == TTI_OF_OTHER_DATA) {
        say(e, host, TT_JOB_FAULTY, "give all hosts the same files, under the same paths",
            "has other training data");
        return 1;
    }
    if (tti_remote_has_ended(host, how, sizeof how)) {
        (void)snprintf(found, sizeof found, "no node came up: %s", how);
        say(e, host, TT_JOB_FAULTY,
            "see what it says above; try the remote shell by hand, and cluster.program", found);
        return 1;
    }
    if (seconds < PATIENCE_S)
        return 0;
    say(e, host, TT_JOB_FAULTY, "see that it can reach cluster.address, through firewalls, too",
        "has not called back");
    return 1;
}

void
tti_examine_hosts(tti_examination *e)
{
    tti_remote *remote;
    tt_error err = {0};
    uint8_t done[TT_PS_NODES_MAX] = {0};
    uint64_t begin_ns = tt_clock_monotonic_ns();
    if (tti_remote_prepare(e->job, NULL, &remote, &err) != TT_OK) {
        tti_examine(e, TT_JOB_FAULTY, "hosts", err.advice, "%s: %s", err.where, err.what);
        return;
    }
    for (uint32_t h = 0; h < remote->host_count; h++)
        if (tti_remote_launch(remote, h, &err) != TT_OK) {
            done[h] = 1;
            say(e, &remote->host[h], TT_JOB_FAULTY, err.advice, err.what);
        }
    for (uint32_t left = remote->host_count; left > 0 && !tti_interrupted;) {
        left = 0;
        tti_remote_listen(remote);
        for (uint32_t h = 0; h < remote->host_count; h++) {
            done[h] =
                done[h] || look(e, remote, h, 1e-9 * (double)(tt_clock_monotonic_ns() - begin_ns));
            left += !done[h];
        }
    }
    tti_remote_close(remote);
}
