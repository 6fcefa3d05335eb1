// What a job would take on simulated hosts: three trainings a seed, and what is said about them.
#ifndef TTI_FORECAST_H
#define TTI_FORECAST_H

#include "job_internal.h"

enum {
    TTI_FORECAST_START, // the start setting throughout
    TTI_FORECAST_TUNED, // as the tuner goes
    TTI_FORECAST_BEST,  // the setting that the tuner ended in, throughout
    TTI_FORECAST_ROWS,
    TTI_FORECAST_SEEDS_MAX = 100
};

typedef struct tti_forecast_run {
    int reached;
    double seconds; // to where it ended
    uint64_t iterations;
    double loss;
    tt_sim_load load;
    char stop_reason[320];
    tt_setting setting; // the last one
} tti_forecast_run;

typedef struct tti_forecast {
    uint32_t seeds;
    int64_t first_seed;
    tti_forecast_run run[TTI_FORECAST_SEEDS_MAX][TTI_FORECAST_ROWS];
    tt_setting start;
    double wall_s;
} tti_forecast;

// forecast_print.c. job: the one of the last seed. errors TT_IO, TT_NOMEM
TT_NODISCARD tt_status tti_forecast_text(const tti_forecast *f, const tt_job *job, FILE *out);
TT_NODISCARD tt_status tti_forecast_json(const tti_forecast *f, const tt_job *job, FILE *out);

#endif
