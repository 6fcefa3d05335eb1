"""How good the time left is that runs of bench/run paper say while they train (table eta of the run store), beside what
it was: of the fixed settings that arrive, of tuned jobs and of the paper's. Used by paper_protocol.py and paper_report.py.

A run is asked when 20, 30, ... 90 % of its iterations are done (the last record before). Its answer is good when the
median is within a factor of two of the seconds until the target was held, and its interval holds them when they are
between the 10 % and the 90 % quantile. "No end to be seen" is an answer, too, and never a good one.
"""
import math

import trimtab_runs as runs
from trimtab_runs import say

SHARES = tuple(i / 10 for i in range(2, 10))
KINDS = ("fixed", "tuned", "paper")


def read(store, held):
    """[(share of the iterations done, seconds left, p10, median, p90, flags)]; `held` is (time_s, iteration, ...) or None."""
    if held is None:
        return []
    rows = store.execute("SELECT iteration, time_s, seconds_p10, seconds_median, seconds_p90, flags FROM eta ORDER BY iteration"
                         ).fetchall()
    answers = []
    for share in SHARES:
        before = [row for row in rows if row[0] <= share * held[1] and row[3] is not None]
        if before:
            iteration, time, *said, flags = before[-1]
            # JSON has no infinity
            said = [value if math.isfinite(value) else 1e300 for value in said]
            answers.append([round(iteration / held[1], 4), held[0] - time, *said, flags])
    return answers


def tally(rows):
    """{"runs", "asked", "good", "held", "low", "high", "never"} over the answers of these rows of the ledger; shares but for
    the first two."""
    answers = [answer for row in rows for answer in row["eta"]]
    count = len(answers)
    if count == 0:
        return None

    def share(test):
        return sum(map(test, answers)) / count

    return {"runs": sum(bool(row["eta"]) for row in rows), "asked": count,
            "good": share(lambda a: a[1] / 2 <= a[3] <= 2 * a[1]),
            "held": share(lambda a: a[2] <= a[1] <= a[4]),
            "low": share(lambda a: a[3] < a[1] / 2),
            "high": share(lambda a: 2 * a[1] < a[3] < 1e300),
            "never": share(lambda a: a[3] >= 1e300)}


def summary(bench):
    """{kind: tally} of the runs that arrived."""
    rows = [row for row in bench.ledger.rows.values() if row.get("eta") and row["seconds"] is not None]
    found = {kind: tally([row for row in rows if row["kind"] in ((kind, "default") if kind == "fixed" else (kind,))])
             for kind in KINDS}
    return {kind: value for kind, value in found.items() if value is not None}


def show(bench):
    table = ["  time left, asked at 20 to 90 % of the iterations:"]
    for kind, t in summary(bench).items():
        runs.print_line("paper", f"eta {kind}", {"cell": bench.cell.name, "runs": t["runs"], "asked": t["asked"]}, 1,
                        [t["good"]], "share within 2x", held=t["held"], low=t["low"], high=t["high"], never=t["never"])
        table.append(f"    {kind:6} {t['runs']:3} runs: within 2x {100 * t['good']:5.1f} %, 80 % interval holds "
                     f"{100 * t['held']:5.1f} %; too low {100 * t['low']:.1f}, too high {100 * t['high']:.1f}, "
                     f"no end seen {100 * t['never']:.1f} %")
    say("\n".join(table))
