#!/usr/bin/env bash
# Goal: trimtab tune answers every line, keeps to its space, goes on where it was broken off as if nothing had happened, gives the
# same answers to the same requests, and says what is wrong with a space, a request or a log. Method: sessions through a small
# client written here, killed in the middle; logs cut and damaged; the example of examples/tune at work.
. "$(dirname "$0")/outside.sh" "$@"
cat >space.yaml <<'END'
knobs:
  workers: {kind: int,  range: [1, 24]}
  rate:    {kind: real, range: [1e-4, 10], scale: log}
  half:    {kind: bool}
  layout:  {kind: enum, values: [row, col, blocked]}
constraints: ["workers <= 16 or half"]
END
cat >client.py <<'END'
"""client.py PROGRAM SPACE COUNT TRANSCRIPT [LOG [KILL_AFTER]]: asks and tells; checks each setting; writes all answers down."""
import json, math, os, signal, subprocess, sys
program, space, count, transcript = sys.argv[1:5]
log, kill_after = (sys.argv[5:] + [None, None])[:2]
command = [program, "tune", "--space", space, "--seed", "7"] + (["--log", log] if log else [])
tuner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def request(body):
    tuner.stdin.write(json.dumps(body) + "\n"); tuner.stdin.flush()
    line = tuner.stdout.readline()
    with open(transcript, "a") as file: file.write(line)
    return json.loads(line)
def value(s):
    return abs(s["workers"] - 12) / 4 + math.log10(s["rate"] / 0.02) ** 2 - s["half"] + (s["layout"] != "col")
for pending in request({"pending": 1})["pending"]:
    request({"tell": {"id": pending["id"], "y": value(pending["setting"])}})
for i in range(int(count)):
    answer = request({"ask": 1})
    s = answer["setting"]
    assert type(s["workers"]) is int and 1 <= s["workers"] <= 24, s
    assert type(s["rate"]) is float and 1e-4 <= s["rate"] <= 10, s
    assert type(s["half"]) is bool and s["layout"] in ("row", "col", "blocked"), s
    assert s["workers"] <= 16 or s["half"], s
    assert answer["phase"] and answer["reason"]
    if kill_after and i + 1 == int(kill_after):
        tuner.kill(); sys.exit(0)
    assert request({"tell": {"id": answer["id"], "y": value(s)}}) == {"ok": 1}
best = request({"best": 1})
print(best["y"], value(best["setting"]))
tuner.stdin.close()
sys.exit(tuner.wait())
END
session() { ends 0 python3 client.py "$trimtab" space.yaml "$@"; }

# ---- the same requests, the same answers
session 30 whole
check 'it finds the best setting' awk '{ exit !($1 < -0.98 && $1 == $2) }' out
session 30 again
check 'the same seed gives the same bytes' cmp -s whole again
check 'a model proposes' says '"phase":"model","reason":"highest expected improvement' whole
check 'a prediction has an interval' says '"predicted":-?[0-9.e-]+,"interval80":\[' whole

# ---- broken off after a question, and gone on with
session 10 part log.jsonl 10
session 20 part log.jsonl
check 'going on says how much is there' says 'goes on with 9 results in log.jsonl' err
grep '"id"' whole | grep -v pending >expected
grep '"id"' part | grep -v pending >got
check 'what was broken off goes on as if it had not been' cmp -s expected got
tail -n 1 whole >expected
tail -n 1 part >got
check 'with the same best setting' cmp -s expected got

# ---- logs
cp log.jsonl cut.jsonl
truncate -s -9 cut.jsonl # the last tell: its question is out again
ends 0 "$trimtab" tune --space space.yaml --seed 7 --log cut.jsonl
check 'a line that was cut off is taken away' says 'goes on with 29 results' err
check 'nothing else is' cmp -s -n "$(stat -c %s cut.jsonl)" cut.jsonl log.jsonl
sed '2s/setting/sitting/' log.jsonl >damaged.jsonl
ends 2 "$trimtab" tune --space space.yaml --seed 7 --log damaged.jsonl
check 'a damaged line is named' says 'line 2 of the log is damaged' err
check 'and the log left alone' [ "$(wc -l <damaged.jsonl)" -eq "$(wc -l <log.jsonl)" ]
ends 2 "$trimtab" tune --space space.yaml --seed 8 --log log.jsonl
check 'another seed is refused' says 'begun with another seed' err
sed 's/24/25/' space.yaml >wider.yaml
ends 2 "$trimtab" tune --space wider.yaml --seed 7 --log log.jsonl
check 'another space is refused' says 'begun with another space' err
sed 's/^knobs:/# the same\nknobs:/' space.yaml >comment.yaml
ends 0 "$trimtab" tune --space comment.yaml --seed 7 --log log.jsonl
mkfifo pipe
"$trimtab" tune --space space.yaml --seed 7 --log log.jsonl <pipe >/dev/null 2>&1 &
exec 3>pipe
for ((i = 0; i < 100; i++)); do
    "$trimtab" tune --space space.yaml --seed 7 --log log.jsonl </dev/null >out 2>err || break
    sleep 0.05
