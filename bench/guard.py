#!/usr/bin/python3
"""bench/run guard: whether a tuned job is ever much slower than its start setting, on random simulated jobs.

    guard.py [--count N] [--jobs N] [--results FILE] [--quick]

N jobs (100): model, data, cluster and start setting are drawn from the job's name (tuner_jobs.py). A third begins in the default
setting, a third in a random one, a third in the fastest of ten random ones, which leaves the tuner little to win. The target is where
the start setting is after a drawn number of iterations. Compared is the virtual time to the target, tuned over untuned, by seed; of a
job counts the mean of 3 seeds. A job above 1.10 is run again on 5 fresh seeds: its median must not be above 1.10, and no mean above
1.25. A run that does not arrive within four times the iterations counts as four times the untuned time.

Every finished run is appended to FILE (bench/results/guard.jsonl); started again, the bench goes on where it stopped. --quick: 4 jobs.
"""
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import selftune  # noqa: E402  (beside this file)
import trimtab_runs as runs  # noqa: E402
import tuner_jobs  # noqa: E402
from trimtab_runs import say  # noqa: E402

SEEDS, FRESH = (101, 102, 103), (201, 202, 203, 204, 205)
CANDIDATES, TRIES, CUT = 10, 20, 4.0
ABOVE, FAR_ABOVE = 1.10, 1.25


def begin_in(bench, job, index):
    """Where the job begins: the default, a random setting, or the fastest of some."""
    space, rng = bench.space(job), job["rng"]
    if index % 3 == 0:
        return
    drawn = [selftune.draw(space, rng) for _ in range(CANDIDATES if index % 3 == 2 else 1)]
    times = []
    for k, setting in enumerate(drawn if len(drawn) > 1 else []):
        row = bench.once(job, f"candidate{k}", 1, {**tuner_jobs.UNTUNED, "stop.max_epochs": 2}, setting)
        times.append(row["seconds"] / max(row["iterations"], 1) if row["status"] != "failed" else float("inf"))
    job["start"] = drawn[times.index(min(times)) if times else 0]


def prepare(bench, index):
    """Job `index`, with start setting and target; names are drawn until one trains."""
    for attempt in range(TRIES):
        job = tuner_jobs.draw_job(f"guard-{index}-{attempt}")
        try:
            begin_in(bench, job, index)
            if tuner_jobs.aim(bench, job):
                return job
        except runs.RunFailed as failure:
            say(f"{job['name']}: {str(failure).splitlines()[-1]}")
    raise runs.RunFailed(f"none of {TRIES} jobs of number {index} trains")


def ratio(bench, job, seed):
    start = bench.once(job, "start", seed, tuner_jobs.UNTUNED)
    tuned = bench.once(job, "tuned", seed, tuner_jobs.TUNED)
    limit = CUT * start["seconds"]
    return tuner_jobs.time_of(tuned, limit) / start["seconds"]


def judge(bench, index):
    job = prepare(bench, index)
    ratios = [ratio(bench, job, seed) for seed in SEEDS]
    verdict = {"name": job["name"], "mean": statistics.mean(ratios), "ratios": ratios}
    if verdict["mean"] > ABOVE:
        again = [ratio(bench, job, seed) for seed in FRESH]
        verdict["again"], verdict["median_again"] = again, statistics.median(again)
    return verdict


def show(verdicts):
    means = sorted(v["mean"] for v in verdicts)
    runs.print_line("guard", "tuned/start", {"jobs": len(means), "seeds": len(SEEDS)}, 0, means, "ratio", least=means[0],
                    p90=means[int(0.9 * (len(means) - 1))], most=means[-1])
    edges = [0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.05, 1.10, 1.25, float("inf")]
    for low, high in zip(edges, edges[1:]):
        count = sum(low < mean <= high for mean in means)
        say(f"  {low:5.2f} .. {high:5.2f}  {count:4d}  " + "#" * count)
    for v in verdicts:
        if v["mean"] > ABOVE:
            say(f"  {v['name']}: {v['mean']:.3f} ({', '.join(f'{r:.2f}' for r in v['ratios'])}); on fresh seeds {v['median_again']:.3f} "
                f"({', '.join(f'{r:.2f}' for r in v['again'])})")
    slow = [v for v in verdicts if v.get("median_again", 0) > ABOVE]
    far = [v for v in verdicts if v["mean"] > FAR_ABOVE]
    say(f"median {statistics.median(means):.3f}; above {ABOVE} on fresh seeds too: {len(slow)}, above {FAR_ABOVE}: {len(far)}  "
        + ("FAIL" if slow or far else "PASS"))
    return 1 if slow or far else 0


def main(arguments):
    parser = tuner_jobs.parser_of("guard", __doc__)
    parser.add_argument("--count", type=int, help="jobs (100)")
    options = parser.parse_args(arguments)
    runs.need_program()
    bench = tuner_jobs.Bench(options.results, options)
    try:
        count = options.count or (4 if options.quick else 100)
        return show(bench.together([lambda i=i: judge(bench, i) for i in range(count)]))
    finally:
        bench.close()


if __name__ == "__main__":
    runs.end_with(main, "guard")
