#!/usr/bin/env bash
# Goal: compressed data that is cut or damaged is told from data that is wrong, wherever the damage is. Method: as in
# bad_config.sh; gzip packs here, the xz file is a constant, since xz may not be installed.
. "$(dirname "$0")/refusals.sh" "$1"
fresh
gzip -n train.svm
size=$(stat -c %s train.svm.gz)
accepted run job.yaml -q --set data.train=train.svm.gz
rm -rf runs

packed() { # packed FILE MESSAGE
    refused 2 "$2" run job.yaml --set "data.train=$1"
}
change() { # change FILE OFFSET: four bytes at OFFSET
    printf '\377\0\377\0' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
gzip_again="fetch the file again; 'gzip -t' tells whether it is whole"
xz_again="fetch the file again; 'xz -t' tells whether it is whole"

head -c $((size / 2)) train.svm.gz >cut.gz
packed cut.gz "cut.gz: the gzip data stops in the middle, at byte $((size / 2)); expected more; $gzip_again"
head -c 5 train.svm.gz >stub.gz
packed stub.gz "stub.gz: the gzip data stops in the middle, at byte 5; expected more; $gzip_again"
cp train.svm.gz sum.gz
change sum.gz $((size - 8))
refused_like 2 "sum.gz: the gzip data is damaged near byte [0-9]+: incorrect data check; $gzip_again" run job.yaml --set data.train=sum.gz
cp train.svm.gz middle.gz
change middle.gz $((size / 2))
refused_like 2 "middle.gz: the gzip data is damaged near byte [0-9]+: .*; $gzip_again" run job.yaml --set data.train=middle.gz
{ cat train.svm.gz && echo garbage; } >tail.gz
refused_like 2 "tail.gz: the gzip data is damaged near byte [0-9]+: incorrect header check; $gzip_again" run job.yaml --set data.train=tail.gz
echo hello >text.gz # the name does not make it so
packed text.gz "text.gz:1:1: label 'hello' is not a number; write a decimal number like 1, -0.25 or 3e-5"

base64 -d >sound.xz <<'END'
/Td6WFoAAATm1rRGAgAhARwAAAAQz1jM4AGXAJJdABWMQCKVmwm2a0vWrydghnhySQ6UJKCqqmZNWstXzBVnkT9dmxcPyF+2guCq
9vW9mBr42DDODVPNCHYCoxoze/FFPDuuBlhhtZPTz6ycNUdLg/EZvU/KcLwx/AWFLp7Qn40fExlHPpOHypf8iVil7p0svaY3Q4M8
fy3DT6anAACP/z0pSui1duOcd6NBJi/GFxtAAAAAqbOhKnoPx0kAAa4BmAMAAOH6kaexxGf7AgAAAAAEWVo=
END
size=$(stat -c %s sound.xz)
accepted run job.yaml -q --set data.train=sound.xz
rm -rf runs
head -c $((size / 2)) sound.xz >cut.xz
packed cut.xz "cut.xz: the xz data stops in the middle, at byte $((size / 2)); expected more; $xz_again"
cp sound.xz middle.xz
change middle.xz $((size / 2))
refused_like 2 "middle.xz: the xz data is damaged near byte [0-9]+: .*; $xz_again" run job.yaml --set data.train=middle.xz

printf '\50\265\57\375' >stub.zst
packed stub.zst "stub.zst: the zstd data stops in the middle, at byte 4; expected more; fetch the file again; 'zstd -t' tells whether it is whole"
printf 'BZh91AY' >packed.bz2
packed packed.bz2 'packed.bz2: is compressed with bzip2; plain, gzip, xz and zstd files are read; unpack it (bzip2 -d) or pack it as .zst, .xz or .gz'

# idx files are read by another reader; damage is told there too, and not as a wrong header.
fresh
gzip -n images
head -c 40 images.gz >cut.gz
refused 2 "cut.gz: the gzip data stops in the middle, at byte 40; expected more; $gzip_again" run idx.yaml --set data.train=cut.gz

finish
