// Goal: what a file holds is told by its content, whatever its name and compression; labels and
// columns are told as a person would. Method: small files of every kind, each with its answer.
#include "temporary_file.h"
#include "tt/workloads_look.h"
// cmocka wants these before it
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <zlib.h>

static char directory[64], path[96];

static int
setup(void **state)
{
    TT_UNUSED(state);
    (void)snprintf(path, sizeof path, "%s/some.data", make_directory(directory));
    return 0;
}

static int
teardown(void **state)
{
    TT_UNUSED(state);
    (void)unlink(path);
    return rmdir(directory);
}

static tt_look *
look_at_bytes(const void *bytes, size_t size, int packed)
{
    tt_look *look;
    tt_error err = {0};
    if (packed) {
        gzFile out = gzopen(path, "wb");
        assert_int_equal(gzwrite(out, bytes, (unsigned)size), (int)size);
        assert_int_equal(gzclose(out), Z_OK);
    } else {
        write_file(path, bytes, size);
    }
    if (tt_data_look(path, &look, &err) != TT_OK)
        fail_msg("%s: %s", err.where, err.what);
    assert_string_equal(look->compression, packed ? "gzip" : "plain");
    return look;
}

static void
formats_are_told_by_content(void **state)
{
    TT_UNUSED(state);
    static const struct {
        const char *text;
        size_t size;
        tt_look_kind kind;
        const char *what;
    } cases[] = {
#define TEXT(text) text, sizeof text - 1
        {TEXT("+1 1:1 7:0.5 # remark\n-1 3:1\n"), TT_LOOK_LIBSVM, "LIBSVM text"},
        {TEXT("3\t1:2\n\n\n0\n2 5:-1e-3"), TT_LOOK_LIBSVM, "LIBSVM text"},
        {TEXT("2 0:1 5:2\n3 1:1 2:4 9:1\n1 0:3\n"), TT_LOOK_UNREAD, "LDA-C"},
        {TEXT("1,2 3:1\n2 4:1\n"), TT_LOOK_UNREAD, "several labels"},
        {TEXT("1 qid:1 3:1\n2 qid:1 4:1\n"), TT_LOOK_UNREAD, "queries"},
        {TEXT("1,2,3\n0,4,5\n"), TT_LOOK_CSV, "CSV"},
        {TEXT("1\t2\tab:3\n0\t\tcd\n"), TT_LOOK_CSV, "CSV"},
        {TEXT("a b c\n1 2 3\n4 5 6\n"), TT_LOOK_CSV, "CSV"},
        {TEXT("once upon a time\nthere was\na file\n"), TT_LOOK_UNREAD, "no format"},
        {TEXT("word\n"), TT_LOOK_UNREAD, "no format"},
        {TEXT("{\"a\": 1}\n"), TT_LOOK_UNREAD, "JSON"},
        {TEXT("PAR1\0\0\0\0"), TT_LOOK_UNREAD, "Parquet"},
        {TEXT("\0\0\x08\x03\0\0\0\x01\0\0\0\x01\0\0\0\x01\x07"), TT_LOOK_IDX_ITEMS, "IDX items"},
        {TEXT("\0\0\x08\x01\0\0\0\x01\x07"), TT_LOOK_IDX_LABELS, "IDX labels"},
        {TEXT("\0\0\x0d\x01\0\0\0\x01\x07\0\0\0"), TT_LOOK_UNREAD, "larger than a byte"},
        {TEXT("\x03\0\xff\x10\x00\x7f"), TT_LOOK_UNREAD, "binary"},
#undef TEXT
    };
    for (size_t i = 0; i < TT_COUNT_OF(cases); i++)
        for (int packed = 0; packed <= 1; packed++) {
            tt_look *look = look_at_bytes(cases[i].text, cases[i].size, packed);
            if (look->kind != cases[i].kind || strstr(look->what, cases[i].what) == NULL)
                fail_msg("case %zu: kind %d, %s", i, (int)look->kind, look->what);
            assert_true((look->kind == TT_LOOK_UNREAD) == (look->format == NULL));
            tt_look_close(look);
        }
}

static void
columns_are_described(void **state)
{
    TT_UNUSED(state);
    static const char text[] = "id;weight;city;note\n"
                               "1;2.5;\"New; York\";\n"
                               "2;-7;Oslo;NA\n"
                               "5;;Oslo;x\n";
    tt_look *look = look_at_bytes(text, sizeof text - 1, 0);
    assert_int_equal(look->delimiter, ';');
    assert_int_equal(look->header, 1);
    assert_int_equal(look->column_count, 4);
    assert_int_equal(look->lines, 3);
    const tt_look_column *c = look->column;
    assert_string_equal(c[1].name, "weight");
    assert_true(c[0].increasing && !c[1].increasing);
    assert_int_equal(c[0].wholes, 3);
    assert_int_equal(c[1].numbers, 2);
    assert_int_equal(c[1].missing, 1);
    assert_true(c[1].min == -7 && c[1].max == 2.5);
    assert_int_equal(c[2].distinct, 2);
    assert_string_equal(c[2].sample[0], "New; York");
    assert_int_equal(c[3].missing, 2);
    tt_look_close(look);
}

