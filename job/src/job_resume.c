// Going on with a run: its newest whole checkpoint, whether this job is still the one that was
// checkpointed, and its run store.
#include "job_resume.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static uint64_t
print_array(uint64_t print, const void *array, uint64_t count, size_t size)
{
    return array != NULL && count > 0 ? XXH3_64bits_withSeed(array, count * size, print) : print;
}

uint64_t
tti_data_print(const tt_dataset *data)
{
    const uint64_t numbers[] = {data->layout, data->row_count, data->feature_count,
                                data->nonzero_count, data->class_count};
    uint64_t cells = data->row_count * data->feature_count;
    uint64_t print = XXH3_64bits(numbers, sizeof numbers);
    print = print_array(print, data->class_label, data->class_count, sizeof *data->class_label);
    print = print_array(print, data->label, data->row_count, sizeof *data->label);
    if (data->layout == TT_DATA_SPARSE) {
        print = print_array(print, data->row_begin, data->row_count + 1, sizeof *data->row_begin);
        print = print_array(print, data->index, data->nonzero_count, sizeof *data->index);
        return print_array(print, data->value, data->nonzero_count, sizeof *data->value);
    }
    print = print_array(print, data->bytes, cells, sizeof *data->bytes);
    return print_array(print, data->floats, cells, sizeof *data->floats);
}

// ---- is it the same job? ----------------------------------------------------------------------

// What makes it another training; any other key may change, when asked for by --set.
static int
is_essential(const char *path)
{
    static const char *const essential[] = {
        "seed",        "data.shards",        "model.",          "optimizer.",
        "consistency", "cluster.bsp_slices", "data.validation", "data.seed"};
    for (size_t i = 0; i < TT_COUNT_OF(essential); i++)
        if (strncmp(path, essential[i], strlen(essential[i])) == 0)
            return 1;
    return 0;
}

// Nodes know nothing of these.
static int
is_of_master(const char *path)
{
    static const char *const keys[] = {"stop.", "tuner.", "checkpoint.", "job"};
    for (size_t i = 0; i < TT_COUNT_OF(keys); i++)
        if (strncmp(path, keys[i], strlen(keys[i])) == 0)
            return 1;
    return 0;
}

// A key that --set took back has no place any more; of a subtree, parts may have been.
static int
is_override(const tt_job *job, const tt_config_key *key)
{
    const tt_config_node *node = tt_config_find(job->config, NULL, key->path);
    return node == NULL || key->kind == TT_CONFIG_NODE ||
           strncmp(tt_config_node_place(node), "--set", 5) == 0;
}

static void
compare_key(const tt_job *job,
            const tt_config_key *key,
            tt_config *was,
            const tti_spec *old,
            tti_resume *resume)
{
    const char *before = tt_config_value_text(was, key, old);
    const char *now = tt_config_value_text(job->config, key, &job->spec);
    if (before == NULL || now == NULL || strcmp(before, now) == 0)
        return;
    size_t used = strlen(resume->changes);
    if (is_essential(key->path))
        tt_config_complain_key(job->config, key->path,
                               "resume without the change, or start a new run",
                               "%s was '%s' in the checkpoint and is '%s': that is another job",
                               key->path, before, now);
    else if (!is_override(job, key) && strcmp(key->path, "job") != 0)
        tt_config_complain_key(job->config, key->path,
                               "say it with --set, or put the old value back",
                               "%s was '%s' in the checkpoint and is '%s'", key->path, before, now);
    else {
        resume->touches_nodes |= !is_of_master(key->path);
        (void)snprintf(resume->changes + used, sizeof resume->changes - used, "%s%s %s -> %s",
                       used > 0 ? ", " : "", key->path, before[0] != '\0' ? before : "(none)",
                       now[0] != '\0' ? now : "(none)");
    }
}

static tt_status
compare_configuration(const tt_job *job, tti_resume *resume, tt_error *err)
{
    uint64_t bytes;
    tti_spec old;
    tt_config *was;
    const uint8_t *text = tti_checkpoint_find(&resume->file, "config", &bytes);
    char *copy = tt_mem_zalloc(bytes + 1, 1);
    if (copy == NULL)
        return tt_error_set(err, TT_NOMEM, NULL, NULL, "no memory to compare configurations");
    if (bytes > 0)
        memcpy(copy, text, bytes);
    tt_status status = tt_config_open(&was, err);
    if (status == TT_OK) {
        status = tt_config_load_text(was, resume->file.path, copy, err);
        if (status == TT_OK) // what a newer or older program does not know is not compared
            (void)tt_config_read(was, tti_job_keys, tti_job_key_count, &old);
        for (size_t k = 0; status == TT_OK && k < tti_job_key_count; k++)
            compare_key(job, &tti_job_keys[k], was, &old, resume);
        tt_config_close(was);
    }
    tt_mem_free(copy);
    if (status != TT_OK || tt_config_error_count(job->config) == 0)
        return status;
    tt_config_errors_print(job->config, stderr);
    return tt_error_set(err, TT_INVALID, NULL, NULL, "%zu errors in the configuration",
                        tt_config_error_count(job->config));
}

