"""The report of bench/run paper: docs/experiments/paper.md and its pictures, from the summaries of the cells that are done
(docs/experiments/paper-CELL.json, so that cells can be measured on different days). Used by paper.py beside it."""
import json
import os
import subprocess

import paper_bars
import paper_cells as cells
import paper_figures
import paper_svg
import trimtab_runs as runs

DIRECTORY = os.path.join(runs.ROOT, "docs", "experiments")
KINDS = ("worst", "average", "default", "paper", "tuned", "warm", "best")
# arXiv 1810.02935, LogR and SVM: its own tuned jobs, which are to be compared with `paper` here.
PUBLISHED = {
    "tuned / best": ("1.60", "1.29"), "average / tuned": ("1.53", "2.66"), "worst / tuned": ("6", "25"),
    "average rank of the choice, of 100": ("3.3", "2.0"), "share of the job reconfiguring": ("21 %", "3 %"),
    "checkpoint and restart / on demand": ("3.9", "6.5"),
}


def summary_path(cell):
    return os.path.join(DIRECTORY, f"paper-{cell.name}.json")


def git(*words):
    return subprocess.run(["git", *words], cwd=runs.ROOT, capture_output=True, text=True, check=False)


def revision():
    """Of the program's source, with a + where it differs from what is committed; docs, which this writes, are none of it."""
    name = git("describe", "--always", "--abbrev=9").stdout.strip()
    changed = git("diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs").returncode == 1
    return name + "+" * changed if name else "unknown"


def keep(cell, summary):
    os.makedirs(DIRECTORY, exist_ok=True)
    with open(summary_path(cell), "w", encoding="utf-8") as file:
        json.dump({**summary, "revision": revision()}, file)
        file.write("\n")


def read_summaries():
    """The summaries there are, in the order of the cells."""
    found = []
    for cell in cells.CELLS:
        if os.path.exists(summary_path(cell)):
            with open(summary_path(cell), encoding="utf-8") as file:
                found.append(json.load(file))
    return found


# ---- tables ----------------------------------------------------------------------------------------------------------

def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def spread(values, digits=2):
    """Median, quartiles and the interval of the median, in one cell of a table."""
    low, mid, high = runs.quartiles(values)
    begin, end = paper_figures.bootstrap(values)
    return f"**{mid:.{digits}f}** ({low:.{digits}f} .. {high:.{digits}f}; {begin:.{digits}f} .. {end:.{digits}f})"


def percent(value):
    return f"{100 * value:.1f} %"


def eta_of(summary):
    """Shares of the answers within a factor of two, and of the intervals that held, of each kind of run."""
    head = ["runs", "how many", "asked", "within 2x", "80 % interval holds", "too low", "too high", "no end seen"]
    names = {"fixed": "fixed settings", "tuned": "tuned, cold", "paper": "the paper's tuner and estimator"}
    return table(head, [[names[kind], t["runs"], t["asked"], *(percent(t[key]) for key in ("good", "held", "low", "high", "never"))]
                        for kind, t in summary["eta"].items()])


def restart_ratio(summary):
    """Checkpoint and restart over on demand, of settings that move parameters; None when on demand costs nothing."""
    costs = summary["moves"].get("model", {})
    if "on_demand" not in costs or "checkpoint" not in costs or costs["on_demand"][0] <= 0:
        return None
    return costs["checkpoint"][0] / costs["on_demand"][0]


