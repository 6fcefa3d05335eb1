// A job while it runs: nodes (threads), what is published to them and what they report.
//
// Threads: the master (the thread that called tt_job_run) and one per node. The master publishes
// generations, pauses and stops; a node adopts at its iteration boundaries. Stop order: workers
// first (their pushes complete), then servers.
#ifndef TTI_RUNTIME_H
#define TTI_RUNTIME_H

#include "books.h"
#include "checkpoint_file.h"
#include "command.h"
#include "engine.h"
#include "process.h"
#include "processes.h"
#include "simulated.h"

// How often nodes died and came back, and what was lost with them.
typedef struct tti_tally {
    uint32_t deaths, returns;
    uint32_t restored; // partitions, from a checkpoint or from nothing, while others went on
} tti_tally;

// Nodes that die and come back (membership.c); the master's. Only where they can.
typedef struct tti_membership {
    tt_mesh *control; // heartbeats; its last end is the master's
    tt_members members;
    int at_the_gate; // > 0: the master waits for all to hear that it is closed
    // Nothing but going back to the last checkpoint keeps all parameters of one moment (BSP); or
    // there are not enough nodes left. [nodes and master, in turns]
    int must_go_back, must_fail;
    int too_few;           // why
    uint32_t protected_at; // generation whose partitions all have the best backups there can be
    tti_tally *tally;      // where they are counted
    // The last checkpoint, while partitions are being restored from it.
    tti_checkpoint file;
    tt_ps_state *state;
    uint8_t *saved; // its bytes, where the job began from it
    // Finds it. errors TT_NOTFOUND there is none yet
    tt_status (*find_checkpoint)(void *self, tti_checkpoint *out, tt_error *err);
    void (*on_event)(void *self, const char *text);
    void *self; // of these
} tti_membership;

typedef struct tti_runtime {
    const tt_job *job;
    tti_watch watch;
    tti_work seen; // of the watch
    tt_clock clock;
    uint32_t node_count;
    tt_mesh *mesh;      // messages; its last end is the master's
    tt_ps_store *store; // in place
    tti_board board;
    tti_work work;
    // Nodes do not share the master's memory: they are reached by messages, and can die. Where they
    // are then; NULL: threads.
    int apart;
    const tti_engine *engine;
    tti_processes *started;  // of engines whose nodes are processes
    tti_process *processes;  // [node_count]
    tti_standing *standings; // [node_count]
    tti_membership membership;
    tti_command command;
    tti_books books;
    int inherits;             // another master's nodes, which go on
    struct tti_runtime *left; // of that master, while this is opened; simulated hosts
    tti_counts lost;          // counted by processes that have ended
    tti_node reading;         // the master's end of the mesh, which has no thread
    tt_ps_client *reader;     // its client, for evaluation
    tt_ps_copier *copier;   // where nodes do not share the master's memory: copies for checkpoints
    tti_generation *newest; // master's own pointer to the board's current
    // Generation of a partition's move that is under way, or 0; and how many are: they still have
    // to leave their old server, or to be restored. Taken back by servers.
    uint32_t *moving; // [partition_count]
    uint32_t unretired;
    uint8_t *backed;               // [partition_count]: the backup is known to have a copy [master]
    uint64_t start_ns, elapsed_ns; // elapsed: on the job's clock when it starts
    double load_model_s, load_data_s; // spent in tti_runtime_load
} tti_runtime;

// A saved runtime to go on from.
typedef struct tti_restore {
    const uint8_t *bytes; // as tti_runtime_save wrote them; NULL: from the beginning
    size_t count;
    double elapsed_s;            // on the job's clock
    uint32_t generation;         // the first one's number
    const tt_ps_view *placement; // whose partitions go where this says; NULL: dealt out anew
    // What another master has left (tti_books_save), to take its place; then nothing else is
    // looked at. NULL: nothing.
    const uint8_t *books;
    size_t book_bytes;
    tti_journal *journal; // of those books
    // Simulated hosts: what is left of that master, whose nodes it has; forgotten afterwards.
    struct tti_runtime *left;
} tti_restore;

// runtime.c
// restore: what tti_runtime_save wrote, with when; NULL: from the beginning.
TT_NODISCARD tt_status tti_runtime_open(const tt_job *job,
                                        const tt_setting *start,
                                        const tti_restore *restore,
                                        tti_runtime **out,
                                        tt_error *err);
tt_status tti_runtime_start(tti_runtime *rt, tt_error *err);
void tti_runtime_close(tti_runtime *rt);
// Frees what a master has to itself: it has died, and its nodes are another's.
void tti_runtime_forget(tti_runtime *rt);
// Closes it although iterations are under way: they are given up.
void tti_runtime_abandon(tti_runtime *rt);

// runtime_generations.c
// Publishes a view and setting as the generation in force; takes the view.
TT_NODISCARD tt_status tti_runtime_publish(tti_runtime *rt,
                                           tt_ps_view *view,
                                           const tt_setting *setting,
                                           uint32_t *shards_moved);
// The same without telling anybody; takes the generation, its view included. errors TT_NOMEM
TT_NODISCARD tt_status tti_runtime_take_generation(tti_runtime *rt,
                                                   tti_generation *generation,
                                                   uint32_t *shards_moved);
