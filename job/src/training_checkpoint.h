// Checkpoints of a training: when, what, and the thread that writes them.
#ifndef TTI_TRAINING_CHECKPOINT_H
#define TTI_TRAINING_CHECKPOINT_H

#include "checkpoint_file.h"
#include "tt/core_archive.h"

// What the master itself has learned, as sections of a checkpoint.
typedef struct tti_knowledge {
    tt_archive training, estimator, tuner, best;
} tti_knowledge;

typedef struct tti_checkpointing {
    int enabled;   // they are written now and then; else only for a restart
    double next_s; // on the job's clock
    char directory[560];
    char *config; // the resolved job, [config_bytes]
    size_t config_bytes;
    uint64_t data_print;
    // the copy that is being written; nobody changes it while `writing`
    tt_archive runtime;
    tti_knowledge knowledge;
    tti_checkpoint file;
    uint32_t keep;
    tt_thread thread;
    int writing; // master's own
    int written; // release by the writer, acquire by the master
    tt_status status;
    tt_error err;
    struct tti_board *board;
    int failed; // the last one: said once
    uint32_t count;
    double longest_rest_s; // of the workers, for a copy
} tti_checkpointing;

struct tti_training;
void tti_training_save_knowledge(struct tti_training *tr, tti_knowledge *out);
void tti_knowledge_fini(tti_knowledge *knowledge);
// The sections of a checkpoint: what the job is, the nodes' state under this name, and the
// knowledge. All must stay. errors TT_NOMEM, of any of them
TT_NODISCARD tt_status tti_training_describe(const struct tti_training *tr,
                                             const char *nodes,
                                             const tt_archive *state,
                                             const tti_knowledge *knowledge,
                                             tti_checkpoint *out);

#endif