// A table of 120 rows: `header`, then what the format makes of the row's number (five times).
static tt_look *
look_at_rows(const char *header, const char *(*row)(int i))
{
    static char text[16384];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", header);
    for (int i = 0; i < 120; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\n", row(i));
    return look_at_bytes(text, used, 1);
}

static const char *
first_class(int i)
{
    static char line[96];
    (void)snprintf(line, sizeof line, "%d,%d,%.2f,c%d,n%d,7,%d", i * 7 % 5 < 2, 3 * i,
                   i * 37 % 101 * 0.1, i % 6, i, i * 31 % 17 * 100);
    return line;
}

static const char *
last_class(int i)
{
    static char line[96];
    (void)snprintf(line, sizeof line, "%.3f,%.3f,%d", i * 37 % 101 * 0.1, i * 53 % 89 * 0.3, i % 3);
    return line;
}

static const char *
last_text(int i)
{
    static char line[96];
    (void)snprintf(line, sizeof line, "%.3f,%s", i * 37 % 101 * 0.1, i % 3 ? "rose" : "iris");
    return line;
}

static const char *
measured(int i)
{
    static char line[96];
    (void)snprintf(line, sizeof line, "%.3f,%.3f", i * 37 % 101 * 0.1, i * 1.37);
    return line;
}

static void
expect_label(const char *header,
             const char *(*row)(int i),
             const char *wanted,
             tt_look_label kind,
             uint32_t column)
{
    tt_look *look = look_at_rows(header, row);
    tt_look_label found;
    uint32_t at;
    tt_error err = {0};
    assert_int_equal(tt_look_choose_label(look, wanted, &at, &found, &err), TT_OK);
    assert_int_equal(found, kind);
    if (kind != TT_LOOK_LABEL_NONE)
        assert_int_equal(at, column);
    tt_look_close(look);
}

static void
labels_are_found(void **state)
{
    TT_UNUSED(state);
    expect_label("", first_class, NULL, TT_LOOK_LABEL_CLASSES, 0);
    expect_label("", last_class, NULL, TT_LOOK_LABEL_CLASSES, 2);
    expect_label("", last_text, NULL, TT_LOOK_LABEL_TEXT, 1);
    expect_label("", measured, NULL, TT_LOOK_LABEL_NONE, 0);
    expect_label("", measured, "2", TT_LOOK_LABEL_REGRESSION, 1);
    expect_label("size,price\n", measured, NULL, TT_LOOK_LABEL_REGRESSION, 1);
    expect_label("a,b,c,d,e,f,Target\n", first_class, NULL, TT_LOOK_LABEL_CLASSES, 6);
    expect_label("a,b,c,d,e,f,Target\n", first_class, "a", TT_LOOK_LABEL_CLASSES, 0);
    tt_look *look = look_at_rows("", first_class);
    tt_look_label found;
    uint32_t at;
    tt_error err = {0};
    assert_int_equal(tt_look_choose_label(look, "8", &at, &found, &err), TT_INVALID);
    assert_non_null(strstr(err.what, "no column '8' among 7"));
    tt_look_close(look);
}

static void
columns_that_tell_nothing_are_left_out(void **state)
{
    TT_UNUSED(state);
    tt_look *look = look_at_rows("", first_class);
    static const tt_look_use uses[] = {TT_LOOK_NUMERIC,     TT_LOOK_IGNORE, TT_LOOK_NUMERIC,
                                       TT_LOOK_CATEGORICAL, TT_LOOK_IGNORE, TT_LOOK_IGNORE,
                                       TT_LOOK_NUMERIC};
    for (uint32_t i = 1; i < look->column_count; i++)
        if (tt_look_column_use(look, i) != uses[i])
            fail_msg("column %u: %d", i + 1, (int)tt_look_column_use(look, i));
    tt_look_close(look);
}

static void
any_bytes_get_an_answer(void **state)
{
    TT_UNUSED(state);
    static const char alphabet[] = "0123456789:;,|\t \n\r\"'#.-+eqid\0\x08\xff";
    tt_rng rng;
    tt_rng_init(&rng, 4, TT_RNG_TEST, 0);
    for (int round = 0; round < 3000; round++) {
        char bytes[200];
        size_t size = 1 + tt_rng_u32(&rng) % sizeof bytes;
        for (size_t i = 0; i < size; i++)
            bytes[i] = alphabet[tt_rng_u32(&rng) % (sizeof alphabet - (round % 2 ? 4 : 1))];
        tt_look *look;
        tt_error err = {0};
        write_file(path, bytes, size);
        if (tt_data_look(path, &look, &err) == TT_OK)
            tt_look_close(look);
        else
            assert_true(err.status == TT_CORRUPT || err.status == TT_UNSUPPORTED);
    }
}

static void
memory_may_run_out(void **state)
{
    TT_UNUSED(state);
    static const char text[] = "1,a\n0,b\n";
    write_file(path, text, sizeof text - 1);
    for (uint64_t nth = 1; nth <= 8; nth++) {
        tt_look *look;
        tt_error err = {0};
        tt_mem_fail_nth(nth);
        tt_status status = tt_data_look(path, &look, &err);
        tt_mem_fail_nth(0);
        assert_true(status == TT_NOMEM || status == TT_OK);
        tt_look_close(look);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_told_by_content),
        cmocka_unit_test(columns_are_described),
        cmocka_unit_test(labels_are_found),
        cmocka_unit_test(columns_that_tell_nothing_are_left_out),
        cmocka_unit_test(any_bytes_get_an_answer),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
