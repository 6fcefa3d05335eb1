// See known_law.h.
#include "known_law.h"
#include <math.h>
#include <string.h>

// ---- the law ---------------------------------------------------------------------------------

// log of seconds per iteration: servers 2 is worst of 1..4, half saves 30 %, kernel 1 saves 10 %,
// chunk and pinned do nothing.
static double
law(const double *v)
{
    static const double servers[] = {0, -0.5, 0, -0.1, 0.05};
    return log(0.002) + servers[(int)v[KNOWN_SERVERS]] + (v[KNOWN_HALF] != 0 ? log(0.7) : 0) +
           (v[KNOWN_KERNEL] == 1 ? log(0.9) : 0);
}

tt_status
known_put_knobs(tt_store *store, tt_error *err)
{
    static const tt_store_knob knobs[] = {
        {.ordinal = KNOWN_SERVERS, .id = "servers", .kind = "int", .min = 1, .max = 4, .start = 2},
        {.ordinal = KNOWN_CHUNK,
         .id = "chunk_bytes",
         .kind = "int",
         .unit = "bytes",
         .min = 4096,
         .max = 1 << 20,
         .start = 65536,
         .scale = "log2"},
        {.ordinal = KNOWN_HALF, .id = "half", .kind = "bool", .max = 1},
        {.ordinal = KNOWN_KERNEL,
         .id = "kernel",
         .kind = "enum",
         .max = 2,
         .values = "plain,wide,fused"},
        {.ordinal = KNOWN_PINNED,
         .id = "pinned",
         .kind = "bool",
         .max = 1,
         .fixed = 1,
         .reason = "by you (job.yaml:3)"},
    };
    for (size_t i = 0; i < TT_COUNT_OF(knobs); i++)
        TT_TRY(tt_store_put_knob(store, &knobs[i], err));
    return TT_OK;
}

tt_status
known_put_measured(tt_store *store,
                   tt_rng *rng,
                   int setting,
                   const double *values,
                   int64_t *iteration,
                   tt_error *err)
{
    TT_TRY(tt_store_put_setting(store, setting, values, KNOWN_KNOBS, err));
    int windows = setting == KNOWN_SETTINGS - 1 ? 6 : 2;
    for (int w = 0; w < windows; w++) {
        const tt_store_window window = {.ordinal = *iteration / 400,
                                        .generation = setting,
                                        .setting = setting,
                                        .phase = setting == 0 ? TT_STORE_START : TT_STORE_EXPLORE,
                                        .first_iteration = *iteration,
                                        .last_iteration = *iteration + 399,
                                        .start_s = (double)*iteration * 0.002,
                                        .end_s = (double)(*iteration + 400) * 0.002,
                                        .kept = 400,
                                        .seconds_per_iteration =
                                            exp(law(values) + 0.01 * tt_rng_normal(rng)),
                                        .time_cv = 0.2,
                                        .loss_after = 0.4 + 1.9 * exp(-(double)*iteration / 4000),
                                        .noise = 0.05,
                                        .staleness = 1.5,
                                        .lag_borne = KNOWN_LAG_BORNE};
        TT_TRY(tt_store_put_window(store, &window, err));
        *iteration += 400;
    }
    return TT_OK;
}

// Trials of settings 1 .. KNOWN_SETTINGS - 1, each against the best before it; predicted with s.d.
// 0.1, every fourth 3 s.d. off.
static tt_status
put_trial(tt_store *store, int setting, int best, double log_ratio, tt_error *err)
{
    double off = setting % 4 == 0 ? 0.3 : 0.02;
    const tt_store_proposal trial = {.ordinal = setting,
                                     .time_s = 2.0 * setting,
                                     .phase = "explore",
                                     .decision = "try",
                                     .setting = setting,
                                     .current_setting = best,
                                     .log_ratio = log_ratio + off,
                                     .log_ratio_sd = 0.1,
                                     .ei_seconds = 3.1,
                                     .cost_seconds = 0.2,
                                     .remaining_s = 20,
                                     .reason = "expected to save 3.1 s, costs 0.2 s to find out",
                                     .realised_gain_s = 1.5,
                                     .realised_ratio = exp(log_ratio)};
    return tt_store_put_proposal(store, &trial, err);
}

