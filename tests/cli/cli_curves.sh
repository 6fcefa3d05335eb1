#!/usr/bin/env bash
# Goal: a job takes curve families from the plugins of tuner.curves and says so; a file that is none is refused with its place.
# Method: runs with estimator/test/stretched.c as a plugin, and files that are missing, of another kind, or there twice.
. "$(dirname "$0")/outside.sh" "$@"
plugins=$(realpath "$tools/../curve-plugins")

mkdir jobs
cp "$plugins/stretched.ttc" jobs/own.ttc
write_job() { # write_job CURVES: jobs/job.yaml, CURVES on line 6
    cat >jobs/job.yaml <<END
data: {format: clicklog, rows: 4000, columns: 500, fields: 8}
model: {kind: logistic_regression, l2: 1e-5}
stop: {max_epochs: 6, loss: 0.1}
cluster: {nodes: 4}
tuner:
  curves: $1
END
}

write_job own.ttc # relative to the job file
ends 0 "$trimtab" plan jobs/job.yaml
check 'plan names the curves' says 'curves stretched, straight' out
ends 0 "$trimtab" run jobs/job.yaml --json
run=$(echo runs/*)
ends 0 "$trimtab" report "$run"
check 'the report names the curves' says 'estimator pooled, curves stretched, straight' out
ends 0 "$trimtab" report "$run" --json
check 'an event says what they were worth' says 'by weight of curve family: .*stretched [01]\.[0-9][0-9], straight [01]\.' out
check 'the resolved job has the file' says 'curves:.*jobs/own.ttc' "$run/job.yaml"

# What was learned belongs to the families it was learned with.
ends 0 "$trimtab" run --resume "$run" --set stop.max_epochs=8
check 'the same families go on' silent 'learns anew' err
ends 0 "$trimtab" run --resume "$run" --set stop.max_epochs=10 --set tuner.curves=null
check 'other families begin anew' says 'other curve families: it learns anew' err

ends 0 "$trimtab" run quick.yaml -q --set "tuner.curves=[$plugins/stretched.ttc]" --set cluster.engine=local
ends 0 "$trimtab" run quick.yaml -q --set "tuner.curves=$plugins/stretched.ttc" --set tuner.enabled=off

refused() { # refused CURVES ADVICE-AND-ALL: by plan and by run, at the line of the file
    write_job "$1"
    for command in plan run; do
        ends 2 "$trimtab" $command jobs/job.yaml
        check "$command: $1 is refused with: $2 (it says: $(head -n 1 err))" says "^jobs/job.yaml:6:$2" err
    done
}
refused none.ttc '11: jobs/none.ttc: cannot open the curve plugin: No such file or directory; check the path'
refused '[own.ttc, none.ttc]' '21: jobs/none.ttc: cannot open the curve plugin'
refused '[own.ttc, none-*.ttc]' "21: tuner.curves: no file matches 'none-\*.ttc'"
refused job.yaml '11: jobs/job.yaml: not a loadable curve plugin: .*; build it as estimator/template does'
refused "[own.ttc, $plugins/stretched.ttc]" "21: .*: curve 'stretched' exists already \(jobs/own.ttc\); give it another name"
refused "$plugins/bad_curve_3.ttc" "11: .*: curve 'power' exists already \(built in\)"
refused "$plugins/bad_curve_1.ttc" '11: .*: speaks version 7 of the curve interface, this trimtab speaks 1; compile it with'
refused "$plugins/../knob-plugins/malloc_keep.ttk" '11: .*: not a curve plugin: it does not export tt_curve_plugin_abi1; a plugin ends with TT_CURVE_PLUGIN'

finish
