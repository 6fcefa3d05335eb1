#!/usr/bin/python3
"""bench/run rules: what each rule of the tuner is worth: jobs with all rules, and with one left out at a time (tuner.without).

    rules.py [--seeds N] [--only RULE[,RULE...]] [--cells LIST] [--jobs N] [--data-dir DIR] [--results FILE] [--quick]

On simulated hosts the cells of bench/run paper in LIST (logr-a9a, svm-a9a-stale, logr-clicklog, softmax-dna), by virtual time, and a third
of the random jobs of bench/run guard; and, one run at a time, a job on threads of this machine (configs/clicklog.yaml with a fifth of
its rows and columns), in real time, with all rules before every four runs without one. Compared is the time to the target without the
rule over that with all rules (their median), by seed (N: 5): above 1 the rule earns its place. A run that does not arrive within four
times the time counts as that.

Every finished run is appended to FILE (bench/results/rules.jsonl); started again, the bench goes on where it stopped. The table goes to
docs/experiments/rules.md when all was run. --quick: one cell, 2 rules, 1 seed.
"""
import math
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guard  # noqa: E402  (beside this file)
import paper_cells as cells  # noqa: E402
import trimtab_runs as runs  # noqa: E402
import tuner_jobs  # noqa: E402
from trimtab_runs import say  # noqa: E402

RULES = ["spread", "cost", "abandon", "guard", "share", "hysteresis", "replicate", "rest", "rate", "delay", "drift", "curvature", "trend", "credit", "noise"]
CELLS = ["logr-a9a", "svm-a9a-stale", "logr-clicklog", "softmax-dna"]
GUARD_JOBS = range(1, 34)
FIRST_SEED, CUT, CAP_S = 101, 4.0, 600
BESIDE = 4  # rules that a run with all of them stands beside, in real time
THREADS = {"tuner.compare": "off", "data.rows": 200000, "data.columns": 200000, "stop.loss": 0.26, "data.test": "null"}
REPORT = os.path.join(runs.ROOT, "docs", "experiments", "rules.md")


def without(rule):
    return {} if rule is None else {"tuner.without": rule}


def cell_job(name, options):
    """A cell of the paper's experiments as a job, its files laid over each other; None: its data are missing."""
    cell = next(cell for cell in cells.CELLS if cell.name == name)
    data = cells.data_of(cell, options.data_dir)
    if data is None:
        say(f"{name}: {cells.FILES[cell.data]} is not in {options.data_dir}: left out")
        return None
    return {"name": name, "text": cells.job_text(cell, data), "over": [cells.CLUSTER, cells.SPACE], "start": {},
            "sets": {"stop.max_time": f"{CAP_S}s"}, "rng": None}


def reference_of(rows, name, seed):
    """Seconds with all rules: of several runs the median; None where one does not arrive."""
    late = [row for row in rows if row["status"] != "converged"]
    if late:
        say(f"{name}: seed {seed} does not arrive with all rules; left out")
        return None
    return statistics.median(row["seconds"] for row in rows)


def compare(bench, job, rules, seeds, every=len(RULES)):
    """{rule: ratios by seed}, without it over with all; that one runs before every so many others."""
    kinds = []
    for i, rule in enumerate(rules):
        if i % every == 0:
            kinds.append(("all" if i == 0 else f"all-{i // every + 1}", None))
        kinds.append((f"without-{rule}", rule))
    rows = bench.together([lambda k=kind, r=rule, s=seed: bench.once(job, k, s, {**tuner_jobs.TUNED, **without(r)})
                           for seed in seeds for kind, rule in kinds])
    out = {rule: [] for rule in rules}
    for k, seed in enumerate(seeds):
        group = list(zip(kinds, rows[k * len(kinds):(k + 1) * len(kinds)]))
        reference = reference_of([row for (_, rule), row in group if rule is None], job["name"], seed)
        for (_, rule), row in group:
            if rule is not None and reference is not None:
                out[rule].append(tuner_jobs.time_of(row, CUT * reference) / reference)
    return out


