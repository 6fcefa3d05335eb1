// The inside of a worker's client: one pull or push at a time, as one request a partition, several
// of them in flight.
#ifndef TTI_CLIENT_CORE_H
#define TTI_CLIENT_CORE_H

#include "key_lists.h"
#include "push_batches.h"
#include "server_core.h"

typedef enum tti_request_state {
    TTI_REQUEST_TODO,
    TTI_REQUEST_SENT,
    TTI_REQUEST_DONE
} tti_request_state;

// One partition's part of the operation: entries [begin, begin + count) of `order`.
typedef struct tti_request {
    uint32_t partition, begin, count;
    tti_request_state state;
    int moving;  // its partition was found moving
    int lends;   // was sent as a loan once
    int in_vain; // was read where it lies, but changed meanwhile
    uint32_t sends;
    uint64_t first_sent_ns, sent_ns;
} tti_request;

// What the client knows of a partition.
typedef struct tti_route {
    uint16_t pull_from, push_to;
    uint32_t moved_at;
    uint32_t restored_at; // generation in which it was last taken from a checkpoint, or 0
    int drains;           // it moves by a drain, and its new owner has not answered yet
    uint64_t sequence;    // last push sent; counted from tti_sequence_base(restored_at)
    uint32_t request;     // index of its request in this operation, or UINT32_MAX
    uint64_t pulled_in;   // operation that pulled it last,
    uint32_t pulled_at;   // and after how many iterations of the partition's, modulo 2^32
    // originals of a seal, to be carried by the next push
    uint32_t carry_of; // generation of the seal, or 0
    uint8_t *carry_flags;
    float *carry_state;
    size_t carry_flags_capacity, carry_state_capacity;
} tti_route;

// A list of keys in order of partition, and where each stands in the caller's arrays.
typedef struct tti_client_list {
    uint64_t number, used, sample; // number 0: none, or not to be named
    uint8_t *wire_keys;            // of key bytes
    uint32_t *order;               // sparse only
    uint16_t *told;                // [partition_count] the server that was sent its keys, + 1
    // of a list that is kept: the keys as the caller has them, and its requests
    uint8_t *keys;
    size_t key_bytes;
    uint32_t capacity, request_count;
    tti_request *requests;
} tti_client_list;

enum { TTI_LISTS_RECENT = 256 };

typedef struct tti_client_lists {
    tti_client_list scratch; // [max_keys] of an operation whose list is not kept
    tti_client_list kept[TTI_LISTS_KEPT];
    uint64_t recent[TTI_LISTS_RECENT]; // samples of lists seen once
    uint32_t recent_next;
    uint64_t uses;
    int are_off; // tests: every list is sent
} tti_client_lists;

typedef enum tti_loan_state { TTI_LOAN_NONE, TTI_LOAN_OUT, TTI_LOAN_IN_DOUBT } tti_loan_state;

// Memory shared with the servers of one partition (client_lend.c).
typedef struct tti_loan {
    tti_loan_state state;
    uint16_t to; // whom gradients are lent, and which process of that number
    uint32_t attempt;
    uint64_t ticket;
    // After a partition changed while it was read: pulls that go by copy, and how many of them are
    // left.
    uint32_t patience, patience_left;
} tti_loan;

typedef enum tti_operation { TTI_IDLE, TTI_PULLING, TTI_PUSHING } tti_operation;

