#!/usr/bin/env bash
# Goal: CSV text that is wrong is refused at its line and column, and columns that are not there by name. Method: as in
# bad_config.sh; one thing is wrong at a time.
. "$(dirname "$0")/refusals.sh" "$1"
fresh

csv() { # csv TEXT PLACE-AND-MESSAGE [ARGS...]: as training data
    local text=$1 message=$2
    shift 2
    printf "$text" >train.csv
    refused 2 "$message" run job.yaml --set data.format=csv --set data.train=train.csv "$@"
}
test_csv() { # the same as test data, beside sound training data
    local text=$1 message=$2
    shift 2
    printf 'y,age,city\n1,30,Oslo\n0,20,Bergen\n1,,Oslo\n' >sound.csv
    printf "$text" >test.csv
    refused 2 "$message" run job.yaml --set data.format=csv --set data.train=sound.csv --set data.test.file=test.csv "$@"
}
rows='every row has the columns of the first line'
quote='close it, and double quotes inside; line breaks inside fields are not read'
same='write the same columns in both files'

# ---- the file
csv '' 'train.csv: the file is empty; expected rows of CSV text; check that this is the right file'
csv '\n\n' 'train.csv: no rows, only blank lines; check that this is the right file'
csv 'y,a,b\n' 'train.csv: no rows, only a header and blank lines; check that this is the right file'
csv '1\n0\n' 'train.csv:1: one field only; expected several, separated by tabs, commas, semicolons or bars; set data.csv.delimiter if the file has another one'
csv '1,2\n1,3\n' 'train.csv: only one label value (1) in all 2 rows; training needs rows of at least two classes'

# ---- rows
csv '1,2,3\n0,1\n' "train.csv:2:4: 2 fields; expected 3; $rows"
csv '1,2,3\n0,1,2,3\n' "train.csv:2:7: more than 3 fields; expected 3; $rows"
csv '1,"a\n0,b\n' "train.csv:1: a quoted field does not end on its line; check data.csv.delimiter"
csv '1,a\n0,"b\n' "train.csv:2:3: a quoted field does not end on its line; $quote"
csv '1,a\n0,"b"c\n' "train.csv:2:6: text behind a closing quote; $quote"
csv '1,2\n,3\n' 'train.csv:2:1: no label; every row needs a label; name its column in data.csv.label'
csv '1,2\nyes,3\n' "train.csv:2:1: label 'yes' is not a number; write classes as numbers, or name the label's column in data.csv.label"
csv '1,2\n0,x\n' "train.csv:2:3: value 'x' is not a number; name the column in data.csv.categorical if it is none of numbers" --set data.csv.numeric=2
csv '1,2\n0,1e99\n' "train.csv:2:3: value '1e99' is too large; scale the data; float32 holds up to 3.4e38" --set data.csv.numeric=2

# ---- columns
csv '1,2\n0,3\n' "train.csv: no column 'age' (data.csv.numeric); columns have numbers from 1 to 2 and no names without a header" --set data.csv.numeric=age
csv 'y,a\n1,2\n0,3\n' "train.csv: no column 'age' (data.csv.numeric); columns have numbers from 1 to 2 and these names: y, a" --set data.csv.numeric=age
csv '1,2\n0,3\n' "train.csv: no column '3' (data.csv.label); columns have numbers from 1 to 2 and no names without a header" --set data.csv.label=3
csv '1,2\n0,3\n' "train.csv: no column '2-3' (data.csv.ignore); columns have numbers from 1 to 2 and no names without a header" --set data.csv.ignore=2-3
csv '1,2\n0,3\n' 'train.csv: column 1 is in data.csv.label and in data.csv.numeric; name it once' --set data.csv.numeric=1-2
csv '1,2\n0,3\n' 'train.csv: no column is left to be a feature; name columns in data.csv.numeric or data.csv.categorical' --set data.csv.ignore=2
csv '1,2,3\n0,3,4\n' 'train.csv: 2 columns are labels; name one column in data.csv.label' --set data.csv.label=1-2

# ---- test data
test_csv 'y,age\n1,3\n' "test.csv: no column 'city', which the training data has; $same"
test_csv '1,3\n' "test.csv: 2 columns; the training data has 3; $same"
test_csv 'y,age,city\n2,3,Oslo\n' 'test.csv:2:1: label 2 does not occur in the training data (1 row has it); train and test with the same labels'
printf 'city,id,y,age\nOslo,7,1,30\nNowhere,8,0,\n' >test.csv # other order, one column more, a new category
accepted run job.yaml -q --set data.format=csv --set data.train=sound.csv --set data.test.file=test.csv

finish
