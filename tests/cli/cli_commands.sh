#!/usr/bin/env bash
# Goal: docs/commands.md has a section for every command that `trimtab --help` lists, with an example of each of its forms, and
# every example of the page works; README.md lists them all. Method: the page is a session; its yaml block is saved under the name that the text before it gives, and
# the lines of its sh blocks are run in order in one directory with trimtab on the path.
. "$(dirname "$0")/outside.sh" "$@"
page=$sources/docs/commands.md
export TRIMTAB_REPOSITORY=$box/repository.db # the page shows it at work
rm -f ./*.yaml
mkdir bin
ln -s "$trimtab" bin/trimtab
PATH=$PWD/bin:$PATH

ends 0 "$trimtab" --help
mapfile -t commands < <(sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' out)
check 'at least ten commands' [ ${#commands[@]} -ge 10 ]
for command in "${commands[@]}"; do
    sed -n "/^## $command\$/,/^## /p" "$page" >section
    check "docs/commands.md has a section '## $command'" [ -s section ]
    ends 0 "$trimtab" "$command" --help
    # What the usage lines begin with: "run", "run --resume", "repository forget".
    mapfile -t forms < <(sed -nE 's/^(usage:|      ) trimtab ((--)?[a-z]+( (--)?[a-z]+)*)( .*)?$/\2/p' out)
    check "trimtab $command --help tells its usage" [ ${#forms[@]} -ge 1 ]
    for form in "${forms[@]}"; do
        check "docs/commands.md: the section $command has an example of trimtab $form (a line in a sh block)" \
            says "(^|\| )trimtab $form( |\$)" section
    done
    check "README.md lists $command" says "^    trimtab $command( |\$)" "$sources/README.md"
done
for section in $(sed -n 's/^## //p' "$page"); do
    check "docs/commands.md: $section is a command" grep -qx "$section" <(printf '%s\n' "${commands[@]}")
done

# Jobs: "... `NAME.yaml` ...:" and a yaml block.
awk '/^```yaml$/ { if (name != "") writing = 1; next }
     /^```/ { writing = 0; next }
     writing { print > name }
     !writing && match($0, /`[a-z]+\.yaml`/) { name = substr($0, RSTART + 1, RLENGTH - 2) }' "$page"
check 'docs/commands.md has a job' [ -s clicks.yaml ]
mapfile -t examples < <(sed -n '/^```sh$/,/^```$/p' "$page" | grep -v '^```')
check 'docs/commands.md has examples' [ ${#examples[@]} -ge ${#commands[@]} ]
mkdir -p runs/20260101-000000-tuned # a run that tried many settings, which no short job promises on every machine
ends 0 "$tools/known_run" runs/20260101-000000-tuned/run.db
for example in "${examples[@]}"; do
    ends 0 bash -o pipefail -c "$example"
    [[ $example = *' > '* || $example = *' -o '* ]] || check "$example says something" [ -s out ]
done
check 'predictions of every row' [ "$(wc -l <labels.txt)" -eq 1000 ]
check 'scores of every row' [ "$(wc -l <scores.txt)" -eq 1000 ]
check 'predictions of every row of both files' [ "$(wc -l <both.txt)" -eq 5000 ]

finish
