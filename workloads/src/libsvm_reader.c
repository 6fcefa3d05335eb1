// LIBSVM text -> data set.
#include "libsvm_parse.h"
#include "text_reader.h"

tt_status
tti_libsvm_read(const tt_data_spec *spec,
                const tti_text_consumer *consumer,
                tt_dataset *out,
                tt_error *err)
{
    static const tti_text_format format = {.what = "LIBSVM text",
                                           .lines = "blank lines and comments",
                                           .feature_advice = "write features as index:value",
                                           .parse = tti_libsvm_parse};
    tti_text_job job = {.format = &format, .spec = spec, .consumer = consumer, .out = out};
    return tti_text_read(&job, err);
}

tt_status
tti_libsvm_open(const tt_data_spec *spec, tt_dataset *out, tt_error *err)
{
    return tti_libsvm_read(spec, NULL, out, err);
}
