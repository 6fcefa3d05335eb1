// Fields of CSV text (RFC 4180; blanks around a field that is not quoted do not count).
#include "csv_columns.h"
#include "number_parse.h"
#include <math.h>
#include <string.h>

static char *
take_quoted(char *p, char delimiter, tti_csv_field *field)
{
    char *to = p, *from = p + 1;
    while (*from != '\n' && !(*from == '"' && from[1] != '"')) {
        from += *from == '"'; // a doubled quote stands for one
        *to++ = *from++;
    }
    *field = (tti_csv_field){p, (size_t)(to - p), *from != '\n'};
    if (!field->quoted)
        return NULL;
    *to = '"'; // so that a number ends here
    from++;
    from += *from == '\r' && from[1] == '\n';
    field->begin = *from == delimiter || *from == '\n' ? p : from;
    return field->begin == p ? from : NULL;
}

char *
tti_csv_take(char *p, char delimiter, tti_csv_field *field)
{
    while (*p == ' ' && delimiter != ' ')
        p++;
    if (*p == '"')
        return take_quoted(p, delimiter, field);
    char *end = p;
    while (*end != delimiter && *end != '\n')
        end++;
    size_t size = (size_t)(end - p);
    size -= *end == '\n' && size > 0 && p[size - 1] == '\r';
    while (size > 0 && p[size - 1] == ' ')
        size--;
    *field = (tti_csv_field){p, size, 0};
    return end;
}

int
tti_csv_missing(const tti_csv_field *field)
{
    static const char *const words[] = {"NA", "N/A", "NaN", "null", "?"};
    if (field->size == 0)
        return 1;
    for (size_t i = 0; i < TT_COUNT_OF(words); i++)
        if (field->size == strlen(words[i]) &&
            strncasecmp(field->begin, words[i], field->size) == 0)
            return 1;
    return 0;
}

int
tti_csv_number(const tti_csv_field *field, double *value)
{
    const char *end = tti_number_parse(field->begin, value);
    return field->size > 0 && end == field->begin + field->size && isfinite((float)*value);
}
