"""How well estimators rank settings in a cell of bench/run paper (the paper's Table VI). Used by paper_protocol.py.

At each of ten stages of the job, evenly spaced in the logarithm of the loss, a reference run in the default setting is
stopped and saved; from there each of the fixed settings runs one window of 60 and one of 300 pushes (the first 60 of
the same run). Each estimator names the setting with the least time left:
  hwonly      seconds per iteration alone
  paper k=..  seconds per iteration times the paper's iterations left, kappa 1, 2 and 10; fitted to the first 60 or 300
              iterations of the window, whether they were merged or not, for its answer is of the order of their number
  default     seconds per iteration over the rate of the pooled estimator, which has seen the reference run until then and
              all the windows; of settings whose loss bears the lag of their gradients (bears, below)
What counts is that setting's true time from the stage's loss to the target, the mean of its own runs on three seeds (one that
is capped on the first seed counts as the cap): its place among all (rank, 1 is the best) and how many times the least it is
(regret). The same among those only whose iterations take at most 4 and 14 times what the shortest take (spread): the narrower,
the less is won by looking at iterations alone.
"""
import hashlib
import math
import os
import shutil
import statistics
import subprocess
import tempfile

import paper_cells as cells
import trimtab_runs as runs
from trimtab_runs import say

WINDOWS = (60, 300)  # pushes
SPREADS = (4, 14)    # of seconds per iteration
STRETCH = 1000       # of virtual time, for the estimator: paper_rank_bench.c
PROGRAM = os.path.join(os.path.dirname(runs.PROGRAM), "paper_rank_bench")
# Limits of a lag: over what is borne in calm windows, over what is borne in the window itself, of the loss at its end over
# that of calm windows (more; less of it excuses all) and of the mean loss.
CALM_SHARE, OWN_SHARE, LOSS_MORE, LOSS_LESS, MEAN_MORE = 1.1, 0.95, 1.05, 0.95, 1.2
ESTIMATORS = ("default", "paper k=1", "paper k=2", "paper k=10", "hwonly")
NODES = 36
BARE = {"tuner.enabled": "off", "stop.objective": "null", "simulation.evaluate_pushes": "null"}


def merged(setting):
    return setting.get("push_aggregation", 1)


def workers_of(setting):
    return NODES - setting["servers"]


def features(setting):
    """What can change statistics, as the tuner encodes it."""
    return [workers_of(setting) / NODES, (setting["servers"] - 1) / (NODES - 2), float(setting["bf16_transfer"] == "on"),
            math.log2(merged(setting)) / 3]


LOSSY = 1 << 2  # of the features: 16-bit transfer


def read_samples(path):
    """[(line for the program, loss)] in apply order."""
    lines = []
    with open(path, encoding="ascii") as file:
        for line in file:
            if not line.startswith("#"):
                _, *words = line.split()
                lines.append((" ".join(words), float(words[3])))
    return lines


class Segment:
    """A stage: where the reference run is saved, and what was seen until then."""

    def __init__(self, bench, index, directory):
        self.bench, self.directory, self.samples = bench, directory, []
        cell = bench.cell
        self.loss_before = cells.FIRST_LOSS[cell.workload]
        self.run_dir, self.iterations = None, 0
        stop = bench.ledger.rows["default:1"]["levels"][index]
        if index == 0:
            return
        path = os.path.join(directory, "reference.txt")
        result = runs.run(bench.files, {**BARE, "seed": 1, "stop.max_time": f"{stop:.6f}s", "checkpoint.keep": 1,
                                        "checkpoint.every": 0, "simulation.samples": path}, directory)
        self.run_dir, self.iterations = result["run_dir"], result["iterations"]
        self.samples = read_samples(path)
        self.loss_before = self.samples[-1][1]

    def window(self, index):
        """The samples of setting `index` from here, enough for the longest window."""
        bench, setting = self.bench, self.bench.settings[index]
        need = merged(setting) * (max(WINDOWS) + 2 * workers_of(setting))
        epochs = (self.iterations + need) * cells.BATCH[bench.cell.data] / cells.ROWS[bench.cell.data]
        path = os.path.join(self.directory, f"{index}.txt")
        sets = {**BARE, **runs.setting_keys(setting), "stop.max_epochs": f"{epochs:.4f}", "stop.max_time": "null",
                "checkpoint.keep": 0, "simulation.samples": path}
        scratch = os.path.join(self.directory, f"run-{index}")
        if self.run_dir is None:
            os.mkdir(scratch)
            runs.run(bench.files, {**sets, "seed": 1}, scratch)
        else:
            shutil.copytree(self.run_dir, scratch)
            resume(scratch, sets)
        shutil.rmtree(scratch)
        return read_samples(path)


