// What messages cost: a server with an outbox that goes nowhere, and a mesh between two ends of one
// thread.
#include "calibrate.h"
#include <math.h>
#include <string.h>

enum { TABLE_ROWS = 1 << 16, SOME = 16, LOTS = 2048, LARGE = 1 << 20 };

// ---- servers -----------------------------------------------------------------------------------

typedef struct server_bench {
    tt_ps_table table;
    tt_ps_view *view;
    tt_ps_server *server;
    tt_frame frame;
    uint8_t *payload;
    uint64_t sequence;
} server_bench;

static void
send_nowhere(void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count)
{
    TT_UNUSED(self);
    TT_UNUSED(to);
    TT_UNUSED(frame);
    TT_UNUSED(spans);
    TT_UNUSED(span_count);
}

static void
close_server(server_bench *b)
{
    tt_ps_server_close(b->server);
    tt_ps_view_free(b->view);
    tt_mem_free(b->payload);
}

static tt_status
open_server(server_bench *b, tt_error *err)
{
    const uint8_t is_server[TT_PS_NODES_MAX] = {1};
    *b = (server_bench){.table = {.kind = TT_PS_DENSE,
                                  .rows = TABLE_ROWS,
                                  .width = 1,
                                  .partition_count = 1,
                                  .consistency = TT_PS_ASP,
                                  .optimizer = TT_PS_SGD,
                                  .learning_rate = 1e-3}};
    const tt_outbox outbox = {.send = send_nowhere};
    const tt_ps_hooks hooks = {0};
    b->payload = tt_mem_zalloc(TABLE_ROWS, sizeof(float));
    tt_status status = b->payload != NULL ? TT_OK : TT_NOMEM;
    if (status == TT_OK)
        status = tt_ps_view_first(&b->table, 2, is_server, &b->view);
    if (status == TT_OK)
        status = tt_ps_server_open(&b->table, 0, 2, outbox, hooks, &b->server, err);
    if (status == TT_OK)
        status = tt_ps_server_start(b->server, b->view);
    return status == TT_OK ? TT_OK
                           : tt_error_set(err, status, NULL, NULL, "no memory to measure a server");
}

static void
handle(void *self)
{
    server_bench *b = self;
    b->frame.sequence = ++b->sequence;
    tt_ps_server_receive(b->server, &b->frame, b->payload);
}

// One frame of `count` keys spread over the table, and gradients after them.
static double
frame_s(server_bench *b, tt_frame_kind kind, uint32_t count)
{
    b->frame = (tt_frame){.kind = (uint16_t)kind,
                          .attempt = 1,
                          .sender = 1,
                          .generation = 1,
                          .count = count,
                          .detail = 1,
                          .payload_bytes = count * (kind == TT_FRAME_PUSH ? 8 : 4)};
    memset(b->payload, 0, LOTS * 8);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = (uint32_t)((uint64_t)i * TABLE_ROWS / count);
        memcpy(b->payload + i * sizeof key, &key, sizeof key);
    }
    return tti_calibrate_call_s(handle, b);
}

// A frame with a gradient of every row of the partition.
static double
whole_push_s(server_bench *b)
{
    b->frame = (tt_frame){.kind = TT_FRAME_PUSH,
                          .flags = TT_FRAME_WHOLE,
                          .attempt = 1,
                          .sender = 1,
                          .generation = 1,
                          .count = TABLE_ROWS,
                          .detail = 1,
                          .payload_bytes = TABLE_ROWS * sizeof(float)};
    memset(b->payload, 0, TABLE_ROWS * sizeof(float));
    return tti_calibrate_call_s(handle, b);
}

// The price of a key in a pull: looking it up and reading it; of a push: and applying it. A whole
// table is read and not looked up, but sent from where it lies: reading is what copying costs.
static tt_status
measure_server(tti_simulation_spec *out, tt_error *err)
{
    server_bench b;
    tt_status status = open_server(&b, err);
    if (status == TT_OK) {
        double pull[2] = {frame_s(&b, TT_FRAME_PULL, SOME), frame_s(&b, TT_FRAME_PULL, LOTS)};
        double push[2] = {frame_s(&b, TT_FRAME_PUSH, SOME), frame_s(&b, TT_FRAME_PUSH, LOTS)};
        double in_pull = fmax(pull[1] - pull[0], 0) / (LOTS - SOME);
        double in_push = fmax(push[1] - push[0], 0) / (LOTS - SOME);
        out->value = 0.5 * in_pull;
        out->key = 0.5 * in_pull;
        out->apply = fmax(in_push - in_pull, 0);
        out->whole = whole_push_s(&b) / TABLE_ROWS;
        // What a request costs whatever is in it, beside its carriage.
        out->message = 0.5 * (pull[0] + push[0]) - SOME * (in_pull + 0.5 * out->apply);
    }
    close_server(&b);
    return status;
}

// ---- frames ------------------------------------------------------------------------------------

typedef struct mesh_bench {
    tt_mesh *mesh;
    tt_outbox outbox;
    uint8_t *payload;
    size_t bytes;
} mesh_bench;

