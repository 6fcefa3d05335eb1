#!/usr/bin/env bash
# Goal: a job file that is wrong is refused with the place, what was expected and what to do, all faults at once, and nothing
# is written. Method: one small sound job, one fault at a time; exit code and words are compared exactly.
. "$(dirname "$0")/refusals.sh" "$1"
fresh
accepted run job.yaml -q
fresh

# ---- the file
refused 2 'none.yaml: cannot open: there is no such file; check the path' run none.yaml
refused 2 'none.yaml: cannot open: there is no such file; check the path' plan none.yaml
refused 2 '.: cannot read: Is a directory; check that it is a file you may read' run .
refused 2 '/proc/self/mem: cannot read: Input/output error; check that it is a file you may read' run /proc/self/mem
refused 2 'job.yaml/x: cannot open: there is no such file; check the path' run job.yaml/x
: >empty.yaml
refused 2 'empty.yaml: there is nothing in this file; describe a job in it' run empty.yaml
refused 2 'train.svm:1:1: expected a mapping of keys, found text; write `key: value` lines' run train.svm
printf '[1, 2]\n' >list.yaml
refused 2 'list.yaml:1:1: expected a mapping of keys, found a sequence; write `key: value` lines' run list.yaml
printf '\377\376d\0' >utf16.yaml
refused 2 'utf16.yaml:1:1: this is not text: invalid leading UTF-8 octet; save the file as plain UTF-8 text' run utf16.yaml
head -c 4194305 /dev/zero | tr '\0' 'a' >large.yaml
refused 2 'large.yaml: will not read: File too large; a job file is a few kilobytes of text; is this the data?' run large.yaml
# One fault in the second of two files: the first is read, nothing is run.
refused 2 'none.yaml: cannot open: there is no such file; check the path' run job.yaml none.yaml

# ---- how to reconfigure
refused 2 "--set reconfig.method=ondemand: reconfig.method must be one of on_demand, drain, checkpoint, not 'ondemand'; did you mean 'on_demand'?
1 error, nothing was run." run job.yaml --set reconfig.method=ondemand
refused 2 "--set reconfig.method=drain: reconfig.method is for driver messages: in place nothing can move; take the line out, or set cluster.driver: messages
1 error, nothing was run." run job.yaml --set cluster.driver=in_place --set reconfig.method=drain
refused 2 "--set tuner.script=[{iteration: 5, servers: 2, method: drian}]: method must be one of on_demand, drain, checkpoint, not 'drian'; did you mean 'drain'?
1 error, nothing was run." run job.yaml --set 'tuner.script=[{iteration: 5, servers: 2, method: drian}]'

# ---- YAML
printf 'data: {format: libsvm\nmodel: [\n' >bad.yaml
refused 2 "bad.yaml:2:6: malformed YAML: did not find expected ',' or '}', while parsing a flow mapping that starts at 1:7; look at indentation, quotes and brackets here and just above
1 error, nothing was run." run bad.yaml
printf 'data:\n\tformat: libsvm\n' >tab.yaml
refused 2 'tab.yaml:2:1: malformed YAML: found character that cannot start any token, while scanning for the next token that starts at 2:1; YAML indents with spaces, not with tabs' run tab.yaml
cat >twice.yaml <<'END'
data: {format: libsvm, train: train.svm}
model: {kind: logistic_regression}
stop:
  loss: 0.3
  loss: 0.4
END
refused 2 "twice.yaml:5:3: duplicate key 'loss' (first at 4:3); keep one of them
1 error, nothing was run." run twice.yaml

# ---- keys: every fault at once, in the order of the lines, each with its place
cat >many.yaml <<'END'
data: {format: libsvm, train: train.svm}
model: {kind: logistc_regression, bias: maybe}
optimiser: {kind: sgd}
stop: {los: 0.3, max_time: soon}
cluster:
  nodes: 2.5