def resume(run_dir, sets):
    command = [runs.PROGRAM, "run", "--resume", run_dir, *runs.arguments_of([], sets), "-q"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, env=runs.environment())
    if done.returncode not in (0, 1):  # 1: it diverged, which is for the estimators to see
        raise runs.RunFailed(f"exit status {done.returncode}: {' '.join(command)}\n{done.stderr.strip()}")


def ask(bench, segment, windows, pushes):
    """{setting: [seconds per iteration, log rate, four ratios (of bears), paper's iterations for each kappa]}
    of windows of so many pushes."""
    default = {"servers": 9, "bf16_transfer": "off"}
    head = features(default)
    lines = [f"target {bench.cell.target!r} stretch {STRETCH} step {bench.cell.step!r} lossy {LOSSY}",
             f"history {len(segment.samples)} {workers_of(default)} {len(head)} {' '.join(map(repr, head))}"]
    lines += [line for line, _ in segment.samples]
    for index, samples in windows.items():
        setting = bench.settings[index]
        kept = samples[:pushes * merged(setting)]
        seen = features(setting)
        lines.append(f"window {index} {workers_of(setting)} {merged(setting)} {segment.loss_before!r} {pushes} {len(kept)} {len(seen)} "
                     + " ".join(map(repr, seen)))
        lines += [line for line, _ in kept]
    done = subprocess.run([PROGRAM], input="\n".join(lines), capture_output=True, text=True, timeout=900, check=False)
    if done.returncode != 0:
        raise runs.RunFailed(f"{PROGRAM}: {done.stderr.strip()}")
    return {words[0]: [float(word) for word in words[1:]] for words in map(str.split, done.stdout.splitlines())}


def key_of(bench, index):
    """Of a stage, with these settings and this program that asks the estimators."""
    with open(PROGRAM, "rb") as file:
        program = hashlib.sha256(file.read()).hexdigest()[:8]
    return f"rank:{index}:{len(bench.settings)}:{program}"


def stages(bench):
    return range(0, cells.LEVELS, bench.options.level_step)


def measure(bench):
    for index in stages(bench):
        key = key_of(bench, index)
        if key in bench.ledger.rows or bench.ledger.rows["default:1"]["levels"][index] is None:
            continue
        directory = tempfile.mkdtemp(dir=bench.scratch)
        segment, windows = Segment(bench, index, directory), {}

        def one(i, segment=segment, windows=windows):
            windows[i] = segment.window(i)

        bench.together([lambda i=i: one(i) for i in range(len(bench.settings))])
        answers = {str(n): ask(bench, segment, dict(sorted(windows.items())), n) for n in WINDOWS}
        shutil.rmtree(directory)
        bench.ledger.add({"key": key, "kind": "rank", "seed": 1, "level": index, "answers": answers})
        say(f"[{bench.cell.name}] stage {index / cells.LEVELS:.1f}: windows of {len(windows)} settings")


# ---- ranks -----------------------------------------------------------------------------------------------------------

