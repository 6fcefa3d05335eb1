// Saving and restoring one partition.
#ifndef TTI_TABLE_STATE_H
#define TTI_TABLE_STATE_H

#include "partition.h"
#include "tt/ps_state.h"

uint64_t tti_partition_save_bytes(const tti_partition *partition);
void tti_partition_save(const tti_partition *partition, uint32_t round, tt_archive *out);
// What tti_partition_save wrote of this partition, into one that is empty; *round is the round it
// was saved with. errors TT_CORRUPT of another partition or table, or damaged; TT_NOMEM
TT_NODISCARD tt_status tti_partition_read(tti_partition *partition,
                                          tt_archive *in,
                                          uint32_t *round);
// errors TT_NOMEM
TT_NODISCARD tt_status tti_partition_load(tti_partition *partition, const tt_ps_state *state);

#endif
