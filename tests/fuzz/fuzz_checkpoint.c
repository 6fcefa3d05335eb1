// Target: whoever resumes from a checkpoint: its file, and, behind all checksums, the position in
// the data and the parameters, on this job's cut into partitions and on another one.
//
// Input: a byte of the job and of what follows: a file, a file whose checksums are put right, or
// the section `runtime` alone.
#include "fuzz.h"
#include "fuzz_job.h"
#include "memory_file.h"
#include "runtime.h"
#include <string.h>
#include <xxhash.h>

enum { FORMS = 3, HEADER = 64, SECTION = 40, FILE_MAX = 16 << 10 };

static void
send_nowhere(void *self, uint32_t to, tt_frame *frame, const tt_span *spans, uint32_t span_count)
{
    uint64_t *sum = self;
    TT_UNUSED(to);
    (void)tt_frame_complete(frame, FUZZ_JOB_NODES, spans, span_count);
    for (uint32_t i = 0; i < span_count; i++)
        *sum += XXH3_64bits(spans[i].bytes, spans[i].size);
}

// ---- what is in it -----------------------------------------------------------------------------

// Two servers, on twice as many partitions, or as many.
static void
load_into_servers(const tt_ps_table *table, const uint8_t *bytes, size_t count)
{
    static const uint8_t is_server[3] = {1, 1, 0};
    tt_archive in;
    tt_ps_state *state;
    tt_ps_view *view;
    tt_ps_server *server;
    uint64_t sum = 0;
    tt_archive_read(&in, bytes, count);
    if (tt_ps_state_open(table, &in, &state, NULL) != TT_OK)
        return;
    TT_ASSERT(tt_ps_view_first(table, 3, is_server, &view) == TT_OK);
    for (uint32_t n = 0; n < 2; n++) {
        const tt_outbox outbox = {.self = &sum, .send = send_nowhere};
        TT_ASSERT(tt_ps_server_open(table, n, 3, outbox, (tt_ps_hooks){0}, &server, NULL) == TT_OK);
        TT_ASSERT(tt_ps_server_start(server, view) == TT_OK);
        TT_ASSERT(tt_ps_server_load(server, state) == TT_OK);
        tt_ps_server_close(server);
    }
    tt_ps_view_free(view);
    tt_ps_state_close(state);
}

static void
close_runtime(tti_runtime *rt)
{
    tti_membership *m = &rt->membership;
    tt_ps_state_close(m->state);
    tt_mem_free(m->saved);
    tti_work_close(&rt->work);
    tti_generations_free(rt->newest);
}

static void
load_runtime(const tt_job *job, const uint8_t *bytes, size_t count, double time_s)
{
    static const uint8_t is_server[FUZZ_JOB_NODES] = {1};
    static tti_runtime rt;
    uint64_t now_ns = 0, sum = 0;
    rt = (tti_runtime){
        .job = job, .clock = tt_clock_manual(&now_ns), .node_count = FUZZ_JOB_NODES, .apart = 1};
    rt.newest = tt_mem_zalloc(1, sizeof *rt.newest);
    TT_ASSERT(rt.newest != NULL);
    TT_ASSERT(tt_ps_view_first(&job->table, FUZZ_JOB_NODES, is_server, &rt.newest->view) == TT_OK);
    TT_ASSERT(tti_work_open(job->shards, FUZZ_JOB_NODES, 64, &rt.work, NULL) == TT_OK);
    const tti_restore restore = {.bytes = bytes, .count = count, .elapsed_s = time_s};
    if (tti_runtime_load(&rt, &restore, NULL) == TT_OK) {
        uint32_t rows[8];
        uint32_t taken = tti_work_take(&rt.work, 1, TT_COUNT_OF(rows), rows);
        for (uint32_t i = 0; i < taken; i++)
            TT_ASSERT(rows[i] < job->train->row_count);
        for (uint16_t p = 0; p <= job->table.partition_count; p++) {
            const tt_frame request = {.kind = TT_FRAME_RESTORE, .partition = p};
            tt_ps_state_answer(&job->table, rt.membership.state, &request,
                               (tt_outbox){.self = &sum, .send = send_nowhere});
        }
    }
    close_runtime(&rt);
    tt_ps_state *state;
    if (tti_runtime_open_saved(&rt, bytes, count, &state, NULL) == TT_OK)
        tt_ps_state_close(state);
}

// The parameters alone begin where the rest has ended; what they are taken for is other tables,
// too.
static void
load_tables(const tt_job *job, const uint8_t *bytes, size_t count)
{
    tt_ps_table table = job->table;
    load_into_servers(&table, bytes, count);
    table.partition_count *= 2;
    load_into_servers(&table, bytes, count);
    table.kind = table.kind == TT_PS_DENSE ? TT_PS_SPARSE : TT_PS_DENSE;
    table.averaging = 1;
    load_into_servers(&table, bytes, count);
}

// ---- the file ----------------------------------------------------------------------------------

static void
put_u64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}

// With sums as they should be, so that what they guard is looked at.
static void
put_right(uint8_t *file, size_t size)
{
    uint32_t sections;
    if (size < HEADER)
        return;
    memcpy(file, "TTCKPT\r\n\1\0\0\0", 12);
    memcpy(&sections, file + 12, sizeof sections);
    sections %= TTI_CHECKPOINT_SECTIONS_MAX + 1;
    memcpy(file + 12, &sections, sizeof sections);
    put_u64(file + 16, size);
    size_t table = sections * (size_t)SECTION;
    for (uint32_t i = 0; size - HEADER >= table && i < sections; i++) {
        uint8_t *section = file + HEADER + i * SECTION;
        uint64_t offset, bytes;
        memcpy(&offset, section + 16, sizeof offset);
        memcpy(&bytes, section + 24, sizeof bytes);
        if (offset <= size && bytes <= size - offset && offset >= HEADER + table)
            put_u64(section + 32, XXH3_64bits(file + offset, bytes));
    }
    if (size - HEADER >= table)
        put_u64(file + 48, XXH3_64bits(file + HEADER, table));
    put_u64(file + 56, XXH3_64bits(file, 56));
}

static void
read_file(const tt_job *job, const uint8_t *file, size_t size)
{
    tti_checkpoint checkpoint;
    uint64_t count;
    memory_file_set(file, size);
    if (tti_checkpoint_read(memory_file(NULL), &checkpoint, NULL) != TT_OK)
        return;
    const uint8_t *bytes = tti_checkpoint_find(&checkpoint, "runtime", &count);
    if (bytes != NULL)
        load_runtime(job, bytes, count, checkpoint.time_s);
    (void)tti_checkpoint_find(&checkpoint, "config", &count);
    tti_checkpoint_fini(&checkpoint);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[FILE_MAX];
    if (size < 1 || size > sizeof file)
        return 0;
    const tt_job *job = fuzz_job(data[0] % FUZZ_JOB_KINDS);
    size--;
    memcpy(file, data + 1, size);
    switch (data[0] / FUZZ_JOB_KINDS % (FORMS + 1)) {
    case 0:
        read_file(job, file, size);
        break;
    case 1:
        put_right(file, size);
        read_file(job, file, size);
        break;
    case 2:
        load_runtime(job, data + 1, size, 1.5);
        break;
    default:
        load_tables(job, data + 1, size);
        break;
    }
    return 0;
}
