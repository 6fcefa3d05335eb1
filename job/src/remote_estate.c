// What a master leaves to its successor besides its journal, when its nodes are on other hosts: the
// job's key, where it listens, and its ends of the remote shells. A process beside it holds all of
// that (tt/cluster_host.h): as long as it does, hosts find the line to their caller open, who
// connects waits, and nobody is told that the master is gone. What it is now is written to memory
// that they share, so that it is true at whatever moment the master ends.
#include "remote.h"
#include "runtime.h"
#include "tt/job.h"
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JOURNAL, ESTATE, HOSTS, PARAMETERS, CONTROL, INPUTS };
enum { VERSION_BYTES = 32, HOSTS_MAX = TT_HOST_DESCRIPTORS_MAX - INPUTS };

struct tti_remote_estate {
    char version[VERSION_BYTES];
    tt_net_key key;
    uint64_t job_id, starts;
    uint32_t host_count, node_count, epoch;
    int is_open;
    tt_net_address hosts, parameters, control; // where the master listens
    int shell[HOSTS_MAX];
    tt_net_address host[HOSTS_MAX]; // as known
    // Where nodes listen: a host that is launched anew listens where the others know it.
    tt_net_address node_parameters[TT_PS_NODES_MAX], node_control[TT_PS_NODES_MAX];
};

// ---- keeping it --------------------------------------------------------------------------------

