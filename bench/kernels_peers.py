#!/usr/bin/python3
"""The peers of bench/kernels, on the same data and machine: scikit-learn, liblinear, PyTorch.

    kernels_peers.py [--data DIR] [--repeats N] [--seed N] [--cal STEPS_PER_SECOND]

Prints the JSON lines of kernels_bench, per CPU-second of one thread; a peer that is not installed gets a line with
"missing". --cal is CAL of the same run (kernels_bench prints it as its calibration case); without it, `scaled` is null.

What each peer is:
  sklearn_sgd_a9a         SGDClassifier, log loss, an update a row, partial_fit over the whole of a9a: epochs counted alone
  sklearn_sgd_hinge_a9a   the same with the hinge loss
  sklearn_read_a9a        load_svmlight_file of a9a repeated to about 20 MB of plain text
  liblinear_s0_a9a, _s3_  liblinear-train's CPU-seconds for L2 logistic regression and L1-loss SVM (C = 1, no bias, tolerance
                          0.001), less those of a run that stops at once (reading the file); params tell the objective reached
  sklearn_softmax_fashion MLPClassifier without hidden layers (softmax regression by SGD, batch 128), partial_fit
  sklearn_ovr_fashion     SGDClassifier on 10 classes, that is 10 binary models one-versus-rest, an update a row (not softmax)
  torch_softmax_fashion   nn.Linear, cross entropy, SGD, batch 128, images as float32 in memory
"""
import argparse
import gzip
import json
import lzma
import os
import resource
import subprocess
import sys
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"  # before the libraries are loaded

options = None


