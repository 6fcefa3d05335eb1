// Writes inputs for the fuzz targets that a fuzzer would not find by itself, made by the code that
// writes them in a job: fuzz_seeds DIRECTORY fills DIRECTORY/TARGET. They are where a corpus
// begins; what is kept in the repository has grown from them.
#include "checkpoint_file.h"
#include "control.h"
#include "fuzz_job.h"
#include "remote.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODES = FUZZ_JOB_NODES, SEED_MAX = 8192 };

typedef struct seed {
    size_t size;
    uint8_t bytes[SEED_MAX];
} seed;

static void
seed_put(seed *s, const void *bytes, size_t size)
{
    TT_ASSERT(s->size + size <= sizeof s->bytes);
    memcpy(s->bytes + s->size, bytes, size);
    s->size += size;
}

static void
seed_write(const char *directory, const char *target, const seed *s)
{
    static int number;
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", directory, target);
    (void)mkdir(path, 0777);
    (void)snprintf(path, sizeof path, "%s/%s/seed-%03d", directory, target, number++);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(s->bytes, 1, s->size, file) != s->size || fclose(file) != 0) {
        (void)fprintf(stderr, "fuzz_seeds: cannot write %s\n", path);
        exit(1);
    }
}

static void
seed_put_file(seed *s, const char *path)
{
    uint8_t bytes[SEED_MAX];
    FILE *file = fopen(path, "rb");
    TT_ASSERT(file != NULL);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    seed_put(s, bytes, size);
}

// ---- bytes by hand -----------------------------------------------------------------------------

// Steps of fuzz_ps.c: pulls, pushes, deliveries, moves, for every kind of table.
static void
write_ps(const char *directory)
{
    static const uint8_t steps[] = {
        0,  4,  0,  54, 2,  1,  54, 0,  5,  0,  54, 2,  2,  54,            // pull, push
        11, 12, 28, 0,  0,  0,  54, 54, 3,  3,  54, 13, 54, 54, 13, 54,    // a server more
        0,  6,  0,  54, 54, 2,  4,  54, 13, 54, 44, 0,  7,  0,  54, 2,  5, // carried
        54, 27, 12, 28, 13, 54, 13, 54, 54, 0,  12, 0,  54, 14, 54, 11,    // drained
        12, 28, 54, 13, 54, 54, 11, 12, 54, 13, 54, 0,  4,  0,  54, 2,  6, // a death
        54, 14, 54, 14};
    for (int what = 0; what < 144; what += 7) {
        seed s = {.size = 0};
        const uint8_t table[2] = {(uint8_t)what, (uint8_t)(what % 10)};
        seed_put(&s, table, sizeof table);
        seed_put(&s, steps, sizeof steps);
        seed_write(directory, "ps", &s);
    }
}

// A message with a packed payload; see fuzz_wire.c.
static void
write_packed(const char *directory, uint8_t cipher)
{
    uint8_t text[TT_PACK_LEAST + 3];
    tt_packer packer = {0};
    const tt_span piece = {text, sizeof text};
    tt_span packed;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i % 24);
    int fine = tt_packer_pack(&packer, &piece, 1, &packed);
    TT_ASSERT(fine && packed.size < 256);
    const uint8_t header[8] = {3, 6, 5, (uint8_t)packed.size, 0, 0, 0, TT_FRAME_PACKED >> 8},
                  payload[2] = {0, (uint8_t)packed.size};
    seed s = {.size = 0};
    seed_put(&s, &cipher, 1);
    seed_put(&s, header, sizeof header);
    seed_put(&s, payload, sizeof payload);
    seed_put(&s, packed.bytes, packed.size);
    seed_write(directory, "wire", &s);
    tt_packer_free(&packer);
}

// Messages, whole and in pieces, under every cipher; see fuzz_wire.c.
static void
write_wire(const char *directory)
{
    for (uint8_t cipher = 0; cipher < 3; cipher++) {
        static const uint8_t steps[] = {3, 5, 2, 32, 0, 0, 0, 0, 32, 'a', 'b', 'c', 3, 5, 3, 7,
                                        0, 0, 0, 0,  4, 9, 9, 9, 9,  28,  5,   1,   1, 1, 1, 1,
                                        1, 3, 5, 9,  0, 0, 1, 0, 2,  4,   70,  2,   1, 0};
        seed s = {.size = 0};
        seed_put(&s, &cipher, 1);
        seed_put(&s, steps, sizeof steps);
        seed_write(directory, "wire", &s);
        write_packed(directory, cipher);
    }
}

