#!/usr/bin/python3
"""bench/run paper: the experiments of "Towards Self-Tuning Parameter Servers" (arXiv 1810.02935) on 36 simulated hosts.

    paper.py [--workload logr|svm|softmax] [--data a9a|clicklog|dna] [--variant plain|stale] [--seeds N] [--settings N]
             [--jobs N] [--data-dir DIR] [--quick]

The hosts are in paper_cluster.yaml, the search space in paper_space.yaml, the jobs in paper_cells.py, beside this file. A
cell is a workload on a data set in a variant: `stale` has a step size near the stable limit, so that staleness costs
iterations. A run's time is the virtual time of the first of two evaluations of the whole training objective in a row that
are at most the target (every 25 iterations, off the clock, unseen by the tuner), for all runs alike. Compared are
  fixed      100 random settings, one run each (seed 1), capped at 20 times the fastest; worst and average are of these
  best       the ten fastest of them run on two more seeds, the least mean; then timed on fresh seeds
  default    the default setting, untuned, on the fresh seeds
  tuned      the job tuned, from the default setting, on the fresh seeds, cold
  warm       the same with a repository that holds the tuned run of one other seed
  paper      the same with the paper's tuner and estimator (tuner.model: paper, docs/paper-mode.md)
Ratios are by seed: median, quartiles, and a bootstrap interval of the median. A capped run counts as the cap.

What the runs say of the time left beside what it was, what a reconfiguration costs on demand and by checkpoint and restart,
and which settings estimators name after one window, is measured too: paper_eta.py, paper_moves.py, paper_rank.py. What is asked of a
cell is in paper_bars.py. The report of all cells that are done is docs/experiments/paper.md.

Every finished run is appended to bench/results/paper-CELL.jsonl; started again, the bench goes on where it stopped.
Another program, job, cluster or space starts afresh. --quick: few settings, short runs: whether the bench works.
"""
import argparse
import dataclasses
import hashlib
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import paper_bars  # noqa: E402  (beside this file)
import paper_cells as cells  # noqa: E402
import paper_eta  # noqa: E402
import paper_figures  # noqa: E402
import paper_moves  # noqa: E402
import paper_rank  # noqa: E402
import paper_report  # noqa: E402
import paper_protocol as protocol  # noqa: E402
import selftune  # noqa: E402
import trimtab_runs as runs  # noqa: E402
from trimtab_runs import say  # noqa: E402

RESULTS = os.path.join(runs.ROOT, "bench", "results")
SETTINGS = 100  # with fewer, nothing goes into the report
QUICK_TARGETS = {"a9a": 0.36, "clicklog": 0.55, "dna": 0.3}


def fingerprint_of(cell, data, options):
    parts = [cells.job_text(cell, "data"), selftune.DRAW_SEED, protocol.CAP, options.limit]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    inputs = [cells.file_of(cell, options.data_dir)] if cell.data in cells.FILES else []
    digest.update(data.encode() if not inputs else b"")  # wherever the file is
    for path in (runs.PROGRAM, cells.CLUSTER, cells.SPACE, *inputs):
        with open(path, "rb") as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()[:16]


def chosen(options):
    found = [cell for cell in cells.CELLS
             if options.workload in (None, cell.workload) and options.data in (None, cell.data)
             and options.variant in (None, cell.variant)]
    if not found:
        sys.exit("bench/run paper: no such cell; there are " + ", ".join(cell.name for cell in cells.CELLS))
    if options.quick:
        found = [dataclasses.replace(cell, step=0.02, target=QUICK_TARGETS[cell.data]) for cell in found[:1]]
    return found


def run_cell(cell, options):
    """Does what is left of a cell and shows its figures; None when its data are missing."""
    data = cells.data_of(cell, options.data_dir)
    if data is None:
        say(f"{cell.name}: {cells.FILES[cell.data]} is not in {options.data_dir}: left out (--data-dir names another place)")
        return None
    path = os.path.join(RESULTS, f"paper-{cell.name}{'-quick' * options.quick}.jsonl")
    ledger = selftune.Ledger(path, fingerprint_of(cell, data, options))
    bench = protocol.Bench(cell, data, options, ledger)
    try:
        bench.run()
        figures = paper_figures.Figures(bench)
        figures.show()
        paper_eta.show(bench)
        paper_moves.show(bench)
        paper_rank.show(bench)
        summary = figures.summary()
        paper_bars.show(summary)
        if options.settings >= SETTINGS:
            paper_report.keep(cell, summary)
        return figures
    finally:
        bench.close()


def parse(arguments):
    parser = argparse.ArgumentParser(prog="bench/run paper", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--workload", choices=sorted({cell.workload for cell in cells.CELLS}), help="only this one")
    parser.add_argument("--data", choices=sorted({cell.data for cell in cells.CELLS}), help="only this data set")
    parser.add_argument("--variant", choices=("plain", "stale"), help="only this variant")
    parser.add_argument("--seeds", type=int, help="fresh seeds on which best, default, tuned and paper are timed (3)")
    parser.add_argument("--settings", type=int, help="random fixed settings (100; with fewer, no report)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (2)")
    parser.add_argument("--data-dir", default=os.path.join(runs.ROOT, "..", "shared", "data"),
                        help="where a9a.xz and dna.train.svm.xz are")
    parser.add_argument("--quick", action="store_true", help="one cell, few settings, short runs: a smoke test")
    options = parser.parse_args(arguments)
    options.seeds = options.seeds or (2 if options.quick else 3)
    options.settings = options.settings or (8 if options.quick else SETTINGS)
    options.limit = 20.0 if options.quick else None
    options.repeats = 2 if options.quick else 10
    options.level_step = 5 if options.quick else 1
    if options.seeds < 1 or options.settings < 1 or options.jobs < 1:
        parser.error("at least 1 seed, 1 setting and 1 job")
    return options


def main(arguments):
    options = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops when the runs under way have ended
    runs.need_program()
    os.makedirs(RESULTS, exist_ok=True)
    runs.keep_program(os.path.join(RESULTS, f"paper-trimtab-{os.getpid()}"))
    try:
        for cell in chosen(options):
            run_cell(cell, options)
        report = None if options.settings < SETTINGS else paper_report.write()
        if report is not None:
            say("report: " + os.path.relpath(report, runs.ROOT))
    except runs.RunFailed as failure:
        say(f"bench/run paper: a run failed: {failure}")
        return 1
    except KeyboardInterrupt:
        say("\nstopped; the same command goes on where it was")
        return 130
    finally:
        os.remove(runs.PROGRAM)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