def beside_the_paper(summaries):
    rows = []
    for name, key in (("tuned / best", "{}/best"), ("average / tuned", "average/{}"), ("worst / tuned", "worst/{}")):
        ours = [f"{paper_bars.middle(s['ratios'][key.format('tuned')]):.2f}; {paper_bars.middle(s['ratios'][key.format('paper')]):.2f}"
                for s in summaries]
        rows.append([name, *PUBLISHED[name], *ours])
    rows.append(["warm / best", "-", "-", *(f"{paper_bars.middle(s['ratios']['warm/best']):.2f}" for s in summaries)])
    rows.append(["a switch of tuned jobs, iterations (median)", "-", "-", *(f"{s['switches'][1]:.1f}" for s in summaries)])
    for words, key in (("time left within 2x, fixed settings", "good"), ("its 80 % interval holds", "held")):
        rows.append([words, "-", "-", *(percent(s["eta"]["fixed"][key]) if "fixed" in s["eta"] else "-" for s in summaries)])
    ranks = []
    for s in summaries:
        default, paper = paper_bars.rank_of(s, "default", 300), paper_bars.rank_of(s, "paper k=10", 300)
        ranks.append(f"{default[0]:.1f}; {paper[0]:.1f}" if default and paper else "-")
    rows.append(["average rank of the choice, of 100", *PUBLISHED["average rank of the choice, of 100"], *ranks])
    rows.append(["share of the job reconfiguring", *PUBLISHED["share of the job reconfiguring"],
                 *(f"{percent(paper_bars.middle(s['ratios']['tuned reconfiguring']))}; {percent(paper_bars.middle(s['ratios']['paper reconfiguring']))}"
                   for s in summaries)])
    ratios = [restart_ratio(s) for s in summaries]
    rows.append(["checkpoint and restart / on demand", *PUBLISHED["checkpoint and restart / on demand"],
                 *("no loss seen on demand" if ratio is None else f"{ratio:.1f}" for ratio in ratios)])
    return table(["", "published, LogR", "published, SVM", *(s["cell"] for s in summaries)], rows)


def times_of(summary):
    rows = [["worst of the fixed", f"{summary['worst']:.2f}", "", "", ""],
            ["average of the fixed", f"{summary['average']:.2f}", "", "", ""]]
    for kind in ("default", "paper", "tuned", "warm", "best"):
        count, each = summary["iterations"][kind]
        rows.append([kind, f"{paper_bars.middle(summary['times'][kind]):.2f}", f"{count:.0f}", f"{1e3 * each:.3f}",
                     summary["cut"][kind] or ""])
    return table(["", "seconds (median)", "iterations", "ms an iteration", "capped"], rows)


def moves_of(summary):
    rows = []
    for kind, methods in summary["moves"].items():
        if len(methods) == 2:
            rows.append([kind, *(f"{1e3 * methods[m][0]:.2f}" for m in ("on_demand", "checkpoint")),
                         *(f"{methods[m][0] / summary['iteration_s']:.1f}" for m in ("on_demand", "checkpoint")),
                         methods["on_demand"][2]])
    return table(["what changes", "on demand, ms lost", "checkpoint, ms lost", "in iterations", "in iterations", "n"], rows)


def ranks_of(summary):
    rows = []
    columns = [(60, "all"), (300, "all"), (300, 14), (300, 4)]
    for estimator in ("default", "paper k=1", "paper k=2", "paper k=10", "hwonly"):
        row = [estimator]
        for pushes, spread in columns:
            value = paper_bars.rank_of(summary, estimator, pushes, spread)
            row += [f"{value[0]:.1f}", f"{value[1]:.3f}"] if value else ["-", "-"]
        rows.append(row)
    return table(["estimator", "rank, 60 pushes", "regret", "rank, 300 pushes", "regret", "rank, 300, within 14 x", "regret",
                  "rank, 300, within 4 x", "regret"], rows)


def settings_of(summary):
    names = sorted({knob for setting in summary["chosen"].values() for knob in setting} - {"kernel", "pinning"})
    return table(["", *names], [[kind, *(setting.get(knob, "") for knob in names)]
                                for kind, setting in summary["chosen"].items()])


# ---- the page --------------------------------------------------------------------------------------------------------

