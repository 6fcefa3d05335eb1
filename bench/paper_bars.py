"""What is asked of a cell of bench/run paper, and whether it holds. Used by paper.py and paper_report.py."""
import operator
import statistics

import trimtab_runs as runs
from trimtab_runs import say

CHEAP_ITERATIONS = 5  # a switch that costs fewer is cheap


def middle(values):
    return runs.quartiles(values)[1]


def rank_of(summary, estimator, pushes, spread="all"):
    """Mean (rank, regret) of an estimator's choices after so many pushes, or None."""
    values = summary["ranks"].get(f"{estimator}|{pushes}|{spread}", [])
    return tuple(statistics.fmean(value[part] for value in values) for part in (0, 1)) if values else None


def judge(summary):
    """[(what, its value, "<=" or ">=", bound, whether it holds)]; what was not measured is left out."""
    ratios, rows = summary["ratios"], []

    def ask(what, value, sign, bound):
        if value is not None and bound is not None:
            rows.append((what, value, sign, bound, bool({"<=": operator.le, ">=": operator.ge}[sign](value, bound))))

    cheap = summary["switches"][1] < CHEAP_ITERATIONS
    ask("tuned / best", middle(ratios["tuned/best"]), "<=", 1.10 if cheap else 1.25)
    ask("warm / best", middle(ratios["warm/best"]), "<=", 1.15)
    ask("average / tuned", middle(ratios["average/tuned"]), ">=", 1.6)
    ask("worst / tuned", middle(ratios["worst/tuned"]), ">=", 8)
    ask("share of the job reconfiguring", middle(ratios["tuned reconfiguring"]), "<=", 0.05)
    if summary["cell"].endswith("-stale"):
        wide, narrow, others = (rank_of(summary, who, 300, spread) for who, spread in (("default", 14), ("default", 4), ("hwonly", 4)))
        ask("rank of the choice, within 14 x", wide and wide[0], "<=", 3)
        ask("rank of the choice, within 4 x", narrow and narrow[0], "<=", others and others[0] / 2)
    else:
        rank, regret = rank_of(summary, "default", 300) or (None, None)
        ask("rank of the choice", rank, "<=", 3)
        ask("regret of the choice", regret, "<=", 1.05)
    fixed = summary["eta"].get("fixed")
    if fixed is not None:
        ask("time left within 2x", fixed["good"], ">=", 0.85)
        ask("80 % interval holds", fixed["held"], ">=", 0.7)
        ask("80 % interval holds", fixed["held"], "<=", 0.9)
    return rows


def show(summary):
    say("\n".join(["  what is asked of it:"] + [f"    {what:32} {value:7.3f} {sign} {bound:<5.3g} {'holds' if holds else 'FAILS'}"
                                               for what, value, sign, bound, holds in judge(summary)]))


def lines(summaries):
    """Rows of a table: what is asked, and each cell's value, in bold where it does not hold."""
    names = list(dict.fromkeys((what, sign) for summary in summaries for what, _, sign, _, _ in judge(summary)))
    table = []
    for name in names:
        row = [f"{name[0]} {name[1]}"]
        for summary in summaries:
            found = [(value, bound, holds) for what, value, sign, bound, holds in judge(summary) if (what, sign) == name]
            row.append("-" if not found else ("{:.2f} ({:.3g})" if found[0][2] else "**{:.2f}** ({:.3g})").format(*found[0][:2]))
        table.append(row)
    return table


def time_left(summaries):
    """A sentence about what all runs in fixed settings, of all cells, said of the time left."""
    told = [summary["eta"]["fixed"] for summary in summaries if "fixed" in summary["eta"]]
    asked = sum(cell["asked"] for cell in told)
    if asked == 0:
        return ""
    good, held = (sum(cell["asked"] * cell[key] for cell in told) / asked for key in ("good", "held"))
    return (f"All {sum(cell['runs'] for cell in told)} runs in fixed settings together, asked {asked} times: time left within 2x in "
            f"{100 * good:.1f} % (85 %), 80 % interval holds in {100 * held:.1f} % (70 to 90 %).\n")
