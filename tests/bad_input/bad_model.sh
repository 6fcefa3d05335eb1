#!/usr/bin/env bash
# Goal: `trimtab eval` and `predict` refuse models that are damaged, foreign or of another version, data that are of another
# kind, and rows that are wrong, and say what they leave out. Method: as in bad_config.sh; models trained here, then one thing
# is wrong at a time (job/test/model_file_test.c damages every byte).
. "$(dirname "$0")/refusals.sh" "$1"

train() { # train NAME ARGS...: trains ./NAME.safetensors
    local name=$1
    shift
    accepted run "$@" -q --runs made
    mv made/*/model.safetensors "$name.safetensors"
    rm -rf made
}
fresh
cd "$box/sound" || exit 1
train svm job.yaml
train hinge job.yaml --set model.kind=linear_svm
train idx idx.yaml
printf 'id,age,y,city\n7,30,1,Oslo\n8,20,0,Bergen\n9,,1,Oslo\n' >train.csv
train csv job.yaml --set data.format=csv --set data.train=train.csv --set data.csv.label=y --set data.csv.ignore=id --set data.csv.hash_bits=5
fresh
accepted eval svm.safetensors train.svm
accepted eval idx.safetensors images --labels labels
accepted eval csv.safetensors train.csv
accepted predict svm.safetensors train.svm --proba
fresh

both() { # both TEXT MODEL FILE [ARGS...]: refused by eval and by predict
    local text=$1
    shift
    refused 2 "$text" eval "$@"
    refused 2 "$text" predict "$@"
}
file() { # file NAME TEXT
    printf "$2" >"$1"
}
name_it='name a model.safetensors that trimtab run saved, or its run directory'
again='copy it again from where it was trained, or train again: trimtab run RUN/job.yaml'

# ---- no model
both 'none.safetensors: cannot open the model: No such file or directory; trimtab runs lists the runs there are' none.safetensors train.svm
both "train.svm: is not a model: no safetensors header; $name_it" train.svm train.svm
: >empty
both "empty: the file is empty; $name_it" empty train.svm
mkdir -p runs/early
both 'runs/early: there is no model here; a run saves its model when it ends; trimtab report says how it is' early train.svm
both 'runs/early: there is no model here; a run saves its model when it ends; trimtab report says how it is' runs/early train.svm
mkdir runs/early/model.safetensors
both "runs/early/model.safetensors: is a directory; $name_it" runs/early train.svm

# ---- another version, another program
rewrite() { # rewrite FROM TO: the header of svm.safetensors with another text of the same length, as ./other
    LC_ALL=C sed "s/$1/$2/" svm.safetensors >other
    cmp -s svm.safetensors other && fault "nothing was rewritten" "$1"
}
version=$("$trimtab" --version | sed 's/trimtab //')
rewrite '"format_version": "1"' '"format_version": "7"'
both "other: has model format 7, saved by trimtab $version; this trimtab ($version) reads format 1; use that trimtab or a newer one, or train again with this one" other train.svm
rewrite '"format_version"' '"former_version"'
both 'other: was saved by a trimtab whose models did not say how to use them; train again with this trimtab: trimtab run RUN/job.yaml' other train.svm
rewrite '"format": "trimtab"' '"format": "pytorch"'
both "other: holds tensors, but not a model of trimtab; $name_it" other train.svm

# ---- damage
head -c 300 svm.safetensors >other
both "other: the model is damaged: the file ends inside its header; $again" other train.svm
head -c -4 svm.safetensors >other
both "other: the model is damaged: 76 bytes of weights; its header announces 80; $again" other train.svm
{ cat svm.safetensors && printf 1234; } >other
both "other: the model is damaged: 84 bytes of weights; its header announces 80; $again" other train.svm
rewrite '"classes": "\[-1, 1\]"' '"classes": "[-1, 7]"'
both "other: the model is damaged: its bytes are not those that were saved (checksum); $again" other train.svm
size=$(stat -c %s svm.safetensors)
{ head -c $((size - 5)) svm.safetensors && printf x && tail -c 4 svm.safetensors; } >other
both "other: the model is damaged: its bytes are not those that were saved (checksum); $again" other train.svm
fresh

# ---- data of another kind
both 'svm.safetensors: the model was trained on libsvm data and cannot read csv; give it libsvm data' svm.safetensors train.csv --format csv
both 'csv.safetensors: the model was trained on csv data and cannot read libsvm; give it csv data' csv.safetensors train.svm --format libsvm
both 'csv.safetensors: the model was trained on csv data and cannot read idx; give it csv data' csv.safetensors images --format idx
both 'idx.safetensors: the model was trained on idx data and cannot read csv; give it idx data, or libsvm text of the same features' idx.safetensors train.csv --format csv
both "train.csv:1:1: label 'id,age,y,city' is not a number; write a decimal number like 1, -0.25 or 3e-5" svm.safetensors train.csv
refused 2 'train.svm: byte 0: magic number 0x2b312031; expected 0x00000803 (images) or another 0x000008nn; name an IDX file of unsigned bytes here' predict idx.safetensors train.svm
refused 2 'images: idx data need a second file with the labels; name it with --labels FILE' eval idx.safetensors images
refused 2 'train.svm: --labels is for idx data: libsvm carries its labels' eval svm.safetensors train.svm --labels labels

# ---- files that cannot be read, and that hold nothing
both '.: is a directory; expected a data file; name one file in it' svm.safetensors .
both 'none.svm: cannot open the data file: No such file or directory; check the path' svm.safetensors none.svm
: >empty.svm
both 'empty.svm: the file is empty; expected rows of LIBSVM text; check that this is the right file' svm.safetensors empty.svm
both 'empty.svm: the file is empty; expected rows of CSV text; check that this is the right file' csv.safetensors empty.svm
refused 2 'empty.svm: the file is empty; expected IDX data; check that this is the right file' predict idx.safetensors empty.svm
refused 2 'standard input: the file is empty; expected rows of LIBSVM text; check that this is the right file' predict svm.safetensors
refused 2 'standard input: the file is empty; expected rows of LIBSVM text; check that this is the right file' eval svm.safetensors -
refused 1 '/proc/self/mem: reading failed at byte 0: Input/output error; check the disk or the network share' predict svm.safetensors /proc/self/mem
# Root may read everything, unless it gives that up.
drop() { setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search "$@"; }
[ "$(id -u)" -eq 0 ] || drop() { "$@"; }
cp train.svm locked.svm
cp svm.safetensors locked.safetensors
chmod 000 locked.svm locked.safetensors
if ! drop true 2>/dev/null || drop cat locked.svm >/dev/null 2>&1; then
    echo "SKIP: files that one may not read: they cannot be had here"
else
    denied() { # denied TEXT ARGS...
        local text=$1 code=0
        shift
        cases=$((cases + 1))
        drop "$trimtab" "$@" >"$box/stdout" 2>"$box/stderr" </dev/null || code=$?
        [ $code -eq 2 ] && [ ! -s "$box/stdout" ] && [ "$(cat "$box/stderr")" = "$text" ] || fault "exit code $code, expected 2: $text" "$@"
    }
    unreadable='locked.svm: cannot open the data file: Permission denied; make it readable for the user who runs the job'
    denied "$unreadable" eval svm.safetensors locked.svm
    denied "$unreadable" predict svm.safetensors locked.svm
    denied 'locked.safetensors: cannot open the model: Permission denied; make it readable' predict locked.safetensors train.svm
    denied "$unreadable" run job.yaml --set data.train=locked.svm
    denied "$unreadable" run job.yaml --set data.test.file=locked.svm
fi
fresh

# ---- rows
number='write a decimal number like 1, -0.25 or 3e-5'
row() { # row TEXT PLACE-AND-MESSAGE: the first row, with and without a label
    file rows.svm "$1"
    both "rows.svm:$2" svm.safetensors rows.svm
}
row '+1 1:0.5 2:0.x5\n' "1:12: value '0.x5' is not a number; $number"
row '+1 1:0.5 2\n' "1:10: expected index:value, found '2'; write features as index:value with blanks between (LIBSVM format)"
row '+1 3:1 2:1\n' '1:8: index 2 after index 3; indices must increase within a row (LIBSVM format)'
row '+1 500:1 500:1\n' '1:10: index 500 occurs twice; indices must increase within a row (LIBSVM format)'
row '+1 500:1 1000:x\n' "1:15: value 'x' is not a number; $number"
file rows.svm '3:1 2:1\n'
refused 2 'rows.svm:1:5: index 2 after index 3; indices must increase within a row (LIBSVM format)' predict svm.safetensors rows.svm
refused 2 'rows.svm:1:1: expected a label before the first index:value; begin the line with the label of the row (LIBSVM format)' eval svm.safetensors rows.svm
file rows.csv 'age,city\n30,Oslo\nold,Oslo\n'
refused 2 "rows.csv:3:1: value 'old' is not a number; name the column in data.csv.categorical if it is none of numbers" predict csv.safetensors rows.csv -o labels.txt
refused 2 "rows.csv: no column 'y', which the training data has; write the same columns in both files" eval csv.safetensors rows.csv
file rows.csv '30,1\n'
refused 2 'rows.csv: 2 columns; the training data has 4, or 3 without the label; write the same columns in both files' predict csv.safetensors rows.csv
file rows.csv 'age,town,y\n30,Oslo,1\n'
both "rows.csv: no column 'city', which the training data has; write the same columns in both files" csv.safetensors rows.csv
# What stands before the fault is there, on standard output.
awk 'BEGIN { for (i = 0; i < 7; i++) print "1 1:1"; print "1 1:x" }' >rows.svm
cases=$((cases + 1)) code=0
"$trimtab" predict svm.safetensors rows.svm >"$box/stdout" 2>"$box/stderr" || code=$?
[ $code -eq 2 ] && [ "$(wc -l <"$box/stdout")" -eq 7 ] && grep -q '^rows.svm:8:5: ' "$box/stderr" || fault "rows before a fault" predict

# ---- widths: sparse features that the model has not weigh nothing and are counted; items of another size are refused
file wide.svm '+1 1:0.5 21:3\n-1 2:1\n+1 500:1 1000:2\n'
file narrow.svm '+1 1:0.5\n-1 2:1\n+1\n'
for command in eval predict; do
    for at in wide narrow; do
        accepted $command svm.safetensors $at.svm
        sed 's/^.*\.svm: 3 rows/3 rows/' "$box/stdout" >"$at.out"
        cp "$box/stderr" "$at.err"
    done
    cmp -s wide.out narrow.out || fault "features that the model has not weigh something" $command wide.svm
    [ -s wide.out ] || fault 'it prints nothing' $command wide.svm
    [ -s narrow.err ] && fault 'something is said of a narrow file' $command narrow.svm
    [ "$(cat wide.err)" = 'wide.svm: 2 of 3 rows have features beyond the 20 of the model; these 3 entries weigh nothing' ] || fault "$(cat wide.err)" $command wide.svm
done
fresh
file rows.csv 'y,price,age,city\n1,3,30,Oslo\n0,3,20,Bergen\n'
for command in eval predict; do
    accepted $command csv.safetensors rows.csv
    [ "$(cat "$box/stderr")" = 'rows.csv: 1 column that the training data had not is ignored: price' ] || fault 'it does not tell the column' $command rows.csv
done
{ idx 60 5 5 && pixels 1500; } >wide
refused 2 'wide: an item has 25 bytes; expected 16 features; train and test with items of one size' predict idx.safetensors wide
refused 2 'wide: an item has 25 bytes; expected 16 features; train and test with items of one size' eval idx.safetensors wide --labels labels

# ---- labels that training did not have: eval tells which and how many, predict does not look at labels
file rows.svm '+1 1:0.5\n3 2:1\n3 1:1\n4 2:1\n-1 1:1\n'
refused 2 'rows.svm:2:1: label 3 does not occur in the training data (2 rows have it; 1 more with other such labels); train and test with the same labels' eval svm.safetensors rows.svm
accepted predict svm.safetensors rows.svm
awk 'BEGIN { for (i = 0; i < 60000; i++) print i % 20000 == 19999 ? 5 : i % 2 ? -1 : 1, "1:0.25 3:1" }' >long.svm # of several blocks
refused 2 'long.svm:20000:1: label 5 does not occur in the training data (3 rows have it); train and test with the same labels' eval svm.safetensors long.svm
awk 'BEGIN { for (i = 0; i < 600; i++) print i, "1:0.25 3:1" }' >targets.svm
refused_like 2 'targets.svm:1:1: label 0 does not occur in the training data \(at least 1 row has it; [0-9]+ more with other such labels\); .*' eval svm.safetensors targets.svm
accepted predict svm.safetensors targets.svm
file rows.csv 'age,city,y\n30,Oslo,1\n30,Oslo,2\n'
refused 2 'rows.csv:3:9: label 2 does not occur in the training data (1 row has it); train and test with the same labels' eval csv.safetensors rows.csv
{ idx 60 && labels 60 5; } >five
refused 2 'five: byte 11: label 3 does not occur in the training data (12 rows have it; 12 more with other such labels); train and test with the same labels' eval idx.safetensors images --labels five

# ---- several files: what is wrong in one names it
file good.svm '+1 1:0.5\n-1 2:1\n'
file rows.svm '+1 1:1\n-1 2:x\n'
refused 2 "rows.svm:2:6: value 'x' is not a number; $number" eval svm.safetensors good.svm rows.svm --joined
refused 2 "rows.svm:2:6: value 'x' is not a number; $number" predict svm.safetensors good.svm rows.svm -o labels.txt
file rows.svm '3 1:1\n'
file more.svm '4 1:1\n3 1:1\n'
refused 2 'rows.svm:1:1: label 3 does not occur in the training data (2 rows have it; 1 more with other such labels); train and test with the same labels' eval svm.safetensors good.svm rows.svm more.svm --joined
file first.csv 'age,city\n30,Oslo\n'
file rows.csv 'city,age\nOslo,30\n'
refused_like 2 "rows.csv:1: column 1 is 'city'; in first.csv it is 'age'; write the same columns in the same order in all files" predict csv.safetensors first.csv rows.csv -o labels.txt

# ---- damaged compression
gzip -c train.svm | head -c 500 >cut.gz
refused 2 "cut.gz: the gzip data stops in the middle, at byte 500; expected more; fetch the file again; 'gzip -t' tells whether it is whole" eval svm.safetensors cut.gz

# ---- output
refused 1 'no/labels: cannot create the file: No such file or directory; nothing was left behind; check the directory and its permissions' predict svm.safetensors train.svm -o no/labels
cases=$((cases + 2)) code=0
"$trimtab" predict svm.safetensors train.svm >/dev/full 2>"$box/stderr" || code=$?
[ $code -eq 1 ] && [ "$(cat "$box/stderr")" = 'standard output: cannot write: No space left on device' ] || fault "exit code $code on a full standard output" predict
code=0
"$trimtab" eval svm.safetensors train.svm >/dev/full 2>"$box/stderr" || code=$?
[ $code -eq 1 ] && [ "$(cat "$box/stderr")" = 'trimtab: cannot write to standard output: No space left on device' ] || fault "exit code $code on a full standard output" eval
refused 2 'hinge.safetensors: linear_svm has no probabilities; ask for decision values: --scores' predict hinge.safetensors train.svm --proba

# ---- command lines
refused 2 'trimtab eval: which model? name a run or its model.safetensors; see trimtab eval --help' eval
refused 2 'trimtab eval: on which data? name a file; see trimtab eval --help' eval svm.safetensors
refused 2 'trimtab predict: standard input (-) can be read once only; see trimtab predict --help' predict svm.safetensors - train.svm -
refused 2 'trimtab predict: --proba and --scores exclude each other; see trimtab predict --help' predict svm.safetensors a --proba --scores
refused 2 "trimtab predict: unknown option '--prob', did you mean '--proba'?; see trimtab predict --help" predict svm.safetensors --prob
refused 2 "trimtab predict: unknown option '--json'; see trimtab predict --help" predict svm.safetensors --json
refused 2 "trimtab predict: --format is one of libsvm, csv and idx, not 'libsmv'; did you mean 'libsvm'?; see trimtab predict --help" predict svm.safetensors --format libsmv
refused 2 "trimtab eval: --threads needs a number from 1 to 256, not 'many'; see trimtab eval --help" eval svm.safetensors a --threads many
refused 2 'trimtab eval: --labels needs a value; see trimtab eval --help' eval svm.safetensors a --labels
refused 2 'trimtab eval: --labels is given 1 time for 2 files; see trimtab eval --help' eval svm.safetensors a b --labels l

finish
