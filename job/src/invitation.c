// Invitations as bytes: see invitation.h.
#include "invitation.h"
#include "tt/job.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { VERSION_BYTES = 32, BYTES_MAX = 64 << 20, NODES_MAX = 1 << 16, MAGIC = 0x6e747474 };

#define TIMEOUT_S_MAX 1e9 // what nanoseconds of it can be counted

// Before everything else, and of one form in all versions.
typedef struct head {
    uint32_t magic, bytes;
    char version[VERSION_BYTES];
} head;

static void
visit_text(tt_archive *archive, char **text)
{
    uint64_t size = archive->reading ? 0 : strlen(*text);
    TT_ARCHIVE(archive, size);
    if (!archive->reading) {
        tt_archive_field(archive, *text, size);
        return;
    }
    const void *bytes = size <= archive->count ? tt_archive_borrow(archive, size) : NULL;
    *text = bytes != NULL ? tt_mem_zalloc(size + 1, 1) : NULL;
    if (*text != NULL)
        memcpy(*text, bytes, size);
    else
        tt_archive_damaged(archive);
}

static void
visit_nodes(tti_invitation *in, tt_archive *archive)
{
    if (archive->reading) {
        int is_sound = in->node_count > 0 && in->node_count <= NODES_MAX &&
                       in->host < in->host_count && in->host_count <= in->node_count &&
                       in->timeout_s > 0 && in->timeout_s <= TIMEOUT_S_MAX;
        in->host_of = is_sound ? tt_mem_zalloc(in->node_count, sizeof *in->host_of) : NULL;
        in->port = is_sound ? tt_mem_zalloc(in->node_count, 2 * sizeof *in->port) : NULL;
        if (in->host_of == NULL || in->port == NULL) {
            tt_archive_damaged(archive);
            return;
        }
    }
    tt_archive_field(archive, in->host_of, in->node_count * sizeof *in->host_of);
    tt_archive_field(archive, in->port, 2 * in->node_count * sizeof *in->port);
    for (uint32_t n = 0; archive->reading && n < in->node_count; n++)
        if (in->host_of[n] >= in->host_count)
            tt_archive_damaged(archive);
}

static void
visit(tti_invitation *in, tt_archive *archive)
{
    TT_ARCHIVE(archive, in->key);
    TT_ARCHIVE(archive, in->job_id);
    TT_ARCHIVE(archive, in->host);
    TT_ARCHIVE(archive, in->host_count);
    TT_ARCHIVE(archive, in->node_count);
    TT_ARCHIVE(archive, in->is_open);
    TT_ARCHIVE(archive, in->master);
    TT_ARCHIVE(archive, in->address);
    TT_ARCHIVE(archive, in->timeout_s);
    visit_nodes(in, archive);
    visit_text(archive, &in->directory);
    visit_text(archive, &in->text);
}

void
tti_invitation_write(const tti_invitation *invitation, tt_archive *out)
{
    tti_invitation copy = *invitation;
    head first = {.magic = MAGIC};
    (void)snprintf(first.version, sizeof first.version, "%s", tt_job_version());
    TT_ARCHIVE(out, first);
    visit(&copy, out);
    first.bytes = (uint32_t)(out->count - sizeof first);
    if (out->status == TT_OK)
        memcpy(out->bytes, &first, sizeof first);
    tt_net_key_forget(&copy.key);
}

static tt_status
read_all(int descriptor, void *bytes, size_t size, tt_error *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(descriptor, (uint8_t *)bytes + done, size - done);
        if (got == 0 || (got < 0 && errno != EINTR))
            return tt_error_set(err, TT_IO, "standard input",
                                "this command is started by trimtab run, on the hosts of a job",
                                "no job was received: %s",
                                got == 0 ? "it ends too early" : tt_errno_text(errno));
        done += got > 0 ? (size_t)got : 0;
    }
    return TT_OK;
}

static tt_status
read_head(int descriptor, head *out, tt_error *err)
{
    TT_TRY(read_all(descriptor, out, sizeof *out, err));
    out->version[VERSION_BYTES - 1] = '\0';
    if (out->magic != MAGIC || out->bytes > BYTES_MAX)
        return tt_error_set(err, TT_CORRUPT, "standard input",
                            "this command is started by trimtab run, on the hosts of a job",
                            "what was received is not a job");
    if (strcmp(out->version, tt_job_version()) != 0)
        return tt_error_set(err, TT_UNSUPPORTED, NULL, "install the same version on all hosts",
                            "the job is run by trimtab %s, and this host has %s", out->version,
                            tt_job_version());
    return TT_OK;
}

tt_status
tti_invitation_read(int descriptor, tti_invitation *out, tt_error *err)
{
    head first;
    tt_archive archive;
    *out = (tti_invitation){0};
    TT_TRY(read_head(descriptor, &first, err));
    uint8_t *bytes = tt_mem_alloc(TT_MAX(first.bytes, 1u));
    if (bytes == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for the job");
    tt_status status = read_all(descriptor, bytes, first.bytes, err);
    if (status == TT_OK) {
        tt_archive_read(&archive, bytes, first.bytes);
        visit(out, &archive);
        status = archive.status;
        if (status != TT_OK)
            (void)tt_error_set(err, status, "standard input", NULL,
                               "what was received is not a job");
    }
    explicit_bzero(bytes, first.bytes);
    tt_mem_free(bytes);
    if (status != TT_OK)
        tti_invitation_fini(out);
    return status;
}

void
tti_invitation_fini(tti_invitation *invitation)
{
    tt_net_key_forget(&invitation->key);
    tt_mem_free(invitation->host_of);
    tt_mem_free(invitation->port);
    tt_mem_free(invitation->directory);
    tt_mem_free(invitation->text);
    *invitation = (tti_invitation){0};
}
