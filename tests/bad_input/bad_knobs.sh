#!/usr/bin/env bash
# Goal: knobs that are fixed, limited, started or scripted wrongly are refused before anything is run. Method: as in
# bad_config.sh.
. "$(dirname "$0")/refusals.sh" "$1"
fresh

# ---- values
refused 2 '--set setting.servers=9: servers must be from 1 to 7 (nodes is 8 and at least one must work), not 9' run job.yaml --set setting.servers=9
refused 2 '--set setting.servers=0: servers must be from 1 to 7 (nodes is 8 and at least one must work), not 0' run job.yaml --set setting.servers=0
refused 2 '--set setting.chunk_bytes=5000: chunk_bytes must be a power of two, not 5000 B; the nearest is 4 KiB' run job.yaml --set setting.chunk_bytes=5000
refused 2 "--set setting.bf16_transfer=perhaps: bf16_transfer must be on or off, not 'perhaps'" run job.yaml --set setting.bf16_transfer=perhaps
refused 2 "--set setting.kernel=avx1024: kernel must be one of portable, avx2, avx512, not 'avx1024'" run job.yaml --set setting.kernel=avx1024
refused 2 '--set setting.in_flight=1.5: in_flight must be a whole number, not 1.5 requests; the nearest is 2 requests' run job.yaml --set setting.in_flight=1.5
refused 2 "--set setting.servers=[1]: a knob's value must be one value" run job.yaml --set 'setting.servers=[1]'

# ---- names
refused 2 "--set setting.bf16_transfr=on: unknown key 'bf16_transfr'; did you mean 'bf16_transfer'?" run job.yaml --set setting.bf16_transfr=on
refused 2 "--set knobs.chunks.start=64KiB: unknown key 'chunks'; did you mean 'chunk_bytes'?" run job.yaml --set knobs.chunks.start=64KiB
refused 2 "--set knobs.spin.strt=1: unknown key 'strt'; did you mean 'start'?" run job.yaml --set knobs.spin.strt=1
refused 2 "--set setting.zzz=1: unknown key 'zzz'; known here: servers, compute_threads, kernel, pinning, bf16_transfer, chunk_bytes, spin, in_flight, prefetch, push_aggregation, staleness, compression" run job.yaml --set setting.zzz=1
refused 2 "--set setting.plugins=1: unknown key 'plugins'; known here: servers, compute_threads, kernel, pinning, bf16_transfer, chunk_bytes, spin, in_flight, prefetch, push_aggregation, staleness, compression" run job.yaml --set setting.plugins=1

# ---- knobs that this job does not have
refused 2 "--set setting.staleness=3: knob 'staleness' is not part of this job: asp bounds no staleness; take the line out" run job.yaml --set setting.staleness=3
refused 2 "--set knobs.staleness.start=3: knob 'staleness' is not part of this job: bsp has none; take the line out" run job.yaml --set consistency=bsp --set knobs.staleness.start=3
refused 2 "--set setting.push_aggregation=2: knob 'push_aggregation' is not part of this job: bsp: a round is one push of each slice; take the line out" run job.yaml --set consistency=bsp --set setting.push_aggregation=2
refused 2 "--set setting.servers=2: knob 'servers' is not part of this job: in_place has no servers; take the line out" run job.yaml --set cluster.driver=in_place --set setting.servers=2
refused 2 "--set setting.spin=2: knob 'spin' is not part of this job: in_place under asp never waits; take the line out" run job.yaml --set cluster.driver=in_place --set setting.spin=2
accepted plan job.yaml --set consistency=ssp --set setting.staleness=3

# ---- ranges and starts
refused 2 '--set knobs.chunk_bytes.range=[1MiB, 16KiB]: the range is empty; write the lower end first' run job.yaml --set 'knobs.chunk_bytes.range=[1MiB, 16KiB]'
refused 2 '--set knobs.spin.range=[1]: a range has two ends; write range: [low, high]' run job.yaml --set 'knobs.spin.range=[1]'
refused 2 '--set knobs.in_flight.range=[20,30]: in_flight must be from 1 request to 16 requests, not 20 requests' run job.yaml --set 'knobs.in_flight.range=[20,30]'
refused 2 "--set knobs.servers=3: expected {start: ..., range: [..., ...]}; to fix a value, put it under 'setting'" run job.yaml --set knobs.servers=3
refused 2 '--set knobs.servers.start=1: servers must be from 2 to 3 (range by you (--set knobs.servers.range=[2,3])), not 1' run job.yaml --set 'knobs.servers.range=[2,3]' --set knobs.servers.start=1
refused 2 '--set setting=3: setting must be a mapping of knob ids to values; for example setting: {servers: 2}' run job.yaml --set setting=3
refused 2 '--set knobs=[1]: knobs must be a mapping of knob ids; for example knobs: {servers: {start: 2}}' run job.yaml --set 'knobs=[1]'

# ---- scripts of settings
refused 2 '--set tuner.script=3: tuner.script must be a list of 1 to 4096 steps; for example [{iteration: 100, servers: 3}]' run job.yaml --set tuner.script=3
refused 2 '--set tuner.script=[]: tuner.script must be a list of 1 to 4096 steps; for example [{iteration: 100, servers: 3}]' run job.yaml --set 'tuner.script=[]'
cat >script.yaml <<'END'
tuner:
  script:
    - 7
    - {iteration: 20, servers: 8}
    - {iteration: 30, servrs: 1}
    - {iteration: 25, servers: 1}
    - {servers: 2}
END
refused 2 "script.yaml:3:7: a step of the script must be a mapping; for example {iteration: 100, servers: 3}
script.yaml:4:32: servers must be from 1 to 7 (nodes is 8 and at least one must work), not 8
script.yaml:5:23: unknown key 'servrs'; did you mean 'servers'?
script.yaml:6:7: the steps' iterations must increase, not go from 30 to 25; sort the steps
script.yaml:7:7: a step of the script needs its iteration; add iteration: N
5 errors, nothing was run." run job.yaml script.yaml
refused 2 "--set tuner.script=[{iteration: 5, servers: 2}]: a script and the tuner exclude each other; set tuner.enabled: off" run job.yaml --set tuner.enabled=on --set 'tuner.script=[{iteration: 5, servers: 2}]'
refused 2 "--set tuner.script=[{iteration: 5, servers: 2}]: the script turns 'servers', which is fixed by you (--set setting.servers=1); take one of the two lines out" run job.yaml --set setting.servers=1 --set 'tuner.script=[{iteration: 5, servers: 2}]'

finish