def say(case, rates, unit, params=""):
    rates = sorted(rates)
    n = len(rates)
    line = {"bench": "kernels", "case": case, "params": params, "seed": options.seed, "n": n, "median": rates[n // 2],
            "p25": rates[n // 4], "p75": rates[n * 3 // 4], "unit": unit, "cal": options.cal}
    # rates shrink with a slower processor, seconds grow
    factor = 960e6 / options.cal if options.cal else None
    scaled = None
    if factor:
        scaled = rates[n // 2] / factor if unit == "CPU-seconds" else rates[n // 2] * factor
    line["scaled"] = scaled
    print(json.dumps(line), flush=True)


def missing(case, why):
    print(json.dumps({"bench": "kernels", "case": case, "missing": why}), flush=True)
    print(f"{case}: missing: {why}", file=sys.stderr)


def measure(work, units):
    """Units per CPU-second of work(), after one round that does not count."""
    rates = []
    for i in range(-1, options.repeats):
        begin = time.process_time()
        work()
        seconds = time.process_time() - begin
        if i >= 0:
            rates.append(units / seconds)
    return rates


def read_bytes(name):
    path = os.path.join(options.data, name)
    opener = lzma.open if name.endswith(".xz") else gzip.open
    with opener(path, "rb") as file:
        return file.read()


def sklearn_a9a():
    import io
    import numpy
    from sklearn.datasets import load_svmlight_file
    from sklearn.linear_model import SGDClassifier
    text = read_bytes("a9a.xz")
    x, y = load_svmlight_file(io.BytesIO(text))
    rows = x.shape[0]
    for case, loss in (("sklearn_sgd_a9a", "log_loss"), ("sklearn_sgd_hinge_a9a", "hinge")):
        peer = SGDClassifier(loss=loss, alpha=1 / rows, fit_intercept=False, learning_rate="constant", eta0=0.01,
                             random_state=options.seed)
        classes = numpy.unique(y)
        say(case, measure(lambda: peer.partial_fit(x, y, classes=classes), rows), "examples per CPU-second",
            f"rows={rows} accuracy={peer.score(x, y):.4f}")
    times = 20000000 // len(text) + 1
    with tempfile.NamedTemporaryFile(suffix=".svm") as file:
        file.write(text * times)
        file.flush()
        say("sklearn_read_a9a", measure(lambda: load_svmlight_file(file.name), len(text) * times / 1e6),
            "MB per CPU-second", f"MB={len(text) * times / 1e6:.0f}")


def child_seconds(command):
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


def liblinear_objective(text, model, solver):
    """Primal objective of a liblinear model file on LIBSVM text with all values 1, C = 1."""
    import math
    lines = model.split("\n")
    first = next(line for line in lines if line.startswith("label")).split()[1]
    weights = [float(w) for w in lines[lines.index("w") + 1:] if w.strip()]
    sign = 1 if float(first) > 0 else -1
    total = sum(w * w for w in weights) / 2
    for row in text.decode().splitlines():
        fields = row.split()
        margin = sign * sum(weights[int(f.split(":")[0]) - 1] for f in fields[1:])
        margin *= 1 if float(fields[0]) > 0 else -1
        if solver == 0:
            total += max(-margin, 0) + math.log1p(math.exp(-abs(margin)))
        else:
            total += max(0, 1 - margin)
    return total


def liblinear_a9a():
    text = read_bytes("a9a.xz")
    with tempfile.TemporaryDirectory() as directory:
        data, model = os.path.join(directory, "a9a"), os.path.join(directory, "model")
        with open(data, "wb") as file:
            file.write(text)
        for solver in (0, 3):
            def train(tolerance):
                return child_seconds(
                    ["liblinear-train", "-s", str(solver), "-c", "1", "-e", tolerance, "-q", data, model])
            seconds = []
            for i in range(-1, options.repeats):
                reading = train("1e9")
                both = train("0.001")
                if i >= 0:
                    seconds.append(max(both - reading, 0.0))
            with open(model, encoding="ascii") as file:
                objective = liblinear_objective(text, file.read(), solver)
            say(f"liblinear_s{solver}_a9a", seconds, "CPU-seconds", f"tolerance=0.001 objective={objective:.3f}")


def fashion():
    import numpy
    images = numpy.frombuffer(read_bytes("fashion-mnist/train-images-idx3-ubyte.gz"), numpy.uint8, offset=16)
    labels = numpy.frombuffer(read_bytes("fashion-mnist/train-labels-idx1-ubyte.gz"), numpy.uint8, offset=8)
    return (images.reshape(len(labels), 784) / numpy.float32(255)).astype(numpy.float32), labels


def sklearn_fashion():
    import numpy
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPClassifier
    x, y = fashion()
    classes = numpy.arange(10)
    peer = MLPClassifier(hidden_layer_sizes=(), solver="sgd", learning_rate_init=0.05, momentum=0, batch_size=128,
                         alpha=1e-4, random_state=options.seed)
    say("sklearn_softmax_fashion", measure(lambda: peer.partial_fit(x, y, classes), len(y)), "examples per CPU-second",
        f"batch=128 accuracy={peer.score(x, y):.4f}")
    x, y = x[:10000], y[:10000]
    peer = SGDClassifier(loss="log_loss", alpha=1e-4, learning_rate="constant", eta0=0.01, random_state=options.seed)
    say("sklearn_ovr_fashion", measure(lambda: peer.partial_fit(x, y, classes), len(y)), "examples per CPU-second",
        "rows=10000")


def torch_fashion():
    import torch
    torch.set_num_threads(1)
    x, y = fashion()
    x, y = torch.from_numpy(x), torch.from_numpy(y.astype("int64"))
    torch.manual_seed(options.seed)
    layer = torch.nn.Linear(784, 10)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.05, weight_decay=1e-4)

    def epoch():
        for begin in range(0, len(y), 128):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(layer(x[begin:begin + 128]), y[begin:begin + 128])
            loss.backward()
            optimiser.step()
    say("torch_softmax_fashion", measure(epoch, len(y)), "examples per CPU-second",
        f"batch=128 version={torch.__version__}")


PEERS = (
    (sklearn_a9a, "sklearn_sgd_a9a", "apt-get install python3-sklearn"),
    (liblinear_a9a, "liblinear_s0_a9a", "apt-get install liblinear-tools"),
    (sklearn_fashion, "sklearn_softmax_fashion", "apt-get install python3-sklearn"),
    (torch_fashion, "torch_softmax_fashion", "apt-get install python3-torch (large; only measured when it is there)"),
)


def main(arguments):
    global options
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description="peers of bench/kernels")
    parser.add_argument("--data", default=os.path.join(here, "..", "..", "shared", "data"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cal", type=float, default=None)
    options = parser.parse_args(arguments)
    options.repeats = max(options.repeats, 1)
    for peer, case, advice in PEERS:
        try:
            peer()
        except ImportError as error:
            missing(case, f"{error}: {advice}")
        except FileNotFoundError as error:
            why = f"{error.filename} is not there"
            missing(case, why if os.sep in str(error.filename) else f"{why}: {advice}")
    missing("xlearn_a9a", "Debian has no package of xLearn")


if __name__ == "__main__":
    main(sys.argv[1:])
