// Orders and reports as bytes.
#include "control.h"
#include "node.h"
#include <string.h>

static void
append(tt_archive *out, const void *bytes, size_t size)
{
    if (size > 0)
        tt_archive_field(out, (void *)(uintptr_t)bytes, size); // which only reads it
}

// ---- orders ------------------------------------------------------------------------------------

void
tti_order_write(const tti_order *order,
                const uint32_t *rows,
                const tti_generation *generation,
                tt_archive *out)
{
    append(out, order, sizeof *order);
    append(out, rows, order->row_count * sizeof *rows);
    if (!order->has_generation)
        return;
    tti_generation_write(generation, out);
}

void
tti_generation_write(const tti_generation *generation, tt_archive *out)
{
    append(out, &generation->setting, sizeof generation->setting);
    tt_ps_view_save(generation->view, out);
}

tt_status
tti_generation_read(tt_archive *in, tti_generation **out)
{
    tti_generation *generation = tt_mem_zalloc(1, sizeof *generation);
    if (generation == NULL)
        return TT_NOMEM;
    TT_ARCHIVE(in, generation->setting);
    tt_status status = tt_ps_view_load(in, &generation->view);
    if (status == TT_OK && generation->setting.count > TT_KNOBS_MAX)
        status = TT_CORRUPT;
    if (status == TT_OK)
        *out = generation;
    else
        tti_generations_free(generation);
    return status;
}

tt_status
tti_order_read(const void *bytes, size_t count, tti_order_parts *out)
{
    tt_archive in;
    tt_archive_read(&in, bytes, count);
    *out = (tti_order_parts){0};
    TT_ARCHIVE(&in, out->order);
    if (in.status != TT_OK || out->order.row_count > count / sizeof(uint32_t))
        return TT_CORRUPT;
    out->rows = tt_archive_borrow(&in, out->order.row_count * sizeof(uint32_t));
    if (out->rows == NULL)
        return TT_CORRUPT;
    return out->order.has_generation ? tti_generation_read(&in, &out->generation) : TT_OK;
}

int
tti_generation_fits(const tt_job *job, const tti_generation *generation)
{
    const tt_ps_view *view = generation->view;
    const tt_ps_table *table = &job->table;
    if (view->node_count != job->node_count || view->partition_count != table->partition_count ||
        (table->consistency == TT_PS_BSP && view->slice_count != table->slice_count))
        return 0;
    return tti_job_setting_fits(job, &generation->setting);
}

int
tti_order_fits(const tt_job *job, const tti_order_parts *parts)
{
    const uint8_t *rows = parts->rows;
    for (uint32_t i = 0; i < parts->order.row_count; i++) {
        uint32_t row;
        memcpy(&row, rows + i * sizeof row, sizeof row);
        if (row >= job->train->row_count)
            return 0;
    }
    if (parts->order.again.batch.rows > tti_worker_rows_max(job) ||
        parts->order.again.worker >= job->node_count)
        return 0;
    return parts->generation == NULL || tti_generation_fits(job, parts->generation);
}

// ---- reports -----------------------------------------------------------------------------------

void
tti_report_write(const tti_report *report,
                 const tti_record *records,
                 const float *losses,
                 const tti_end *ends,
                 tt_archive *out)
{
    append(out, report, sizeof *report);
    append(out, records, report->record_count * sizeof *records);
    append(out, losses, report->loss_count * sizeof *losses);
    append(out, ends, report->end_count * sizeof *ends);
}

tt_status
tti_report_read(const void *bytes, size_t count, tti_report_parts *out)
{
    tt_archive in;
    tt_archive_read(&in, bytes, count);
    *out = (tti_report_parts){0};
    TT_ARCHIVE(&in, out->report);
    const tti_report *report = &out->report;
    if (in.status != TT_OK || report->record_count > count / sizeof(tti_record) ||
        report->loss_count > count / sizeof(float) || report->end_count > count / sizeof(tti_end))
        return TT_CORRUPT;
    out->records = tt_archive_borrow(&in, report->record_count * sizeof(tti_record));
    out->losses = tt_archive_borrow(&in, report->loss_count * sizeof(float));
    out->ends = tt_archive_borrow(&in, report->end_count * sizeof(tti_end));
    return in.status;
}