// Moves that are about to begin with this view. Nobody may take one back before it is noted.
void tti_runtime_note_moves(tti_runtime *rt, const tt_ps_view *view);
// Node n says that the backup of what it owns has a copy.
void tti_runtime_backed(tti_runtime *rt, uint32_t n, uint32_t partition, uint32_t generation);
// Partitions whose backup is not known to have a copy.
uint32_t tti_runtime_unbacked(const tti_runtime *rt);
// Every node that is there has adopted the newest generation and does in it what it is to do, and
// no partition is on its way, or without a copy that it is to have.
int tti_runtime_settled(const tti_runtime *rt);
// No batch that a dead worker had begun may be in at some partitions and not at others.
int tti_runtime_is_whole(const tti_runtime *rt);
// The clock with which joining workers begin, and under BSP the round from which a new generation
// holds: the first that nobody has begun. The gate must be closed.
void tti_runtime_horizon(const tti_runtime *rt, uint32_t *clock, uint32_t *round);
// BSP: closes the gate (see may_begin_round); false when the nodes do not all hear of it, because
// all go back or have to end. It is to be opened in any case.
int tti_runtime_close_gate(tti_runtime *rt);
void tti_runtime_open_gate(tti_runtime *rt);
// Frees generations that no node uses any more.
void tti_runtime_collect(tti_runtime *rt);
// A changed board is told to all.
void tti_runtime_wake_all(tti_runtime *rt);

// runtime_rest.c
// Waits until something may be worth a look; seen: of the board's bell before the last look.
void tti_runtime_wait(tti_runtime *rt, uint32_t seen, uint64_t timeout_ns);
// Of the workers, which is to be awaited; what makes them rest is said before.
void tti_runtime_call_to_rest(tti_runtime *rt);
// True when they all are within the time.
int tti_runtime_await_rest(tti_runtime *rt);
// Every worker at rest; true when so within the time.
int tti_runtime_pause(tti_runtime *rt);
void tti_runtime_resume(tti_runtime *rt);
// Workers finish what they have begun, and leave.
void tti_runtime_stop(tti_runtime *rt);
// After that: lets the servers go and joins all.
void tti_runtime_join(tti_runtime *rt);

// runtime_counts.c
// Adds what its nodes counted.
void tti_runtime_traffic(const tti_runtime *rt, tti_counts *sum);
// What node n has counted goes to what was counted before: its process is gone.
void tti_runtime_lose_counts(tti_runtime *rt, uint32_t n);
// Connections that anybody of the job has refused, as far as the master has heard.
uint64_t tti_runtime_refused(const tti_runtime *rt);
void tti_runtime_bytes(const tti_runtime *rt, uint64_t *carried, uint64_t *drained);
// Iterations applied so far: pushes, merged ones counted as many; under BSP rounds.
uint64_t tti_runtime_iterations(const tti_runtime *rt);
uint32_t tti_runtime_workers(const tti_runtime *rt);
// Till when all that was measured is here, by the runtime's clock.
uint64_t tti_runtime_measured_ns(const tti_runtime *rt);

// runtime_model.c
// Lets in what has come to the master's end of the mesh.
uint32_t tti_runtime_receive(tti_runtime *rt);
// The whole model as it would be saved, [table rows][width]. Training goes on meanwhile unless
// paused.
// errors TT_PEER nobody will ever answer: too few nodes are left; TT_BUSY all are about to go back
// to a checkpoint (BSP), and some partition waits for a round that does not end
tt_status tti_runtime_read_model(tti_runtime *rt, float *out, tt_error *err);
// The error that says so.
tt_status tti_runtime_deserted(tt_error *err);
// The same out of the servers' memory, without a message; simulated hosts only.
void tti_runtime_peek_model(const tti_runtime *rt, float *out);

// runtime_state.c: everything but the nodes' threads, as bytes. Data position, rows taken and not
// trained, parameters with optimiser state.
// Every worker at rest, nothing half done, and under BSP all in front of the same round; true when
// so within the time. No partition may be on its way. Ended by tti_runtime_go_on.
int tti_runtime_hold(tti_runtime *rt);
void tti_runtime_go_on(tti_runtime *rt);
// While held: has all servers' copies come. False when they do not, for nodes have died.
int tti_runtime_copy(tti_runtime *rt);
// After that, or stopped. Faults are in the archive's status.
void tti_runtime_save(tti_runtime *rt, tt_archive *out);
uint64_t tti_runtime_save_bytes(const tti_runtime *rt);
// Of a runtime whose nodes were just opened, or, where they do not share its memory, are about to
// be. errors TT_CORRUPT, TT_INVALID another model; TT_NOMEM
TT_NODISCARD tt_status tti_runtime_load(tti_runtime *rt, const tti_restore *restore, tt_error *err);

// The parameters' part of what tti_runtime_save wrote. errors TT_CORRUPT, TT_INVALID, TT_NOMEM
TT_NODISCARD tt_status tti_runtime_open_saved(
    tti_runtime *rt, const uint8_t *bytes, uint64_t count, tt_ps_state **out, tt_error *err);

// membership.c [master]
// books: what another master has left; NULL: nothing.
TT_NODISCARD tt_status tti_membership_open(tti_runtime *rt, tt_archive *books, tt_error *err);
// Lets heartbeats in, declares who is dead, publishes deaths and returns. From every wait of the
// master.
void tti_membership_watch(tti_runtime *rt);
// Heard from lately, as far as is known.
int tti_membership_hears(const tti_runtime *rt, uint32_t n);
// How long the master may wait before it watches again, at most most_ns.
uint64_t tti_membership_wait_ns(const tti_runtime *rt, uint64_t most_ns);
// The nodes are about to be started.
void tti_membership_begin(tti_runtime *rt);
// Lets in what has come, and answers.
void tti_membership_exchange(tti_runtime *rt);
void tti_membership_close(tti_runtime *rt);

#endif
