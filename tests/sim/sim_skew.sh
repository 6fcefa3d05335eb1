#!/usr/bin/env bash
# Goal: hosts whose clocks are wrong change nothing but, for a moment, what is known of their times. Method: one BSP job on hosts
# with right clocks, and with clocks that are seconds ahead or gain: the same model, the same rounds, at the same times but for
# a turn of the master, which is what clocks can be compared to. Under ASP agents then speak at other moments, so that
# workers train other rows: but samples are a cycle apart all the same. Then a clock that jumps in the middle: soon after it samples
# have times in their order again, and never after the end.
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2" "$3"

cat >job.yaml <<'END'
data: {format: clicklog, rows: 4000, columns: 200, fields: 6}
model: {kind: logistic_regression}
optimizer: {kind: sgd, learning_rate: 0.05, batch_size: 20}
stop: {max_epochs: 40}
consistency: asp
cluster: {engine: simulated, nodes: 6}
simulation: {costs: {example: 20us}}
tuner: {enabled: off}
checkpoint: {keep: 0}
END
echo 'simulation: {faults: [{kind: skew, from: 3, by: 5s}, {kind: skew, from: 4, by: 100ms, drift: 0.0002}]}' >skew.yaml
echo 'simulation: {faults: [{kind: skew, from: 5, by: 30s, at: 300ms}]}' >jump.yaml
seconds() { sed -n 's/.*"train_seconds": \([0-9.e-]*\).*/\1/p' "$1"; }
ends 0 "$trimtab" run job.yaml --runs right --json --set simulation.samples=right.txt --set consistency=bsp
cp out right.json
ends 0 "$trimtab" run job.yaml skew.yaml --runs skewed --json --set simulation.samples=skewed.txt --set consistency=bsp
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a - b < 0.01 && b - a < 0.01) }'; }
check "another training time" near "$(seconds right.json)" "$(seconds out)"
check "another model" cmp -s right/*/model.safetensors skewed/*/model.safetensors
# sequence, generation, worker, examples, loss, time, cycle, staleness, curvature, level
by_worker() { grep -v '^#' "$1" | sort -s -n -k3,3 -k6,6; }
paste -d ' ' <(by_worker right.txt) <(by_worker skewed.txt) | awk '
    { rows++; off = $16 - $6; if (off < 0) off = -off }
    $3 != $13 || $4 != $14 || $5 != $15 { print "others: " $0; exit }
    off > 0.01 { print "another time: " $0; exit }
    END { if (rows < 4000) print rows " of them" }' >differences
check "samples: $(head -n 1 differences)" [ ! -s differences ]

ends 0 "$trimtab" run job.yaml skew.yaml --runs asp --json --set simulation.samples=asp.txt
by_worker asp.txt | awk '
    { rows++ }
    # between two of its samples a worker has worked for a cycle, by any clock that does not stand still
    $6 > 0.3 && $3 == worker { step = $6 - last - $7; if (step < 0) step = -step; steps++; strange += step > 5e-4 }
    { last = $6; worker = $3 }
    END { if (strange > 0.02 * steps) print strange " of " steps " between two samples are no cycles"; else if (rows < 4000) print rows " of them" }' >differences
check "samples under asp: $(head -n 1 differences)" [ ! -s differences ]

ends 0 "$trimtab" run job.yaml jump.yaml --runs jumped --json --set simulation.samples=jumped.txt
awk -v end="$(seconds out)" '
    /^#/ { next }
    { rows++; off = $6 - last; if (off < 0) off = -off; last = $6 }
    $6 < 0 || $6 > end + 1e-3 { print "out of the job: " $0; exit }
    off > 0.02 && ($6 < 0.29 || $6 > 0.6) { print "out of order: " $0; exit }
    END { if (rows < 4000) print rows " of them" }' jumped.txt >differences
check "samples after a jump: $(head -n 1 differences)" [ ! -s differences ]
finish
