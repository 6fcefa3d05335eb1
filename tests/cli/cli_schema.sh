#!/usr/bin/env bash
# Goal: `trimtab schema` accepts the job files there are and refuses what the program refuses. Method: its shape; with Debian's
# python3-jsonschema and python3-yaml, if they are there, also the configs/, a resolved job file and faulty ones.
. "$(dirname "$0")/outside.sh" "$@"

ends 0 "$trimtab" schema
check 'schema has the shape promised' "$tools/json_shape" type:string properties.data.properties.format.enum:array \
    properties.optimizer.properties.learning_rate.anyOf:array properties.cluster.properties.nodes.maximum:number \
    properties.optimizer.properties.momentum.default:number properties.model.required:array <out
cp out schema.json
ends 2 "$trimtab" schema now
check 'no arguments' says "^trimtab schema: unexpected 'now'" err

valid() { # valid FILE: by the schema
    /usr/bin/python3 - "$1" <<'END'
import json, sys, yaml, jsonschema
schema = json.load(open("schema.json"))
jsonschema.Draft202012Validator.check_schema(schema)
jsonschema.validate(yaml.safe_load(open(sys.argv[1])), schema)
END
}
if /usr/bin/python3 -c 'import yaml, jsonschema' 2>/dev/null; then
    for job in "$sources"/configs/*.yaml quick.yaml; do
        check "$job is valid" valid "$job"
    done
    ends 0 "$trimtab" run quick.yaml -q --json
    check 'a resolved job file is valid' valid "$(sed -n 's/.*"run_dir": "\(.*\)",/\1/p' out)/job.yaml"
    cat >short.yaml <<'END'
data: {format: csv, train: [a.csv, 'part-*.csv'], validation: 10%, test: b.csv}
model: {kind: linear_svm}
stop: {patience: 3, min_delta: 1e-4, evaluate_every: 0.5}
END
    check 'lists and short forms are valid' valid short.yaml
    sed 's/10%/[c.csv, d.csv]/; s/b.csv/{file: b.csv}/' short.yaml >long-form.yaml
    check 'and so are the long ones' valid long-form.yaml
    for fault in 'batch_sise: 3' 'batch_size: 0' 'batch_size: few' 'kind: adagrat' 'learning_rate: 0'; do
        printf 'data: {format: idx}\nmodel: {kind: linear_svm}\noptimizer: {%s}\n' "$fault" >faulty.yaml
        check "$fault is not valid" eval '! valid faulty.yaml 2>/dev/null'
    done
else
    echo 'python3-jsonschema or python3-yaml is not there: the shape alone was looked at'
fi

finish
