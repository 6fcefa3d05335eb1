// Goal: the loss over all rows is told from one batch, without bias and with far less noise than
// the batch's own mean; neither a steep beginning, whose rows come first in later epochs too, nor
// rows that were never trained on, losses that are no numbers or several workers at a time spoil
// it. Method: rows of known losses that all fall together with a small part of their own, trained
// in a new order every epoch or in the same, against the mean over all of them.
#include "row_losses.h"
#include "tt/core.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 1000, BATCH = 20, BATCHES = ROWS / BATCH, WORKERS = 5 };

// Of row r after `time` epochs: very different ones, each on its own way down.
static double
loss_of(uint32_t r, double time)
{
    return (r % 7 == 0 ? 3.0 : 0.1) + (0.4 + 0.01 * (r % 11)) / (1 + time);
}

static double
mean_of(double time)
{
    double sum = 0;
    for (uint32_t r = 0; r < ROWS; r++)
        sum += loss_of(r, time) / ROWS;
    return sum;
}

// The losses of a batch; returns its own mean.
static double
measure(const uint32_t *rows, double time, float *losses)
{
    double mean = 0;
    for (uint32_t i = 0; i < BATCH; i++) {
        losses[i] = (float)loss_of(rows[i], time);
        mean += losses[i] / (double)BATCH;
    }
    return mean;
}

