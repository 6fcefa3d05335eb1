// The constants of a simulated host, measured on this machine and written as a job file to lay over
// others.
#include "calibrate.h"
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

enum { MEASUREMENTS = 60, ROUNDS = 3 };
static const double MEASUREMENT_S = 5e-4;

static double
seconds_of(void (*body)(void *self), void *self, uint64_t calls)
{
    tt_clock clock = tt_clock_monotonic();
    uint64_t begin = tt_clock_now(&clock);
    for (uint64_t i = 0; i < calls; i++)
        body(self);
    return 1e-9 * (double)(tt_clock_now(&clock) - begin);
}

double
tti_calibrate_call_s(void (*body)(void *self), void *self)
{
    uint64_t calls = 1;
    double seconds = seconds_of(body, self, calls), least = INFINITY;
    while (seconds < MEASUREMENT_S && calls < (uint64_t)1 << 40) {
        calls *= seconds < MEASUREMENT_S / 8 ? 8 : 2;
        seconds = seconds_of(body, self, calls);
    }
    for (int i = 0; i < MEASUREMENTS; i++)
        least = fmin(least, seconds_of(body, self, calls) / (double)calls);
    return least;
}

// Nanoseconds with what digits they deserve; a difference of measurements may come out below 0.
static void
put(FILE *out, const char *key, double seconds, const char *what)
{
    char value[32];
    (void)snprintf(value, sizeof value, "%.3gns", fmax(1e9 * seconds, 0));
    (void)fprintf(out, "    %s: %-12s # %s\n", key, value, what);
}

static void
put_kernels(FILE *out, const char *key, const double seconds[3], const char *what)
{
    (void)fprintf(out, "    %s: {portable: %.3gns, avx2: %.3gns, avx512: %.3gns} # %s\n", key,
                  1e9 * seconds[0], 1e9 * seconds[1], 1e9 * seconds[2], what);
}

// "Intel(R) Xeon(R) Processor, 2 processors"; what YAML would stumble over is left out.
static void
name_machine(char *out, size_t size)
{
    char line[256], model[128] = "a processor without a name";
    FILE *info = fopen("/proc/cpuinfo", "r");
    while (info != NULL && fgets(line, sizeof line, info) != NULL)
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            (void)snprintf(model, sizeof model, "%.120s", strchr(line, ':') + 2);
            model[strcspn(model, "\n\"\\")] = '\0';
            break;
        }
    if (info != NULL)
        (void)fclose(info);
    (void)snprintf(out, size, "%s, %d processors", model, tt_thread_processor_count());
}

static void
put_measured(FILE *out, const tti_simulation_spec *s)
{
    char machine[192], day[32];
    time_t now = (time_t)tt_clock_wall_seconds();
    struct tm local;
    (void)localtime_r(&now, &local);
    (void)strftime(day, sizeof day, "%Y-%m-%d %H:%M", &local);
    name_machine(machine, sizeof machine);
    (void)fprintf(out, "  measured:\n    machine: \"%s\"\n    at: \"%s\"\n", machine, day);
    if (s->error_settings > 0)
        (void)fprintf(out,
                      "    settings: %lld          # of a small job, run here and simulated\n"
                      "    error_median: %.1f%%   # of the seconds an iteration\n"
                      "    error_p90: %.1f%%\n",
                      (long long)s->error_settings, 100 * s->error_median, 100 * s->error_p90);
}

static double
cost_at(const tti_simulation_spec *s, size_t offset)
{
    double value;
    memcpy(&value, (const char *)s + offset, sizeof value);
    return value;
}

// Of each constant the middle one: some are differences, and a neighbour's second spoils one round.
static void
take_middle(const tti_simulation_spec round[ROUNDS], tti_simulation_spec *out)
{
    size_t at = offsetof(tti_simulation_spec, example);
    _Static_assert(offsetof(tti_simulation_spec, change) - offsetof(tti_simulation_spec, example) ==
                       24 * sizeof(double),
                   "25 constants, one behind the other, and nothing else between them");
    for (; at <= offsetof(tti_simulation_spec, change); at += sizeof(double)) {
        double a = cost_at(&round[0], at), b = cost_at(&round[1], at), c = cost_at(&round[2], at);
        double middle = fmax(fmin(a, b), fmin(fmax(a, b), c));
        memcpy((char *)out + at, &middle, sizeof middle);
    }
}

static tt_status
measure(tti_simulation_spec *s, int check, tt_error *err)
{
    tti_simulation_spec round[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        round[r] = *s;
        TT_TRY(tti_calibrate_compute(&round[r], err));
        TT_TRY(tti_calibrate_messages(&round[r], err));
        TT_TRY(tti_calibrate_waits(&round[r], err));
        TT_TRY(tti_calibrate_sleep(&round[r], err));
    }
    take_middle(round, s);
    s->serial = fmin(fmax(s->serial, 0), 1);
    TT_TRY(tti_calibrate_caches(s, err));
    return check ? tti_calibrate_check(s, err) : TT_OK;
}

tt_status
tt_job_calibrate(FILE *out, int check, tt_error *err)
{
    // This machine as a host, for the check.
    tti_simulation_spec s = {.hosts = 1,
                             .cores = tt_thread_processor_count(),
                             .speed = 1,
                             .straggler_speed = 1,
                             .rate = 1000000000,
                             .oversubscription = 1};
    TT_TRY(measure(&s, check, err));
    (void)fprintf(out,
                  "# What the code of a job costs on this machine, measured by trimtab %s "
                  "(docs/simulation.md).\n"
                  "# To be laid over a job file: trimtab run job.yaml this.yaml\n"
                  "cluster: {engine: simulated}\n"
                  "simulation:\n"
                  "  cores: %g\n",
                  tt_job_version(), s.cores);
    put_measured(out, &s);
    (void)fprintf(out, "  costs:\n");
    put(out, "example", s.example, "gradient: an example");
    put_kernels(out, "nonzero", s.nonzero, "a stored value of sparse data");
    put_kernels(out, "cell", s.cell, "a value of dense data and a class");
    put(out, "dense", s.dense, "a value of dense data");
    put(out, "prepare", s.prepare, "putting a batch with keys together: a stored value");
    put(out, "key", s.key, "looking up a row");
    put(out, "value", s.value, "reading or writing a parameter");
    put(out, "apply", s.apply, "the optimizer (sgd) on a parameter");
    put(out, "whole", s.whole, "the same, when a whole partition is pushed");
    put(out, "bf16", s.bf16, "a parameter to bf16 or back");
    put(out, "message", s.message, "sending or receiving a message");
    put(out, "chunk", s.chunk, "each chunk of it");
    put(out, "byte", s.byte, "each byte of it");
    put(out, "pack", s.pack, "each byte that is packed for another host");
    put(out, "unpack", s.unpack, "each byte of what was packed, unpacked");
    put(out, "helper", s.helper, "one more compute thread in a gradient");
    (void)fprintf(out,
                  "    serial: %.0f%%        # of a gradient that more threads leave as it is\n",
                  100 * s.serial);
    put(out, "pause", s.pause, "one pause of a spinning wait");
    put(out, "wake", s.wake,
        "from a message to the first step of a node that slept, on an idle core");
    put(out, "signal", s.signal, "waking a node whose core is idle");
    put(out, "change", s.change, "waking a node that slept, when every core is busy");
    if (fflush(out) != 0)
        return tt_error_set(err, TT_IO, NULL, "free some space (df -h)",
                            "cannot write the constants");
    return TT_OK;
}