tt_status
known_put_run(tt_store *store, const char *status, int64_t end, tt_error *err)
{
    tt_store_run run;
    tt_store_run_init(&run);
    run.id = "20261121-1412-known-law";
    run.name = "known-law";
    run.nodes = 5;
    run.status = status;
    run.iterations = 20000;
    run.train_seconds = 25;
    run.start_setting = 0;
    run.final_setting = end;
    run.untuned_seconds = 40;
    return tt_store_put_run(store, &run, err);
}

// Of 25 s, told after every tenth of the iterations: no end to be seen at first, three times what
// it was at the third, and an interval that does not reach it at the seventh.
static tt_status
put_etas(tt_store *store, tt_error *err)
{
    for (int tenth = 1; tenth < 10; tenth++) {
        double left_s = 2.5 * (10 - tenth) * (tenth == 3 ? 3 : 1);
        const tt_store_eta eta = {.time_s = 2.5 * tenth,
                                  .iteration = INT64_C(2000) * tenth,
                                  .seconds_p10 = (tenth == 7 ? 1.1 : 0.8) * left_s,
                                  .seconds_median = tenth == 1 ? INFINITY : 0.96 * left_s,
                                  .seconds_p90 = tenth < 3 ? INFINITY : 1.2 * left_s};
        TT_TRY(tt_store_put_eta(store, &eta, err));
    }
    return TT_OK;
}

static tt_status
put_all(tt_store *store, const char *status, tt_error *err)
{
    tt_rng rng;
    double values[KNOWN_SETTINGS][KNOWN_KNOBS] = {{2, 65536, 0, 0, 0}};
    int64_t iteration = 0;
    int best = 0;
    tt_rng_init(&rng, 17, TT_RNG_TEST, 0);
    TT_TRY(known_put_knobs(store, err));
    for (int s = 0; s < KNOWN_SETTINGS; s++) {
        if (s > 0) {
            values[s][KNOWN_SERVERS] = 1 + (double)tt_rng_below(&rng, 4);
            values[s][KNOWN_CHUNK] = (double)(4096 << tt_rng_below(&rng, 9));
            values[s][KNOWN_HALF] = (double)tt_rng_below(&rng, 2);
            values[s][KNOWN_KERNEL] = (double)tt_rng_below(&rng, 3);
        }
        if (s == KNOWN_SETTINGS - 1) { // where it ends
            const double end[KNOWN_KNOBS] = {1, 131072, 1, 1, 0};
            memcpy(values[s], end, sizeof end);
        }
        TT_TRY(known_put_measured(store, &rng, s, values[s], &iteration, err));
        double log_ratio = law(values[s]) - law(values[best]);
        if (s > 0)
            TT_TRY(put_trial(store, s, best, log_ratio, err));
        best = log_ratio < 0 ? s : best;
    }
    const tt_store_proposal last = {.ordinal = KNOWN_SETTINGS,
                                    .time_s = 30,
                                    .phase = "settled",
                                    .decision = "stay",
                                    .setting = KNOWN_SETTINGS - 1,
                                    .current_setting = KNOWN_SETTINGS - 1,
                                    .ei_seconds = 0.1,
                                    .cost_seconds = 0.4,
                                    .reason = "the best untried setting would save 0.1 s",
                                    .proposed = "servers 1 -> 3",
                                    .realised_ratio = (double)NAN};
    TT_TRY(tt_store_put_proposal(store, &last, err));
    TT_TRY(put_etas(store, err));
    return known_put_run(store, status, KNOWN_SETTINGS - 1, err);
}

tt_status
known_run_write(const char *path, const char *status, tt_error *err)
{
    tt_store *store;
    TT_TRY(tt_store_create(path, &store, err));
    tt_status filled = tt_store_begin(store, err);
    if (filled == TT_OK)
        filled = put_all(store, status, err);
    tt_status closed = tt_store_close(store, filled == TT_OK ? err : NULL);
    return filled != TT_OK ? filled : closed;
}
