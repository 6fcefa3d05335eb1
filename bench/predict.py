#!/usr/bin/python3
"""Predicting from a file: trimtab predict beside liblinear-predict, on the same rows.

    predict.py [--rows N] [--repeats N] [--seed N]

Trains a logistic regression with each on generated rows, then predicts other rows of the same log, A B A B. One JSON line a
case, in MB of text per CPU-second of the whole process (reading, scoring, writing to a file); ratio is over liblinear's.
"""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

trimtab = os.path.abspath("build/release/bin/trimtab")


def child_seconds(command):
    begin, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime, time.monotonic() - wall


def quartiles(values):
    values = sorted(values)
    return values[len(values) // 2], values[len(values) // 4], values[len(values) * 3 // 4]


def say(case, rates, params, unit, baseline):
    median, p25, p75 = quartiles(rates)
    line = {"bench": "predict", "case": case, "params": params, "seed": options.seed, "n": len(rates), "median": round(median, 2),
            "p25": round(p25, 2), "p75": round(p75, 2), "unit": unit}
    if baseline:
        base = quartiles(baseline)[0]
        line.update(baseline=round(base, 2), ratio=round(median / base, 3))
    print(json.dumps(line), flush=True)


def make(name, first):
    subprocess.run([trimtab, "data", "make", name, "--rows", str(options.rows), "--features", "100000", "--seed",
                    str(options.seed), "--first-row", str(first)], check=True, stdout=subprocess.DEVNULL)


def models():
    with open("job.yaml", "w") as file:
        file.write("data: {format: libsvm, train: train.svm, features: 100000}\nmodel: {kind: logistic_regression}\n"
                   "optimizer: {kind: adagrad}\nstop: {max_epochs: 1}\ntuner: {enabled: off}\n")
    subprocess.run([trimtab, "run", "job.yaml", "-q"], check=True, stdout=subprocess.DEVNULL)
    if shutil.which("liblinear-train"):
        subprocess.run(["liblinear-train", "-q", "-s", "0", "-e", "0.1", "train.svm", "peer.model"], check=True)
    return os.path.join("runs", os.listdir("runs")[0])


def measure():
    make("train.svm", 0)
    make("test.svm", options.rows)
    megabytes, model = os.path.getsize("test.svm") / 1e6, models()
    peers = shutil.which("liblinear-predict") is not None
    if not peers:
        print(json.dumps({"bench": "predict", "case": "liblinear", "missing": "liblinear-tools is not installed"}), flush=True)
        print("liblinear-predict: missing", file=sys.stderr)
    for case, ours, theirs in (("labels", [], ["-q"]), ("probabilities", ["--proba"], ["-b", "1", "-q"])):
        own, peer, both = [], [], []
        for i in range(-1, options.repeats):  # one round does not count
            cpu, _ = child_seconds([trimtab, "predict", model, "test.svm", "--threads", "1", "-o", "own.out"] + ours)
            _, wall = child_seconds([trimtab, "predict", model, "test.svm", "-o", "own.out"] + ours)
            if i >= 0:
                own.append(megabytes / cpu)
                both.append(megabytes / wall)
            if peers:
                cpu, _ = child_seconds(["liblinear-predict"] + theirs + ["test.svm", "peer.model", "peer.out"])
                if i >= 0:
                    peer.append(megabytes / cpu)
        params = f"MB={megabytes:.0f} rows={options.rows}"
        say(case, own, "threads=1 " + params, "MB per CPU-second", peer)
        say(case + "_wall", both, f"threads={os.cpu_count()} " + params, "MB per second", None)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rows", type=int, default=150000)
parser.add_argument("--repeats", type=int, default=5)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as box:
    os.chdir(box)
    measure()
