// The inside of a job: its specification and what is opened from it.
#ifndef TTI_JOB_INTERNAL_H
#define TTI_JOB_INTERNAL_H

#include "tt/cluster.h"
#include "tt/core_config.h"
#include "tt/estimator_curves.h"
#include "tt/job.h"
#include "tt/ps.h"
#include "tt/reconfig.h"
#include "tt/tuner.h"
#include "tt/workloads.h"
#include "warm_start.h"

enum { TTI_DRIVER_MESSAGES, TTI_DRIVER_IN_PLACE };
enum { TTI_ENGINE_THREADS, TTI_ENGINE_LOCAL, TTI_ENGINE_SSH, TTI_ENGINE_SIMULATED };
enum { TTI_ENCRYPTION_AUTO, TTI_ENCRYPTION_ON };
enum { TTI_FORMAT_LIBSVM, TTI_FORMAT_IDX, TTI_FORMAT_CLICKLOG, TTI_FORMAT_CSV };

// What the job file says, field by field (job_keys.c has the table).
// Of engine simulated: hosts, the network between them, and what the code costs there, in seconds
// on a host of speed 1 (docs/simulation.md).
typedef struct tti_simulation_spec {
    int64_t hosts;           // 0: one a node
    int64_t evaluate_pushes; // 0: never
    double cores, speed, stragglers, straggler_speed, jitter;
    int64_t rate; // bytes a second
    double latency, local_latency, network_jitter, oversubscription;
    // Constants of what code costs; calibrate.c counts on their lying one behind the other.
    double example, nonzero[3], cell[3]; // by kernel
    double dense, prepare, apply, whole, key, value, bf16;
    double message, chunk, byte, pack, unpack, helper, serial;
    double pause, wake, signal, change;
    const tt_config_node *faults;
    const char *trace, *samples;
    // What is known of the costs' error; NAN, 0 and NULL: nothing.
    double error_median, error_p90;
    int64_t error_settings;
    const char *machine, *measured_at;
} tti_simulation_spec;

typedef struct tti_spec {
    const char *name;
    int64_t seed;
    int format;
    const tt_config_paths *train, *labels;
    const tt_config_paths *test_file, *test_labels;
    const tt_config_paths *validation_file, *validation_labels;
    double validation_fraction; // NAN: none
    int64_t features, shards, data_threads;
    const char *csv_label, *csv_numeric, *csv_categorical, *csv_ignore;
    int csv_delimiter, csv_header, csv_log_numeric;
    int64_t csv_hash_bits;
    int64_t generate_rows, generate_features, generate_fields, generate_test_rows, generate_seed;
    int model;
    double l2;
    int bias, pull, table;
    int optimizer;
    double learning_rate, epsilon, decay;
    int schedule, decay_per_epoch, averaging;
    double momentum, beta1, beta2, l1, ftrl_beta, clip_norm;
    int nesterov;
    int64_t batch_size;
    double checkpoint_every;
    int64_t checkpoint_keep;
    double stop_loss, stop_objective, stop_epochs, stop_time;
    int64_t patience; // 0: no early stopping
    double min_delta, evaluate_every;
    int engine, driver;
    int64_t nodes, restarts, replicas;
    const tt_config_node *hosts; // engine ssh
    const char *remote_shell, *program, *address;
    int encryption;
    double retry, heartbeat, failure_timeout, master_timeout;
    tti_simulation_spec simulation;
    int consistency;
    int64_t slices;
    const tt_config_node *setting, *knobs;
    int method; // tt_reconfig_method
    int tuner_enabled, tuner_model, tuner_estimator, tuner_compare;
    int64_t initial_settings, window;
    double guard;
    const char *tuner_without;
    unsigned without; // bits of tt_tuner_rule
    const tt_config_paths *curves;
    const tt_config_node *script;
    const char *runs_dir;
    int npz;
    const char *repository;
} tti_spec;

// One scripted change: at this iteration (BSP: round) go to this setting.
typedef struct tti_script_step {
    uint64_t iteration;
    uint32_t move; // partitions to move to another server besides
    tt_reconfig_method method;
    tt_setting setting;
} tti_script_step;

enum { TTI_SCRIPT_MAX = 4096 };

