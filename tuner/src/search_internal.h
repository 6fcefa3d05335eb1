// Shared by the files of the search.
#ifndef TTI_SEARCH_INTERNAL_H
#define TTI_SEARCH_INTERNAL_H

#include "tt/tuner_search.h"
#include <gsl/gsl_qrng.h>

// Streams of random numbers, so that one search does not disturb another.
enum { TTI_SEARCH_STREAM_SPREAD = 1 << 20, TTI_SEARCH_STREAM_MAXIMIZE };

// Euclidean in unit coordinates, 1 for each differing enum or bool.
double tti_search_distance(const tt_search_space *search, const double *a, const double *b);
int tti_search_taken(const tt_setting *setting, const tt_setting *taken, uint32_t taken_count);
void tti_search_shift(const tt_search_space *search, tt_rng *rng, double *shift);
int tti_search_sobol(const tt_search_space *search,
                     gsl_qrng *sobol,
                     const double *shift,
                     tt_setting *out);

#endif