static void
shuffle(tt_rng *rng, uint32_t *order)
{
    for (uint32_t i = 0; i < ROWS; i++)
        order[i] = i;
    for (uint32_t i = ROWS - 1; i > 0; i--) {
        const uint32_t k = (uint32_t)tt_rng_below(rng, i + 1), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

static void
one_batch_tells_of_all_rows(void **state)
{
    TT_UNUSED(state);
    tti_row_losses all;
    tt_rng rng;
    uint32_t order[ROWS];
    double own = 0, known = 0, bias = 0;
    tt_rng_init(&rng, 3, TT_RNG_TEST, 0);
    assert_int_equal(tti_row_losses_open(&all, ROWS), TT_OK);
    for (int epoch = 0; epoch < 40; epoch++) {
        shuffle(&rng, order);
        for (uint32_t b = 0; b < BATCHES; b++) {
            const double time = epoch + (double)b / BATCHES, truth = mean_of(time);
            float losses[BATCH];
            const double mean = measure(order + b * BATCH, time, losses);
            const double level = tti_row_losses_note(&all, order + b * BATCH, losses, BATCH);
            assert_true(epoch == 0 ? isnan(level) : isfinite(level));
            if (epoch < 20)
                continue;
            own += (mean - truth) * (mean - truth);
            known += (level - truth) * (level - truth);
            bias += (level - truth) / (20 * BATCHES);
        }
    }
    print_message("error of a batch's own mean / of the level: %.0f; bias %.1e\n",
                  sqrt(own / known), bias);
    assert_true(own > 1000 * 1000 * known);
    assert_true(fabs(bias) < 1e-4);
    tti_row_losses_close(&all);
}

// A worker's shards follow one another in the same order every epoch: a batch's rows were all last
// trained on at one time, so that what the loss fell by in an epoch does not cancel out among them.
static void
neither_order_nor_a_steep_beginning_shows(void **state)
{
    TT_UNUSED(state);
    tti_row_losses all;
    tt_rng rng;
    uint32_t order[ROWS];
    tt_rng_init(&rng, 4, TT_RNG_TEST, 0);
    shuffle(&rng, order);
    assert_int_equal(tti_row_losses_open(&all, ROWS), TT_OK);
    for (int epoch = 0; epoch < 5; epoch++) {
        const double fall = mean_of(10 * (epoch - 1)) - mean_of(10 * epoch);
        double own = 0, worst = 0, told = 0;
        for (uint32_t b = 0; b < BATCHES; b++) {
            const double time = 10 * (epoch + (double)b / BATCHES), truth = mean_of(time);
            float losses[BATCH];
            const double mean = measure(order + b * BATCH, time, losses);
            const double level = tti_row_losses_note(&all, order + b * BATCH, losses, BATCH);
            own += (mean - truth) * (mean - truth) / BATCHES;
            told += (level - truth) * (level - truth) / BATCHES;
            worst = fmax(worst, fabs(level - truth));
        }
        if (epoch == 0)
            continue;
        print_message("epoch %d: fell by %.4f in the one before; levels err by %.4f, at most %.4f, "
                      "batches' means by %.4f\n",
                      epoch, fall, sqrt(told), worst, sqrt(own));
        // In the first epoch, of which windows of rows tell, what is special about those shows.
        assert_true(epoch == 1 ? told < 0.25 * own : worst < 0.2 * fall);
    }
    tti_row_losses_close(&all);
}

static void
what_is_not_known_is_not_told(void **state)
{
    TT_UNUSED(state);
    tti_row_losses all;
    const uint32_t rows[4] = {0, 1, 2, 3}, others[4] = {3, 4, 5, 6}, half[4] = {0, 1, 7, 8};
    const float losses[4] = {2, 2, 2, 2}, wild[4] = {1, NAN, 3, 4}, later[4] = {3, 3, 9, 9};
    assert_int_equal(tti_row_losses_open(&all, 9), TT_OK);
    assert_true(isnan(tti_row_losses_note(&all, rows, losses, 4)));
    assert_true(isnan(tti_row_losses_note(&all, rows, wild, 4)));     // notes nothing
    assert_true(isnan(tti_row_losses_note(&all, others, losses, 4))); // one of four is known
    // Of this batch, half: both one more.
    assert_true(fabs(tti_row_losses_note(&all, half, later, 4) - 3) < 1e-6);
    assert_int_equal(all.examples, 12);
    assert_int_equal(all.known, 9);
    tti_row_losses_close(&all);
    tti_row_losses_close(&all); // once more does nothing
}

// What a row's loss is compared with is told for so long: then the row is as good as new.
static void
what_was_long_ago_is_not_compared(void **state)
{
    TT_UNUSED(state);
    tti_row_losses all;
    const uint32_t old[4] = {0, 1, 2, 3}, rest[4] = {4, 5, 6, 7};
    const float losses[4] = {2, 2, 2, 2}, later[4] = {3, 3, 3, 3};
    assert_int_equal(tti_row_losses_open(&all, 8), TT_OK);
    (void)tti_row_losses_note(&all, old, losses, 4);
    for (int i = 0; i < 20; i++)
        (void)tti_row_losses_note(&all, rest, losses, 4);
    assert_true(isnan(tti_row_losses_note(&all, old, later, 4)));
    assert_true(isfinite(tti_row_losses_note(&all, old, later, 4)));
    tti_row_losses_close(&all);
}

typedef struct crew {
    tti_row_losses all;
    tt_thread thread[WORKERS];
} crew;

typedef struct hand {
    crew *crew;
    uint32_t index;
} hand;

// Every worker has a fifth of the rows: their losses are theirs, what all have in common is not.
static void *
train(void *self)
{
    const hand *h = self;
    for (int epoch = 0; epoch < 200; epoch++)
        for (uint32_t b = 0; b < BATCHES / WORKERS; b++) {
            uint32_t rows[BATCH];
            float losses[BATCH];
            for (uint32_t i = 0; i < BATCH; i++) {
                rows[i] = (b * BATCH + i) * WORKERS + h->index;
                losses[i] = (float)loss_of(rows[i], epoch);
            }
            (void)tti_row_losses_note(&h->crew->all, rows, losses, BATCH);
        }
    return NULL;
}

static void
workers_at_a_time_lose_nothing(void **state)
{
    TT_UNUSED(state);
    crew c;
    hand hands[WORKERS];
    assert_int_equal(tti_row_losses_open(&c.all, ROWS), TT_OK);
    for (uint32_t w = 0; w < WORKERS; w++) {
        hands[w] = (hand){&c, w};
        assert_int_equal(tt_thread_start(&c.thread[w], "tt-test", train, &hands[w], NULL), TT_OK);
    }
    for (uint32_t w = 0; w < WORKERS; w++)
        tt_thread_join(&c.thread[w]);
    // One more, for a piece may have ended while another worker was at the course.
    uint32_t rows[BATCH];
    float losses[BATCH];
    for (uint32_t i = 0; i < BATCH; i++)
        rows[i] = i;
    (void)measure(rows, 199, losses);
    (void)tti_row_losses_note(&c.all, rows, losses, BATCH);
    double sum, last = 0;
    uint64_t pieces = 0;
    memcpy(&sum, &c.all.sum, sizeof sum);
    for (uint32_t i = 0; i < ROWS; i++) {
        float loss;
        memcpy(&loss, &c.all.last[i], sizeof loss);
        last += (double)loss;
        pieces += c.all.last[i] >> 32;
    }
    assert_int_equal(c.all.examples, 200 * ROWS + BATCH);
    assert_int_equal(c.all.known, ROWS);
    assert_int_equal(c.all.pieces, pieces);
    assert_true(fabs(sum - last) < 1e-6 && fabs(last / ROWS - mean_of(199)) < 1e-6);
    assert_true(c.all.course.cuts == 200 * TTI_LOSS_COURSE_PIECES + 1);
    // Workers end at different times: the rows of the first ones are old then.
    assert_true(c.all.course.told > 100 * TTI_LOSS_COURSE_PIECES &&
                c.all.course.told < c.all.course.cuts);
    tti_row_losses_close(&c.all);
}

// Three workers at a time have the rows of a few batches that are more than an epoch together: two
// were stopped between their rows and the sums of them when the third ends a piece.
static void
half_of_a_change_is_not_believed(void **state)
{
    TT_UNUSED(state);
    enum { FEW = 110, TAKEN = 64 };
    const uint64_t sums[][2] = {{0, 0}, {30, 0}, {FEW, (uint64_t)-5000}, {FEW, 1u << 30}};
    for (size_t s = 0; s < TT_COUNT_OF(sums); s++) {
        tti_row_losses all;
        uint32_t rows[3 * TAKEN];
        float losses[TAKEN];
        for (uint32_t i = 0; i < 3 * TAKEN; i++)
            rows[i] = i % FEW;
        for (uint32_t i = 0; i < TAKEN; i++)
            losses[i] = 0.5f;
        assert_int_equal(tti_row_losses_open(&all, FEW), TT_OK);
        (void)tti_row_losses_note(&all, rows, losses, TAKEN);
        (void)tti_row_losses_note(&all, rows + TAKEN, losses, TAKEN);
        const uint64_t known = all.known, pieces = all.pieces;
        all.known = sums[s][0];
        all.pieces = sums[s][1];
        (void)tti_row_losses_note(&all, rows + 2 * TAKEN, losses, TAKEN);
        all.known += known - sums[s][0];
        all.pieces += pieces - sums[s][1];
        (void)tti_row_losses_note(&all, rows, losses, TAKEN);
        assert_true(all.course.told <= all.course.cuts);
        assert_true(all.course.cuts == 4 * TAKEN * TTI_LOSS_COURSE_PIECES / FEW);
        for (uint64_t piece = 0; piece < all.course.told; piece++)
            assert_true(isfinite(tti_loss_course_at(&all.course, piece)));
        tti_row_losses_close(&all);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_batch_tells_of_all_rows),
                                       cmocka_unit_test(neither_order_nor_a_steep_beginning_shows),
                                       cmocka_unit_test(what_is_not_known_is_not_told),
                                       cmocka_unit_test(what_was_long_ago_is_not_compared),
                                       cmocka_unit_test(workers_at_a_time_lose_nothing),
                                       cmocka_unit_test(half_of_a_change_is_not_believed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
