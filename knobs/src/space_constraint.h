// Conditions on whole settings, as text and as something that can be evaluated.
#ifndef TTI_SPACE_CONSTRAINT_H
#define TTI_SPACE_CONSTRAINT_H

#include "tt/knobs.h"

typedef struct tti_constraint tti_constraint;

// Compiles a condition over the knobs of `space` (grammar: tt/knobs_file.h).
//
// errors   TT_SYNTAX it is not a condition; `err` says at which column and what was expected.
//          TT_NOMEM
// owns     *out until tti_constraint_free; `space` is used here only
TT_NODISCARD tt_status tti_constraint_parse(const tt_space *space,
                                            const char *text,
                                            tti_constraint **out,
                                            tt_error *err);
// Whether a setting fulfils it. Pure.
int tti_constraint_holds(const tti_constraint *constraint, const tt_setting *setting);
void tti_constraint_free(tti_constraint *constraint);

#endif
