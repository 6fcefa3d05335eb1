#!/usr/bin/python3
"""Goal: a click model on the Criteo sample is as good as scikit-learn's on the same hashed features.

    criteo.py TRIMTAB DATA_DIR

Method: the features are computed here anew from the documentation of data.csv (scikit-learn has the same hash); both minimise
the same objective; AUC on the development and the test rows may differ by 0.005, the objective by 1 %. Exit 77 where the data or
scikit-learn are not there.
"""
import json
import lzma
import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import scipy.sparse
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss, roc_auc_score
    from sklearn.utils import murmurhash3_32
except ImportError as missing:
    print(f"SKIP: {missing} (python3-sklearn)")
    sys.exit(77)

BITS, L2 = 18, 1e-3
NUMERIC, CATEGORICAL = range(2, 15), range(15, 41)
AUC_BAR, OBJECTIVE_BAR = 0.005, 0.01
JOB = """
job: criteo
data:
  format: csv
  train: {train}
  test: {{file: {test}}}
  csv: {{numeric: 2-14, categorical: 15-40, log_numeric: on, hash_bits: {bits}}}
model: {{kind: logistic_regression, l2: {l2}, bias: on}}
optimizer: {{kind: adagrad, learning_rate: 0.1, batch_size: 64, averaging: on}}
stop: {{max_epochs: 60}}
cluster: {{nodes: 4}}
"""


def rows_of(path):
    labels, begin, index, value = [], [0], [], []
    with lzma.open(path, "rt") as file:
        for line in file:
            fields = line.rstrip("\r\n").split("\t")
            row = {}
            for feature, column in enumerate(NUMERIC):
                if fields[column - 1]:
                    x = float(fields[column - 1])
                    row[feature] = math.copysign(math.log1p(abs(x)), x)
            for column in CATEGORICAL:
                if fields[column - 1]:
                    hashed = murmurhash3_32(fields[column - 1], seed=column, positive=True) % 2 ** BITS
                    feature = len(NUMERIC) + hashed
                    row[feature] = row.get(feature, 0) + 1
            labels.append(int(fields[0]))
            index.extend(row.keys())
            value.extend(row.values())
            begin.append(len(index))
    return numpy.array(labels), scipy.sparse.csr_matrix((value, index, begin), (len(labels), len(NUMERIC) + 2 ** BITS))


def trimtab_on(program, train, test, directory):
    job = os.path.join(directory, "criteo.yaml")
    with open(job, "w", encoding="utf-8") as file:
        file.write(JOB.format(train=train, test=test, bits=BITS, l2=L2))
    output = subprocess.run([program, "run", job, "-q", "--json", "--runs", os.path.join(directory, "runs")], check=True,
                            stdout=subprocess.PIPE).stdout
    return json.loads(output)


def main():
    os.environ["TRIMTAB_REPOSITORY"] = "off"  # neither learns from other runs nor teaches them
    program, data = sys.argv[1:3]
    train, *others = [os.path.join(data, f"criteo8k.{part}.tsv.xz") for part in ("train", "dev", "test")]
    if not os.path.exists(train):
        print(f"SKIP: {train} is not there")
        sys.exit(77)
    y, x = rows_of(train)
    model = LogisticRegression(C=1 / (len(y) * L2), tol=1e-6, max_iter=2000).fit(x, y)
    objective = log_loss(y, model.predict_proba(x)[:, 1]) + L2 / 2 * float((model.coef_ ** 2).sum())
    faults = 0
    with tempfile.TemporaryDirectory() as directory:
        for test in others:
            label, row = rows_of(test)
            peer = roc_auc_score(label, model.predict_proba(row)[:, 1])
            ours = trimtab_on(program, train, test, directory)
            off = ours["objective"] / objective - 1
            good = abs(ours["test"]["auc"] - peer) <= AUC_BAR and abs(off) <= OBJECTIVE_BAR
            faults += not good
            print(f"{os.path.basename(test)}: AUC {ours['test']['auc']:.4f}, scikit-learn {peer:.4f}; objective "
                  f"{ours['objective']:.5f}, {objective:.5f} ({off:+.2%}){'' if good else '  FAULT'}")
    sys.exit(faults > 0)


main()
