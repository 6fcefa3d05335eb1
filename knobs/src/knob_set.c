// Instances of a space's knobs on one node, changed together or not at all.
#include "knobs_internal.h"
#include <string.h>

struct tt_knob_set {
    tt_space space;
    void *instance[TT_KNOBS_MAX]; // NULL: absent
    tt_setting current, target;
    int has_current; // a first commit happened
    int prepared;    // between a successful prepare and commit or rollback
    uint32_t changed_count;
    uint32_t changed[TT_KNOBS_MAX]; // indices of prepared knobs, in the order of the space
};

tt_status
tt_knob_set_open(const tt_space *space, const tt_knob_host *host, tt_knob_set **out, tt_error *err)
{
    *out = NULL;
    tt_knob_set *set = tt_mem_zalloc(1, sizeof *set);
    if (set == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory for a set of knobs");
    set->space = *space;
    for (uint32_t i = 0; i < space->count; i++) {
        const tt_knob *knob = space->knob[i].knob;
        if (space->knob[i].absent)
            continue;
        set->instance[i] = knob->open(host);
        if (set->instance[i] == NULL) {
            tt_knob_set_close(set);
            return tt_error_set(err, TT_NOMEM, NULL, NULL, "knob '%s' cannot be opened here",
                                knob->id);
        }
    }
    *out = set;
    return TT_OK;
}

static void
roll_back_changed(tt_knob_set *set)
{
    while (set->changed_count > 0) {
        uint32_t i = set->changed[--set->changed_count];
        set->space.knob[i].knob->rollback(set->instance[i]);
    }
}

static tt_status
prepare_one(tt_knob_set *set, uint32_t index, double value, tt_error *err)
{
    const tt_space_knob *knob = &set->space.knob[index];
    TT_TRY(tti_space_check(knob, value, NULL, err));
    char reason[256] = "";
    if (knob->knob->prepare(set->instance[index], value, reason, sizeof reason) == 0) {
        set->changed[set->changed_count++] = index;
        return TT_OK;
    }
    reason[sizeof reason - 1] = '\0'; // a plugin may have written every byte
    char text[96];
    return tt_error_set(err, TT_INVALID, NULL, NULL, "knob '%s' refuses %s: %s", knob->knob->id,
                        tt_space_format(knob, value, text, sizeof text),
                        reason[0] != '\0' ? reason : "it gives no reason");
}

tt_status
tt_knob_set_prepare(tt_knob_set *set, const tt_setting *target, tt_error *err)
{
    TT_ASSERT(!set->prepared);
    TT_ASSERT(set->changed_count == 0);
    if (target->count != set->space.count)
        return tt_error_set(err, TT_RANGE, NULL, NULL, "a setting of %u knobs, where there are %u",
                            target->count, set->space.count);
    for (uint32_t i = 0; i < target->count; i++) {
        if (set->instance[i] == NULL ||
            (set->has_current && set->current.value[i] == target->value[i]))
            continue;
        tt_status status = prepare_one(set, i, target->value[i], err);
        if (status != TT_OK) {
            roll_back_changed(set);
            return status;
        }
    }
    set->target = *target;
    set->prepared = 1;
    return TT_OK;
}

// One call for all changed knobs that share a commit_together, at the first of them.
static void
commit_group(tt_knob_set *set, uint32_t first)
{
    const tt_knob *leader = set->space.knob[set->changed[first]].knob;
    void *selves[TT_KNOBS_MAX];
    uint32_t count = 0;
    for (uint32_t n = 0; n < set->changed_count; n++) {
        uint32_t i = set->changed[n];
        if (set->space.knob[i].knob->commit_together != leader->commit_together)
            continue;
        if (n < first)
            return; // done with the first of the group
        selves[count++] = set->instance[i];
    }
    leader->commit_together(selves, count);
}

void
tt_knob_set_commit(tt_knob_set *set)
{
    TT_ASSERT(set->prepared);
    for (uint32_t n = 0; n < set->changed_count; n++) {
        uint32_t i = set->changed[n];
        const tt_knob *knob = set->space.knob[i].knob;
        if (knob->commit_together != NULL)
            commit_group(set, n);
        else
            knob->commit(set->instance[i]);
    }
    set->changed_count = 0;
    set->prepared = 0;
    set->current = set->target;
    set->has_current = 1;
}

void
tt_knob_set_rollback(tt_knob_set *set)
{
    TT_ASSERT(set->prepared);
    roll_back_changed(set);
    set->prepared = 0;
}

const tt_setting *
tt_knob_set_current(const tt_knob_set *set)
{
    return set->has_current ? &set->current : NULL;
}

void
tt_knob_set_close(tt_knob_set *set)
{
    if (set == NULL)
        return;
    roll_back_changed(set);
    for (uint32_t i = set->space.count; i-- > 0;)
        if (set->instance[i] != NULL)
            set->space.knob[i].knob->close(set->instance[i]);
    tt_mem_free(set);
}