def guard_jobs(bench, rules):
    """The same of random jobs, one seed each; all of them together are one column."""
    out = {rule: [] for rule in rules}
    for index in GUARD_JOBS:
        for rule, ratios in compare(bench, guard.prepare(bench, index), rules, [FIRST_SEED]).items():
            out[rule] += ratios
    return out


def threads(bench, rules, seeds):
    job = {"name": "threads", "text": None, "config": "configs/clicklog.yaml", "start": {}, "sets": THREADS, "rng": None}
    jobs, bench.options.jobs = bench.options.jobs, 1  # in real time: one at a time, in turns
    try:
        return compare(bench, job, rules, seeds, BESIDE)
    finally:
        bench.options.jobs = jobs


def cell_text(ratios):
    if not ratios:
        return "-"
    low, middle, high = runs.quartiles(ratios)
    return f"**{middle:.2f}** ({low:.2f} .. {high:.2f})"


def show(columns, rules, options):
    lines = ["| rule left out | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for rule in rules:
        lines.append(f"| `{rule}` | " + " | ".join(cell_text(column[rule]) for column in columns.values()) + " |")
        for name, column in columns.items():
            if column[rule]:
                runs.print_line("rules", f"without {rule}", name, FIRST_SEED, column[rule], "ratio",
                                mean=statistics.geometric_mean(column[rule]), most=max(column[rule]))
    say("\n".join(lines))
    if options.whole:
        write_report(lines, columns, options)


def write_report(lines, columns, options):
    means = {rule: statistics.geometric_mean([math.exp(statistics.mean(map(math.log, column[rule]))) for column in columns.values()
                                              if column[rule]]) for rule in RULES}
    text = f"""# What each rule of the tuner is worth

Written by `bench/run rules` from its results; not edited by hand. Time to the target with the rule left out over that with all rules, by
seed: median (quartiles). Above 1 the rule earns its place. What the rules do is in [report.md](../report.md).
Simulated: {options.seeds} seeds a cell of [the paper's experiments](paper.md), and {len(GUARD_JOBS)} random jobs
of `bench/run guard`. Threads: `configs/clicklog.yaml` with a fifth of its rows and columns, in real time, where single runs vary by a
fifth, over the median of four runs with all rules; that of its {options.seeds} seeds says no more than a tenth.

""" + "\n".join(lines) + """

Geometric means over the columns: """ + ", ".join(f"`{rule}` {mean:.2f}" for rule, mean in sorted(means.items(), key=lambda x: -x[1])) + ".\n"
    with open(REPORT, "w", encoding="utf-8") as file:
        file.write(text)
    say("report: " + os.path.relpath(REPORT, runs.ROOT))


def main(arguments):
    parser = tuner_jobs.parser_of("rules", __doc__)
    parser.add_argument("--seeds", type=int, help="seeds a job (5)")
    parser.add_argument("--only", help="rules to leave out, with commas between them (all)")
    parser.add_argument("--cells", help="cells of bench/run paper, and guard, threads (all)")
    parser.add_argument("--data-dir", default=os.path.join(runs.ROOT, "..", "shared", "data"), help="where a9a.xz and dna.train.svm.xz are")
    options = parser.parse_args(arguments)
    options.whole = not options.quick and options.only is None and options.cells is None
    options.seeds = options.seeds or (1 if options.quick else 5)
    rules = options.only.split(",") if options.only else RULES[:2] if options.quick else RULES
    wanted = options.cells.split(",") if options.cells else ["logr-clicklog"] if options.quick else [*CELLS, "guard", "threads"]
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    runs.need_program()
    bench, columns = tuner_jobs.Bench(options.results, options), {}
    try:
        for name in wanted:
            if name == "guard":
                columns["random jobs"] = guard_jobs(bench, rules)
            elif name == "threads":
                columns["threads"] = threads(bench, rules, seeds)
            else:
                job = cell_job(name, options)
                columns.update({name: compare(bench, job, rules, seeds)} if job is not None else {})
        show(columns, rules, options)
        return 0
    finally:
        bench.close()


if __name__ == "__main__":
    runs.end_with(main, "rules")
