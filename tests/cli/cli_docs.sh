#!/usr/bin/env bash
# Goal: docs/job-file.md has every key as the program knows it, docs/knobs.md every built-in knob, and their examples work.
# Method: the table is printed from the program's own; examples are cut out of the pages and tried.
. "$(dirname "$0")/outside.sh" "$@"
page=$sources/docs/job-file.md knobs=$sources/docs/knobs.md

"$tools/job_keys_table" >keys
check 'the table has keys' [ "$(wc -l <keys)" -gt 30 ]
sed -n '/^| key | kind /,/^$/p' "$page" | sed '/^$/d' >documented
check 'docs/job-file.md has the keys of job/src/job_keys.c (print them anew: build/*/test-bin/job_keys_table)' diff documented keys

# The example of the page is a job; it is tried on data of its format.
sed -n '/^```yaml$/,/^```$/p' "$page" | sed '/^```/d' >example.yaml
check 'docs/job-file.md has an example' [ -s example.yaml ]
awk 'BEGIN { srand(3); for (i = 0; i < 300; i++) printf "%s 1:%.2f %d:1 %d:%.2f\n", i % 2 ? "-1" : "+1", rand(), 2 + i % 7, 20 + i % 9, rand() }' >a9a
cp a9a a9a.t
ends 0 "$trimtab" plan example.yaml --json
check 'the example is a job' "$tools/json_shape" rows:int free_knobs:int <out
ends 0 "$trimtab" run example.yaml -q --set stop.max_epochs=2
ends 0 "$trimtab" plan "$sources/configs/quickstart.yaml" --set data.format=clicklog --set data.train=null \
    --set data.labels=null --set data.test=null --set model.kind=logistic_regression

"$trimtab" knobs list >list
ids=$(sed -n 's/^\([a-z][a-z0-9_]*\) .*/\1/p' list)
check 'eleven knobs' [ "$(echo "$ids" | wc -w)" -ge 11 ]
for id in $ids; do
    row=$(grep -E "^\| \`$id\` \|" "$knobs")
    check "docs/knobs.md has a row for $id" [ -n "$row" ]
    range=$(sed -n "s/^$id  *[a-z]*  *\(.* \.\. .*\) default .*/\1/p" list | sed 's/ *$//')
    start=$(sed -n "s/^$id .* default \(.*\)/\1/p" list | sed 's/  .*//; s/ \(setting only\|moves .*\)$//')
    case $row in
    *"| $range | $start |"*) ;;
    *) check "docs/knobs.md says of $id: $range, default $start" false ;;
    esac
done
for id in $(sed -nE 's/^\| `([a-z0-9_]+)` \| (bool|int|real|enum) \|.*/\1/p' "$knobs"); do
    check "docs/knobs.md: $id is a knob" grep -qx "$id" <<<"$ids"
done

finish