struct tt_ps_client {
    const tt_ps_table *table;
    uint32_t node, node_count;
    uint32_t attempt;   // which process of this number it is
    uint32_t *attempts; // [node_count] of all, as last seen
    tt_outbox outbox;
    tt_ps_hooks hooks;
    const tt_ps_view *view, *lost; // adopted; in which somebody has died since, or NULL
    uint64_t now_ns, next_look_ns; // the latter for what has had no answer
    uint32_t in_flight;
    int bf16;
    tti_route *routes;     // [partition_count]
    tti_request *requests; // [partition_count]
    uint32_t request_count, next, outstanding, done;
    tti_operation operation;
    uint64_t operation_number; // names the pulls of one operation
    tt_ps_keys keys;
    int read_only;
    uint32_t need;
    float *out;
    const float *gradients;
    uint32_t clock, detail;
    tti_push_batch batch; // rows 0: it has no name
    int probing;          // the push under way only asks
    uint32_t had;         // partitions that answered a probe with yes
    int late;             // the last pull was of a round that is not kept
    tti_client_lists lists;
    tti_client_list *list; // of the operation
    uint32_t *partition_of_key;
    uint32_t max_keys;
    float *packed;   // [max_keys][width] one request's values in wire order; sparse only
    tt_bf16 *halves; // [max_keys][width]
    float *cells;    // carried originals being packed
    size_t cells_capacity;
    tti_loan *loans; // [partition_count]
    uint32_t doubts; // loans in doubt
    float *shared_gradients, *own_gradients;
    tti_place place; // of the loan being sent
    tt_ps_client_counters counters;
    uint64_t longest_wait_ns; // since last asked
    // Of the last push: iterations applied between its pull and itself, summed over partitions.
    uint64_t staleness;
    uint32_t staleness_parts;
};

// ---- client_routes.c ---------------------------------------------------------------------------

// What was pushed to a partition before a restore is gone with the state it went to.
void tti_route_count_anew(tti_route *route, uint32_t restored_at);

// The route that an answer MOVED has named, unless who sent it had not heard of a death: it may
// lead to the dead.
void tti_route_by_the_newest(const tt_ps_client *client, tti_route *route, const tt_frame *frame);

// ---- client_keys.c -----------------------------------------------------------------------------

// Makes the requests of an operation on `client->keys`: one a partition that has some of them.
void tti_client_group(tt_ps_client *client);
// One more, of entries [begin, begin + count). The client keeps it.
tti_request *
tti_client_add_request(tt_ps_client *client, uint32_t partition, uint32_t begin, uint32_t count);
// Whether the operation is on all rows of the table.
int tti_client_is_whole(const tt_ps_client *client);
// Sparse tables: the request's values out of the caller's array [keys][width] into wire order, and
// back.
void tti_client_gather(const tt_ps_client *client,
                       const tti_request *request,
                       const float *from,
                       float *packed);
void tti_client_scatter(const tt_ps_client *client,
                        const tti_request *request,
                        const float *packed,
                        float *to);
// Where the request's i-th row stands in the caller's arrays.
size_t tti_client_position(const tt_ps_client *client, const tti_request *request, uint32_t i);

// ---- client_lists.c ----------------------------------------------------------------------------

TT_NODISCARD tt_status tti_client_lists_open(tt_ps_client *client);
void tti_client_lists_close(tt_ps_client *client);
// Sparse tables: sets client->list. True when it is one that was kept, and the requests are made;
// else they are to be made of the keys, and kept if need be.
int tti_client_choose_list(tt_ps_client *client);
void tti_client_keep_requests(tt_ps_client *client);
// Whether the request names its list to the server `to`, instead of its keys or, if it may not know
// it, before them.
int
tti_client_name(tt_ps_client *client, const tti_request *request, uint32_t to, tti_list_name *out);

// ---- client_lend.c -----------------------------------------------------------------------------

// Gradients that lie where `to` sees them are lent, and `gradients` becomes the word of it. False
// when they are to be sent.
int tti_client_lend(tt_ps_client *client, uint32_t partition, uint32_t to, tt_span *gradients);
// The push was answered.
void tti_client_end_loan(tt_ps_client *client, uint32_t partition);
// `by` has answered that the push is for another. True: it was lent to him, and he will not read
// it.
int tti_client_loan_refused(tt_ps_client *client, uint32_t partition, uint32_t by);
// The push will not be answered, or by another. view: of who is gone.
void tti_client_recall(tt_ps_client *client, const tt_ps_view *view, uint32_t partition);
// Whether the request may be answered with where its values lie.
int tti_client_may_read(tt_ps_client *client, const tti_request *request, uint32_t from);
// Reads them there. False when they changed meanwhile: they are to be asked for again.
int tti_client_read(tt_ps_client *client,
                    tti_request *request,
                    const tt_frame *frame,
                    const uint8_t *payload);
void tti_client_free_gradients(tt_ps_client *client);

// ---- client_send.c -----------------------------------------------------------------------------

// Sends the request, again if need be, to where its partition's route leads now.
void tti_client_send(tt_ps_client *client, tti_request *request);

#endif