struct tt_job {
    tt_config *config;
    tti_spec spec;
    char name[96];
    tt_knob_registry *registry;
    tt_curves *curves; // NULL: none but the built-in ones
    tt_space space;
    uint8_t start_given[TT_KNOBS_MAX]; // the job file says where tuning of the knob begins
    tti_warm warm;
    tti_script_step *script;
    uint32_t script_count;
    tt_dataset *train, *validation, *test; // the last two may be NULL
    double prior_loss; // on the validation rows, of the classes' shares; NAN without them
    double bayes_loss; // of generated data, NAN otherwise
    tt_model *model;
    tt_shards *shards;
    tt_ps_table table;
    uint32_t node_count;
    tt_sim_fault *faults;
    uint32_t fault_count;
    struct tti_master_death *master_deaths; // simulated: when its master dies, in order
    uint32_t master_death_count;
    tt_sim *sim;                 // while it trains on simulated hosts
    tt_sim_load load;            // of the simulated hosts, when it has
    struct tti_starter *starter; // of nodes that are processes, while it trains
    int run_lock;                // of the run directory while it is ours, or -1
};

typedef struct tti_master_death {
    double at_s, for_s; // of virtual time; until there is another
} tti_master_death;

// job_keys.c
extern const tt_config_key tti_job_keys[];
extern const size_t tti_job_key_count;
extern const char *const tti_consistency_names[],
    *const tti_driver_names[], *const tti_engine_names[], *const tti_method_names[],
                                                              *const tti_optimizer_names[],
                                                                  *const tti_model_names[],
                                                                      *const tti_format_names[];
// job_space.c: the search space of this job; complains in the configuration.
tt_status tti_job_space(tt_job *job, tt_error *err);
// Whether a setting that was read gives each of the job's knobs a number. (Which number another
// host may choose this one cannot know: ranges are of a machine.)
int tti_job_setting_fits(const tt_job *job, const tt_setting *setting);
// job_curves.c: the plug-ins of tuner.curves; complains in the configuration.
tt_status tti_job_curves(tt_job *job, tt_error *err);
// Appends ", curves my_curve, other" to a text, or nothing.
void tti_job_curves_text(const tt_job *job, char *text, size_t size);
// simulated.c: hosts of a simulated job.
uint32_t tti_job_simulated_hosts(const tt_job *job);
// job_faults.c: what goes wrong on simulated hosts; complains in the configuration.
tt_status tti_job_faults(tt_job *job, tt_error *err);
// job_data.c
tt_status tti_job_data(tt_job *job, tt_error *err);
// Of the training rows, all there is in them: who has the same has the same data.
uint64_t tti_job_data_digest(const tt_job *job);
// Iterations (minibatches) in one epoch.
double tti_job_epoch_iterations(const tt_job *job);
uint32_t tti_job_slice_rows(const tt_job *job, uint32_t slice);

// The resolved job as YAML; the text is freed with free(). errors TT_NOMEM
TT_NODISCARD tt_status tti_job_resolved_text(const tt_job *job,
                                             char **out,
                                             size_t *bytes,
                                             tt_error *err);

// job_run.c: {knob: value} without the knobs the job does not have; jansson's json_t.
struct json_t *tti_setting_json(const tt_job *job, const tt_setting *setting);

// job_run.c: one training in memory: nothing is recorded or saved. Untuned: at the start setting.
// Fills *result as tt_job_run does.
TT_NODISCARD tt_status tti_job_train(tt_job *job,
                                     const tt_job_run_options *options,
                                     int tuned,
                                     tt_job_result *result,
                                     tt_error *err);

// model_file.c: the model as safetensors or npz (docs/model-file.md), written atomically.
tt_status tti_model_save(const char *path, const tt_job *job, const float *params, tt_error *err);
tt_status
tti_model_save_npz(const char *path, const tt_job *job, const float *params, tt_error *err);

// ---- how it is tuned (training_tuner.c)
tt_est_method tti_job_estimator(const tt_job *job);
enum { TTI_TUNER_TEXT_BYTES = 320 };
// "model time, estimator pooled", "off", "script"; with ", curves my_curve" behind it where
// plug-ins bring some.
const char *tti_job_tuner_text(const tt_job *job, char *out, size_t size);

#endif
