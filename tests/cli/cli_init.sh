#!/usr/bin/env bash
# Goal: `trimtab init` tells what files hold, writes a job file that plan and run take as it is, and never over another file.
# Method: small files of every kind; the job file is read back by `plan --json`. (What it is worth on real data: tests/init.)
. "$(dirname "$0")/outside.sh" "$@"

awk 'BEGIN { srand(3); for (i = 0; i < 300; i++) print (i % 2 ? "1" : "-1"), 1 + i % 2 ":" 0.5 + rand(), "3:" rand() }' >rows
awk 'BEGIN { srand(4); print "id,age,city,fare,class"
    for (i = 0; i < 400; i++) print i "," int(80 * rand()) "," substr("OsloRomeBonn", 1 + 4 * (i % 3), 4) "," 900 * rand() "," i % 3 }' >people.csv
gzip -k people.csv
idx() { # idx ROWS WIDTH: items; without WIDTH: labels
    local i n=$(($1 * ${2:-1}))
    printf "\\0\\0\\010\\00$(($# == 2 ? 2 : 1))\\0\\0\\0\\$(printf %03o "$1")"
    [ $# -eq 1 ] || printf "\\0\\0\\0\\$(printf %03o "$2")"
    for ((i = 0; i < n; i++)); do printf "\\$(printf %03o $((i * 37 % ($# == 2 ? 251 : 3))))"; done
}
idx 90 6 >some-images-idx3
idx 90 >some-labels-idx1

# ---- what is there is told, and the job works as it is
ends 0 "$trimtab" init rows
check 'nothing goes to standard output' [ ! -s out ]
check 'it says the format' says '^rows   LIBSVM text, plain$' err
check 'it says rows, features and density' says '^rows +300, 3 features, 2\.0 non-zeros a row \(66\.7 % dense\)' err
check 'it says the labels' says '^labels +2 classes: -1 \(50\.0 %\), 1 \(50\.0 %\); .* 0\.6931$' err
check 'it says what comes next' says '^wrote job.yaml; next: trimtab run job.yaml$' err
check 'the job file has comments' [ "$(grep -c '#' job.yaml)" -gt 8 ]
ends 0 "$trimtab" plan job.yaml --json
check 'two classes: logistic regression' says '"model": "logistic_regression"' out
check 'rows are held out' says '"validation_rows": [1-9]' out
ends 0 "$trimtab" run job.yaml -q --set stop.max_epochs=5

ends 0 "$trimtab" init people.csv.gz -o people.yaml
check 'CSV: compressed' says '^people.csv.gz   CSV text, gzip$' err
check 'CSV: label by name' says '^ +label 5: class$' err
check 'CSV: numbers, large ones' says '^ +numeric 2,4 \(as logarithms' err
check 'CSV: categories' says '^ +categorical 3: 3 categories, hashed to 2\^10 features$' err
check 'CSV: a column that counts the rows is left out' says '^ +not used 1: ' err
ends 0 "$trimtab" run people.yaml -q --set stop.max_epochs=3
ends 0 "$trimtab" init some-images-idx3 -o idx.yaml
check 'IDX: the labels are found' says '^ +labels: some-labels-idx1$' err
ends 0 "$trimtab" plan idx.yaml --json
check 'three classes: softmax' says '"model": "softmax_regression"' out
ends 0 "$trimtab" init some-labels-idx1 some-images-idx3 -o - # in any order
check '-o - is standard output' says '^ +labels: some-labels-idx1$' out
cp out piped.yaml
ends 0 "$trimtab" plan piped.yaml

# Several files, and a job file elsewhere.
split -l 100 --additional-suffix=.svm rows part-
mkdir else
ends 0 "$trimtab" init part-*.svm --test rows -o else/job.yaml
ends 0 env -C else "$trimtab" plan job.yaml --json
check 'several files are all there' [ "$(grep -c 'part-a[abc].svm' out)" -eq 3 ]
check 'the test rows too' says '"test_rows": 300' out
cp rows 'odd: ${name}'
ends 0 "$trimtab" init 'odd: ${name}' -o odd.yaml
ends 0 "$trimtab" plan odd.yaml

# ---- never over another file
cp job.yaml before
ends 2 "$trimtab" init people.csv
check 'it says so' says '^job.yaml: is there already; choose another name with -o, or add --force$' err
check 'and leaves it alone' cmp -s job.yaml before
ends 0 "$trimtab" init people.csv --force
check '--force overwrites' says 'format: csv' job.yaml
ends 0 "$trimtab" init part-aa.svm -o -
check 'a file like the one that is there is no matter for -o -' says 'format: libsvm' out

# ---- what is refused
rm -f job.yaml
refused() { # refused PATTERN ARGUMENTS...
    local pattern=$1
    shift
    ends 2 "$trimtab" init "$@"
    check "it says: $pattern" says "$pattern" err
    check 'nothing is written' [ ! -e job.yaml ]
}
refused 'which data\? name its file' -o job.yaml
refused 'unknown option .--forse., did you mean .--force.' rows --forse
refused "^gone: cannot open the data file" gone
refused "^people.csv: column 3 'city' \(Oslo, Rome, Bonn \.\.\.\) would be the label, but is text; labels must be numbers" people.csv --label city
refused "real-valued target: there is no regression model here" people.csv --label fare
refused "^people.csv: there is no column 'fair' among 5; name one by the header, or by number from 1" people.csv --label fair
refused "^people.csv: there is no column '9' among 5" people.csv --label 9
awk 'BEGIN { srand(5); for (i = 0; i < 300; i++) print rand(), "1:" rand() }' >target.svm
refused 'this looks like a real-valued target: there is no regression model here' target.svm
printf 'a\nb\n' >words
refused 'words: text of no format that is read' words
refused '^some-labels-idx1: IDX labels, without the items' some-labels-idx1
mv some-labels-idx1 elsewhere
refused 'IDX items; a second file has their labels; name it: --labels FILE' some-images-idx3
: >empty
refused '^empty: the file is empty' empty
refused 'cannot write it' rows -o /proc/none/job.yaml

finish
