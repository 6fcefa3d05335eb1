// What a job is, and how like two jobs are.
#include "job_internal.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

// ---- this job --------------------------------------------------------------------------------

static const char *
processor_model(void)
{
    static char model[120];
    char line[256];
    FILE *file = model[0] == '\0' ? fopen("/proc/cpuinfo", "r") : NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        (void)snprintf(model, sizeof model, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    if (file != NULL)
        (void)fclose(file);
    return model[0] != '\0' ? model : NULL;
}

static void
hash_bytes(uint64_t *hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *hash = (*hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u; // FNV-1a
}

static void
fingerprint_space(const tt_space *space, char out[24])
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint32_t k = 0; k < space->count; k++) {
        const tt_space_knob *knob = &space->knob[k];
        double numbers[] = {knob->min, knob->max, knob->fixed, knob->fixed ? knob->start : 0,
                            knob->absent};
        hash_bytes(&hash, knob->knob->id, strlen(knob->knob->id) + 1);
        hash_bytes(&hash, numbers, sizeof numbers);
    }
    (void)snprintf(out, 24, "%016llx", (unsigned long long)hash);
}

void
tti_warm_describe(const tt_job *job, tt_repository_run *out, char space[24])
{
    const tti_spec *spec = &job->spec;
    tt_repository_run_init(out);
    fingerprint_space(&job->space, space);
    out->name = job->name;
    out->program_version = tt_job_version();
    out->engine = tti_engine_names[spec->engine];
    out->driver = tti_driver_names[spec->driver];
    out->consistency = tti_consistency_names[spec->consistency];
    out->model = tti_model_names[spec->model];
    out->optimizer = tti_optimizer_names[spec->optimizer];
    out->pull = tt_model_keyed(job->model) ? "keyed" : "whole";
    out->table_kind = job->table.kind == TT_PS_SPARSE ? "sparse" : "dense";
    out->batch_size = spec->batch_size;
    out->nodes = job->node_count;
    out->rows = (int64_t)job->train->row_count;
    out->features = job->train->feature_count;
    out->classes = job->train->class_count;
    out->nonzeros = (double)job->train->nonzero_count / (double)job->train->row_count;
    out->cpu = processor_model();
    out->processors = tt_thread_processor_count();
    out->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    out->knob_space = space;
}

// ---- likeness --------------------------------------------------------------------------------

typedef struct difference {
    double squares;
    char *text;
    size_t size;
} difference;

static void
mention(difference *d, double part, const char *what, const char *from, const char *to)
{
    d->squares += part * part;
    size_t used = strlen(d->text);
    if (part >= 0.02 && used + 1 < d->size)
        (void)snprintf(d->text + used, d->size - used, "%s%s %s there, %s here",
                       used > 0 ? ", " : "", what, from, to);
}

static void
compare_numbers(difference *d, const char *what, double weight, double there, double here)
{
    char a[32], b[32];
    // Not known on one side: as if they differed by a factor of e.
    double apart = there > 0 && here > 0 ? fabs(log(here / there)) : 1;
    (void)snprintf(a, sizeof a, "%.4g", there);
    (void)snprintf(b, sizeof b, "%.4g", here);
    mention(d, weight * apart, what, there > 0 ? a : "unknown", here > 0 ? b : "unknown");
}

static int
same(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static void
compare_words(difference *d, const char *what, double weight, const char *there, const char *here)
{
    if (!same(there, here))
        mention(d, weight, what, there != NULL ? there : "unknown",
                here != NULL ? here : "unknown");
}

// The weights say how much a difference changes which settings are fast: nodes, the work of an
// iteration (non-zeros x batch) and the machine much, the width of the model little, the number of
// rows hardly. docs/repository.md has them as a table.
double
tti_warm_distance(const tt_repository_run *job,
                  const tt_repository_run *other,
                  char *differs,
                  size_t size)
{
    difference d = {.text = differs, .size = size};
    differs[0] = '\0';
    if (!same(job->model, other->model) || !same(job->engine, other->engine) ||
        !same(job->driver, other->driver) || !same(job->consistency, other->consistency))
        return INFINITY;
    compare_numbers(&d, "nodes", 0.7, (double)other->nodes, (double)job->nodes);
    compare_numbers(&d, "batch", 0.4, (double)other->batch_size, (double)job->batch_size);
    compare_numbers(&d, "non-zeros a row", 0.4, other->nonzeros, job->nonzeros);
    compare_numbers(&d, "classes", 0.3, (double)other->classes, (double)job->classes);
    compare_numbers(&d, "features", 0.15, (double)other->features, (double)job->features);
    compare_numbers(&d, "rows", 0.05, (double)other->rows, (double)job->rows);
    compare_words(&d, "pulls", 0.5, other->pull, job->pull);
    compare_words(&d, "table", 0.5, other->table_kind, job->table_kind);
    compare_words(&d, "optimizer", 0.3, other->optimizer, job->optimizer);
    compare_words(&d, "processor", 0.5, other->cpu, job->cpu);
    compare_numbers(&d, "processors", 0.7, (double)other->processors, (double)job->processors);
    return sqrt(d.squares);
}
