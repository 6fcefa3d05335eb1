// A call that must succeed; `err` in it is an error of its own, which is told when it does not.
#ifndef TT_TEST_CHECK_OK_H
#define TT_TEST_CHECK_OK_H

#include "tt/core_status.h"
// cmocka.h needs these before it
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        tt_error err_ = {0}, *err = &err_;                                                         \
        tt_status status_ = (call);                                                                \
        if (status_ != TT_OK)                                                                      \
            fail_msg("%s: %s; %s", #call, err_.what, err_.advice);                                 \
    } while (0)

#endif
