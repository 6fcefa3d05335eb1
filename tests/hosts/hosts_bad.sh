#!/usr/bin/env bash
# Goal: what is wrong with the hosts of a job is said in words that help, at once, and nothing is left behind. Method: jobs with
# engine ssh whose remote shell, program, data or names are wrong.
#
#   hosts_bad.sh TRIMTAB THIS_HOST SOURCES
here=$(realpath "$2")
. "$3/tests/cli/outside.sh" "$1" . "$3"

cat >job.yaml <<'END'
data: {format: libsvm, train: data.svm}
model: {kind: logistic_regression}
stop: {max_epochs: 3}
cluster: {engine: ssh, nodes: 3, hosts: [127.0.0.1, localhost]}
END
"$trimtab" data make data.svm --rows 2000 --features 300 --fields 8 >/dev/null
"$trimtab" data make other.svm --rows 2000 --features 300 --fields 8 --seed 2 >/dev/null
job=("$trimtab" run job.yaml -q --set "cluster.remote_shell=$here")
doctor=("$trimtab" doctor job.yaml --set "cluster.remote_shell=$here")

ends 0 "${job[@]}"

ends 2 "${job[@]}" --set cluster.hosts=null
check 'hosts are needed' says 'engine ssh needs a list of hosts.*for example' err
ends 2 "${job[@]}" --set 'cluster.hosts=[alpha, -oProxyCommand=x]'
check 'a host is no option' says 'a host is a name that the remote shell knows' err
ends 2 "${job[@]}" --set cluster.engine=local
check 'hosts are for ssh' says 'cluster.hosts is for nodes on other hosts.*set cluster.engine: ssh' err
ends 2 "${job[@]}" --set cluster.driver=in_place
check 'processes share nothing' says 'processes have no memory in common' err

ends 1 "${job[@]}" --set cluster.remote_shell=./no-such-shell
check 'the remote shell is named' says 'no-such-shell cannot be started: No such file' err
ends 1 "${job[@]}" --set cluster.program=/no/such/trimtab
check 'the host is named' says '^(127.0.0.1|localhost): no node came up on this host: its remote shell ended with code 12[67]' err
ends 1 "${job[@]}" --set cluster.remote_shell=false
check 'the code is told' says 'its remote shell ended with code 1.*try the remote shell by hand' err
ends 2 "${job[@]}" --set 'cluster.hosts=[no-such-host.invalid]'
check 'no way to call back' says 'no-such-host.invalid: only the remote shell knows where this host is; set cluster.address' err
ends 1 "${job[@]}" --set cluster.address=192.0.2.77
check 'an address of another host' says '192.0.2.77.*cannot listen there' err

cat >other_data <<END
#!/bin/sh
[ "\$1" != localhost ] || mv other.svm data.svm
shift
exec sh -c "\$*"
END
chmod +x other_data
ends 2 "${job[@]}" --set cluster.remote_shell=./other_data
check 'other data is found' says '^(127.0.0.1|localhost): this host has other training data; give all hosts the same files' err

cat >other_job <<END
#!/bin/sh
shift
head -c 60 /dev/zero | sh -c "\$*"
END
chmod +x other_job
ends 1 "${job[@]}" --set cluster.remote_shell=./other_job
check 'what it gets is no job' says 'what was received is not a job' err

ends 0 "${doctor[@]}"
check 'both hosts are fine' test "$(grep -c '^ok *host' out)" -eq 2
ends 1 "${doctor[@]}" --set cluster.program=/no/such/trimtab
check 'each host is judged' test "$(grep -c '^fault *host.*ended with code 127' out)" -eq 2
ends 1 "${doctor[@]}" --set cluster.address=192.0.2.77
check 'an address of another host, again' says '^fault +hosts .*cannot listen there' out

check 'no process is left' silent 'trimtab.node' <(ps -eo args= | grep -F "$box" || true)
finish
