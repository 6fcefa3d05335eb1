// What a machine has: for whoever asks whether a job fits there.
#ifndef TTI_MACHINE_H
#define TTI_MACHINE_H

#include <stdint.h>

// Memory that can be had without swapping, in bytes; 0: not known.
uint64_t tti_memory_available(void);

#endif
