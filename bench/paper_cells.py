"""The jobs of bench/run paper: a workload on a data set, in a variant. Used by paper.py beside it; nothing to run by itself.

Step sizes were chosen from pilots of the default setting. So were the targets, but that a pilot of 100 fixed settings of logr on
a9a showed that the best one merges six iterations a push: the plain targets were then moved so far out that the default needs
about 90,000 iterations, which with six of them merged are still 15,000 pushes; where all 100 had run and the best merged seven,
to 100,000 to 115,000. In the plain variant the step is so small that no setting's staleness (up to 35 workers with 8 merged
iterations each) costs iterations. In the `stale` variant the step is about a half of that at which the default setting is no longer stable, so that settings of more staleness pay for it, or never arrive. The
best of 100 merged two iterations a push where the default needed 15,000 iterations; the targets were then moved out to where it
needs 32,000. The click log's SVM jumps at such a step: with a quarter of it, which it had at first, settings of little staleness were
below any target that the default could reach within 800 pushes. Its step is the largest at which the way there is 15,000 pushes long
for all: there merging two iterations never arrives.
"""
import math
import os
from dataclasses import dataclass

import trimtab_runs as runs  # beside this file

CLUSTER = os.path.join(runs.ROOT, "bench", "paper_cluster.yaml")
SPACE = os.path.join(runs.ROOT, "bench", "paper_space.yaml")
EVERY = 25  # iterations between two evaluations of the whole training set


@dataclass(frozen=True)
class Cell:
    workload: str  # logr, svm, softmax
    data: str      # a9a, clicklog, dna
    variant: str   # plain, stale
    step: float
    target: float  # of the training objective

    @property
    def name(self):
        return "-".join([self.workload, self.data] + [self.variant] * (self.variant != "plain"))

    def levels(self):
        """The loss at each stage c = 0, 0.1, ... of the job."""
        first = math.log(FIRST_LOSS[self.workload])
        return [math.exp(first - c / LEVELS * (first - math.log(self.target))) for c in range(LEVELS)]


CELLS = [
    Cell("logr", "a9a", "plain", 0.005, 0.325),
    Cell("logr", "a9a", "stale", 0.05, 0.3237),
    Cell("logr", "clicklog", "plain", 0.005, 0.4662),
    Cell("logr", "clicklog", "stale", 0.05, 0.463),
    Cell("svm", "a9a", "plain", 0.0025, 0.3534),
    Cell("svm", "a9a", "stale", 0.02, 0.3525),
    Cell("svm", "clicklog", "plain", 0.00002, 0.5001),
    Cell("svm", "clicklog", "stale", 0.0004, 0.49967),
    Cell("softmax", "dna", "plain", 0.005, 0.067),
]
MODELS = {"logr": "{kind: logistic_regression}", "svm": "{kind: linear_svm, l2: 1e-4}",
          "softmax": "{kind: softmax_regression, l2: 1e-4}"}
# 256 columns: pulled whole, in about as many partitions as a9a. The same rows under every seed: another log has another optimum.
CLICKLOG = "{format: clicklog, rows: 20000, columns: 256, fields: 16, seed: 1}"
FILES = {"a9a": "a9a.xz", "dna": "dna.train.svm.xz"}
ROWS = {"a9a": 32561, "clicklog": 20000, "dna": 2000}
# Objective of the model of zeros, where all begin.
FIRST_LOSS = {"logr": math.log(2), "svm": 1.0, "softmax": math.log(3)}
LEVELS = 10  # stages of the job, evenly spaced in the logarithm of the loss from the first to nine tenths of the way
BATCH = {"a9a": 200, "clicklog": 200, "dna": 100}


def file_of(cell, data_dir):
    return os.path.abspath(os.path.join(data_dir, FILES[cell.data]))


def data_of(cell, data_dir):
    """The job's data section; None when its file is missing."""
    if cell.data == "clicklog":
        return CLICKLOG
    path = file_of(cell, data_dir)
    return f"{{format: libsvm, train: {path}}}" if os.path.exists(path) else None


def job_text(cell, data):
    return f"""job: {cell.name}
data: {data}
model: {MODELS[cell.workload]}
optimizer: {{kind: sgd, learning_rate: {cell.step}, batch_size: {BATCH[cell.data]}}}
stop: {{objective: {cell.target}, max_epochs: 1e9}}
simulation: {{evaluate_pushes: {EVERY}}}
checkpoint: {{keep: 0}}
"""


def write_job(cell, data, directory):
    """The files of the job, in the order in which they are laid over each other."""
    path = os.path.join(directory, cell.name + ".yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(job_text(cell, data))
    return [path, CLUSTER, SPACE]