def true_times(bench, level):
    """Each setting's time from the stage's loss to the target, in its own runs."""
    def one(index, seed):
        key = f"fixed:{index}:{seed}"
        total, capped = bench.clipped(key)
        begin = bench.ledger.rows[key]["levels"][level]
        return bench.cap() if capped or begin is None else total - begin

    def mean(index):
        first, *others = bench.selection_seeds()
        if bench.clipped(f"fixed:{index}:{first}")[1]:
            return bench.cap()
        return statistics.fmean(one(index, seed) for seed in (first, *others))

    return [mean(i) for i in range(len(bench.settings))]


def iteration_times(bench):
    """Seconds per iteration of each setting, in its run on the first selection seed."""
    rows = [bench.ledger.rows[f"fixed:{i}:{bench.selection_seeds()[0]}"] for i in range(len(bench.settings))]
    return [(row["seconds"] or row["train_seconds"]) / row["iterations"] for row in rows]


def bears(calm_share, own_share, loss, mean_loss):
    """Whether training goes on under the lag of a window. As it bends in calm windows the loss may seem to bear less than it
    does: hinge losses bend less over the longer steps of merged pushes. As it bends in the window itself it seems to bear
    about what there is wherever training follows the brink, however far beyond (paper_rank_bench.c); but there the loss
    rises. So either calm windows bear it, or the window does by a margin and its loss is no higher than theirs, or that is
    lower. What is not known does not bear."""
    if calm_share <= CALM_SHARE:
        return True
    return mean_loss <= MEAN_MORE and (loss <= LOSS_LESS or (own_share <= OWN_SHARE and loss <= LOSS_MORE))


def score(estimator, answer):
    seconds, log_rate, calm_share, own_share, loss, mean_loss, *paper = answer
    if estimator == "hwonly":
        value = seconds
    elif estimator == "default":
        value = math.log(seconds) - log_rate if seconds > 0 and bears(calm_share, own_share, loss, mean_loss) else math.nan
    else:
        value = seconds * paper[("paper k=1", "paper k=2", "paper k=10").index(estimator)]
    return value if math.isfinite(value) else math.inf


def ranks(bench):
    """{(estimator, pushes, spread): [(rank, regret) a stage]}; spread None: of all settings."""
    found, paces = {}, iteration_times(bench)
    pools = {spread: [i for i, pace in enumerate(paces) if pace <= spread * min(paces)] for spread in SPREADS}
    pools[None] = range(len(paces))
    for row in (bench.ledger.rows.get(key_of(bench, index)) for index in stages(bench)):
        if row is None:
            continue
        times = true_times(bench, row["level"])
        for pushes, answers in row["answers"].items():
            for estimator in ESTIMATORS:
                for spread, pool in pools.items():
                    choice = min(pool, key=lambda i: score(estimator, answers[str(i)]))
                    rank = 1 + sum(times[i] < times[choice] for i in pool)
                    found.setdefault((estimator, int(pushes), spread), []).append((rank, times[choice] / min(times[i] for i in pool)))
    return found


def show(bench):
    def order(item):
        estimator, pushes, spread = item[0]
        return pushes, spread or math.inf, ESTIMATORS.index(estimator)

    table = [f"  what the estimators choose of {len(bench.settings)} settings:"]
    for (estimator, pushes, spread), values in sorted(ranks(bench).items(), key=order):
        among = "" if spread is None else f", among those within {spread} x"
        mean_rank = statistics.fmean(rank for rank, _ in values)
        regret = statistics.fmean(regret for _, regret in values)
        runs.print_line("paper", f"rank {estimator} {pushes} pushes", {"cell": bench.cell.name, "spread": spread}, 1,
                        [rank for rank, _ in values], "rank", mean=mean_rank, regret=regret)
        table.append(f"    {estimator:10} {pushes:3} pushes: average rank {mean_rank:6.2f}, mean regret {regret:6.3f}, "
                     f"{len(values)} stages{among}")
    say("\n".join(table))
