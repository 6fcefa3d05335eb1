// known_run FILE: writes the store of a tuned run whose law is known (known_law.h), for tests of
// the commands that read runs: how many settings a real one measures depends on the machine.
#include "known_law.h"
#include <stdio.h>

int
main(int argc, char **argv)
{
    tt_error err = {0};
    if (argc != 2) {
        (void)fputs("usage: known_run FILE\n", stderr);
        return 2;
    }
    if (known_run_write(argv[1], "converged", &err) == TT_OK)
        return 0;
    tt_error_print(stderr, &err);
    return 1;
}
