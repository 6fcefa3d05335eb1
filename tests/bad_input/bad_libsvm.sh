#!/usr/bin/env bash
# Goal: LIBSVM text that is wrong is refused at its line and column, and data that do not fit the model at the line of the job
# file. Method: as in bad_config.sh; one row of one file is wrong at a time.
. "$(dirname "$0")/refusals.sh" "$1"
fresh

rows() { # rows TEXT PLACE-AND-MESSAGE [ARGS...]: as training data
    local text=$1 message=$2
    shift 2
    printf "$text" >train.svm
    refused 2 "$message" run job.yaml "$@"
}
test_rows() { # the same as test data
    local text=$1 message=$2
    shift 2
    printf "$text" >test.svm
    refused 2 "$message" run job.yaml --set data.test.file=test.svm "$@"
}
number='write a decimal number like 1, -0.25 or 3e-5'
entry='write features as index:value with blanks between (LIBSVM format)'
increase='indices must increase within a row (LIBSVM format)'
whole='remove it or put a finite number there'
large='scale the data; float32 holds up to 3.4e38'

# ---- the file
refused 2 'none.svm: cannot open the data file: No such file or directory; check the path; it is relative to the job file' run job.yaml --set data.train=none.svm
refused 2 'none.svm: cannot open the data file: No such file or directory; check the path; it is relative to the job file' run job.yaml --set data.test.file=none.svm
refused 1 '/proc/self/mem: reading failed at byte 0: Input/output error; check the disk or the network share' run job.yaml --set data.train=/proc/self/mem
refused 2 '.: is a directory; expected a data file; name one file in it' run job.yaml --set data.train=.

# ---- test data (while the training data are sound)
test_rows '+1 1:0.5 500:1\n-1 2:1\n' 'test.svm:1:10: index 500 is beyond the 20 features; the training data is narrower; raise data.features to this number'
test_rows '+1 1:0.5\n3 2:1\n3 1:1\n4 2:1\n-1 2:1\n' 'test.svm:2:1: label 3 does not occur in the training data (2 rows have it; 1 more with other such labels); train and test with the same labels'
test_rows '+1 1:0.5\n3 2:1\n+1 1:x\n' 'test.svm:2:1: label 3 does not occur in the training data (at least 1 row has it); train and test with the same labels'
test_rows '+1 1:x\n' "test.svm:1:6: value 'x' is not a number; $number"
test_rows '' 'test.svm: the file is empty; expected rows of LIBSVM text; check that this is the right file'
printf '+1 1:0.5\n-1 2:1 500:1\n' >test.svm
accepted run job.yaml -q --set data.test.file=test.svm --set data.features=500
printf '+1 1:0.5\n+1 2:1\n' >test.svm # a test set of one label has no AUC, and is none the worse
accepted run job.yaml -q --set data.test.file=test.svm --json
grep -q '"accuracy"' "$box/stdout" || fault "no accuracy" "test set of one label"
grep -q '"auc"' "$box/stdout" && fault "an AUC of one class" "test set of one label"
fresh

# ---- rows
rows '+1 1:0.5\n-1 2:0.x5 3:1\n' "train.svm:2:6: value '0.x5' is not a number; $number"
rows '+1 1:0.5\n-1 2 3:1\n' "train.svm:2:4: expected index:value, found '2'; $entry"
rows '+1 -1:0.5\n-1 2:1\n' "train.svm:1:4: expected index:value, found '-1:0.5'; $entry"
rows '+1 1:0.5\n-1 2:nan 3:1\n' "train.svm:2:6: value 'nan' is not finite; $whole"
rows '+1 1:0.5\n-1 2:-inf 3:1\n' "train.svm:2:6: value '-inf' is not finite; $whole"
rows '+1 1:0.5\n-1 2:1e400\n' "train.svm:2:6: value '1e400' is too large; $large"
rows '+1 1:0.5\n-1 2:-1e39\n' "train.svm:2:6: value '-1e39' is too large; $large"
rows '+1 0:0.5\n-1 2:1\n' 'train.svm:1:4: index 0; indices start at 1 (LIBSVM format)'
rows '+1 5:0.5 2:1\n-1 2:1\n' "train.svm:1:10: index 2 after index 5; $increase"
rows '+1 5:0.5 5:1\n-1 2:1\n' "train.svm:1:10: index 5 occurs twice; $increase"
rows '+1 5:0.5 21:1\n-1 2:1\n' 'train.svm:1:10: index 21 is beyond the 20 features; raise data.features or leave it out' --set data.features=20
rows '+1 4294967296:1\n-1 2:1\n' 'train.svm:1:4: index 4294967296 is too large; the largest index is 2147483646'
rows '1 qid:3 1:1\n' "train.svm:1:3: 'qid:3'; qid belongs to ranking data, which is not trained here; remove the column"
rows '+1 1:1\0 2:1\n-1 2:1\n' "train.svm:1:6: value '1?' is not a number; $number"
rows '1,2,3\n4,5,6\n' "train.svm:1:1: label '1,2,3' is not a number; $number"

# ---- labels
rows 'abc 5:0.5\n-1 2:1\n' "train.svm:1:1: label 'abc' is not a number; $number"
rows 'nan 5:0.5\n-1 2:1\n' "train.svm:1:1: label 'nan' is not finite; $whole"
rows '5:0.5\n-1 2:1\n' 'train.svm:1:1: expected a label before the first index:value; begin the line with the label of the row (LIBSVM format)'
rows '1 1:0.5\n1 2:1\n' 'train.svm: only one label value (1) in all 2 rows; training needs rows of at least two classes'
rows '1 1:0.5\n2 2:1\n3 1:1\n' 'job.yaml:2:15: logistic_regression is for two classes, the training data have 3; use softmax_regression'
rows '1 1:0.5\n2 2:1\n3 1:1\n' '--set model.kind=linear_svm: linear_svm is for two classes, the training data have 3; use softmax_regression' --set model.kind=linear_svm
accepted run job.yaml -q --set model.kind=softmax_regression
fresh
awk 'BEGIN { for (i = 0; i < 300; i++) print i * 0.37 " 1:1" }' >train.svm
refused 2 'train.svm:257:1: too many distinct labels: 94.72 would be number 257 of at most 256; the label must be a class; real-valued targets are not trained' run job.yaml

# ---- nothing there
rows '' 'train.svm: the file is empty; expected rows of LIBSVM text; check that this is the right file'
rows '\n# a comment\n' 'train.svm: no rows, only blank lines and comments; check that this is the right file'
rows '+1\n-1\n' 'train.svm: no row has a feature; write features as index:value'
rows '+1 1:1\n-1 2:1\n' "--set model.pull=keyed: keyed pulls are for sparse data; these are dense; use pull auto or whole" --set data.format=idx --set data.train=images --set data.labels=labels --set model.kind=softmax_regression --set model.pull=keyed

finish