// What nobody touched, and each message proven anew by who has the key; see fuzz_handshake.c.
static void
write_handshake(const char *directory)
{
    for (uint8_t wants = 0; wants < 4; wants++) {
        const uint8_t steps[3][10] = {{wants, 0, 200, 0, 3, 0, 5},
                                      {wants, 33, 17, 16, 99, 0, 200, 0, 0, 30},
                                      {wants, 0, 9, 34, 6, 1, 7, 0, 200, 0}};
        for (int i = 0; i < 3; i++) {
            seed s = {.size = 0};
            seed_put(&s, steps[i], sizeof steps[i]);
            seed_write(directory, "handshake", &s);
        }
    }
}

// ---- what the control plane says ---------------------------------------------------------------

// A frame as fuzz_control.c reads it.
static void
put_frame(seed *s, int kind, uint8_t sender, const void *payload, size_t size)
{
    const uint8_t header[9] = {(uint8_t)(kind - 1), sender, 1, 0, 0, 0, 1, (uint8_t)size,
                               (uint8_t)(size >> 8)};
    seed_put(s, header, sizeof header);
    if (size > 0)
        seed_put(s, payload, size);
}

static void
write_order(const char *directory, const tt_job *job, uint8_t kind)
{
    static const uint8_t is_server[NODES] = {1, 0, 0, 0};
    const uint32_t rows[3] = {5, 6, 60};
    tti_generation generation = {.previous = NULL};
    tt_archive out = {0};
    seed s = {.size = 0};
    TT_ASSERT(tt_ps_view_first(&job->table, NODES, is_server, &generation.view) == TT_OK);
    tt_space_start(&job->space, &generation.setting);
    seed_put(&s, &kind, 1);
    for (uint32_t i = 0; i < 3; i++) {
        const tti_order order = {.number = 1 + i,
                                 .lease = 1,
                                 .row_first = 3 * (uint64_t)i,
                                 .row_count = 3,
                                 .has_generation = i == 0,
                                 .generation = 1};
        tt_archive_rewind(&out);
        tti_order_write(&order, rows, &generation, &out);
        put_frame(&s, TT_FRAME_ORDER, NODES, out.bytes, out.count);
    }
    put_frame(&s, TT_FRAME_HEARTBEAT_REPLY, NODES, NULL, 0);
    seed_write(directory, "control", &s);
    tt_archive_fini(&out);
    tt_ps_view_free(generation.view);
}

static void
write_report(const char *directory, uint8_t kind)
{
    const tti_record records[2] = {
        {.sequence = 1, .done_ns = 5, .worker = 1, .examples = 2, .losses = 2},
        {.sequence = 2, .done_ns = 9, .worker = 1, .examples = 2, .losses = 2}};
    const float losses[4] = {0.5F, 0, 2, 1e30F};
    const tti_end end = {.kind = TTI_END_MOVE, .generation = 1};
    tt_archive out = {0};
    seed s = {.size = 0};
    seed_put(&s, &kind, 1);
    put_frame(&s, TT_FRAME_HEARTBEAT, 1, NULL, 0);
    for (uint32_t i = 0; i < 3; i++) {
        const tti_report report = {.number = 1 + i,
                                   .order = i,
                                   .generation = 1,
                                   .adopted_generation = 1,
                                   .working = 1,
                                   .lease = 1,
                                   .unit = 16,
                                   .wanted = 64,
                                   .received = 4 * (uint64_t)i,
                                   .record_first = 2 * (uint64_t)i,
                                   .end_first = i,
                                   .record_count = 2,
                                   .loss_count = 4,
                                   .end_count = 1};
        tt_archive_rewind(&out);
        tti_report_write(&report, records, losses, &end, &out);
        put_frame(&s, TT_FRAME_REPORT, 1, out.bytes, out.count);
    }
    put_frame(&s, TT_FRAME_RESTORE, 2, NULL, 0);
    put_frame(&s, TT_FRAME_SAVED, 0, &end, sizeof end);
    put_frame(&s, TT_FRAME_PULL_REPLY, 0, records, sizeof records);
    seed_write(directory, "control", &s);
    tt_archive_fini(&out);
}