done
check 'a log has one owner' says 'log.jsonl' err
exec 3>&-
wait
ends 2 "$trimtab" tune --space space.yaml --log nowhere/log.jsonl
if [ -w /dev/full ]; then
    code=0
    echo '{"ask": 1}' | "$trimtab" tune --space space.yaml >/dev/full 2>err || code=$?
    check 'an answer that cannot be written ends it with 1' [ $code -eq 1 ]
fi

# ---- requests that are wrong: one error each, and the next line is read
refused() { # refused REQUEST PATTERN
    printf '%s\n{"tell": {"setting": {"workers": 3, "rate": 0.1, "half": true, "layout": "row"}, "y": 1}}\n' "$1" |
        timeout 60 "$trimtab" tune --space space.yaml >out 2>err
    check "$1 is refused: $2" eval "sed -n 1p out | grep -qE '\"error\":\".*$2'"
    check "after $1 the next line is read" [ "$(sed -n 2p out)" = '{"ok":1}' ]
}
refused 'ask' 'line 1 is not a JSON object'
refused '{"ask": 1' 'line 1 is not a JSON object'
refused '{"ask": 0}' 'from 1 to 1000'
refused '{"ask": 1, "best": 1}' 'one of ask, tell, best and pending'
refused '{"asks": 1}' 'one of ask, tell, best and pending'
refused '[1]' 'one of ask, tell, best and pending'
refused '{"tell": {"id": 1, "y": NaN}}' 'not a JSON object'
refused '{"tell": {"id": 1, "y": 2}}' 'no proposal has the id 1'
refused '{"tell": {"y": 2}}' 'either the id of a proposal or a setting'
refused '{"tell": {"id": 1, "y": "2"}}' 'y must be a number'
refused '{"tell": {"id": 1, "y": 2, "nose": 1}}' 'tell takes id or setting'
refused '{"tell": {"id": 1, "y": 2, "failed": true}}' 'has no y'
refused '{"best": 1}' 'nothing was told yet'
with() { echo "{\"tell\": {\"setting\": {\"workers\": 3, \"rate\": 0.1, \"half\": true, \"layout\": \"row\"}, \"y\": 1}}" | sed "$1"; }
refused "$(with 's/3/30/')" 'workers must be a whole number from 1 to 24, not 30'
refused "$(with 's/3/3.5/')" 'workers must be a whole number'
refused "$(with 's/true/1/')" 'half must be true or false'
refused "$(with 's/"row"/"rov"/')" "did you mean .row.?"
refused "$(with 's/"rate"/"rat"/')" "did you mean .rate.?"
refused "$(with 's/"rate": 0.1, //')" 'the setting lacks rate'
refused "$(with 's/3/20/;s/true/false/')" 'breaks a constraint'
refused "$(with 's/"y": 1/"y": 1, "noise": -1/')" 'not negative'

# ---- spaces and options that are wrong
ends 2 "$trimtab" tune
check '--space is asked for' says '--space is missing' err
ends 2 "$trimtab" tune --space space.yaml --seed -1
ends 2 "$trimtab" tune --space space.yaml --sed 1
check 'did you mean' says "did you mean '--seed'" err
ends 2 "$trimtab" tune --space none.yaml
printf 'knobs:\n  a: {kind: int, range: [1, 9], scael: log}\n  b: {kind: enum}\n' >bad.yaml
ends 2 "$trimtab" tune --space bad.yaml
check 'every fault at once, with its place' eval "says 'bad.yaml:2:.*scale' err && says 'bad.yaml:3:.*needs values' err"
printf 'knobs: {a: {kind: real, range: [0, 1]}}\nconstraints: ["a == 0.123456"]\n' >never.yaml
ends 2 "$trimtab" tune --space never.yaml
check 'a space without a setting is said to be one' says 'break the constraints' err

# ---- the example
head -c 40000 "$trimtab" >data
ends 0 python3 "$sources/examples/tune/tune_compression.py" data --evaluations 12 --trimtab "$trimtab" --log example.jsonl
check 'the example ends in a best setting' says '^best: [0-9.]+ s with \{"format": ' out
check 'and began where its space says' says '"block": 256' out
finish
