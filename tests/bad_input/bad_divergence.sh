#!/usr/bin/env bash
# Goal: a job that diverges stops, exits with 1, names setting and learning rate, and leaves the last good model, finite.
# Method: softmax with L2: each step multiplies the weights by 1 - rate * l2, which is -9,999 or -1.002 here.
. "$(dirname "$0")/refusals.sh" "$1"

numbers() { # the floats of a safetensors file: 8 bytes of header length, the header, float32
    local header
    header=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
    od -An -v -t f4 -w4 -j $((8 + header)) "$1"
}

diverge() { # diverge RATE SAVED ARGS...: SAVED is what the message says about the model
    local rate=$1 saved=$2 code=0 model rate_re
    shift 2
    rate_re=${rate/+/\\+}
    fresh
    cases=$((cases + 1))
    timeout 200 "$trimtab" run idx.yaml --json --set model.l2=0.01 --set "optimizer.learning_rate=$rate" --set stop.max_epochs=1e8 \
        --set stop.max_time=150s "$@" >"$box/stdout" 2>"$box/stderr" || code=$?
    [ $code -eq 1 ] || fault "exit code $code, expected 1" "$@"
    tail -n 1 "$box/stderr" | grep -qxE -- "stopped: loss became NaN or infinite by iteration [0-9]+ under setting [0-9]+( \(the start setting\))?, learning rate $rate_re; $saved is saved; try a learning rate 10 to 100 times smaller" ||
        fault "the last line does not say what happened" "$@"
    grep -q '"status": "failed"' "$box/stdout" || fault "the JSON does not say failed" "$@"
    model=$(echo runs/*/model.safetensors)
    [ "$(numbers "$model" | wc -l)" -eq 48 ] || fault "$model does not hold 48 numbers" "$@"
    numbers "$model" | grep -qi 'nan\|inf' && fault "$model is not finite" "$@"
    "$trimtab" report >"$box/report" 2>&1 || fault "no report" "$@"
    tr '\n' ' ' <"$box/report" | tr -s ' ' | grep -q "failed: loss became NaN or infinite by .* learning rate $rate;" ||
        fault "the report does not say that it failed" "$@"
}
any='the model (it began with|before it \(iteration [0-9]+, loss [0-9.e+]+\))'
diverge 1e+06 "$any"
diverge 1e+06 "$any" --set consistency=bsp --set bsp_slices=4
diverge 1e+06 "$any" --set cluster.driver=in_place
diverge 1e+06 "$any" --set tuner.enabled=on
diverge 1e+06 "$any" --set optimizer.averaging=on
# Slowly enough (about 36,000 rounds, 2 s) that later models are kept: one is copied half a second after the start, unless the
# machine has so much else to do that copying seems dear. Hence a few tries.
for _ in 1 2 3 4; do
    diverge 200.2 "$any" --set consistency=bsp --set bsp_slices=4 --set cluster.nodes=2
    grep -q 'the model before it' "$box/stderr" && break
done
grep -qE 'the model before it \(iteration [1-9][0-9]*, loss [0-9.e+]+\) is saved' "$box/stderr" || fault "no later model was kept" "slow divergence"
numbers runs/*/model.safetensors | grep -q '[1-9]' || fault "the model that was kept is the one it began with" "slow divergence"

# A blow-up that the job's end cuts short stays finite: not a failure, but said.
fresh
accepted run idx.yaml --set model.l2=0.01 --set optimizer.learning_rate=300 --set stop.max_epochs=3 --set tuner.enabled=off
grep -qE 'the model is worse than an untrained one: loss [0-9.e+]+, with all weights zero [0-9.]+; try a learning rate' "$box/stderr" ||
    fault "nothing is said of a model worse than none" "finite blow-up"
"$trimtab" report | tr '\n' ' ' | tr -s ' ' | grep -q 'the model is worse than an untrained one' || fault "the report does not say it" "finite blow-up"

finish