static void
take(void *self, const tt_frame *frame, const uint8_t *payload)
{
    TT_UNUSED(self);
    TT_UNUSED(frame);
    TT_UNUSED(payload);
}

static void
carry(void *self)
{
    mesh_bench *b = self;
    tt_frame frame = {.kind = TT_FRAME_PUSH};
    const tt_span span = {b->payload, b->bytes};
    b->outbox.send(b->outbox.self, 1, &frame, &span, 1);
    tt_mesh_flush(b->mesh, 0);
    // More than fits into the ring goes on when there is room again.
    while (tt_mesh_receive(b->mesh, 1, 1, take, NULL) == 0)
        tt_mesh_flush(b->mesh, 0);
}

static double
carry_s(mesh_bench *b, size_t bytes, uint32_t chunk_bytes)
{
    b->bytes = bytes;
    tt_mesh_set_chunk(b->mesh, 0, chunk_bytes);
    return tti_calibrate_call_s(carry, b);
}

// Half of it is the sender's, half the receiver's.
static tt_status
measure_mesh(tti_simulation_spec *out, tt_error *err)
{
    mesh_bench b = {.payload = tt_mem_zalloc(1, LARGE)};
    tt_status status = b.payload != NULL ? tt_mesh_open(2, &b.mesh, err) : TT_NOMEM;
    if (status == TT_OK) {
        b.outbox = tt_mesh_outbox(b.mesh, 0);
        double empty = carry_s(&b, 0, 64 << 10);
        double coarse = carry_s(&b, LARGE, 64 << 10), fine = carry_s(&b, LARGE, 4 << 10);
        out->chunk = fmax(fine - coarse, 0) / ((LARGE >> 12) - (LARGE >> 16)) / 2;
        out->byte = fmax(coarse - empty - 2 * out->chunk * (LARGE >> 16), 0) / LARGE / 2;
        // A pull or push and its answer are two messages, one of them with what a server does.
        out->message = 0.5 * empty + 0.5 * fmax(out->message, 0);
    }
    tt_mesh_close(b.mesh);
    tt_mem_free(b.payload);
    return status == TT_NOMEM
               ? tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to measure messages")
               : status;
}

typedef struct halves_bench {
    float *values;
    tt_bf16 *halves;
} halves_bench;

static void
there_and_back(void *self)
{
    halves_bench *b = self;
    tt_vec_best()->bf16_encode(b->values, b->halves, LOTS);
    tt_vec_best()->bf16_decode(b->halves, b->values, LOTS);
}

static tt_status
measure_bf16(tti_simulation_spec *out, tt_error *err)
{
    halves_bench b = {tt_mem_zalloc_vector(LOTS, sizeof(float)),
                      tt_mem_zalloc_vector(LOTS, sizeof(tt_bf16))};
    int there = b.values != NULL && b.halves != NULL;
    if (there)
        out->bf16 = tti_calibrate_call_s(there_and_back, &b) / (2 * LOTS);
    tt_mem_free(b.values);
    tt_mem_free(b.halves);
    return there ? TT_OK : tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to measure bf16");
}

typedef struct pack_bench {
    uint8_t *values;
    tt_packer packer, unpacker;
    tt_span packed;
} pack_bench;

static void
pack(void *self)
{
    pack_bench *b = self;
    (void)tt_packer_pack(&b->packer, &(tt_span){b->values, LOTS * sizeof(float)}, 1, &b->packed);
}

static void
unpack(void *self)
{
    pack_bench *b = self;
    tt_span whole;
    tt_status status = tt_packer_unpack(&b->unpacker, b->packed.bytes, b->packed.size, &whole);
    TT_ASSERT(status == TT_OK);
}

// Gradients of which every other run of eight is zero.
static tt_status
measure_packing(tti_simulation_spec *out, tt_error *err)
{
    pack_bench b = {.values = tt_mem_zalloc_vector(LOTS, sizeof(float))};
    tt_rng rng;
    tt_rng_init(&rng, 1, TT_RNG_SIMULATION, 6);
    for (uint32_t i = 0; b.values != NULL && i < LOTS; i++) {
        float value = (i / 8) % 2 == 0 ? (float)tt_rng_normal(&rng) : 0;
        memcpy(b.values + i * sizeof value, &value, sizeof value);
    }
    int there = b.values != NULL;
    if (there)
        pack(&b);
    there = there && b.packed.size > 0;
    if (there) {
        out->pack = tti_calibrate_call_s(pack, &b) / (LOTS * sizeof(float));
        out->unpack = tti_calibrate_call_s(unpack, &b) / (LOTS * sizeof(float));
    }
    tt_packer_free(&b.packer);
    tt_packer_free(&b.unpacker);
    tt_mem_free(b.values);
    return there ? TT_OK : tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to measure packing");
}

tt_status
tti_calibrate_messages(tti_simulation_spec *out, tt_error *err)
{
    TT_TRY(measure_server(out, err));
    TT_TRY(measure_mesh(out, err));
    TT_TRY(measure_bf16(out, err));
    return measure_packing(out, err);
}
