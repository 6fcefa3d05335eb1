// The master's tables of hosts and nodes, where it listens, and the arrival of the hosts.
#include "remote.h"
#include "training.h"
#include <string.h>
#include <unistd.h>

// How long a host may take to read the job's data and call.
#define ARRIVAL_NS UINT64_C(300000000000)

static tt_status
open_tables(tti_remote *remote, tt_error *err)
{
    const tt_config_node *hosts = remote->job->spec.hosts;
    uint32_t count = (uint32_t)tt_config_node_count(hosts), nodes = remote->job->node_count;
    remote->node_count = nodes;
    remote->host_count = TT_MIN(count, nodes);
    remote->host = tt_mem_zalloc(remote->host_count, sizeof *remote->host);
    remote->node = tt_mem_zalloc(nodes, sizeof *remote->node);
    remote->host_of = tt_mem_zalloc(nodes, sizeof *remote->host_of);
    remote->address = tt_mem_zalloc(nodes + 1, sizeof *remote->address);
    remote->control = tt_mem_zalloc(nodes + 1, sizeof *remote->control);
    if (remote->host == NULL || remote->node == NULL || remote->host_of == NULL ||
        remote->address == NULL || remote->control == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the hosts");
    remote->is_open = remote->job->spec.encryption == TTI_ENCRYPTION_AUTO;
    for (uint32_t h = 0; h < remote->host_count; h++) {
        tti_remote_host *host = &remote->host[h];
        host->input = -1;
        host->name = tt_config_node_text(tt_config_node_at(hosts, h));
        const char *at = strrchr(host->name, '@'); // user@host
        // The remote shell may know names that nobody else does; then the host says where it is.
        if (tt_net_resolve(at != NULL ? at + 1 : host->name, 0, &host->address, NULL) != TT_OK)
            host->address = (tt_net_address){0};
        remote->is_open &= host->address.family != 0 && tt_net_is_loopback(&host->address);
    }
    for (uint32_t n = 0; n < nodes; n++)
        remote->host_of[n] = n % remote->host_count;
    return TT_OK;
}

// The address by which this host reaches another.
static tt_status
own_address(const tti_remote *remote, tt_net_address *out, tt_error *err)
{
    if (remote->job->spec.address != NULL)
        return tt_net_resolve(remote->job->spec.address, 0, out, err);
    if (remote->host[0].address.family == 0)
        return tt_error_set(err, TT_NOTFOUND, remote->host[0].name,
                            "set cluster.address to the address by which the hosts reach this one",
                            "only the remote shell knows where this host is");
    return tt_net_route(&remote->host[0].address, out, err);
}

static tt_status
listen_here(tti_remote *remote, tt_error *err)
{
    tt_net_address address;
    uint32_t master = remote->node_count;
    TT_TRY(own_address(remote, &address, err));
    remote->address[master] = remote->control[master] = remote->hosts_address = address;
    TT_TRY(tt_net_listen(&remote->hosts_address, &remote->hosts_listener, err));
    TT_TRY(tt_net_listen(&remote->address[master], &remote->listener, err));
    return tt_net_listen(&remote->control[master], &remote->control_listener, err);
}

static tt_status
open_hosts_mesh(tti_remote *remote, tt_error *err)
{
    uint32_t ends = remote->host_count + 1;
    int listener = dup(remote->hosts_listener);
    uint8_t is_here[TT_PS_NODES_MAX + 1] = {0};
    tt_net_address *unknown = tt_mem_zalloc(ends, sizeof *unknown);
    is_here[remote->host_count] = 1;
    tt_net_options options = {.node_count = ends,
                              .node = remote->host_count,
                              .is_here = is_here,
                              .address = unknown,
                              .listener = listener,
                              .job = remote->job_id,
                              .mesh = TTI_MESH_OF_HOSTS,
                              .key = remote->key,
                              .is_open = remote->is_open,
                              .timeout_ns =
                                  tti_control_timeout_ns(remote->job->spec.failure_timeout)};
    tt_status status = unknown != NULL
                           ? tt_mesh_open(ends, &options.rings, err)
                           : tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the hosts");
    if (status == TT_OK)
        status = tt_net_mesh_open(&options, &remote->hosts, err);
    else
        (void)close(listener);
    tt_mem_free(unknown);
    tt_net_key_forget(&options.key);
    return status;
}

static tt_status
check_arrival(const tti_remote *remote, uint32_t *missing, tt_error *err)
{
    *missing = 0;
    for (uint32_t h = 0; h < remote->host_count; h++) {
        const tti_remote_host *host = &remote->host[h];
        if (host->presence == TTI_OF_OTHER_DATA)
            return tt_error_set(err, TT_INVALID, host->name,
                                "give all hosts the same files, under the same paths",
                                "this host has other training data");
        *missing += host->presence == TTI_AWAY;
    }
    return TT_OK;
}

tt_status
tti_remote_await(tti_remote *remote, tt_error *err)
{
    uint64_t begin = tt_clock_monotonic_ns();
    char how[120];
    for (uint32_t missing = 1;;) {
        tti_remote_listen(remote);
        TT_TRY(check_arrival(remote, &missing, err));
        if (missing == 0)
            return TT_OK;
        for (uint32_t h = 0; h < remote->host_count; h++)
            if (tti_remote_has_ended(&remote->host[h], how, sizeof how))
                return tt_error_set(
                    err, TT_PEER, remote->host[h].name,
                    "see what it says above; try the remote shell by hand, and cluster.program",
                    "no node came up on this host: %s", how);
        if (tti_interrupted)
            return tt_error_set(err, TT_CANCELLED, NULL, NULL, "interrupted before it began");
        if (tt_clock_monotonic_ns() - begin > ARRIVAL_NS)
            return tt_error_set(err, TT_PEER, NULL, "see that they can reach cluster.address",
                                "%u of %u hosts have not called within %.0f s", missing,
                                remote->host_count, 1e-9 * (double)ARRIVAL_NS);
    }
}

static tt_status
draw_keys(tti_remote *remote, tt_error *err)
{
    tt_net_key id;
    tt_net_key_draw(&remote->key);
    tt_net_key_draw(&id);
    memcpy(&remote->job_id, id.bytes, sizeof remote->job_id);
    return listen_here(remote, err);
}

tt_status
tti_remote_prepare(const tt_job *job, tt_host_estate *left, tti_remote **out, tt_error *err)
{
    tti_remote *remote = tt_mem_zalloc(1, sizeof *remote);
    *out = NULL;
    if (remote == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the hosts");
    remote->job = job;
    remote->hosts_listener = remote->listener = remote->control_listener = -1;
    tt_status status = open_tables(remote, err);
    if (status == TT_OK)
        status = left != NULL ? tti_remote_take_legacy(remote, left, err) : draw_keys(remote, err);
    remote->data = tti_job_data_digest(job);
    if (status == TT_OK)
        status = open_hosts_mesh(remote, err);
    if (status != TT_OK)
        tti_remote_close(remote);
    else
        *out = remote;
    return status;
}