static tt_status
map_estate(tti_remote *remote, int file)
{
    void *memory =
        mmap(NULL, sizeof(tti_remote_estate), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        return TT_NOMEM;
    remote->estate = memory;
    remote->estate_file = file;
    return TT_OK;
}

void
tti_remote_keep(tti_remote *remote)
{
    tti_remote_estate *estate = remote->estate;
    if (estate == NULL)
        return;
    estate->starts = remote->starts;
    estate->epoch = remote->epoch;
    for (uint32_t h = 0; h < remote->host_count; h++) {
        estate->shell[h] = remote->host[h].shell;
        estate->host[h] = remote->host[h].address;
    }
    memcpy(estate->node_parameters, remote->address, remote->node_count * sizeof *remote->address);
    memcpy(estate->node_control, remote->control, remote->node_count * sizeof *remote->control);
}

static void
write_estate(tti_remote *remote)
{
    tti_remote_estate *estate = remote->estate;
    uint32_t master = remote->node_count;
    estate->key = remote->key;
    estate->job_id = remote->job_id;
    estate->host_count = remote->host_count;
    estate->node_count = remote->node_count;
    estate->is_open = remote->is_open;
    estate->hosts = remote->hosts_address;
    estate->parameters = remote->address[master];
    estate->control = remote->control[master];
    (void)snprintf(estate->version, VERSION_BYTES, "%s", tt_job_version());
    tti_remote_keep(remote);
}

// Every host's place is there; where nobody listens at the other end, something else stands for it.
static tt_status
hand_over(tti_remote *remote, tt_error *err)
{
    const tti_remote_legacy *legacy = &remote->legacy;
    int descriptors[TT_HOST_DESCRIPTORS_MAX] = {[JOURNAL] = legacy->journal,
                                                [ESTATE] = remote->estate_file,
                                                [HOSTS] = remote->hosts_listener,
                                                [PARAMETERS] = remote->listener,
                                                [CONTROL] = remote->control_listener};
    for (uint32_t h = 0; h < remote->host_count; h++)
        descriptors[INPUTS + h] =
            remote->host[h].input >= 0 ? remote->host[h].input : remote->estate_file;
    return tt_host_bequeath(remote->caretaker, legacy->name, legacy->patience_ns, descriptors,
                            INPUTS + remote->host_count, err);
}

tt_status
tti_remote_bequeath(
    tti_remote *remote, const char *name, int journal, uint64_t patience_ns, tt_error *err)
{
    if (remote->caretaker == NULL || remote->host_count > HOSTS_MAX)
        return tt_error_set(err, TT_UNSUPPORTED, NULL, NULL,
                            "of more than %d hosts nothing is kept for a successor", HOSTS_MAX);
    if (remote->estate == NULL) {
        int file = memfd_create("trimtab-estate", MFD_CLOEXEC);
        tt_status status = file >= 0 && ftruncate(file, sizeof(tti_remote_estate)) == 0
                               ? map_estate(remote, file)
                               : TT_NOMEM;
        if (status != TT_OK) {
            if (file >= 0)
                (void)close(file);
            return tt_error_set(err, status, NULL, NULL, "no memory for a successor");
        }
    }
    write_estate(remote);
    remote->legacy =
        (tti_remote_legacy){.journal = journal, .patience_ns = patience_ns, .is_promised = 1};
    (void)snprintf(remote->legacy.name, sizeof remote->legacy.name, "%s", name);
    return hand_over(remote, err);
}

void
tti_remote_renew_legacy(tti_remote *remote)
{
    tt_error err;
    tti_remote_keep(remote);
    if (remote->legacy.is_promised && hand_over(remote, &err) != TT_OK)
        tt_log(TT_LOG_WARN, "%s; a successor will not find all hosts", err.what);
}

void
tti_remote_close_estate(tti_remote *remote)
{
    if (remote->estate == NULL)
        return;
    (void)munmap(remote->estate, sizeof *remote->estate);
    (void)close(remote->estate_file);
    remote->estate = NULL;
}

// ---- taking it over ----------------------------------------------------------------------------

static int
is_file_of(int file, size_t size)
{
    struct stat what;
    return fstat(file, &what) == 0 && S_ISREG(what.st_mode) && (size_t)what.st_size == size;
}

static int
is_line(int descriptor)
{
    struct stat what;
    return fstat(descriptor, &what) == 0 && S_ISSOCK(what.st_mode);
}

static int
is_of_this_job(const tti_remote *remote, const tti_remote_estate *estate)
{
    return strncmp(estate->version, tt_job_version(), VERSION_BYTES - 1) == 0 &&
           estate->host_count == remote->host_count && estate->node_count == remote->node_count;
}

static void
take_places(tti_remote *remote, const tt_host_estate *left)
{
    const tti_remote_estate *estate = remote->estate;
    uint32_t master = remote->node_count;
    remote->key = estate->key;
    remote->job_id = estate->job_id;
    remote->starts = estate->starts;
    remote->epoch = estate->epoch;
    remote->is_open = estate->is_open;
    remote->hosts_address = estate->hosts;
    memcpy(remote->address, estate->node_parameters, master * sizeof *remote->address);
    memcpy(remote->control, estate->node_control, master * sizeof *remote->control);
    remote->address[master] = estate->parameters;
    remote->control[master] = estate->control;
    remote->hosts_listener = left->descriptors[HOSTS];
    remote->listener = left->descriptors[PARAMETERS];
    remote->control_listener = left->descriptors[CONTROL];
    for (uint32_t h = 0; h < remote->host_count; h++) {
        tti_remote_host *host = &remote->host[h];
        int input = left->descriptors[INPUTS + h];
        host->launched_ns = host->heard_ns = tt_clock_monotonic_ns();
        host->address = estate->host[h];
        if (is_line(input)) {
            host->input = input;
            host->shell = estate->shell[h];
            host->is_foreign = 1;
        } else {
            (void)close(input);
        }
    }
}

void
tti_remote_drop_legacy(tt_host_estate *left)
{
    for (uint32_t i = 0; i < left->count; i++)
        (void)close(left->descriptors[i]);
    left->count = 0;
}

tt_status
tti_remote_take_legacy(tti_remote *remote, tt_host_estate *left, tt_error *err)
{
    int fits = left->count == INPUTS + remote->host_count && remote->host_count <= HOSTS_MAX &&
               is_file_of(left->descriptors[ESTATE], sizeof(tti_remote_estate)) &&
               map_estate(remote, left->descriptors[ESTATE]) == TT_OK;
    if (fits && is_of_this_job(remote, remote->estate)) {
        take_places(remote, left);
        left->count = 1; // the journal
        return TT_OK;
    }
    if (fits) {
        (void)munmap(remote->estate, sizeof *remote->estate);
        remote->estate = NULL;
    }
    return tt_error_set(err, TT_NOTFOUND, NULL, NULL,
                        "what was left is of another job, or another version");
}
