// The journal: a sparse file in memory with a head, two halves for entries, and two places for
// bases. A base and its entries are of the half that the head names; a new base is written into the
// other one, and comes into force with one store.
#include "journal.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_BYTES = 32 << 20, HEAD_BYTES = 4096, ENTRY_MAX = 1 << 24 };

#define MAGIC UINT64_C(0x6a6f75726e616c01)
// Far from all else, and from each other: pages that nobody has written take no memory.
#define BASE_AT(half) ((off_t)((half) + 1) << 40)

struct tti_journal_head {
    uint64_t magic;
    uint32_t masters;
    uint32_t half; // the one in force + 1; 0: none yet. release
    uint64_t base_bytes[2];
    uint64_t end[2];     // of the entries; release
    uint32_t is_full[2]; // an entry found no room: of no use until the next base
};

typedef struct entry_head {
    uint32_t size, pad;
} entry_head;

static tt_status
map(tti_journal *out, tt_error *err)
{
    void *bytes = mmap(NULL, HEAD_BYTES + 2 * (size_t)ENTRIES_BYTES, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE, out->descriptor, 0);
    if (bytes == MAP_FAILED)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for what a successor needs: %s",
                            tt_errno_text(errno));
    out->head = bytes;
    out->entries = (uint8_t *)bytes + HEAD_BYTES;
    return TT_OK;
}

tt_status
tti_journal_open(tti_journal *out, tt_error *err)
{
    *out = (tti_journal){.descriptor = memfd_create("trimtab-journal", MFD_CLOEXEC)};
    if (out->descriptor < 0 ||
        ftruncate(out->descriptor, HEAD_BYTES + 2 * (off_t)ENTRIES_BYTES) != 0) {
        int reason = errno;
        tti_journal_close(out);
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for what a successor needs: %s",
                            tt_errno_text(reason));
    }
    tt_status status = map(out, err);
    if (status == TT_OK)
        *out->head = (struct tti_journal_head){.magic = MAGIC, .masters = 1};
    else
        tti_journal_close(out);
    return status;
}

tt_status
tti_journal_map(int descriptor, tti_journal *out, tt_error *err)
{
    struct stat file;
    *out = (tti_journal){.descriptor = descriptor};
    tt_status status = TT_CORRUPT;
    if (fstat(descriptor, &file) == 0 && file.st_size >= HEAD_BYTES + 2 * (off_t)ENTRIES_BYTES)
        status = map(out, err);
    if (status == TT_OK && out->head->magic == MAGIC)
        return TT_OK;
    tti_journal_close(out);
    return status == TT_NOMEM ? status
                              : tt_error_set(err, TT_CORRUPT, NULL, NULL,
                                             "what the last master left is not of this trimtab");
}

void
tti_journal_close(tti_journal *journal)
{
    if (journal->head != NULL)
        (void)munmap(journal->head, HEAD_BYTES + 2 * (size_t)ENTRIES_BYTES);
    if (journal->descriptor >= 0)
        (void)close(journal->descriptor);
    *journal = (tti_journal){.descriptor = -1};
}

// ---- writing -----------------------------------------------------------------------------------

// All of the bytes at that place of the file, there or back.
static int
transfer(int file, uint8_t *bytes, size_t size, off_t at, int writes)
{
    for (size_t done = 0; done < size;) {
        off_t place = at + (off_t)done;
        ssize_t part = writes ? pwrite(file, bytes + done, size - done, place)
                              : pread(file, bytes + done, size - done, place);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return 0;
        done += (size_t)part;
    }
    return 1;
}

static int
write_at(int file, const tt_span *piece, off_t at)
{
    return transfer(file, (uint8_t *)(uintptr_t)piece->bytes, piece->size, at, 1); // only read
}

// What was there takes no memory any more.
static void
clear_half(const tti_journal *journal, uint32_t half)
{
    struct tti_journal_head *head = journal->head;
    uint8_t *entries = journal->entries + (size_t)half * ENTRIES_BYTES;
    (void)fallocate(journal->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, BASE_AT(half),
                    (off_t)TT_MAX(head->base_bytes[half], UINT64_C(1)));
    (void)madvise(entries, ENTRIES_BYTES, MADV_REMOVE);
}