static void
write_status(const char *directory, uint8_t kind)
{
    const struct {
        tti_host_status status;
        tti_host_node nodes[2];
    } said = {{.address = {.bytes = {127, 0, 0, 1}, .port = 4000, .family = 4}, .node_count = 2},
              {{.start = 1, .node = 0, .port = 4001, .pid = 77}, {.start = 2, .node = 2}}};
    seed s = {.size = 0};
    seed_put(&s, &kind, 1);
    put_frame(&s, TT_FRAME_HOST_STATUS, 0, &said, sizeof said);
    seed_write(directory, "control", &s);
}

static void
write_invitation(const char *directory, uint8_t kind)
{
    enum { HEAD = 40 };
    static uint32_t host_of[NODES] = {0, 1, 0, 1};
    static uint16_t port[2 * NODES];
    char here[] = "/", text[] = "job: x\n";
    const tti_invitation in = {.host_count = 2,
                               .node_count = NODES,
                               .timeout_s = 2.5,
                               .host_of = host_of,
                               .port = port,
                               .directory = here,
                               .text = text};
    tt_archive out = {0};
    seed s = {.size = 0};
    tti_invitation_write(&in, &out);
    seed_put(&s, &kind, 1);
    seed_put(&s, out.bytes + HEAD, out.count - HEAD);
    seed_write(directory, "control", &s);
    tt_archive_fini(&out);
}

// ---- files -------------------------------------------------------------------------------------

// Position and parameters of a job that has trained a little, as its runtime saves them.
static void
save_runtime(const tt_job *job, tt_archive *out)
{
    static const uint8_t is_server[2] = {1, 0};
    uint64_t version = 1, iterations = 7, trained = 112, untrained = 2, partitions;
    uint32_t rows[16];
    tti_work work;
    tt_ps_view *view;
    tt_ps_server *server;
    TT_ASSERT(tti_work_open(job->shards, NODES, 64, &work, NULL) == TT_OK);
    TT_ASSERT(tti_work_take(&work, 1, 16, rows) > 0);
    TT_ASSERT(tt_ps_view_first(&job->table, 2, is_server, &view) == TT_OK);
    TT_ASSERT(tt_ps_server_open(&job->table, 0, 2, (tt_outbox){0}, (tt_ps_hooks){0}, &server,
                                NULL) == TT_OK);
    TT_ASSERT(tt_ps_server_start(server, view) == TT_OK);
    TT_ARCHIVE(out, version);
    TT_ARCHIVE(out, iterations);
    TT_ARCHIVE(out, trained);
    tt_ledger_save(work.ledger, out);
    TT_ARCHIVE(out, untrained);
    tt_archive_field(out, rows, untrained * sizeof *rows);
    partitions = job->table.partition_count;
    TT_ARCHIVE(out, partitions);
    tt_ps_server_save(server, out);
    tt_ps_server_close(server);
    tt_ps_view_free(view);
    tti_work_close(&work);
}

// Its parameters alone: they are at the end.
static size_t
parameters_begin(const tt_job *job, const tt_archive *saved)
{
    uint64_t floats = job->table.rows * job->table.width * (1 + tt_ps_state_count(&job->table));
    return saved->count - sizeof(uint64_t) - job->table.partition_count * (size_t)40 -
           floats * sizeof(float);
}

static void
write_checkpoints(const char *directory, uint8_t kind)
{
    enum { FILE_WHOLE = 0, FILE_PUT_RIGHT = 1, SECTION = 2, TABLE = 3 };
    const tt_job *job = fuzz_job(kind);
    tt_archive out = {0};
    char path[1024], file[1200];
    save_runtime(job, &out);
    (void)snprintf(path, sizeof path, "%s/written", directory);
    const tti_checkpoint checkpoint = {.iteration = 7,
                                       .time_s = 1.25,
                                       .section_count = 2,
                                       .sections = {{"config", (const uint8_t *)"job: x\n", 7},
                                                    {"runtime", out.bytes, out.count}}};
    TT_ASSERT(tti_checkpoint_write(path, &checkpoint, NULL) == TT_OK);
    tti_checkpoint_path(path, 7, file, sizeof file);
    for (int form = FILE_WHOLE; form <= TABLE; form++) {
        seed s = {.size = 0};
        const uint8_t what = (uint8_t)(kind + form * FUZZ_JOB_KINDS);
        size_t begin = form == TABLE ? parameters_begin(job, &out) : 0;
        seed_put(&s, &what, 1);
        if (form == FILE_WHOLE || form == FILE_PUT_RIGHT)
            seed_put_file(&s, file);
        else
            seed_put(&s, out.bytes + begin, out.count - begin);
        seed_write(directory, "checkpoint", &s);
    }
    (void)unlink(file);
    (void)rmdir(path);
    tt_archive_fini(&out);
}

