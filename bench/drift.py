#!/usr/bin/python3
"""bench/run drift: whether a tuned job notices that its machine has changed, and finds the setting for the new one.

    drift.py [--count N] [--settings N] [--jobs N] [--results FILE] [--quick]

N jobs (10) of each kind on simulated hosts, drawn from a seed (tuner_jobs.py), tuned. At half the time that the job takes undisturbed,
    slow     one host becomes 4 times slower
    narrow   all network cards carry half as much
to the end. Only jobs count on which the change has an effect, in that an iteration under the setting in force when it comes takes at
least a quarter longer, and that have at least 40 windows undisturbed: a drawn job that has fewer is made longer, once.
Reported are the windows that began after the change until the tuner said so (bar: 5), and the seconds an iteration takes in the last
fifth of the job, over those of the fastest of N settings (40 random ones, and where the job ended and an undisturbed one did) on the
changed hosts (bar of the median: 1.3). The undisturbed runs of both kinds are watched for false alarms (bar: 1 in 10 jobs).

Every finished run is appended to FILE (bench/results/drift.jsonl); started again, the bench goes on where it stopped. --quick: 2 jobs
of each kind, 6 settings.
"""
import math
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import selftune  # noqa: E402  (beside this file)
import trimtab_runs as runs  # noqa: E402
import tuner_jobs  # noqa: E402
from trimtab_runs import say  # noqa: E402

SEED, TRIES = 101, 120
EFFECT = 1.25           # of a change that counts
WINDOWS, SLOWER = 5, 1.3  # bars
STEADY, STEADY_WINDOWS = 800, 4  # iterations, or those of so many windows, if more: the second half of them is measured
LEAST_WINDOWS = 40      # of a job that counts
LONGER, LENGTHS = 3, 2  # a drawn job is tried 3 times as long, and 9 times if that has too few
LAST = 0.8              # of the job: what is measured at its end
KINDS = {"slow": "{{kind: slow, from: {host}, factor: 4, at: {at:.6f}s}}", "narrow": "{{kind: narrow, factor: 2, at: {at:.6f}s}}"}


def changes(kind, host, at):
    return {"simulation.faults": "[" + KINDS[kind].format(host=host, at=at) + "]"}


def read_windows(store):
    """Every alarm, and every window with its seconds an iteration."""
    alarms = store.execute("SELECT time_s FROM event WHERE text LIKE ? ORDER BY time_s", (tuner_jobs.EVENT_CHANGED + "%",)).fetchall()
    windows = store.execute('SELECT start_s, end_s, first_iteration, last_iteration, setting FROM "window" ORDER BY start_s').fetchall()
    return {"alarms": [row[0] for row in alarms], "windows": windows, "settings": runs.settings_of(store)}


def in_force(calm, at):
    """The setting of the last window that begins before the change. Until then the changed run is the undisturbed one."""
    number = [row[4] for row in calm["windows"] if row[0] < at][-1]
    return calm["settings"].get(number) or calm["settings"][str(number)]  # numbers are text in the ledger


def pace(windows, since):
    """Seconds an iteration from `since` on, trials and moves included."""
    rows = [row for row in windows if row[0] >= since]
    if not rows:
        return math.nan
    return (rows[-1][1] - rows[0][0]) / max(rows[-1][3] - rows[0][2] + 1, 1)


