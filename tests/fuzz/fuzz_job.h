// The jobs that fuzz targets work on: small, of generated data, one of each consistency.
#ifndef TT_FUZZ_JOB_H
#define TT_FUZZ_JOB_H

struct tt_job;

enum { FUZZ_JOB_KINDS = 3, FUZZ_JOB_NODES = 4 };

// Opened when first asked for, and never closed.
struct tt_job *fuzz_job(int kind);

#endif
