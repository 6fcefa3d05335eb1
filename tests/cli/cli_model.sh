#!/usr/bin/env bash
# Goal: a saved model gives the same figures and labels everywhere: `eval` those of the run that trained it, `predict` the same
# from files, pipes and every compression, the snippets of README.md in numpy those of `predict`. Method: small jobs of each data
# format; JSON compared digit by digit; snippets cut out of the page.
. "$(dirname "$0")/outside.sh" "$@"
metrics() { sed -nE 's/^ *"(loss|accuracy|auc)": ([-0-9.e+]+),?$/\1 \2/p' | sort; }

# ---- one job of each format
"$trimtab" data make train.svm --rows 3000 --features 400 --fields 9 >/dev/null
"$trimtab" data make test.svm --rows 700 --features 400 --fields 9 --first-row 3000 >/dev/null
awk 'BEGIN { srand(5); print "age,city,y,id"; for (i = 0; i < 900; i++) { a = int(60 * rand()); c = int(5 * rand());
     printf "%s,town %d,%d,%d\n", rand() < 0.1 ? "" : a, c, (a / 60 + c / 5 + rand() > 1.4) + 3, i } }' >all.csv
{ head -n 1 all.csv && sed -n '2,600p' all.csv; } >train.csv
{ head -n 1 all.csv && sed -n '601,$p' all.csv; } >test.csv
big_endian() { printf "$(printf '\\%03o' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)))"; }
items() { # items COUNT SEED: ./$2.images and ./$2.labels, of five classes
    { printf '\0\0\10\3' && big_endian "$1" && big_endian 4 && big_endian 5; } >"$2.images"
    { printf '\0\0\10\1' && big_endian "$1"; } >"$2.labels"
    awk -v count="$1" -v seed="$2" 'BEGIN { srand(seed); for (i = 0; i < count; i++) { label = int(5 * rand())
        line = label; for (f = 0; f < 20; f++) line = line " " int(60 * rand()) + (f % 5 == label) * 60; print line } }' >"$2.rows"
    # shellcheck disable=SC2046
    { for byte in $(cut -d' ' -f1 "$2.rows"); do printf "\\$(printf '%03o' "$byte")"; done; } >>"$2.labels"
    { for byte in $(cut -d' ' -f2- "$2.rows"); do printf "\\$(printf '%03o' "$byte")"; done; } >>"$2.images"
}
items 300 1
items 100 2
cat >libsvm.yaml <<'END'
data: {format: libsvm, train: train.svm, features: 400, test: {file: test.svm}}
model: {kind: logistic_regression, l2: 1e-4, bias: on}
END
cat >csv.yaml <<'END'
data: {format: csv, train: train.csv, test: {file: test.csv}, csv: {label: y, ignore: id, hash_bits: 6, log_numeric: on}}
model: {kind: linear_svm}
END
cat >idx.yaml <<'END'
data: {format: idx, train: 1.images, labels: 1.labels, test: {file: 2.images, labels: 2.labels}}
model: {kind: softmax_regression, bias: on}
END
cat >rest.yaml <<'END'
stop: {max_epochs: 5}
cluster: {nodes: 3}
run: {npz: on}
END
for format in libsvm csv idx; do
    labels=() test=test.$format
    [ $format = libsvm ] && test=test.svm
    [ $format = idx ] && labels=(--labels 2.labels) test=2.images
    ends 0 "$trimtab" run $format.yaml rest.yaml -q --json
    sed -n '/"test"/,/}/p' out | metrics >of_run
    run=$(basename runs/*-$format)
    check "$format: a run has test metrics" [ "$(wc -l <of_run)" -ge 2 ]
    ends 0 "$trimtab" eval "$run" $test "${labels[@]}" --json
    metrics <out >of_eval
    check "$format: eval has the metrics of the run, to the last digit" cmp of_run of_eval
    for threads in 1 3; do
        ends 0 "$trimtab" eval "runs/$run" $test "${labels[@]}" --threads $threads
        check "$format: eval prints accuracy, with $threads threads" \
            says "^$test: [0-9]+ rows  loss $(awk '$1 == "loss" { printf "%.4f", $2 }' of_run), accuracy $(awk '$1 == "accuracy" { printf "%.4f", $2 }' of_run)" out
    done
    ends 0 "$trimtab" predict "$run" $test
    cp out "$format.labels"
    # The share of right labels is the accuracy.
    case $format in
    libsvm) cut -d' ' -f1 test.svm >truth ;;
    csv) tail -n +2 test.csv | cut -d, -f3 >truth ;;
    idx) cut -d' ' -f1 2.rows >truth ;;
    esac
    check "$format: as many right labels as eval says" [ "$(paste -d' ' truth $format.labels | awk '$1 == $2 { n++ } END { printf "%.6f", n / NR }')" = \
        "$(awk '$1 == "accuracy" { printf "%.6f", $2 }' of_run)" ]
    # However the data come, and wherever the labels go.
    for packer in cat gzip xz zstd; do
        command -v $packer >/dev/null || continue
        $packer -c $test >packed 2>/dev/null || cat $test >packed
        check "$format: predict reads standard input ($packer)" cmp -s $format.labels <("$trimtab" predict "$run" <packed)
        check "$format: predict reads a pipe ($packer)" cmp -s $format.labels <(cat packed | "$trimtab" predict "$run" - --threads 1)
    done
    ends 0 "$trimtab" predict "$run" $test -o written --threads 2
    check "$format: predict -o" cmp -s $format.labels written
    check "$format: predict -o prints nothing" [ ! -s out -a ! -s err ]
done

# ---- several files
"$trimtab" run libsvm.yaml rest.yaml -q --json --set job=parts --set 'data.test=[1.part, 2.part]' >/dev/null 2>&1 && fault 'it runs without its test data'
head -n 300 test.svm >1.part
tail -n +301 test.svm | gzip >2.part
ends 0 "$trimtab" run libsvm.yaml rest.yaml -q --json --set job=parts --set 'data.test=[1.part, 2.part]'
sed -n '/"test"/,/}/p' out | metrics >of_run
ends 0 "$trimtab" eval runs/*-parts 1.part 2.part --joined --json
check 'several files are evaluated as one' [ "$(grep -c '"rows": 700,' out)" -eq 1 ]
metrics <out >of_eval
check 'several files: eval has the metrics of the run, to the last digit' cmp of_run of_eval
ends 0 "$trimtab" eval runs/*-parts 1.part 2.part
check 'several files: a line for each' [ "$(grep -cE '^[12].part: (300|400) rows ' out)" -eq 2 ]
check 'several files: predict' cmp -s libsvm.labels <("$trimtab" predict runs/*-libsvm 1.part 2.part)
check 'several files, one of them standard input' cmp -s libsvm.labels <("$trimtab" predict runs/*-libsvm 1.part - <2.part)
check 'several files of csv, each with its header' cmp -s <(cat csv.labels csv.labels) <("$trimtab" predict runs/*-csv test.csv test.csv)
check 'several files of images' cmp -s <("$trimtab" predict runs/*-idx 1.images && cat idx.labels) <("$trimtab" predict runs/*-idx 1.images 2.images)
ends 0 "$trimtab" eval runs/*-idx 1.images 2.images --labels 1.labels --labels 2.labels
check 'images: labels for each file' [ "$(grep -cE '^[12].images: [13]00 rows ' out)" -eq 2 ]
ends 0 "$trimtab" eval runs/*-idx 1.images 2.images --labels 1.labels --labels 2.labels --joined
check 'images: joined' says '^1.images and 1 more file: 400 rows ' out

# ---- without labels; what is beyond the model
check 'libsvm rows without labels' cmp -s libsvm.labels <(sed 's/^[^ ]* //' test.svm | "$trimtab" predict runs/*-libsvm)
check 'csv rows without the label' cmp -s csv.labels <(cut -d, -f1,2,4 test.csv | "$trimtab" predict runs/*-csv)
check 'csv rows by name, in another order' cmp -s csv.labels <(awk -F, '{ print $2 "," $1 }' test.csv | "$trimtab" predict runs/*-csv)
check 'csv rows without a header' cmp -s csv.labels <(tail -n +2 test.csv | "$trimtab" predict runs/*-csv)
check 'libsvm text for a model of images' cmp -s idx.labels <(awk '{ for (i = 2; i <= NF; i++) printf "%d:%.9g ", i - 1, $i / 255; print "" }' 2.rows |
    "$trimtab" predict runs/*-idx --format libsvm)
"$trimtab" predict runs/*-libsvm test.svm --proba >proba
check 'probabilities sum to 1' [ "$(awk 'NF != 3 || $2 + $3 < 0.999999 || $2 + $3 > 1.000001 || ($1 == 1) != ($3 > 0.5)' proba | wc -l)" -eq 0 ]
"$trimtab" predict runs/*-idx 2.images --proba >proba
check 'probabilities of five classes' [ "$(awk 'NF != 6' proba | wc -l)" -eq 0 ]

# ---- memory does not grow with the data: 100 MB in 64 MiB of address space behind what a short file needs
limited() { (ulimit -v $1 && shift && "$@"); }
for ((i = 0; i < 800; i++)); do cat test.svm; done >long.svm
if [ -z "$(limited 262144 "$trimtab" predict runs/*-libsvm test.svm --threads 1 2>&1 | cmp libsvm.labels - 2>&1)" ]; then
    check 'a long pipe in little memory' [ "$(limited 262144 "$trimtab" predict runs/*-libsvm --threads 1 <long.svm | wc -l)" -eq 560000 ]
else
    echo 'SKIP memory: a short file needs more than 256 MiB of address space here (a sanitizer?)'
fi
rm long.svm

# ---- the snippets of README.md
python=/usr/bin/python3
"$python" -c 'import numpy' 2>/dev/null || python=
[ -n "$python" ] || echo 'SKIP numpy: not there'
awk '/^```python$/ { n++; inside = 1; next } /^```/ { inside = 0 } inside { print > ("snippet" n) }' "$sources/README.md"
check 'README.md has two snippets' [ -s snippet1 -a -s snippet2 ]
rows_of() { # rows_of FORMAT: Python that makes X
    case $1 in
    libsvm) cat <<'END'
import numpy as np
lines = [line.split()[1:] for line in open("test.svm")]
X = np.zeros((len(lines), 400), np.float32)
for row, entries in enumerate(lines):
    for entry in entries:
        index, value = entry.split(":")
        X[row, int(index) - 1] = float(value)
END
        ;;
    idx) cat <<'END'
import numpy as np
X = np.fromfile("2.images", np.uint8, offset=16).reshape(-1, 20).astype(np.float32) / np.float32(255)
END
        ;;
    esac
}
for format in libsvm idx; do
    [ -n "$python" ] || break
    cp runs/*-$format/model.* .
    for snippet in snippet1 snippet2; do
        { rows_of $format && cat $snippet && echo 'for label in labels: print("%g" % label)'; } >use.py
        ends 0 "$python" use.py
        check "$snippet of README.md on $format: the labels of trimtab predict" cmp out $format.labels
    done
    cat >same.py <<'END'
import json, zipfile, numpy as np
assert zipfile.ZipFile("model.npz").testzip() is None
model = np.load("model.npz")
text = json.loads(model["metadata"].item())
assert [float(c) for c in json.loads(text["classes"])] == list(model["classes"])
assert int(text["features"]) == model["weight"].shape[0] and model["weight"].dtype == np.float32
END
    ends 0 "$python" same.py
done

finish
