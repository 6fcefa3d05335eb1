// What a host is told when `trimtab node` begins there: who calls it, the job, and the job's key.
// It comes over the remote shell, on standard input: not by arguments or environment, which others
// on the host can see.
#ifndef TTI_INVITATION_H
#define TTI_INVITATION_H

#include "tt/comm_net.h"
#include "tt/core_archive.h"

typedef struct tti_invitation {
    tt_net_key key;
    uint64_t job_id;
    uint32_t host, host_count, node_count;
    int32_t is_open;        // connections are not encrypted
    tt_net_address master;  // where it listens for hosts
    tt_net_address address; // this host's; its ports are chosen here. Family 0: it knows best
    double timeout_s;       // cluster.failure_timeout
    uint32_t *host_of;      // [node_count]
    // [2 node_count] to listen at, of this host's nodes; 0: any. First those for parameters, then
    // those for control.
    uint16_t *port;
    char *directory; // of the master, to which paths are relative
    char *text;      // the resolved job file
} tti_invitation;

// As it is sent, with its length before it. Faults are in the archive's status.
void tti_invitation_write(const tti_invitation *invitation, tt_archive *out);
// From a descriptor, waiting for it. errors TT_IO it ends too early; TT_UNSUPPORTED it is of
// another version of the program; TT_CORRUPT; TT_NOMEM
TT_NODISCARD tt_status tti_invitation_read(int descriptor, tti_invitation *out, tt_error *err);
void tti_invitation_fini(tti_invitation *invitation);

#endif