learning_rate: 3
setting: {servrs: 2}
END
refused 2 "many.yaml:2:15: model.kind must be one of logistic_regression, linear_svm, softmax_regression, not 'logistc_regression'; did you mean 'logistic_regression'?
many.yaml:2:41: model.bias must be on or off, not 'maybe'
many.yaml:3:1: unknown key 'optimiser'; did you mean 'optimizer'?
many.yaml:4:8: unknown key 'los'; did you mean 'loss'?
many.yaml:4:28: stop.max_time must be a duration such as 90s or 1h30m, not 'soon'
many.yaml:6:10: cluster.nodes must be a whole number, not '2.5'
many.yaml:7:1: unknown key 'learning_rate' here; did you mean 'optimizer.learning_rate'?
many.yaml:8:11: unknown key 'servrs'; did you mean 'servers'?
8 errors, nothing was run." run many.yaml
refused 2 "--set model.kid=linear_svm: unknown key 'kid'; did you mean 'kind'?" run job.yaml --set model.kid=linear_svm
refused 2 '--set consistency=bps: consistency must be one of asp, ssp, bsp, not '"'bps'; did you mean 'bsp'?" run job.yaml --set consistency=bps
refused 2 '--set data=3: data must be a mapping of keys, not text; write `key: value` lines below it' run job.yaml --set data=3
refused 2 '--set model.kind=[a]: model.kind must be one value, not a sequence; write one value' run job.yaml --set 'model.kind=[a]'
refused 2 "--set tuner.guard=x: tuner.guard must be a number or a percentage, not 'x'" run job.yaml --set tuner.guard=x
refused 2 '--set stop: expected KEY=VALUE with a dotted key; for example --set optimizer.learning_rate=0.3' run job.yaml --set stop
refused 2 '--set stop.loss=: there is no value; give one, or `null` for the default' run job.yaml --set stop.loss=
refused 2 "--set data.format.x=1: 'format' is text (job.yaml:1:16), nothing can be set inside it; give the whole value instead" run job.yaml --set data.format.x=1
refused 2 'job.yaml:2:8: model.kind is missing; add it: logistic_regression, what is trained' run job.yaml --set model.kind=null

# ---- ranges: both ends, open and closed
refused 2 '--set cluster.nodes=0: cluster.nodes must be from 1 to 4095 nodes, not 0' run job.yaml --set cluster.nodes=0
refused 2 '--set cluster.nodes=4096: cluster.nodes must be from 1 to 4095 nodes, not 4096' run job.yaml --set cluster.nodes=4096
refused 2 '--set optimizer.learning_rate=0: optimizer.learning_rate must be above 0 and at most 1000000000, not 0' run job.yaml --set optimizer.learning_rate=0
refused 2 '--set optimizer.batch_size=0: optimizer.batch_size must be from 1 to 1048576 examples, not 0' run job.yaml --set optimizer.batch_size=0
refused 2 '--set seed=-1: seed must be from 0 to 9e+15, not -1' run job.yaml --set seed=-1
refused 2 '--set model.l2=-1e-9: model.l2 must be from 0 to 1000000, not -1e-9' run job.yaml --set model.l2=-1e-9
refused 2 "--set tuner.without=luck: 'luck' names a rule that the tuner does not have; write names with + between them, such as \
guard+rest; docs/report.md lists them
1 error, nothing was run." run job.yaml --set tuner.without=luck
refused 2 '--set tuner.guard=0%: tuner.guard must be above 0 and at most 10, not 0%' run job.yaml --set tuner.guard=0%
refused 2 '--set stop.max_epochs=0: stop.max_epochs must be above 0 and at most 1000000000, not 0' run job.yaml --set stop.max_epochs=0
refused 2 "--set stop.loss=nan: stop.loss must be a number, not 'nan'" run job.yaml --set stop.loss=nan

