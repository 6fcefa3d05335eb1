// Curve families from plug-ins (tuner.curves): loaded when the job is opened, named when it ends.
#include "training.h"
#include <string.h>

// The element of tuner.curves that stands at `place`, for a complaint.
static const tt_config_node *
node_at(const tt_job *job, const char *place)
{
    const tt_config_node *list = tt_config_find(job->config, NULL, "tuner.curves");
    if (list == NULL || tt_config_node_kind_of(list) != TT_CONFIG_SEQUENCE)
        return list;
    for (size_t i = 0; i < tt_config_node_count(list); i++)
        if (strcmp(tt_config_node_place(tt_config_node_at(list, i)), place) == 0)
            return tt_config_node_at(list, i);
    return list;
}

tt_status
tti_job_curves(tt_job *job, tt_error *err)
{
    const tt_config_paths *files = job->spec.curves;
    if (files == NULL)
        return TT_OK;
    TT_TRY(tt_curves_open(&job->curves, err));
    for (size_t i = 0; i < files->count; i++) {
        tt_error fault = {0};
        if (tt_curves_load(job->curves, files->path[i], &fault) != TT_OK)
            tt_config_complain(job->config, node_at(job, files->place[i]),
                               fault.advice[0] != '\0' ? fault.advice : NULL, "%s: %s",
                               files->path[i], fault.what);
    }
    return TT_OK;
}

void
tti_job_curves_text(const tt_job *job, char *text, size_t size)
{
    const uint32_t count = job->curves != NULL ? tt_curves_count(job->curves) : 0;
    for (uint32_t c = 0; c < count; c++) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, size - used, "%s%s", c == 0 ? ", curves " : ", ",
                       tt_curves_list(job->curves)[c]->name);
    }
}

void
tti_training_say_curves(tti_training *tr)
{
    tt_est_family_state families[TT_EST_FAMILIES_MAX];
    char text[400] = "";
    if (tr->job->curves == NULL)
        return;
    const uint32_t count = tt_estimator_families(tr->estimator, families, TT_EST_FAMILIES_MAX);
    const uint32_t own = tt_curves_count(tr->job->curves); // behind the built-in ones
    for (uint32_t f = 0; f < count; f++) {
        const size_t used = strlen(text);
        if (families[f].weight >= 0.005 || f >= count - own)
            (void)snprintf(text + used, sizeof text - used, "%s%s %.2f", used > 0 ? ", " : "",
                           families[f].name, families[f].weight);
    }
    tti_training_event(tr, "info", "how the loss fell, by weight of curve family: %s", text);
}
