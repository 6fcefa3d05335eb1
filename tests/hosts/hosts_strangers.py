#!/usr/bin/env python3
"""Goal: who connects to a job over several hosts without its key changes nothing, and is counted where one looks. Method: strangers send
noise to every port on which the job's processes listen; `trimtab status` tells how many were refused, and the job's model is the one
of a run that nobody disturbed, byte for byte.

    hosts_strangers.py TRIMTAB
"""
import glob
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time

SIZES, PATIENCE_S = (1, 64, 200, 5000, 100000), 20  # of noise: less than a greeting, as much, and more
JOB = """
data: {format: clicklog, rows: 20000, columns: 2000, fields: 11}
model: {kind: logistic_regression}
optimizer: {kind: sgd, learning_rate: 0.05, batch_size: 256}
stop: {max_epochs: 20}
consistency: bsp
tuner: {enabled: off, compare: off}
cluster: {engine: ssh, nodes: 4, hosts: [127.0.0.1, localhost], encryption: on, remote_shell: %s}
"""
LISTENS = "0A"  # in /proc/net/tcp


def start(trimtab, directory, mark):
    environment = {**os.environ, "TRIMTAB_REPOSITORY": "off", "TEST_MARK": mark}
    return subprocess.Popen([trimtab, "run", "job.yaml", "--json"], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def sockets_of(mark):
    """Inodes of the sockets of the processes whose environment carries the mark."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() not in file.read():
                    continue
            links = [os.readlink(path) for path in glob.glob(f"/proc/{pid}/fd/*")]
        except OSError:
            continue  # it has just ended
        found |= {link[len("socket:["):-1] for link in links if link.startswith("socket:[")}
    return found


def ports_of(mark):
    inodes, ports = sockets_of(mark), set()
    with open("/proc/net/tcp", encoding="ascii") as file:
        for line in list(file)[1:]:
            words = line.split()
            if words[3] == LISTENS and words[9] in inodes:
                ports.add(int(words[1].split(":")[1], 16))
    return ports


def refused(trimtab, directory):
    done = subprocess.run([trimtab, "status", "--json"], cwd=directory, capture_output=True, check=False)
    return json.loads(done.stdout).get("connections_refused", 0) if done.returncode == 0 else 0


def disturb(ports):
    """Returns how many strangers there were."""
    rng = random.Random(1)
    for port in ports:
        for size in SIZES:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as stranger:
                try:
                    stranger.sendall(rng.randbytes(size))
                except OSError:
                    pass  # refused before it was through
    return len(SIZES) * len(ports)


def train(trimtab, directory, mark, disturbed):
    """The model's bytes, and how many strangers came and were counted."""
    job, came, counted, begun = start(trimtab, directory, mark), 0, 0, time.monotonic()
    while disturbed and job.poll() is None and time.monotonic() - begun < PATIENCE_S and (came == 0 or counted < came):
        ports = ports_of(mark) if came == 0 else ()
        if len(ports) >= 5:  # those of the nodes, and the master's
            came = disturb(ports)
        counted = max(counted, refused(trimtab, directory))
        try:
            job.wait(0.05)
        except subprocess.TimeoutExpired:
            pass
    output, errors = job.communicate(timeout=120)
    if job.returncode != 0:
        sys.exit(f"the job ended with {job.returncode}\n{errors.decode(errors='replace')}")
    with open(os.path.join(directory, json.loads(output)["run_dir"], "model.safetensors"), "rb") as file:
        return file.read(), came, counted


def main():
    trimtab = os.path.abspath(sys.argv[1])
    shell = os.path.join(os.path.dirname(os.path.abspath(__file__)), "this_host.sh")
    with tempfile.TemporaryDirectory(prefix="trimtab-strangers-") as directory:
        with open(os.path.join(directory, "job.yaml"), "w", encoding="ascii") as file:
            file.write(JOB % shell)
        model, _, _ = train(trimtab, directory, f"strangers-{os.getpid()}-a", False)
        disturbed, came, counted = train(trimtab, directory, f"strangers-{os.getpid()}-b", True)
    print(f"{came} strangers came, {counted} are counted as refused")
    if came == 0 or counted < came:
        print("not all strangers were counted")
    elif disturbed != model:
        print("the model is another one")
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