def read_pace(store):
    """Seconds an iteration in the second half: the first pushes of a slow host, and what is read at first, say nothing of its pace."""
    times = store.execute("SELECT iteration_first, time_s FROM sample ORDER BY iteration_first").fetchall()
    times = times[len(times) // 2:]
    return {"pace": (times[-1][1] - times[0][1]) / (times[-1][0] - times[0][0]) if len(times) > 1 else None}


def steady(bench, job, key, setting, more):
    """Seconds an iteration under a fixed setting, once it is under way; infinite where it fails."""
    sets = {**tuner_jobs.UNTUNED, **more, "stop.max_epochs": f"{tuner_jobs.epochs_of(job, job['steady']):.6g}", "stop.objective": "null"}
    row = bench.once(job, f"pace-{key}", SEED, sets, setting, read=read_pace)
    return row["pace"] if row["status"] != "failed" and row["pace"] is not None else math.inf


def calm_run(bench, kind, index, attempt):
    """A drawn job with its undisturbed run, made longer until that has windows enough; (None, None): it does not serve."""
    for length in range(1, LENGTHS + 1):
        job = tuner_jobs.draw_job(f"drift-{kind}-{index}-{attempt}")
        job["iterations"] *= LONGER ** length
        job["name"] += f"-{length}"
        try:
            if not tuner_jobs.aim(bench, job):
                break
            calm = bench.once(job, "calm", SEED, tuner_jobs.TUNED, read=read_windows)
        except runs.RunFailed as failure:
            say(f"{job['name']}: {str(failure).splitlines()[-1]}")
            break
        if calm["status"] != "converged":
            break
        if len(calm["windows"]) >= LEAST_WINDOWS:
            return job, calm
    return None, None


def one(bench, kind, index):
    for attempt in range(TRIES):
        job, calm = calm_run(bench, kind, index, attempt)
        if job is None:
            continue
        host, at = job["rng"].randrange(4), calm["seconds"] / 2
        job["steady"] = max(STEADY, STEADY_WINDOWS * round(statistics.median(row[3] - row[2] + 1 for row in calm["windows"])))
        setting = in_force(calm, at)
        before = steady(bench, job, "before", setting, {})
        after = steady(bench, job, "after", setting, changes(kind, host, 0))
        if after >= EFFECT * before:
            return follow(bench, job, kind, host, at, calm)
    raise runs.RunFailed(f"of {TRIES} jobs of kind {kind}, number {index}, none feels the change")


def follow(bench, job, kind, host, at, calm):
    # The same number of iterations after the change as before it, at whatever pace.
    row = bench.once(job, "changed", SEED, {**tuner_jobs.TUNED, **changes(kind, host, at)}, read=read_windows)
    heard = [time for time in row["alarms"] if time >= at]
    windows = sum(1 for w in row["windows"] if w[0] >= at and w[1] <= heard[0]) if heard else math.inf
    space, end = bench.space(job), at + LAST * (row["seconds"] - at)
    new = changes(kind, host, 0)
    settings = [selftune.draw(space, job["rng"]) for _ in range(bench.options.settings)]
    paces = [steady(bench, job, f"new{k}", setting, new) for k, setting in enumerate(settings)]
    paces += [steady(bench, job, "new-end", row["setting"], new), steady(bench, job, "new-calm", calm["setting"], new)]
    return {"name": job["name"], "kind": kind, "windows": windows, "pace": pace(row["windows"], end) / min(paces),
            "end": paces[-2] / min(paces), "kept": paces[-1] / min(paces), "false": len(calm["alarms"]),
            "early": len(row["alarms"]) - len(heard)}


def show(results, options):
    failed = 0
    for kind in KINDS:
        rows = [row for row in results if row["kind"] == kind]
        for row in rows:
            say(f"  {row['name']:18} noticed after {row['windows']:3} windows; at the end {row['pace']:.2f}x of the best setting's "
                f"iteration (its last setting {row['end']:.2f}x, the undisturbed job's {row['kept']:.2f}x); {row['false']} false alarms")
        late = sum(row["windows"] > WINDOWS for row in rows)
        runs.print_line("drift", f"{kind}: windows until noticed", {"jobs": len(rows)}, SEED, [row["windows"] for row in rows], "windows")
        low, middle, high = runs.quartiles([row["pace"] for row in rows])
        runs.print_line("drift", f"{kind}: final iteration / best", {"settings": options.settings}, SEED, [row["pace"] for row in rows],
                        "ratio", most=max(row["pace"] for row in rows))
        failed += late > 0 or middle > SLOWER
        say(f"{kind}: {late} of {len(rows)} noticed after more than {WINDOWS} windows; final iteration {middle:.2f} ({low:.2f} .. {high:.2f})"
            f" of the best, at most {SLOWER}  " + ("FAIL" if late > 0 or middle > SLOWER else "PASS"))
    alarms = [row["false"] + row["early"] for row in results]
    allowed = math.ceil(len(alarms) / 10)
    ok = sum(alarms) <= allowed
    say(f"false alarms: {sum(alarms)} in {2 * len(alarms)} runs of {len(alarms)} jobs, at most {allowed}  " + ("PASS" if ok else "FAIL"))
    return 1 if failed or not ok else 0


def main(arguments):
    parser = tuner_jobs.parser_of("drift", __doc__)
    parser.add_argument("--count", type=int, help="jobs of each kind (10)")
    parser.add_argument("--settings", type=int, help="random settings on the changed hosts (40)")
    options = parser.parse_args(arguments)
    options.count = options.count or (2 if options.quick else 10)
    options.settings = options.settings or (6 if options.quick else 40)
    runs.need_program()
    bench = tuner_jobs.Bench(options.results, options)
    try:
        return show(bench.together([lambda k=k, i=i: one(bench, k, i) for k in KINDS for i in range(options.count)]), options)
    finally:
        bench.close()


if __name__ == "__main__":
    runs.end_with(main, "drift")
