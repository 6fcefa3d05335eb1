// The manager's knowledge as bytes and back, for checkpoints: every setting tried, the process, the
// ledger of what was spent. Memory images of this build's structs, guarded by their sizes, and by a
// print of the search space: in another space a coordinate means something else. Another way to
// tune has other rows.
#include "tuner_internal.h"
#include <string.h>

enum { ARCHIVE_VERSION = 1 };

// FNV-1a, 64 bits.
static uint64_t
mix_bytes(uint64_t print, const void *bytes, size_t count)
{
    const uint8_t *byte = bytes;
    for (size_t i = 0; i < count; i++)
        print = (print ^ byte[i]) * 1099511628211u;
    return print;
}

static uint64_t
print_of_space(const tt_space *space)
{
    uint64_t print = 14695981039346656037u;
    for (uint32_t k = 0; k < space->count; k++) {
        const tt_space_knob *knob = &space->knob[k];
        const double numbers[] = {(double)knob->knob->kind,
                                  knob->min,
                                  knob->max,
                                  (double)(knob->log_scale != 0),
                                  (double)(knob->fixed != 0),
                                  (double)(knob->absent != 0),
                                  knob->start};
        print = mix_bytes(print, knob->knob->id, strlen(knob->knob->id) + 1);
        print = mix_bytes(print, numbers, sizeof numbers);
    }
    return print;
}

uint64_t
tt_tuner_print(const tt_space *space, uint32_t nodes, tt_tuner_model model, tt_est_method method)
{
    const uint64_t parts[] = {
        ARCHIVE_VERSION,
        sizeof(tt_tuner) + sizeof(tti_tried) + sizeof(tti_prior) + sizeof(tt_gp_params), nodes,
        (uint64_t)model, tti_ways[model]->rows_of_left ? 1 + (uint64_t)method : 0};
    return mix_bytes(print_of_space(space), parts, sizeof parts);
}

static void
tag_print(const tt_tuner *t, tt_archive *archive)
{
    tt_archive_tag(archive, tt_tuner_print(t->space, t->options.nodes, t->options.model,
                                           tt_estimator_method(t->estimator)));
}

void
tt_tuner_save(const tt_tuner *tuner, tt_archive *out)
{
    tt_tuner image = *tuner;
    TT_ASSERT(tuner->state == TTI_RUNNING || tuner->state == TTI_SWITCHING);
    // A switch may itself begin with a checkpoint: whoever goes on from that has not made it.
    image.has_pending = tuner->state == TTI_RUNNING && tuner->has_pending;
    tag_print(tuner, out);
    TT_ARCHIVE(out, image);
    tt_archive_field(out, tuner->tried, tuner->tried_count * sizeof *tuner->tried);
    tt_archive_field(out, tuner->prior, tuner->prior_count * sizeof *tuner->prior);
    if (tuner->gp != NULL)
        tt_gp_save(tuner->gp, out);
}

// What belongs to this process and not to what was learned.
static void
keep_own(tt_tuner *t, const tt_tuner *own)
{
    t->way = own->way;
    t->space = own->space;
    t->estimator = own->estimator;
    t->options = own->options;
    t->callbacks = own->callbacks;
    t->search = own->search;
    t->gp = own->gp;
    t->prior = own->prior;
    t->tried = own->tried;
    t->tried_capacity = own->tried_capacity;
    t->taken = own->taken;
    t->taken_capacity = own->taken_capacity;
}

static tt_status
load_tried(tt_tuner *t, tt_archive *in)
{
    size_t count = t->tried_count;
    const void *bytes = count < SIZE_MAX / sizeof *t->tried
                            ? tt_archive_borrow(in, count * sizeof *t->tried)
                            : NULL;
    t->tried_count = 0;
    if (bytes == NULL || count == 0 || t->current >= count || t->previous >= count)
        return TT_CORRUPT;
    tti_tried *tried = tt_mem_realloc(t->tried, count * sizeof *tried);
    if (tried == NULL)
        return TT_NOMEM;
    t->tried = tried;
    tt_setting *taken = tt_mem_realloc(t->taken, count * sizeof *taken);
    if (taken == NULL)
        return TT_NOMEM;
    t->taken = taken;
    t->tried_capacity = t->taken_capacity = count;
    memcpy(t->tried, bytes, count * sizeof *t->tried);
    t->tried_count = count;
    for (size_t i = 0; i < count; i++)
        t->taken[i] = t->tried[i].setting;
    return TT_OK;
}

// Rows of earlier runs as they were when it was saved; the repository may tell others by now.
static tt_status
load_prior(tt_tuner *t, tt_archive *in)
{
    size_t bytes = t->prior_count * sizeof *t->prior;
    const void *rows = tt_archive_borrow(in, bytes);
    tti_prior *prior = bytes > 0 && rows != NULL ? tt_mem_alloc(bytes) : NULL;
    tt_mem_free(t->prior);
    t->prior = prior;
    if (bytes > 0 && prior == NULL) {
        t->prior_count = 0;
        return rows == NULL ? TT_CORRUPT : TT_NOMEM;
    }
    if (bytes > 0)
        memcpy(prior, rows, bytes);
    return TT_OK;
}

tt_status
tt_tuner_load(tt_tuner *tuner, tt_archive *in, tt_error *err)
{
    tt_tuner *t = tuner;
    TT_ASSERT(t->state == TTI_NEW);
    const tt_tuner own = *t;
    tag_print(t, in);
    if (in->status != TT_OK)
        return tt_error_set(err, TT_INVALID, "tuner", NULL,
                            "what the tuner learned is of another search space or version");
    TT_ARCHIVE(in, *t);
    keep_own(t, &own);
    if (in->status == TT_OK)
        in->status = load_tried(t, in);
    if (in->status == TT_OK)
        in->status = load_prior(t, in);
    if (in->status != TT_OK)
        return tt_error_set(err, in->status, "tuner", NULL, "what the tuner learned is damaged");
    t->pending.setting = &t->tried[t->current].setting;
    t->pending.considered = NULL;
    t->state = TTI_NEW;
    return t->gp != NULL ? tt_gp_load(t->gp, in, err) : TT_OK;
}
