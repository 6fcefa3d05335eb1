// The memory of a mesh: see memory.h.
#include "memory.h"
#include "pool.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RING_BYTES = 4 << 20, VERSION = 2, NODES_MAX = 1 << 13 };
#define MAGIC UINT64_C(0x31676e6972747474) // "tttring1"

typedef struct head {
    _Alignas(64) uint64_t magic;
    uint32_t version, node_count;
    uint64_t size;
} head;

typedef struct bell {
    _Alignas(64) tt_event event;
} bell;

static size_t
bells_at(void)
{
    return sizeof(head);
}

static size_t
rings_at(uint32_t node_count)
{
    return bells_at() + node_count * sizeof(bell);
}

// Page-aligned.
static size_t
bytes_at(uint32_t node_count)
{
    size_t end = rings_at(node_count) + (size_t)node_count * node_count * sizeof(tti_ring_ends);
    return (end + 4095) & ~(size_t)4095;
}

static size_t
pool_at(uint32_t node_count)
{
    return bytes_at(node_count) + (size_t)node_count * node_count * RING_BYTES;
}

static size_t
size_of(uint32_t node_count, int is_shared)
{
    return pool_at(node_count) + (is_shared ? node_count * tti_pool_part_bytes() : 0);
}

static void *
map(size_t size, int flags, int fd)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);
    return base == MAP_FAILED ? NULL : base;
}

tt_status
tti_memory_open(uint32_t node_count, tti_memory *out)
{
    *out = (tti_memory){.size = size_of(node_count, 0), .node_count = node_count};
    out->base = map(out->size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    return out->base != NULL ? TT_OK : TT_NOMEM;
}

static tt_status
write_head(int fd, uint32_t node_count, tt_error *err)
{
    tti_memory memory = {.size = size_of(node_count, 1), .node_count = node_count};
    if (ftruncate(fd, (off_t)memory.size) != 0)
        return tt_error_set(err, TT_IO, NULL,
                            "raise the limits of files and memory (ulimit -f, -v), or lower "
                            "cluster.nodes",
                            "no shared memory for the rings of %u nodes: %s", node_count,
                            tt_errno_text(errno));
    memory.base = map(memory.size, MAP_SHARED, fd);
    if (memory.base == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL,
                            "the rings of %u nodes cannot be mapped into memory", node_count);
    for (uint32_t n = 0; n < node_count; n++)
        tti_memory_bell(&memory, n)->is_shared = 1;
    *(head *)(void *)memory.base =
        (head){.magic = MAGIC, .version = VERSION, .node_count = node_count, .size = memory.size};
    tti_memory_close(&memory);
    return TT_OK;
}

tt_status
tti_memory_create(uint32_t node_count, int *fd, tt_error *err)
{
    TT_ASSERT(node_count > 0 && node_count <= NODES_MAX);
    *fd = memfd_create("trimtab-rings", MFD_CLOEXEC);
    if (*fd < 0)
        return tt_error_set(err, TT_IO, NULL, NULL, "no shared memory for rings: %s",
                            tt_errno_text(errno));
    tt_status status = write_head(*fd, node_count, err);
    if (status == TT_OK)
        return TT_OK;
    (void)close(*fd);
    *fd = -1;
    return status;
}

// What is mapped must be there: a shorter file would end the process at the first touch.
static int
is_a_mesh(int fd, head *found)
{
    struct stat file;
    return pread(fd, found, sizeof *found, 0) == (ssize_t)sizeof *found && found->magic == MAGIC &&
           found->version == VERSION && found->node_count > 0 && found->node_count <= NODES_MAX &&
           found->size == size_of(found->node_count, 1) && fstat(fd, &file) == 0 &&
           (uint64_t)file.st_size == found->size;
}

tt_status
tti_memory_map(int fd, tti_memory *out, tt_error *err)
{
    head found;
    *out = (tti_memory){0};
    if (!is_a_mesh(fd, &found))
        return tt_error_set(err, TT_CORRUPT, NULL, NULL,
                            "file descriptor %d is not the shared memory of a job", fd);
    *out = (tti_memory){.size = found.size, .node_count = found.node_count, .is_shared = 1};
    out->base = map(out->size, MAP_SHARED, fd);
    if (out->base == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL,
                            "the rings of %u nodes cannot be mapped into memory", found.node_count);
    return TT_OK;
}

void
tti_memory_close(tti_memory *memory)
{
    if (memory->base != NULL)
        (void)munmap(memory->base, memory->size);
    memory->base = NULL;
}

tt_event *
tti_memory_bell(const tti_memory *memory, uint32_t node)
{
    return &((bell *)(void *)(memory->base + bells_at()))[node].event;
}

uint8_t *
tti_memory_pool(const tti_memory *memory)
{
    return memory->is_shared ? memory->base + pool_at(memory->node_count) : NULL;
}

void
tti_memory_ring(const tti_memory *memory, uint32_t from, uint32_t to, tti_ring *ring)
{
    size_t place = (size_t)from * memory->node_count + to;
    tti_ring_ends *ends = (tti_ring_ends *)(void *)(memory->base + rings_at(memory->node_count));
    tti_ring_open(ring, &ends[place],
                  memory->base + bytes_at(memory->node_count) + place * RING_BYTES, RING_BYTES);
}
