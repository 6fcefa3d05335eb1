// Is standard input one JSON value of the expected shape? For the scripts beside this file.
//
//     json_shape KEY:TYPE...    each key is there with that type; TYPE is string, int, number,
//     bool, object or array, with a
//                               '?' behind it null will do too. "a.b:int" looks into a; of an
//                               array, into every element.
//     json_shape --keys         prints the keys of the object (of the first element of an array),
//     one a line
//
// Exit code 0; 1 with the fault on standard error.
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static int
has_type(const json_t *value, const char *type, size_t length)
{
    static const char *const names[] = {"object", "array", "string", "int",
                                        "number", "bool",  "bool",   "null"};
    if (length > 0 && type[length - 1] == '?') {
        if (json_is_null(value))
            return 1;
        length--;
    }
    if (length == 6 && strncmp(type, "number", length) == 0)
        return json_is_number(value);
    const char *name = names[json_typeof(value)];
    return strlen(name) == length && strncmp(type, name, length) == 0;
}

static int
complain(const char *expected, const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", expected, what);
    return 0;
}

// `expected` is what is left of KEY.KEY:TYPE.
static int
check(const json_t *value, const char *expected, const char *whole)
{
    if (json_is_array(value)) {
        size_t index;
        const json_t *element;
        if (json_array_size(value) == 0)
            return complain(whole, "the array is empty");
        json_array_foreach(value, index, element)
        {
            if (!check(element, expected, whole))
                return 0;
        }
        return 1;
    }
    size_t length = strcspn(expected, ".:");
    char key[64];
    if (length == 0 || length >= sizeof key || expected[length] == '\0')
        return complain(whole, "write KEY:TYPE");
    memcpy(key, expected, length);
    key[length] = '\0';
    const json_t *inside = json_object_get(value, key);
    if (inside == NULL)
        return complain(whole, "there is no such key");
    if (expected[length] == '.')
        return check(inside, expected + length + 1, whole);
    return has_type(inside, expected + length + 1, strlen(expected + length + 1)) ||
           complain(whole, "it has another type");
}

static void
print_keys(json_t *value)
{
    const char *key;
    json_t *inside;
    json_t *object = json_is_array(value) ? json_array_get(value, 0) : value;
    json_object_foreach(object, key, inside)
    {
        (void)printf("%s\n", key);
    }
}

int
main(int argc, char **argv)
{
    json_error_t error;
    json_t *value =
        json_loadf(stdin, JSON_REJECT_DUPLICATES, &error); // what follows the value is refused too
    if (value == NULL) {
        (void)fprintf(stderr, "not one JSON value: line %d: %s\n", error.line, error.text);
        return 1;
    }
    int good = 1;
    if (argc == 2 && strcmp(argv[1], "--keys") == 0)
        print_keys(value);
    else
        for (int i = 1; i < argc; i++)
            good = check(value, argv[i], argv[i]) && good;
    json_decref(value);
    return good ? 0 : 1;
}
