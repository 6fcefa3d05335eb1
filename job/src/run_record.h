// The run directory and its store.
#ifndef TTI_RUN_RECORD_H
#define TTI_RUN_RECORD_H

#include "training.h"

// Makes runs_dir/ID, writes job.yaml, opens run.db and puts the job's description into it. errors
// TT_IO with advice
TT_NODISCARD tt_status tti_run_begin(
    tt_job *job, const char *runs_dir, tt_job_result *result, tt_store **store, tt_error *err);
// The same for a run that is there: locks it, finds its newest checkpoint (*resume, to be closed
// also after a failure), opens its run.db without what came after it. errors also TT_BUSY another
// process has it; TT_NOTFOUND; TT_INVALID another job
TT_NODISCARD tt_status tti_run_continue(tt_job *job,
                                        const char *run_dir,
                                        tti_resume *resume,
                                        tt_job_result *result,
                                        tt_store **store,
                                        tt_error *err);
// The run's row as it stands in `result`.
TT_NODISCARD tt_status tti_run_update(tt_store *store,
                                      const tt_job *job,
                                      const tt_job_result *result,
                                      const char *status,
                                      uint32_t final_setting,
                                      tt_error *err);
// setting.yaml: the final setting as something to lay over a job file.
tt_status tti_run_write_setting(const tt_job *job, const tt_job_result *result, tt_error *err);

#endif