static tt_status
compare_data(const tt_job *job, const tti_resume *resume, tt_error *err)
{
    uint64_t bytes, print = 0;
    const uint8_t *stored = tti_checkpoint_find(&resume->file, "data", &bytes);
    if (bytes == sizeof print)
        memcpy(&print, stored, sizeof print);
    if (print == tti_data_print(job->train))
        return TT_OK;
    const tt_config_node *node = tt_config_find(job->config, NULL, "data.train");
    return tt_error_set(err, TT_INVALID, node != NULL ? tt_config_node_place(node) : "data",
                        "put the old data back, or start a new run",
                        "the training data is not what it was when %s was written",
                        resume->file.path);
}

// ---- the checkpoint ---------------------------------------------------------------------------

static tt_status
find_checkpoint(const char *run_dir, tti_resume *resume, tt_error *err)
{
    char directory[560];
    tt_error last = {0};
    (void)snprintf(directory, sizeof directory, "%.500s/checkpoints", run_dir);
    tt_status status = tti_checkpoint_newest(directory, &resume->file, &resume->damaged, &last);
    if (resume->damaged > 0)
        tt_log(TT_LOG_WARN, "%u damaged checkpoint%s left out (%s: %s)", resume->damaged,
               resume->damaged > 1 ? "s are" : " is", last.where, last.what);
    if (status == TT_NOTFOUND)
        return TT_OK; // from the beginning
    if (status != TT_OK && err != NULL)
        *err = last;
    resume->found = status == TT_OK;
    return status;
}

tt_status
tti_resume_open(const tt_job *job, const char *run_dir, tti_resume *resume, tt_error *err)
{
    *resume = (tti_resume){0};
    tt_status status = find_checkpoint(run_dir, resume, err);
    if (status == TT_OK && resume->found)
        status = compare_configuration(job, resume, err);
    if (status == TT_OK && resume->found)
        status = compare_data(job, resume, err);
    if (status != TT_OK)
        tti_resume_close(resume);
    return status;
}

// Nodes go on with the job that they were begun with.
static tt_status
must_be_the_same(const tti_resume *resume, tt_error *err)
{
    return !resume->touches_nodes ? TT_OK
                                  : tt_error_set(err, TT_NOTFOUND, NULL, NULL,
                                                 "the job was changed: %s", resume->changes);
}

tt_status
tti_resume_inherit(const tt_job *job, tti_journal *journal, tti_resume *resume, tt_error *err)
{
    uint8_t *base;
    size_t size;
    *resume = (tti_resume){0};
    TT_TRY(tti_journal_read(journal, &base, &size, err));
    TT_TRY(tti_checkpoint_parse(base, size, "what the last master left", &resume->file, err));
    tt_status status = compare_configuration(job, resume, err);
    if (status == TT_OK)
        status = compare_data(job, resume, err);
    if (status == TT_OK)
        status = must_be_the_same(resume, err);
    resume->found = status == TT_OK;
    resume->journal = resume->found ? journal : NULL;
    if (status != TT_OK)
        tti_resume_close(resume);
    return status;
}

void
tti_resume_close(tti_resume *resume)
{
    tti_checkpoint_fini(&resume->file);
}

void
tti_resume_section(const tti_resume *resume, const char *name, tt_archive *in)
{
    uint64_t count;
    const uint8_t *bytes = tti_checkpoint_find(&resume->file, name, &count);
    tt_archive_read(in, bytes, count);
}

uint64_t
tti_resume_space_print(const tt_job *job)
{
    return tt_tuner_print(&job->space, job->node_count, (tt_tuner_model)job->spec.tuner_model,
                          tti_job_estimator(job));
}

int
tti_resume_same_space(const tt_job *job, const tti_resume *resume)
{
    tt_archive in;
    uint64_t print = 0;
    tti_resume_section(resume, "training", &in);
    TT_ARCHIVE(&in, print);
    return in.status == TT_OK && print == tti_resume_space_print(job);
}
