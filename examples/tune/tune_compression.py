#!/usr/bin/env python3
"""Tunes something that is no training job: how to compress a file, seconds and bytes weighed against each other.

    tune_compression.py FILE [--evaluations N] [--log LOG] [--trimtab PROGRAM]

Asks `trimtab tune` for settings, compresses FILE under each, and tells what it cost: CPU seconds plus the seconds that the result
would take over a link of 10 MB/s. With --log a run that was broken off goes on where it was.
"""
import argparse
import bz2
import json
import lzma
import os
import subprocess
import sys
import time
import zlib


def compress(data, setting):
    """Bytes after compressing block by block."""
    step, level = setting["block"] * 1024, setting["level"]
    one = {"gz": lambda block: zlib.compress(block, level),
           "bz2": lambda block: bz2.compress(block, level),
           "xz": lambda block: lzma.compress(block, preset=level)}[setting["format"]]
    return sum(len(one(data[at:at + step])) for at in range(0, len(data), step))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("file")
    parser.add_argument("--evaluations", type=int, default=20)
    parser.add_argument("--log")
    parser.add_argument("--trimtab", default="trimtab")
    options = parser.parse_args()
    space = os.path.join(os.path.dirname(os.path.abspath(__file__)), "space.yaml")
    command = [options.trimtab, "tune", "--space", space] + (["--log", options.log] if options.log else [])
    with open(options.file, "rb") as file:
        data = file.read()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tuner:
        def request(body):
            print(json.dumps(body), file=tuner.stdin, flush=True)
            answer = json.loads(tuner.stdout.readline())
            if "error" in answer:
                sys.exit(f"trimtab tune: {answer['error']}")
            return answer

        for _ in range(options.evaluations):
            asked = request({"ask": 1})
            begin = time.process_time()
            size = compress(data, asked["setting"])
            cost = time.process_time() - begin + size / 10e6
            request({"tell": {"id": asked["id"], "y": cost}})
            print(f"{cost:8.3f} s  {json.dumps(asked['setting'])}  {asked['reason']}")
        best = request({"best": 1})
    print(f"best: {best['y']:.3f} s with {json.dumps(best['setting'])}")


if __name__ == "__main__":
    main()
