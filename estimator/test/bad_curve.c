// Plugins that the registry must refuse, one per value of BAD_CURVE: 0 exports nothing, 1 speaks
// another major, 2 has a bad second family, 3 takes the name of a built-in family, 4 lies about its
// size, 5 brings more families than there may be, 6 has one without loss.
#include "tt/curve.h"

__attribute__((unused)) static double // by 6
half(const double *p, double clock)
{
    return p[0] / (2 + clock);
}

static int
guess_one(const double *clock, const double *loss, uint32_t count, double target, double *p)
{
    (void)clock;
    (void)count;
    (void)target;
    p[0] = loss[0];
    return 1;
}

#define CURVE(size, called, numbers, form)                                                         \
    {                                                                                              \
        .struct_size = (size), .parameters = (numbers), .name = (called), .help = "a half",        \
        .prior = 1, .guess = guess_one, .loss = (form)                                             \
    }

#if BAD_CURVE == 0
extern const tt_curve bad_unreachable;
__attribute__((visibility("default"))) const tt_curve bad_unreachable =
    CURVE(sizeof(tt_curve), "a", 1, half);
#elif BAD_CURVE == 1
__attribute__((visibility("default"))) const void *tt_curve_plugin_abi7(void);
static const tt_curve curve = CURVE(sizeof(tt_curve), "from_the_future", 1, half);
const void *
tt_curve_plugin_abi7(void)
{
    return &curve;
}
#elif BAD_CURVE == 2
static const tt_curve good = CURVE(sizeof(tt_curve), "good_one", 1, half);
static const tt_curve bad = CURVE(sizeof(tt_curve), "without_numbers", 0, half);
TT_CURVE_PLUGIN(&good, &bad)
#elif BAD_CURVE == 3
static const tt_curve good = CURVE(sizeof(tt_curve), "good_two", 1, half);
static const tt_curve taken = CURVE(sizeof(tt_curve), "power", 1, half);
TT_CURVE_PLUGIN(&good, &taken)
#elif BAD_CURVE == 4
static const tt_curve curve = CURVE(16, "too_short", 1, half);
TT_CURVE_PLUGIN(&curve)
#elif BAD_CURVE == 5
static const tt_curve curve = CURVE(sizeof(tt_curve), "many", 1, half);
TT_CURVE_PLUGIN(&curve, &curve, &curve, &curve, &curve, &curve)
#elif BAD_CURVE == 6
static const tt_curve curve = CURVE(sizeof(tt_curve), "formless", 1, NULL);
TT_CURVE_PLUGIN(&curve)
#endif
