#!/usr/bin/env bash
# Goal: lists and patterns of files that are wrong are refused, at their place in the job file or by the name of the file; right
# ones are read in the order that plan shows. Method: as in bad_config.sh; one thing is wrong at a time.
. "$(dirname "$0")/refusals.sh" "$1"
fresh
pattern='check the pattern (ls shows what it matches); it is relative to the file that says it'
same='write the same columns in the same order in all files'

parts() { # parts LINE-OF-DATA: job.yaml with these files; part-1.svm and part-2.svm are sound
    fresh
    head -n 90 train.svm >part-1.svm
    tail -n +91 train.svm >part-2.svm
    printf 'data:\n  format: libsvm\n  train: %s\nmodel: {kind: logistic_regression}\nstop: {max_epochs: 2}\n' "$1" >job.yaml
}
csv_parts() { # csv_parts TEXT-OF-B: a.csv is sound
    fresh
    printf 'y,age,city\n1,30,Oslo\n0,20,Bergen\n' >a.csv
    printf "$1" >b.csv
    printf 'data: {format: csv, train: [a.csv, b.csv]}\nmodel: {kind: logistic_regression}\nstop: {max_epochs: 2}\n' >job.yaml
}

# ---- lists and patterns
parts "'*.gz'"
refused 2 "job.yaml:3:10: data.train: no file matches '*.gz'; $pattern" run job.yaml
parts "[part-1.svm, 'none/part-?.svm']"
refused 2 "job.yaml:3:23: data.train: no file matches 'none/part-?.svm'; $pattern" run job.yaml
parts "['part-*.svm', part-2.svm]"
refused 2 "job.yaml:3:10: data.train: 'part-2.svm' is in the list twice; name each file once" run job.yaml
parts '[]'
refused 2 'job.yaml:3:10: data.train is an empty list; name a file' run job.yaml
refused 2 "--set data.test=x*: data.test.file: no file matches 'x*'; $pattern" run job.yaml --set 'data.train=part-1.svm' --set 'data.test=x*'
parts '[part-1.svm, {file: part-2.svm}]'
refused 2 'job.yaml:3:23: data.train must be a path, not a mapping; write a path, or a list of paths: [a.csv, b.csv]' run job.yaml
parts 'job.yam[l]'
refused_like 2 "job.yaml:1:1: label 'data:' is not a number; .*" run job.yaml

# ---- files
parts '[part-1.svm, part-2.svm]'
rm part-2.svm
refused 2 'part-2.svm: cannot open the data file: No such file or directory; check the path; it is relative to the job file' run job.yaml
parts "'part-*'"
ln -s vanished part-3 # as a file that is deleted between listing and reading
refused 2 'part-3: cannot open the data file: No such file or directory; check the path; it is relative to the job file' run job.yaml
parts "'part-*'"
mkdir part-3
refused 2 'part-3: is a directory; expected a data file; name one file in it' run job.yaml
parts "'part-*'"
: >part-10
refused 2 'part-10: the file is empty; expected rows of LIBSVM text; check that this is the right file' run job.yaml
parts "'part-*'"
printf '# nothing\n\n' >part-3
refused 2 'part-3: no rows, only blank lines and comments; check that this is the right file' run job.yaml
parts "'part-*'"
printf '1 3:1\n1 4:x\n' >part-3
refused 2 "part-3:2:5: value 'x' is not a number; write a decimal number like 1, -0.25 or 3e-5" run job.yaml
parts "'part-*'"
printf '1 3:1\n-1 4:1\n' | gzip | head -c 30 >part-3
refused_like 2 'part-3: .*' run job.yaml

parts part-1.svm
printf '+1 1:1\n3 2:1\n' >test-a
printf '4 1:1\n3 1:1\n' >test-b
refused 2 'test-a:2:1: label 3 does not occur in the training data (2 rows have it; 1 more with other such labels); train and test with the same labels' \
    run job.yaml --set 'data.test=[test-a, test-b]'

# ---- CSV: headers and widths
csv_parts 'y,age,town\n1,3,Rome\n'
refused 2 "b.csv:1: column 3 is 'town'; in a.csv it is 'city'; $same" run job.yaml
csv_parts 'y,city,age\n1,Rome,3\n'
refused 2 "b.csv:1: column 2 is 'city'; in a.csv it is 'age'; $same" run job.yaml
csv_parts 'y,age\n1,3\n'
refused 2 "b.csv:1: 2 columns ('city' is missing); a.csv has 3; $same" run job.yaml
csv_parts '1,3,Rome\n'
refused 2 'b.csv:1: no header; a.csv has one; write a header in all files or in none, or set data.csv.header' run job.yaml
csv_parts '1,3\n0,4\n'
printf '1,2,3\n0,1,2\n' >a.csv
refused 2 "b.csv:1: 2 columns; a.csv has 3; $same" run job.yaml
csv_parts 'y,age,city\n1,3,Rome,7\n'
refused 2 'b.csv:2:10: more than 3 fields; expected 3; every row has the columns of the first line' run job.yaml

# ---- idx: pairs
fresh
refused 2 '--set data.labels=[labels, labels2]: 2 files of labels for 1 files in data.train; name one file of labels for each file, in the same order
1 error, nothing was run.' run idx.yaml --set 'data.labels=[labels, labels2]'
{ idx 5 4 4 && pixels 80; } >images2
{ idx 6 && labels 6 3; } >labels2
refused 2 'labels2: 6 labels for 5 items in images2; name the images and labels that belong together' \
    run idx.yaml --set 'data.train=[images, images2]' --set 'data.labels=[labels, labels2]'
{ idx 6 4 5 && pixels 120; } >images2
refused 2 'images2: an item has 20 bytes; those of images have 16; name files with items of one size' \
    run idx.yaml --set 'data.train=[images, images2]' --set 'data.labels=[labels, labels2]'

# ---- and what is right
parts "'part-*.svm'"
accepted plan job.yaml
tr -s ' ' <"$box/stdout" | grep -q ' train: 2 files, read in this order:' || fault 'plan does not say how many files' plan
grep -A2 'read in this order' "$box/stdout" | tail -n 2 | tr -d ' \n' | grep -qx 'part-1.svmpart-2.svm' || fault 'plan does not show the order' plan
grep -q '^data *200 train rows' "$box/stdout" || fault 'not all rows are read' plan
accepted run job.yaml -q --set "data.validation='part-1.sv[m]'" --set data.train=part-2.svm
csv_parts 'y,age,city\n0,3,Rome\n'
gzip b.csv
accepted run job.yaml -q --set 'data.train=[a.csv, b.csv.gz]'

finish
