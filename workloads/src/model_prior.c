// The loss of the best constant answer.
#include "data_internal.h"
#include "model_internal.h"
#include <math.h>
#include <string.h>

double
tt_model_prior_loss(const tt_model *model, const tt_dataset *train, const tt_dataset *data)
{
    double share[TTI_CLASSES_MAX] = {0}, sum = 0;
    int hinge = strcmp(tt_model_kind(model), "linear_svm") == 0;
    for (uint64_t row = 0; row < train->row_count; row++)
        share[train->label[row]] += 1.0 / (double)train->row_count;
    // A class without training rows would cost infinity; half a row is the usual way out.
    double least = 0.5 / (double)train->row_count;
    for (uint64_t row = 0; row < data->row_count; row++) {
        double mine = share[data->label[row]];
        sum +=
            hinge ? (data->label[row] == (share[1] > share[0]) ? 0 : 2) : -log(TT_MAX(mine, least));
    }
    return sum / (double)data->row_count;
}
