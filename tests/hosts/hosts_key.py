#!/usr/bin/env python3
"""Goal: nobody learns the key of a job over several hosts who was not given it. Method: a remote shell that keeps a copy of what it
carries, so that the test knows the key; while the job runs, the arguments, environment and open descriptors' names of all its
processes, and afterwards all files and output of the run, are searched for it, as bytes and as text.

    hosts_key.py TRIMTAB
"""
import base64
import os
import subprocess
import sys
import tempfile

HEAD, KEY = 40, 32  # bytes of an invitation before its key, and of the key (job/src/invitation.c)
LOOK_EVERY_S = 0.3
JOB = """
data: {format: clicklog, rows: 20000, columns: 2000, fields: 11}
model: {kind: logistic_regression}
optimizer: {kind: sgd, learning_rate: 0.05, batch_size: 32}
stop: {max_epochs: 1e6, max_time: 3s}
cluster: {engine: ssh, nodes: 4, hosts: [127.0.0.1, localhost], encryption: on, remote_shell: ./shell}
"""
SHELL = """#!/bin/sh
host=$1
shift
tee "$TEST_DIRECTORY/carried.$host" | sh -c "$*"
"""


def forms(key):
    """How a key may be written down."""
    return [key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key).rstrip(b"=")]


def holds(content, key):
    return any(form in content for form in forms(key))


def processes(mark):
    """What anybody can read of the processes whose environment carries the mark: (what, content)."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read()
            if mark.encode() not in environment:
                continue
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                yield f"arguments of {pid}", file.read()
            yield f"environment of {pid}", environment
        except OSError:
            continue  # it has just ended, or is not to be looked into


def files(directory):
    for folder, _, names in os.walk(directory):
        for name in names:
            if not name.startswith("carried."):
                with open(os.path.join(folder, name), "rb") as file:
                    yield os.path.join(folder, name), file.read()


def main():
    trimtab = os.path.abspath(sys.argv[1])
    faults, looked = [], 0
    with tempfile.TemporaryDirectory(prefix="trimtab-key-") as directory:
        with open(os.path.join(directory, "job.yaml"), "w", encoding="ascii") as file:
            file.write(JOB)
        with open(os.path.join(directory, "shell"), "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o755)) as file:
            file.write(SHELL)
        mark = f"key-test-{os.getpid()}"
        environment = {**os.environ, "TRIMTAB_REPOSITORY": "off", "TEST_DIRECTORY": directory, "TEST_MARK": mark}
        job = subprocess.Popen([trimtab, "run", "job.yaml", "-v"], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        seen, output = [], None
        while output is None:
            try:
                output, _ = job.communicate(timeout=LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                found = list(processes(mark))
                looked = max(looked, len(found))
                seen += found
        keys = set()
        for host in ("127.0.0.1", "localhost"):
            with open(os.path.join(directory, f"carried.{host}"), "rb") as file:
                keys.add(file.read()[HEAD:HEAD + KEY])
        if job.returncode != 0 or len(keys) != 1 or looked < 12:
            print(output.decode(errors="replace"))
            sys.exit(f"the job ended with {job.returncode}, {len(keys)} keys were carried, {looked} descriptions seen")
        key = keys.pop()
        for what, content in seen + list(files(directory)) + [("output", output)]:
            if holds(content, key):
                faults.append(what)
    for what in sorted(set(faults)):
        print(f"the key is in {what}")
    print(f"{len(seen)} descriptions of processes, at most {looked} at a time, {len(set(faults))} with the key")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
