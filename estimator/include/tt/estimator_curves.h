// Curve families from plug-ins (tt/curve.h): files loaded, descriptions checked, a list for
// tt_est_options.
//
// Caveats: the estimator borrows the list: close it after every estimator that was opened with it.
#ifndef TT_ESTIMATOR_CURVES_H
#define TT_ESTIMATOR_CURVES_H

#include "tt/estimator.h"

typedef struct tt_curves tt_curves;

// An empty list. thread [control]
TT_NODISCARD tt_status tt_curves_open(tt_curves **out, tt_error *err);
// Loads a plugin (.ttc, a shared object). All its families are taken or none.
//
// errors   TT_NOTFOUND no such file; TT_IO it cannot be read; TT_INVALID not a curve plugin,
//          another ABI major, or a description that breaks the header's rules; TT_EXISTS a name is
//          taken, by a built-in family too; TT_RANGE more than TT_EST_CURVES_MAX families; TT_NOMEM
// owns     the plugin stays loaded until close
// thread   [control]; runs the plugin's constructors if it has any
TT_NODISCARD tt_status tt_curves_load(tt_curves *curves, const char *path, tt_error *err);
uint32_t tt_curves_count(const tt_curves *curves);
// tt_curves_count families, borrowed until close: for tt_est_options.curves.
const tt_curve *const *tt_curves_list(const tt_curves *curves);
// The file that family `index` came from, and the build fingerprint of that plugin.
const char *tt_curves_origin(const tt_curves *curves, uint32_t index);
const char *tt_curves_build(const tt_curves *curves, uint32_t index);
// Unloads the plugins. NULL is fine.
void tt_curves_close(tt_curves *curves);

#endif