// Parameters of a sparse table, of two rows, as fuzz_checkpoint.c takes some for.
static void
write_sparse_table(const char *directory)
{
    enum { ROWS = 2, ARRAYS = 3 };
    const uint8_t what = 3 * FUZZ_JOB_KINDS;
    const uint64_t partitions = 1, steps[2] = {5, 6}, keys[ROWS] = {77, 1000003};
    const uint32_t head[6] = {0, ROWS, fuzz_job(0)->table.width, ARRAYS, 0, 0};
    const float cells[ROWS * ARRAYS] = {0.5f, 2.385f};
    seed s = {.size = 0};
    seed_put(&s, &what, 1);
    seed_put(&s, &partitions, sizeof partitions);
    seed_put(&s, head, sizeof head);
    seed_put(&s, steps, sizeof steps);
    seed_put(&s, keys, sizeof keys);
    seed_put(&s, cells, sizeof cells);
    seed_write(directory, "checkpoint", &s);
}

static void
write_model(const char *directory)
{
    const tt_job *job = fuzz_job(0);
    const uint8_t whole = 0, header = 1;
    float *params = tt_mem_zalloc(job->table.rows * job->table.width, sizeof *params);
    char file[1024];
    (void)snprintf(file, sizeof file, "%s/written.safetensors", directory);
    TT_ASSERT(params != NULL && tti_model_save(file, job, params, NULL) == TT_OK);
    seed s = {.size = 0}, of_header = {.size = 0}, of_csv = {.size = 0};
    seed_put(&s, &whole, 1);
    seed_put_file(&s, file);
    seed_write(directory, "model", &s);
    uint64_t length;
    memcpy(&length, s.bytes + 1, sizeof length);
    seed_put(&of_header, &header, 1);
    seed_put(&of_header, s.bytes + 1 + sizeof length, length);
    seed_write(directory, "model", &of_header);
    static const char csv[] =
        "{\"__metadata__\":{\"format\":\"trimtab\",\"format_version\":\"1\",\"model\":"
        "\"logistic_regression\",\"bias\":\"on\",\"l2\":\"0.5\",\"features\":\"4\","
        "\"classes\":\"[0, 1]\",\"data_format\":\"csv\",\"csv\":\"{\\\"columns\\\":3,"
        "\\\"label\\\":\\\"1\\\",\\\"numeric\\\":\\\"2\\\",\\\"categorical\\\":\\\"3\\\","
        "\\\"delimiter\\\":\\\",\\\",\\\"hash_bits\\\":2,\\\"log_numeric\\\":true,"
        "\\\"names_are\\\":\\\"latin-1\\\",\\\"names\\\":[\\\"a\\\",\\\"b\\\",\\\"c\\\"]}\"},"
        "\"weight\":{\"dtype\":\"F32\",\"shape\":[4,1],\"data_offsets\":[0,16]},"
        "\"bias\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[16,20]}}";
    seed_put(&of_csv, &header, 1);
    seed_put(&of_csv, csv, sizeof csv - 1);
    seed_write(directory, "model", &of_csv);
    (void)unlink(file);
    tt_mem_free(params);
}

int
main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    (void)mkdir(argv[1], 0777);
    write_ps(argv[1]);
    write_wire(argv[1]);
    write_handshake(argv[1]);
    for (uint8_t kind = 0; kind < FUZZ_JOB_KINDS; kind++) {
        write_order(argv[1], fuzz_job(kind), kind);
        write_report(argv[1], (uint8_t)(kind + FUZZ_JOB_KINDS));
    }
    for (uint8_t kind = 0; kind < FUZZ_JOB_KINDS; kind++)
        write_checkpoints(argv[1], kind);
    write_sparse_table(argv[1]);
    write_model(argv[1]);
    write_status(argv[1], 2 * FUZZ_JOB_KINDS);
    write_invitation(argv[1], 3 * FUZZ_JOB_KINDS);
    return 0;
}
