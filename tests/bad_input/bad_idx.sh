#!/usr/bin/env bash
# Goal: idx files that are damaged, mixed up or do not belong together are refused. Method: as in bad_config.sh, with files
# made byte by byte.
. "$(dirname "$0")/refusals.sh" "$1"
fresh
accepted run idx.yaml -q
fresh

with() { # with IMAGES LABELS MESSAGE [ARGS...]
    local images=$1 labels=$2 message=$3
    shift 3
    refused 2 "$message" run idx.yaml --set "data.train=$images" --set "data.labels=$labels" "$@"
}
again='fetch the file again'

# ---- images
head -c 500 images >cut
with cut labels "cut: byte 500: the file ends here; its header says 60 items of 16 bytes, 976 bytes; $again"
head -c 9 images >head
with head labels "head: byte 9: the file ends inside the IDX header; $again"
{ cat images && printf x; } >more
with more labels 'more: byte 976: bytes follow the last item that the header announces; check that the file was not joined with another'
{ printf '\0\0\15\3' && tail -c +5 images; } >floats
with floats labels 'floats: byte 0: magic number 0x00000d03; expected 0x00000803 (images) or another 0x000008nn; name an IDX file of unsigned bytes here'
with train.svm labels 'train.svm: byte 0: magic number 0x2b312031; expected 0x00000803 (images) or another 0x000008nn; name an IDX file of unsigned bytes here'
: >empty
with empty labels 'empty: the file is empty; expected IDX data; check that this is the right file'
{ idx 60 0 4; } >flat
with flat labels 'flat: byte 8: dimension 2 is 0; an item must have 1 to 2147483646 bytes; check that this is an IDX file'
{ idx 4294967295 65535 65535; } >huge
refused_like 2 'huge: byte [0-9]+: .*; check that this is an IDX file' run idx.yaml --set data.train=huge
{ idx 4294967295 4 4 && pixels 100; } >claims
with claims labels "claims: byte 116: the file ends here; its header says 4294967295 items of 16 bytes, 68719476736 bytes; $again"
{ idx 0 4 4; } >none
with none labels 'none: byte 4: no items: the first dimension is 0; check that this is the right file'
with images labels 'images: an item has 16 bytes; expected 17 features; correct data.features or leave it out' --set data.features=17

# ---- labels
with labels images 'images: byte 0: magic number 0x00000803; expected 0x00000801 (labels); name the IDX file of labels here'
with images missing 'missing: cannot open the data file: No such file or directory; check the path; it is relative to the job file'
{ idx 59 && labels 59 3; } >short
with images short 'short: 59 labels for 60 items in images; name the images and labels that belong together'
{ idx 60 && labels 60 1; } >one
with images one 'one: only one label value (0) in all 60 items; training needs items of at least two classes'
with images labels '--set model.kind=logistic_regression: logistic_regression is for two classes, the training data have 3; use softmax_regression' --set model.kind=logistic_regression

# ---- test data
{ idx 60 5 5 && pixels 1500; } >wide
with images labels 'wide: an item has 25 bytes; expected 16 features; train and test with items of one size' --set data.test.file=wide --set data.test.labels=labels
{ idx 60 && labels 60 5; } >five
with images labels 'five: byte 11: label 3 does not occur in the training data (12 rows have it; 12 more with other such labels); train and test with the same labels' --set data.test.file=images --set data.test.labels=five

finish
