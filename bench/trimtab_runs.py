"""Running trimtab from a benchmark: one job, its JSON, how busy the machine was otherwise; and the lines to print.

Used by the benchmarks beside it that run jobs; nothing to run by itself.
"""
import json
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(ROOT, "build", "release", "bin", "trimtab")
JIFFY = 1.0 / os.sysconf("SC_CLK_TCK")


class RunFailed(Exception):
    """The program refused the job, broke off or took too long; the text is for the person at the terminal."""


def end_with(main, name):
    """Runs main(arguments) of bench/run NAME and ends the process with what it returns, or says which run failed."""
    try:
        sys.exit(main(sys.argv[1:]))
    except RunFailed as failure:
        sys.exit(f"bench/run {name}: a run failed: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)


def need_program():
    if not os.access(PROGRAM, os.X_OK):
        sys.exit("build/release/bin/trimtab is missing: cmake --preset release && cmake --build --preset release")


def keep_program(copy):
    """Goes on with a copy of the program, whatever is built meanwhile."""
    global PROGRAM
    if os.path.exists(copy):
        os.remove(copy)  # not written over: it may be running
    PROGRAM = shutil.copy(PROGRAM, copy)


def arguments_of(config, sets):
    """config: path of the job file, or several, each laid over those before it; sets: {key: value} for --set, None values
    are left out."""
    arguments = [config] if isinstance(config, str) else list(config)
    for key, value in sets.items():
        if value is not None:
            arguments += ["--set", f"{key}={value}"]
    return arguments


def plan(config, sets=None):
    """The object of `trimtab plan --json`, and what it said on standard error (refused values)."""
    done = subprocess.run([PROGRAM, "plan", *arguments_of(config, sets or {}), "--json"], capture_output=True, text=True,
                          timeout=300, check=False, env=environment())
    return (json.loads(done.stdout) if done.returncode == 0 else None), done.stderr


def knob_kinds():
    """{knob: its row of `trimtab knobs list --json`}: kind, scale, values of an enum."""
    done = subprocess.run([PROGRAM, "knobs", "list", "--json"], capture_output=True, text=True, timeout=60, check=True)
    return {knob["id"]: knob for knob in json.loads(done.stdout)}


def busy_seconds():
    """CPU-seconds all processors of this machine have spent so far, stolen ones included."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return JIFFY * (user + nice + system + irq + softirq + steal)


def child_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def environment(repository="off"):
    """The environment of a run: every bench starts cold and leaves nothing behind, unless it names a repository."""
    return {**os.environ, "TRIMTAB_REPOSITORY": repository}


def run(config, sets, runs_dir=None, timeout=900, repository="off", cold=False):
    """Runs one job to its end and returns its JSON object. Added are `cpu_seconds` of the whole program, and `others`:
    the share of the machine that other processes used meanwhile (a run with much of it says little). Raises RunFailed.
    Without `runs_dir` the run directory is thrown away."""
    with tempfile.TemporaryDirectory(prefix="trimtab-bench-") as scratch:
        command = [PROGRAM, "run", *arguments_of(config, sets), "--json", "-q", "--runs", runs_dir or scratch]
        command += ["--cold"] * cold
        busy, own, began = busy_seconds(), child_seconds(), time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                                  env=environment(repository))
        except subprocess.TimeoutExpired as late:
            raise RunFailed(f"no end after {timeout:.0f} s: {' '.join(command)}") from late
        wall = time.monotonic() - began
        own = child_seconds() - own
        others = (busy_seconds() - busy - own) / (wall * os.cpu_count())
    if done.returncode < 0 or not done.stdout.lstrip().startswith("{"):
        raise RunFailed(f"exit status {done.returncode}: {' '.join(command)}\n{done.stderr.strip()}")
    result = json.loads(done.stdout)
    result["cpu_seconds"] = own
    result["others"] = min(max(others, 0.0), 1.0)
    return result


# ---- values of knobs -------------------------------------------------------------------------------------------------

def number_of(text):
    """The number in a value as `plan` writes it: "64 KiB", "100 pauses", "2"."""
    match = re.match(r"(-?[\d.]+)(?:\s*(KiB|MiB|GiB))?", text)
    if match is None:
        raise ValueError(f"no number in '{text}'")
    value = float(match[1]) * {None: 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[match[2]]
    return int(value) if value == int(value) else value


def setting_keys(setting):
    """{"setting.servers": 3, ...} of {"servers": 3, ...}."""
    return {f"setting.{knob}": value for knob, value in setting.items()}


def settings_of(store):
    """{number: {knob: value}} of the settings of a run store, the free knobs, as the job file takes them."""
    knobs = {ordinal: (knob, kind, (names or "").split(",")) for ordinal, knob, kind, names in
             store.execute("SELECT ordinal, id, kind, value_names FROM knob WHERE NOT fixed")}
    settings = {}
    for setting, ordinal, value in store.execute("SELECT setting, knob, value FROM setting_value"):
        if ordinal in knobs:
            knob, kind, names = knobs[ordinal]
            settings.setdefault(setting, {})[knob] = (
                names[int(value)] if kind == "enum" else ("off", "on")[int(value)] if kind == "bool"
                else int(value) if kind == "int" else value)
    return settings


# ---- figures ---------------------------------------------------------------------------------------------------------

def quartiles(values):
    """(p25, median, p75), infinities (runs that never got there) allowed."""
    values = sorted(values)
    if len(values) == 1:
        return values[0], values[0], values[0]

    def at(share):
        place = share * (len(values) - 1)
        low = math.floor(place)
        part = place - low
        return values[low] if part == 0 else values[low] * (1 - part) + values[low + 1] * part

    return at(0.25), statistics.median(values), at(0.75)


def finite(value):
    """`value` to six digits; None (null) where it is not finite."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def print_line(bench, case, params, seed, values, unit, **more):
    """One JSON line in the format of all benches; `more`: baseline, ratio and the like."""
    low, middle, high = quartiles(values)
    line = {"bench": bench, "case": case, "params": params, "seed": seed, "n": len(values), "median": finite(middle),
            "p25": finite(low), "p75": finite(high), "unit": unit}
    line.update({key: finite(value) for key, value in more.items()})
    print(json.dumps(line), flush=True)


def say(*words):
    print(*words, file=sys.stderr, flush=True)
