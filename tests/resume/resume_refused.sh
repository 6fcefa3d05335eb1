#!/usr/bin/env bash
# Goal: --resume never goes on with another job, other data, or a run that another process has; what is damaged is left out,
# said, and kept. Method: one short run, copied and spoilt in every way, resumed.
. "$(dirname "$0")/../cli/outside.sh" "$1" "$2" "$3"

awk 'BEGIN { srand(3); for (i = 0; i < 900; i++) printf "%s 1:%.2f %d:1 %d:%.2f\n", i % 2 ? "-1" : "+1", rand(), 2 + i % 7, 20 + i % 9, rand() }' >train.svm
cat >job.yaml <<'END'
data: {format: libsvm, train: train.svm}
model: {kind: logistic_regression}
optimizer: {learning_rate: 0.2, batch_size: 10}
stop: {max_epochs: 4}
cluster: {nodes: 4}
checkpoint: {keep: 3}
END
ends 0 "$trimtab" run job.yaml
run=$(echo runs/*)
copy() { # copy: a fresh one at ./copy
    rm -rf copy
    cp -r "$run" copy
}
refused() { # refused CODE PATTERN ARGUMENTS...
    local code=$1 pattern=$2
    shift 2
    ends "$code" "$trimtab" run "$@"
    check "$*: it does not say '$pattern' but '$(head -n 2 err | tr '\n' '|')'" says "$pattern" err
}

# ---- another job
copy
refused 2 'optimizer.learning_rate was .0.2. in the checkpoint and is .0.1.: that is another job' \
    --resume copy --set optimizer.learning_rate=0.1
refused 2 'model.l2 was' --resume copy --set model.l2=0.5
refused 2 'seed was .1. in the checkpoint and is .2.' --resume copy --set seed=2
sed -i 's/max_epochs: 4/max_epochs: 9/' copy/job.yaml
refused 2 'stop.max_epochs was .4. in the checkpoint and is .9.; say it with --set' --resume copy
ends 0 "$trimtab" run --resume copy --set stop.max_epochs=9
check 'what changed is named' says 'changed: stop.max_epochs 4 -> 9' err
check 'the run remembers it' says 'max_epochs: 9' copy/job.yaml
ends 0 "$trimtab" run --resume copy
check 'nothing is left to do' says 'max_epochs 9 reached' out
copy
refused 2 'unknown key .optimiser.' --resume copy --set optimiser.learning_rate=0.1

# ---- a run that is done, under BSP: nothing is trained, and it ends at once
sed 's/^cluster:/consistency: bsp\ncluster:/' job.yaml >bsp.yaml
ends 0 "$trimtab" run bsp.yaml --runs bsp --set optimizer.batch_size=30
began=$SECONDS
ends 0 "$trimtab" run --resume bsp/*
check "a BSP run that is done ends after $((SECONDS - began)) s" [ $((SECONDS - began)) -lt 30 ]
check 'its nodes come to rest' silent 'do not come to rest' err

# ---- other data
copy
cp train.svm kept.svm
sed -i '17s/^./-/; 17s/^-[+]*1/-1/; 18s/1:1/1:0.5/' train.svm
printf '+1 1:0.5\n' >>train.svm
refused 2 'the training data is not what it was when .* was written; put the old data back' --resume copy
mv kept.svm train.svm
ends 0 "$trimtab" run --resume copy
mkdir elsewhere && cp train.svm elsewhere/
copy
ends 0 "$trimtab" run --resume copy --set data.train=elsewhere/train.svm # moved, but the same

# ---- no run
refused 2 'nowhere' --resume nowhere
mkdir empty
refused 2 'empty/job.yaml' --resume empty
ends 2 "$trimtab" run --resume
check '--resume needs a value' says 'needs a value' err

# ---- damaged checkpoints: an older one, then none
copy
ends 0 "$trimtab" run --resume copy --set stop.max_epochs=8
check 'there are two' [ "$(find copy/checkpoints -name '*.ttck' | wc -l)" -eq 2 ]
newest=$(find copy/checkpoints -name '*.ttck' | sort | tail -n 1)
truncate -s -1 "$newest"
ends 0 "$trimtab" run --resume copy --set stop.max_epochs=8
check 'it says that one is left out' says '1 damaged checkpoint is left out .*its end is missing' err
check 'it goes on from the older one' says 'resumed from the checkpoint at iteration 360, .*newer ones are damaged' err
check 'the damaged one is kept' [ -s "$newest.damaged" ]
for file in copy/checkpoints/*.ttck; do printf x | dd of="$file" bs=1 seek=200 conv=notrunc 2>/dev/null; done
ends 0 "$trimtab" run --resume copy --set stop.max_epochs=8
check 'all damaged: it begins again' says 'no checkpoint was written yet: the run begins again|the run begins again' err
check 'all damaged: it trains' says 'max_epochs 8 reached' out
copy
head -c 300 /dev/urandom >copy/checkpoints/999999999999.ttck
ends 0 "$trimtab" run --resume copy
check 'garbage is left out' says '1 damaged checkpoint' err

# ---- a process killed while it saved the model leaves half of one
copy
touch copy/model.safetensors.part-123-0 copy/model.npz.part-123-0
ends 0 "$trimtab" run --resume copy --set stop.max_epochs=6 --set run.npz=on
check 'half-written models stay' [ -z "$(find copy -name '*.part-*')" ]
check 'there is no model.npz' [ -s copy/model.npz ]

# ---- a damaged or missing run store
copy
head -c 20000 /dev/urandom >copy/run.db
ends 0 "$trimtab" run --resume copy --set stop.max_epochs=6
check 'the damaged store is kept' [ -s copy/run.db.damaged ]
check 'it says so' says 'it is kept as run.db.damaged, the report begins anew' err
ends 0 "$trimtab" report copy
copy
rm copy/run.db
ends 0 "$trimtab" run --resume copy --set stop.max_epochs=6
ends 0 "$trimtab" report copy

# ---- another way to tune counts its settings anew
copy
ends 0 "$trimtab" run --resume copy --set stop.max_epochs=6 --set tuner.model=paper
check 'the tuner begins anew' says 'the tuner begins anew' err
check 'and so do its records' says 'kept as run.db.before' err
ends 0 "$trimtab" report copy
check 'the report names it' says 'tuner: model paper, estimator paper' out
mv copy/run.db.before before.db
ends 0 "$trimtab" run --resume copy --set stop.max_epochs=8 # of the paper's tuner too
check 'the same way goes on' silent 'begins anew' err
check 'and so do its records (2)' [ ! -e copy/run.db.before ]

# ---- the same space on another number of nodes: what its numbers counted is another tuner's
ends 0 "$trimtab" run job.yaml --runs in_place --set cluster.driver=in_place
ends 0 "$trimtab" run --resume in_place/* --set cluster.nodes=3 --set stop.max_epochs=6
check 'the tuner begins anew on 3 nodes' says 'the tuner begins anew' err
check 'and so do its records on 3 nodes' [ -s "$(echo in_place/*)/run.db.before" ]
ends 0 "$trimtab" report in_place/*
rm in_place/*/run.db.before
ends 0 "$trimtab" run --resume in_place/* --set stop.max_epochs=8
check '3 nodes as before go on' silent 'begins anew' err
check 'and so do their records' [ ! -e "$(echo in_place/*)/run.db.before" ]

# ---- two processes in one directory
"$trimtab" run long.yaml --runs long -q >/dev/null 2>&1 &
job=$!
for ((i = 0; i < 200; i++)); do
    [ -n "$(find long -name run.db 2>/dev/null)" ] && sleep 0.3 && break
    sleep 0.05
done
refused 1 'this run is going on in another process; wait for it to end' --resume long/*
kill -KILL $job
wait $job 2>/dev/null
ends 0 "$trimtab" runs --runs long
check 'a killed run is listed as killed' says ' killed ' out
ends 0 "$trimtab" report long/*
check 'its report says how to go on' says 'killed: .*trimtab run --resume' out
ends 0 "$trimtab" run --resume long/* --set stop.max_time=2s
ends 0 "$trimtab" runs --runs long
check 'then it is not' silent ' killed ' out
finish
