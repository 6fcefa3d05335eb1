// A run store in a directory of its own, and rows of every kind in it.
#ifndef TT_TEST_STORE_FIXTURE_H
#define TT_TEST_STORE_FIXTURE_H

#include "check_ok.h"
#include "tt/core_store.h"

#define STORE_TEST(test) cmocka_unit_test_setup_teardown(test, store_remove, store_remove)

// Of the store; once store_make_directory was called.
enum { STORE_PATH_BYTES = 64 };
extern char store_path[STORE_PATH_BYTES];

int store_make_directory(void **state);
int store_remove_directory(void **state);
int store_remove(void **state);

// From now on the file may not have more pages.
void store_set_page_limit(tt_store *store, int pages);
// The one number an SQL expression gives.
double store_number(tt_store *store, const char *sql);

void store_put_events(tt_store *store, int count);
// One batch with rows in every table but sample, two events among them.
void store_put_everything(tt_store *store);
// They are there as they were put.
void store_check_everything(tt_store *reader);

#endif
