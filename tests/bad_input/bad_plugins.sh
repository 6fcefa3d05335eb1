#!/usr/bin/env bash
# Goal: what is no knob plugin is refused, and a plugin whose knob cannot be had fails the job before it trains. Method: as in
# bad_config.sh; the plugins of $2 refuse to open, or to take their value.
. "$(dirname "$0")/refusals.sh" "$1"
plugins=$(realpath "$2")
fresh

refused 2 '--set knobs.plugins=[none.ttk]: none.ttk: cannot open the knob plugin: No such file or directory; check the path (it is relative to the file that names it)' run job.yaml --set 'knobs.plugins=[none.ttk]'
refused 2 "--set knobs.plugins=[job.yaml]: job.yaml: not a loadable knob plugin: $PWD/job.yaml: invalid ELF header; build it as knobs/template does" run job.yaml --set 'knobs.plugins=[job.yaml]'
refused 2 '--set knobs.plugins=[.]: .: is not a file' run job.yaml --set 'knobs.plugins=[.]'
refused 2 '--set knobs.plugins=job.yaml: knobs.plugins must be a list of files; write plugins: [./my_knob.ttk]' run job.yaml --set knobs.plugins=job.yaml
refused 2 '--set knobs.plugins={a: job.yaml}: knobs.plugins must be a list of files; write plugins: [./my_knob.ttk]' run job.yaml --set 'knobs.plugins={a: job.yaml}'
refused_like 2 '--set knobs.plugins=\[.*\]: .*: not a knob plugin: it does not export tt_knob_plugin_abi1; a plugin ends with TT_KNOB_PLUGIN\(&knob\)' run job.yaml --set "knobs.plugins=[$(ldd "$trimtab" | awk '/libyaml/ { print $3; exit }')]"
refused 2 "job.yaml: not a loadable knob plugin: $PWD/job.yaml: invalid ELF header; build it as knobs/template does" knobs list job.yaml
refused 2 'none.ttk: cannot open the knob plugin: No such file or directory; check the path (it is relative to the file that names it)' knobs list none.ttk

# A plugin whose knob cannot be had: the job fails before it trains, and its records say so.
late_refusal() { # late_refusal PLUGIN CODE TEXT
    local code=0
    cases=$((cases + 1))
    fresh
    limited run job.yaml -q --set "knobs.plugins=[$plugins/$1.ttk]" || code=$?
    [ $code -eq "$2" ] || fault "exit code $code, expected $2" "$1"
    grep -qxF -- "$3" "$box/stderr" || fault "expected: $3" "$1"
    "$trimtab" report >"$box/report" 2>&1
    grep -q '^failed: ' "$box/report" || fault "the report does not say that it failed: $(head -3 "$box/report")" "$1"
    [ ! -e runs/*/model.safetensors ] || fault "there is a model" "$1"
}
late_refusal refuses_open 1 "knob 'refusing' cannot be opened here"
late_refusal refuses_value 2 "knob 'refusing' refuses 8: 8 is not to my taste"

finish