# ---- combinations that cannot be
refused 2 '--set cluster.nodes=1: driver messages needs a server and a worker, that is 2 nodes, not 1; set nodes to 2 or more, or cluster.driver: in_place' run job.yaml --set cluster.nodes=1
refused 2 '--set optimizer.batch_size=15: a round of 15 examples cannot be cut into 16 slices; raise batch_size or lower bsp_slices' run job.yaml --set consistency=bsp --set optimizer.batch_size=15
refused 2 'train.svm: 200 rows cannot be dealt to 250 slices; lower bsp_slices' run job.yaml --set consistency=bsp --set optimizer.batch_size=512 --set bsp_slices=250
refused 2 '--set stop.objective=0.3: stop.loss and stop.objective exclude each other; keep one of them' run job.yaml --set stop.loss=0.3 --set stop.objective=0.3
refused 2 '--set optimizer.schedule=inverse: a schedule without decay is constant; set optimizer.decay, for instance 1e-3' run job.yaml --set optimizer.schedule=inverse
refused 2 '--set optimizer.decay=0.1: optimizer.decay has no effect on a constant rate; set optimizer.schedule: inverse, or take the line out' run job.yaml --set optimizer.decay=0.1
refused 2 '--set optimizer.decay_per=epoch: optimizer.decay_per has no effect on a constant rate; take the line out' run job.yaml --set optimizer.decay_per=epoch
refused 2 '--set optimizer.l1=0.5: optimizer.l1 is for optimizer.kind ftrl, this one is sgd; take the line out' run job.yaml --set optimizer.l1=0.5
refused 2 '--set optimizer.nesterov=on: optimizer.nesterov is for optimizer.kind momentum, this one is adam; take the line out' run job.yaml --set optimizer.kind=adam --set optimizer.nesterov=on
refused 2 '--set optimizer.epsilon=1e-3: optimizer.epsilon is for optimizer.kind adagrad and adam; take the line out' run job.yaml --set optimizer.kind=ftrl --set optimizer.epsilon=1e-3
refused 2 '--set optimizer.momentum=1: optimizer.momentum must be from 0 to 0.9999, not 1' run job.yaml --set optimizer.kind=momentum --set optimizer.momentum=1
refused 2 '--set optimizer.clip_norm=0: optimizer.clip_norm must be above 0 and at most 1e+30, not 0' run job.yaml --set optimizer.clip_norm=0
refused 2 '--set model.pull=whole: a sparse table cannot be pulled whole; set model.pull: keyed' run job.yaml --set model.table=sparse --set model.pull=whole
refused 2 '--set model.table=sparse: softmax in place needs a dense table; set model.table: dense' run job.yaml --set model.table=sparse --set model.kind=softmax_regression --set cluster.driver=in_place

# ---- the data section against its format
refused 2 'job.yaml:1:7: data.train is needed with data.format libsvm; name the file' run job.yaml --set data.train=null
refused 2 "--set data.train=\"\": data.train must be a path, not ''; write a path, or a list of paths: [a.csv, b.csv]
1 error, nothing was run." run job.yaml --set 'data.train=""'
refused 2 'idx.yaml:1:7: data.labels is needed with data.format idx; name the file' run idx.yaml --set data.labels=null
refused 2 '--set data.test.file=images: data.test.labels is needed with data.format idx; name the file' run idx.yaml --set data.test.file=images
refused 2 '--set data.test.labels=labels: data.test.labels is given without data.test.file; name the test file' run idx.yaml --set data.test.labels=labels
refused 2 '--set data.labels=labels: data.labels is for idx data: text carries its labels; take the line out' run job.yaml --set data.labels=labels
refused 2 '--set data.rows=1000: data.rows is for generated data only; take the line out, or set data.format: clicklog' run job.yaml --set data.rows=1000
refused 2 'job.yaml:1:31: data.train is for data in files, clicklog is generated; take the line out, or set data.format to what the file holds' run job.yaml --set data.format=clicklog
refused 2 '--set data.csv.label=2: data.csv.label is for csv data; take the line out, or set data.format: csv' run job.yaml --set data.csv.label=2
refused 2 '--set data.features=9: data.features does not apply: columns make the features; take the line out, or set data.csv.hash_bits' run job.yaml --set data.format=csv --set data.features=9
refused 2 '--set data.features=9: data.features is for data in files; set data.columns' run job.yaml --set data.format=clicklog --set data.train=null --set data.features=9
refused 2 '--set data.fields=65: a row cannot have 65 non-zeros of 64 features; lower data.fields or raise data.columns' run job.yaml --set data.format=clicklog --set data.train=null --set data.columns=64 --set data.fields=65

finish