HEAD = """# The paper's experiments, on 36 simulated hosts

Written by `bench/run paper` from its results; not edited by hand. The jobs, cluster and search space are `bench/paper_cells.py`,
`bench/paper_cluster.yaml` and `bench/paper_space.yaml`, the protocol is at the head of `bench/paper.py`. Times are virtual: the
first of two evaluations of the whole training objective in a row that hold the target, every 25 iterations, off the
clock, by the same rule for all runs. A merged push counts as the iterations it stands for.

*published* is "Towards Self-Tuning Parameter Servers" (arXiv 1810.02935) on its own hosts, data and system; `paper` is what its
tuner and estimator, as its text describes them, do on ours ([paper-mode](../paper-mode.md)); `tuned` is the default tuner, `warm`
the same with a repository that holds one run of the job with another seed. In the columns of cells, the first figure is of `tuned`, the second of `paper`. Worst and average are of {settings} random settings, one
run each, capped at 20 times the fastest; best is that of the ten fastest with the least mean of three runs, timed on fresh seeds
like the others. Ratios are by seed: median (quartiles; 95 % bootstrap interval of the median).

"""


BARS = """
What is asked of each cell: the figure (and its bound), in bold where it does not hold. Tuned over best may be 1.10 where a switch
costs fewer than 5 iterations, 1.25 elsewhere; within 4 x the bound of the rank is half of what looking at iteration times alone gets.

"""


def cell_page(summary):
    name, ratios = summary["cell"], summary["ratios"]
    rows = [[key, spread(values)] for key, values in ratios.items() if "reconfiguring" not in key]
    return f"""## {name}

Step {summary['step']:g}, target {summary['target']:g}; {summary['capped']} of {summary['settings']} fixed settings were capped at \
{summary['cap']:.1f} s. The best takes {summary['best_pushes']:.0f} pushes.
{summary['seeds']} seeds, program of revision {summary['revision']}.

![loss against time and iterations](paper-{name}.svg)

{times_of(summary)}
{table(["ratio by seed", "median (quartiles; interval)"], rows)}
Settings: best, the default, and where the tuned jobs of the first seed ended.

{settings_of(summary)}
What runs that arrived said of the time left at 20, 30, ... 90 % of their iterations, beside what it was.

{eta_of(summary)}
What one reconfiguration costs, mean training time lost. Files and new processes take no virtual time, so that restarts are
cheaper here than on any real cluster.

{moves_of(summary)}
Which setting an estimator names after one window of so many pushes, from the same model, at {summary['stages']} stages of the job:
its place among {summary['settings']} (1 is the best), and its time over the least, by the mean of three runs a setting; and the same among
those settings whose iterations take at most 14 and 4 times what the shortest take.

{ranks_of(summary)}"""


def write(directory=DIRECTORY):
    """Writes page and pictures of the summaries in DIRECTORY; returns the page's path, or None when there are none."""
    summaries = read_summaries()
    if not summaries:
        return None
    os.makedirs(directory, exist_ok=True)
    heights = {}
    for s in summaries:
        best = paper_bars.middle(s["times"]["best"])
        heights[s["cell"]] = {"worst": s["worst"] / best, "average": s["average"] / best, "best": 1.0,
                              **{kind: paper_bars.middle(s["times"][kind]) / best for kind in ("default", "paper", "tuned", "warm")}}
        put(directory, f"paper-{s['cell']}.svg", paper_svg.loss_curves(s["cell"], s["curves"], s["target"]))
    put(directory, "paper-times.svg", paper_svg.bars("time to the target over best's", heights, KINDS, "time / best"))
    page = HEAD.format(settings=summaries[0]["settings"])
    page += "![time to the target, over the best fixed setting's](paper-times.svg)\n\n" + beside_the_paper(summaries)
    page += BARS + table(["", *(s["cell"] for s in summaries)], paper_bars.lines(summaries))
    page += "\n" + paper_bars.time_left(summaries)
    page += "\n" + "\n".join(cell_page(s) for s in summaries)
    put(directory, "paper.md", page)
    return os.path.join(directory, "paper.md")


def put(directory, name, words):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write(words)