tt_status
tti_journal_begin(tti_journal *journal, const tt_span *pieces, uint32_t count, tt_error *err)
{
    struct tti_journal_head *head = journal->head;
    uint32_t now = head->half, half = now == 1 ? 1 : 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!write_at(journal->descriptor, &pieces[i], BASE_AT(half) + (off_t)bytes)) {
            head->base_bytes[half] = bytes + pieces[i].size;
            clear_half(journal, half);
            return tt_error_set(err, TT_NOMEM, NULL, NULL,
                                "no memory for what a successor needs: %s", tt_errno_text(errno));
        }
        bytes += pieces[i].size;
    }
    head->base_bytes[half] = bytes;
    head->end[half] = head->is_full[half] = 0;
    tt_store_release(&head->half, half + 1); // this process may be killed before or after
    if (now != 0)
        clear_half(journal, now - 1);
    return TT_OK;
}

void
tti_journal_add(tti_journal *journal, const tt_span *pieces, uint32_t count)
{
    struct tti_journal_head *head = journal->head;
    size_t size = 0;
    if (head == NULL || head->half == 0)
        return;
    uint32_t half = head->half - 1;
    for (uint32_t i = 0; i < count; i++)
        size += pieces[i].size;
    TT_ASSERT(size <= ENTRY_MAX);
    uint64_t end = head->end[half];
    size_t room = sizeof(entry_head) + ((size + 7) & ~(size_t)7);
    if (head->is_full[half] || end + room > ENTRIES_BYTES) {
        tti_journal_give_up(journal);
        return;
    }
    uint8_t *to = journal->entries + (size_t)half * ENTRIES_BYTES + end;
    const entry_head entry = {.size = (uint32_t)size};
    memcpy(to, &entry, sizeof entry);
    to += sizeof entry;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(to, pieces[i].bytes, pieces[i].size);
        to += pieces[i].size;
    }
    tt_store_release(&head->end[half], end + room); // this process may be killed before or after
}

void
tti_journal_give_up(tti_journal *journal)
{
    if (journal->head->half != 0)
        tt_store_release(&journal->head->is_full[journal->head->half - 1], 1u);
}

int
tti_journal_is_whole(const tti_journal *journal)
{
    const struct tti_journal_head *head = journal->head;
    return head != NULL && head->half != 0 && !head->is_full[head->half - 1];
}

int
tti_journal_is_long(const tti_journal *journal)
{
    const struct tti_journal_head *head = journal->head;
    return head != NULL && head->half != 0 && head->end[head->half - 1] > ENTRIES_BYTES / 2;
}

// ---- reading -----------------------------------------------------------------------------------

tt_status
tti_journal_read(const tti_journal *journal, uint8_t **base, size_t *size, tt_error *err)
{
    const struct tti_journal_head *head = journal->head;
    uint32_t half = tt_load_acquire(&head->half) - 1; // released in tti_journal_begin
    *base = NULL;
    if (head->half == 0 || head->half > 2 || tt_load_acquire(&head->is_full[half]))
        return tt_error_set(err, TT_NOTFOUND, NULL, NULL,
                            "the last master left too little behind to go on from");
    *size = head->base_bytes[half];
    *base = tt_mem_alloc(TT_MAX(*size, (size_t)1));
    if (*base == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for what the last master left");
    if (transfer(journal->descriptor, *base, *size, BASE_AT(half), 0))
        return TT_OK;
    tt_mem_free(*base);
    *base = NULL;
    return tt_error_set(err, TT_NOTFOUND, NULL, NULL,
                        "the last master left too little behind to go on from");
}

const void *
tti_journal_next(const tti_journal *journal, size_t *cursor, size_t *size)
{
    const struct tti_journal_head *head = journal->head;
    entry_head entry;
    uint32_t half = head->half - 1;
    if (head->half == 0 || *cursor >= tt_load_acquire(&head->end[half])) // tti_journal_add
        return NULL;
    const uint8_t *at = journal->entries + (size_t)half * ENTRIES_BYTES + *cursor;
    memcpy(&entry, at, sizeof entry);
    *size = entry.size;
    *cursor += sizeof entry + (((size_t)entry.size + 7) & ~(size_t)7);
    return at + sizeof entry;
}

uint32_t
tti_journal_succeed(tti_journal *journal)
{
    return ++journal->head->masters;
}
