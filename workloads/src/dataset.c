// A data set's end of life.
#include "tt/workloads_data.h"

void
tt_dataset_close(tt_dataset *data)
{
    if (data == NULL)
        return;
    tt_mem_free(data->label);
    tt_mem_free(data->row_begin);
    tt_mem_free(data->index);
    tt_mem_free(data->value);
    tt_mem_free(data->bytes);
    tt_mem_free(data->floats);
    tt_mem_free(data);
}
