// Nodes on hosts that a remote shell reaches (engine ssh, processes.h). On each host a process,
// `trimtab node`, reads the job and its data and starts nodes' processes as the master asks
// (remote_host.c); the master launches it (remote_launch.c) and speaks with it over a mesh of its
// own, whose last end is the master's (remote.c, remote_open.c). They outlive the master, and his
// successor goes on with them (remote_estate.c).
//
// What is said is how things stand: a host says it again every beat, so that a lost message does no
// harm. Starts are numbered.
#ifndef TTI_REMOTE_H
#define TTI_REMOTE_H

#include "invitation.h"
#include "processes.h"

// Meshes of a job: of its hosts, and of parameters and of control of each runtime.
enum { TTI_MESH_OF_HOSTS = 0 };
static inline uint32_t
tti_mesh_of_parameters(uint32_t epoch)
{
    return 2 * epoch + 2;
}
// Frames of control are few and said again: a connection in which they are stuck is given up sooner
// than a node, for a new one is quicker there than the system, whose pauses double.
static inline uint64_t
tti_control_timeout_ns(double failure_timeout_s)
{
    return (uint64_t)(1e9 * 0.25 * failure_timeout_s);
}
static inline uint32_t
tti_mesh_of_control(uint32_t epoch)
{
    return 2 * epoch + 3;
}

#define TTI_HOST_BEAT_NS UINT64_C(250000000)

// Host -> master (TT_FRAME_HOST_STATUS), then node_count of tti_host_node.
typedef struct tti_host_status {
    uint64_t data;          // digest of the training data
    tt_net_address address; // where this host listens, of the mesh of hosts
    uint64_t node_count;    // on this host
    uint64_t refused;       // connections to this host, not to its nodes
    // of the machine, when it was asked
    uint64_t processors, memory_bytes; // memory that is available
    int64_t wall_ns;                   // since 1970
} tti_host_status;

typedef struct tti_host_node {
    uint64_t start; // number of the last start of it that was heard
    uint32_t node;
    uint16_t port, control_port;
    int32_t pid; // 0: has ended, or was never started
    int32_t wait_status;
} tti_host_node;

// Master -> host (TT_FRAME_HOST_START), then the addresses of all ends of the mesh of parameters,
// and what the process begins with (node_task.h). All but `number` is handed to the process.
typedef struct tti_start_call {
    uint64_t number;
    uint32_t node, epoch;
    tt_net_address control; // where the master listens
} tti_start_call;

// ---- the master's side -------------------------------------------------------------------------

typedef enum tti_presence {
    TTI_AWAY,
    TTI_HERE,
    TTI_OF_OTHER_DATA, // it has read its files, which are not the master's
} tti_presence;

typedef struct tti_remote_host {
    const char *name;
    tt_net_address address; // family 0: not known before it calls
    int shell;              // process of the remote shell; 0: not there
    int input;              // its standard input: the host ends when that is closed. -1: none
    int is_foreign;         // the shell is no child of this process: a master before started it
    tti_presence presence;
    uint32_t losses; // in a row
    uint64_t next_ns, launched_ns, heard_ns;
    tti_host_status said; // last
    int64_t ahead_ns;     // its wall clock, of this one's, less the message's way
} tti_remote_host;

typedef struct tti_remote_node {
    uint64_t asked, asked_ns; // number of the last start, and when
    int pid;                  // as the host says
    int is_asked;             // for, and has not ended since
    int has_begun, has_ended; // and the master has not been told
    int wait_status;
    int must_end;
    uint64_t killed_ns;
} tti_remote_node;

// What is shared with who keeps it for a successor (remote_estate.c).
typedef struct tti_remote_estate tti_remote_estate;
typedef struct tti_remote_legacy {
    int is_promised, journal; // the latter borrowed
    uint64_t patience_ns;
    char name[80];
} tti_remote_legacy;

typedef struct tti_remote {
    const struct tt_job *job;
    tt_net_key key;
    uint64_t job_id, data;
    uint32_t host_count, node_count, epoch;
    tti_remote_host *host; // [host_count]
    tti_remote_node *node; // [node_count]
    uint32_t *host_of;     // [node_count]
    // [node_count + 1] where ends of the meshes of parameters and of control listen
    tt_net_address *address, *control;
    tt_net_address hosts_address;
    int hosts_listener, listener, control_listener; // of the meshes, in this order
    int is_open;
    tt_mesh *hosts;
    uint64_t starts;
    int takes_over;            // nodes that hosts speak of are this master's
    tt_host *caretaker;        // keeps for a successor what is bequeathed, or NULL
    tti_remote_estate *estate; // NULL: nothing is
    int estate_file;
    tti_remote_legacy legacy;
} tti_remote;

// Lets in what hosts say, and waits for more for a moment.
void tti_remote_listen(tti_remote *remote);
void tti_remote_close(tti_remote *remote);
// Starts the remote shell of a host, and invites it. thread [any], also beside other threads.
// errors TT_IO, TT_NOMEM
TT_NODISCARD tt_status tti_remote_launch(tti_remote *remote, uint32_t host, tt_error *err);
// Whether its shell has ended; says how.
int tti_remote_has_ended(tti_remote_host *host, char *how, size_t size);
// Forgets it, and the line to it.
void tti_remote_let_go(tti_remote_host *host);
// Ends it, at once.
void tti_remote_abandon(tti_remote_host *host);

// remote_open.c
// A key, places to listen, and the mesh of hosts; nobody is launched. Closed by tti_remote_close.
// left: what another master has left, or NULL. errors TT_NOTFOUND, TT_IO, TT_NOMEM
TT_NODISCARD tt_status tti_remote_prepare(const struct tt_job *job,
                                          tt_host_estate *left,
                                          tti_remote **out,
                                          tt_error *err);
// Until all hosts have read the job and its data; one that ends before that will not come. errors
// TT_PEER one ended, or has not called within five minutes; TT_INVALID other data; TT_CANCELLED
TT_NODISCARD tt_status tti_remote_await(tti_remote *remote, tt_error *err);

// remote_estate.c
// errors TT_UNSUPPORTED, TT_NOMEM, TT_PEER
TT_NODISCARD tt_status tti_remote_bequeath(
    tti_remote *remote, const char *name, int journal, uint64_t patience_ns, tt_error *err);
// Numbers have changed that a successor counts on from.
void tti_remote_keep(tti_remote *remote);
// A host was launched anew: what is bequeathed is another line to it.
void tti_remote_renew_legacy(tti_remote *remote);
void tti_remote_close_estate(tti_remote *remote);
// Of a remote with its tables only: takes all descriptors but that of the journal, or none. errors
// TT_NOTFOUND
TT_NODISCARD tt_status tti_remote_take_legacy(tti_remote *remote,
                                              tt_host_estate *left,
                                              tt_error *err);
// Closes what was not taken.
void tti_remote_drop_legacy(tt_host_estate *left);

#endif
