"""The jobs of bench/run paper: a workload on a data set, in a variant. Used by paper.py beside it; nothing to run by itself.

Step sizes and targets were chosen from a pilot of the default setting alone, before any other setting was looked at in its
cell: the default needs 15,000 to 45,000 iterations. In the plain variant the step is so small that no setting's staleness
(up to 35 workers with 8 merged iterations each) costs iterations; in the `stale` variant it is about a half of the step at
which the default setting is no longer stable, so that settings of more staleness pay for it, or never arrive.
"""
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


CELLS = [
    Cell("logr", "a9a", "plain", 0.005, 0.3275),
    Cell("logr", "a9a", "stale", 0.05, 0.3243),
    Cell("logr", "clicklog", "plain", 0.005, 0.4765),
    Cell("logr", "clicklog", "stale", 0.05, 0.4647),
    Cell("svm", "a9a", "plain", 0.0025, 0.3565),
    Cell("svm", "a9a", "stale", 0.02, 0.3531),
    Cell("svm", "clicklog", "plain", 0.0005, 0.506),
    Cell("svm", "clicklog", "stale", 0.01, 0.502),
    Cell("softmax", "dna", "plain", 0.02, 0.075),
]
MODELS = {"logr": "{kind: logistic_regression}", "svm": "{kind: linear_svm, l2: 1e-4}",
          "softmax": "{kind: softmax_regression, l2: 1e-4}"}
# 256 columns: pulled whole, in about as many partitions as a9a.
CLICKLOG = "{format: clicklog, rows: 20000, columns: 256, fields: 16}"
FILES = {"a9a": "a9a.xz", "dna": "dna.train.svm.xz"}
BATCH = {"a9a": 200, "clicklog": 200, "dna": 100}


def data_of(cell, data_dir):
    """The job's data section; None when its file is missing."""
    if cell.data == "clicklog":
        return CLICKLOG
    path = os.path.join(data_dir, FILES[cell.data])
    return f"{{format: libsvm, train: {os.path.abspath(path)}}}" if os.path.exists(path) else None


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
