// What a table's description says: learning rates, optimiser state, the cut into partitions.
#include "optimizer.h"
#include <math.h>

// Arrays of optimiser state beside the weights.
static int
state_arrays(tt_ps_optimizer_kind kind)
{
    switch (kind) {
    case TT_PS_ADAM:
    case TT_PS_FTRL:
        return 2;
    case TT_PS_ADAGRAD:
    case TT_PS_MOMENTUM:
        return 1;
    case TT_PS_SGD:
    case TT_PS_ADD:
        break;
    }
    return 0;
}

int
tti_cells_wanted(const tt_ps_table *table, int array)
{
    if (array == TTI_CELL_ARRAYS - 1)
        return table->averaging != 0;
    return array <= state_arrays(table->optimizer);
}

uint32_t
tt_ps_state_count(const tt_ps_table *table)
{
    return (uint32_t)(state_arrays(table->optimizer) + (table->averaging != 0));
}

double
tt_ps_learning_rate(const tt_ps_table *table, uint64_t iteration)
{
    double slow_down = 1.0 + table->decay * (double)iteration;
    switch (table->schedule) {
    case TT_PS_INVERSE:
        return table->learning_rate / slow_down;
    case TT_PS_INVERSE_SQRT:
        return table->learning_rate / sqrt(slow_down);
    case TT_PS_EXPONENTIAL:
        return table->learning_rate * exp(-table->decay * (double)iteration);
    case TT_PS_CONSTANT:
        break;
    }
    return table->learning_rate;
}

uint32_t
tt_ps_partition_of(const tt_ps_table *table, uint64_t key)
{
    if (table->kind == TT_PS_DENSE) {
        TT_DASSERT(key < table->rows);
        return (uint32_t)(key * table->partition_count / table->rows);
    }
    // The finaliser of splitmix64 spreads neighbouring keys; its high bits choose the partition,
    // its low bits the slot.
    uint64_t x = key + 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    return (uint32_t)(((x >> 32) * table->partition_count) >> 32);
}

uint64_t
tt_ps_partition_first(const tt_ps_table *table, uint32_t partition)
{
    // The least key with key * count / rows >= partition.
    return (partition * table->rows + table->partition_count - 1) / table->partition_count;
}

uint32_t
tt_ps_partition_count_for(uint64_t rows, uint32_t servers_max)
{
    uint64_t by_size = rows / 16 > 0 ? rows / 16 : 1;
    return (uint32_t)TT_MIN((uint64_t)TT_MIN(4 * servers_max, 1024), by_size);
}
