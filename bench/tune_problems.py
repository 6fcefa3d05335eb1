"""The problems of bench/run tune: functions with known minima, and mixed ones with noise.

Each is a list of knobs and a value; per seed every range is moved by a random -10 to 10 % of its width (of its logarithm where the
scale is one), the optimum kept inside. A move of a range that has an end in its nature (counts, the recorded grid) only cuts it.
"""
import bisect
import csv
import math
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))


class Knob:
    """kind: real, int, bool, enum; range low..high (enum: values)."""

    def __init__(self, name, kind, low=0, high=1, log=False, values=None, cut_only=False):
        self.name, self.kind, self.low, self.high, self.log = name, kind, low, high, log
        self.values, self.cut_only = values, cut_only

    def moved(self, rng, keep):
        """With its range moved, `keep` (a value, or a list of which one must stay) still inside."""
        if self.kind in ("bool", "enum") or (self.kind == "int" and self.high - self.low < 2):  # two values: nothing to move
            return self
        to, back = (math.log, math.exp) if self.log else (float, float)
        low, high = to(self.low), to(self.high)
        while True:
            shift = rng.uniform(-0.1, 0.1) * (high - low)
            new = [back(low + shift), back(high + shift)]
            if self.cut_only:
                new = [max(new[0], self.low), min(new[1], self.high)]
            if self.kind == "int":
                new = [math.ceil(new[0] - 1e-9), math.floor(new[1] + 1e-9)]
            if new[0] < new[1] and any(new[0] <= value <= new[1] for value in keep):
                return Knob(self.name, self.kind, new[0], new[1], self.log, self.values, self.cut_only)

    def decode(self, unit):
        """The value at a coordinate of [0, 1], each of an int, bool or enum with the same chance."""
        unit = min(max(unit, 0.0), 1.0)
        if self.kind == "bool":
            return unit >= 0.5
        if self.kind == "enum":
            return self.values[min(int(unit * len(self.values)), len(self.values) - 1)]
        low, high = (self.low, self.high) if self.kind == "real" else (self.low - 0.5, self.high + 0.5)
        if self.log:
            low = max(low, 0.5) if self.kind == "int" else low
            value = math.exp(math.log(low) + unit * (math.log(high) - math.log(low)))
        else:
            value = low + unit * (high - low)
        return min(max(round(value), self.low), self.high) if self.kind == "int" else min(max(value, self.low), self.high)

    def yaml(self):
        if self.kind == "bool":
            return f"  {self.name}: {{kind: bool}}"
        if self.kind == "enum":
            return f"  {self.name}: {{kind: enum, values: [{', '.join(self.values)}]}}"
        scale = ", scale: log" if self.log else ""
        return f"  {self.name}: {{kind: {self.kind}, range: [{self.low!r}, {self.high!r}]{scale}}}"


class Problem:
    """minima: settings of least value {knob: value}; noise(rng, setting, truth) -> what is observed."""

    def __init__(self, name, knobs, value, least, minima, noise=None):
        self.name, self.knobs, self.value, self.least, self.minima, self.noise = name, knobs, value, least, minima, noise

    def of_seed(self, seed):
        """The same problem with its ranges moved."""
        while True:
            rng = random.Random(f"{self.name}:{seed}")
            optimum = rng.choice(self.minima)
            knobs = [knob.moved(rng, [optimum[knob.name]]) for knob in self.knobs]
            return Problem(self.name, knobs, self.value, self.least, self.minima, self.noise)

    def observe(self, setting, rng):
        truth = self.value(setting)
        return truth if self.noise is None else self.noise(rng, setting, truth)

    def yaml(self):
        return "knobs:\n" + "\n".join(knob.yaml() for knob in self.knobs) + "\n"


# ---- smooth ones -----------------------------------------------------------------------------------------------------

def reals(count, low, high):
    return [Knob(f"x{i}", "real", low, high) for i in range(count)]


def of_vector(function):
    return lambda setting: function([setting[f"x{i}"] for i in range(len(setting))])


def branin(x):
    a, b = x
    return (b - 5.1 / (4 * math.pi ** 2) * a * a + 5 / math.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


HARTMANN_ALPHA = (1.0, 1.2, 3.0, 3.2)
HARTMANN3 = (((3, 10, 30), (0.1, 10, 35), (3, 10, 30), (0.1, 10, 35)),
             ((0.3689, 0.1170, 0.2673), (0.4699, 0.4387, 0.7470), (0.1091, 0.8732, 0.5547), (0.03815, 0.5743, 0.8828)))
HARTMANN6 = (((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14)),
             ((0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886), (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
              (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650), (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381)))


def hartmann(tables):
    def value(x):
        return -sum(alpha * math.exp(-sum(a * (v - p) ** 2 for a, p, v in zip(row_a, row_p, x)))
                    for alpha, row_a, row_p in zip(HARTMANN_ALPHA, *tables))
    return value


def ackley(x):
    n = len(x)
    return (-20 * math.exp(-0.2 * math.sqrt(sum(v * v for v in x) / n))
            - math.exp(sum(math.cos(2 * math.pi * v) for v in x) / n) + 20 + math.e)


def levy(x):
    w = [1 + (v - 1) / 4 for v in x]
    return (math.sin(math.pi * w[0]) ** 2
            + sum((v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2) for v in w[:-1])
            + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2))


def rosenbrock(x):
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def point(*x):
    return {f"x{i}": value for i, value in enumerate(x)}


BRANIN_KNOBS = [Knob("x0", "real", -5, 10), Knob("x1", "real", 0, 15)]
SMOOTH = {
    "branin": Problem("branin", BRANIN_KNOBS, of_vector(branin), 0.39788735772973816,
                      [point(-math.pi, 12.275), point(math.pi, 2.275), point(9.42477796, 2.475)]),
    "hartmann3": Problem("hartmann3", reals(3, 0, 1), of_vector(hartmann(HARTMANN3)), -3.8627797873327,
                         [point(0.114614, 0.555649, 0.852547)]),
    "hartmann6": Problem("hartmann6", reals(6, 0, 1), of_vector(hartmann(HARTMANN6)), -3.3223680114155,
                         [point(0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)]),
    "ackley5": Problem("ackley5", reals(5, -15, 30), of_vector(ackley), 0.0, [point(*[0.0] * 5)]),
    "levy5": Problem("levy5", reals(5, -10, 10), of_vector(levy), 0.0, [point(*[1.0] * 5)]),
    "rosenbrock4": Problem("rosenbrock4", reals(4, -5, 10), of_vector(rosenbrock), 0.0, [point(*[1.0] * 4)]),
}


# ---- mixed ones ------------------------------------------------------------------------------------------------------

def cluster_seconds(s):
    """Seconds per thousand iterations of an imagined job on 16 hosts: compute, messages and waiting, the slower side hidden
    behind the faster as far as prefetching reaches."""
    workers = 16 - s["servers"]
    kernel = {"plain": 1.0, "wide": 0.45, "fused": 0.38}[s["kernel"]]
    threads = s["threads"]
    crowd = 1 + 0.02 * max(0, threads - 12) ** 1.5  # more threads than cores
    compute = kernel * 8 * (0.12 + 0.88 / threads) * crowd * (1.15 if s["kernel"] == "fused" and threads > 8 else 1)
    bytes_sent = 6.0 * (0.5 if s["half"] else 1)
    chunks = 4096 / s["chunk"]
    message = bytes_sent * workers / s["servers"] / 6 + 0.004 * chunks + 0.0006 * s["chunk"] + (0.35 if s["half"] else 0)
    hidden = min(1.0, 0.25 + 0.3 * math.log2(s["prefetch"]))
    slow, fast = max(compute, message), min(compute, message)
    stale = 1 + 0.004 * s["prefetch"] * workers / 4  # old gradients cost iterations
    return 1000 * (slow + (1 - hidden) * fast) / workers * stale / 10


CLUSTER_KNOBS = [
    Knob("servers", "int", 1, 15, cut_only=True), Knob("threads", "int", 1, 32, cut_only=True),
    Knob("prefetch", "int", 1, 64, log=True, cut_only=True), Knob("half", "bool"),
    Knob("kernel", "enum", values=["plain", "wide", "fused"]), Knob("chunk", "int", 4, 4096, log=True),
]


def boosting_loss(s):
    """Validation loss of an imagined gradient boosting: rate and number of trees trade, depth overfits, three boosters."""
    effort = math.log10(s["rate"]) + math.log10(s["trees"])  # the best lies along a line
    fit = 0.16 * (effort - 1.6) ** 2 / (1 + 0.15 * max(0, effort - 1.6))
    depth = {"tree": 6, "dart": 7, "linear": 3}[s["booster"]]
    over = 0.004 * (s["depth"] - depth) ** 2 / (1 + 0.1 * math.log10(1 + s["l2"]))
    sample = 0.12 * (s["sample"] - 0.72) ** 2 * (2.5 if s["booster"] == "dart" else 1)
    shrink = 0.012 * (math.log10(s["l2"]) - 0.4) ** 2
    base = {"tree": 0.300, "dart": 0.292, "linear": 0.345}[s["booster"]]
    speed = 0.015 * math.exp(-s["rate"] * 8)
    early = -0.006 if s["early"] and effort > 1.8 else 0.004 if s["early"] else 0
    return base + fit + over + sample + shrink + speed + early


BOOSTING_KNOBS = [
    Knob("rate", "real", 1e-3, 1, log=True), Knob("trees", "int", 10, 2000, log=True), Knob("depth", "int", 1, 14, cut_only=True),
    Knob("sample", "real", 0.3, 1.0, cut_only=True), Knob("l2", "real", 1e-3, 1e3, log=True),
    Knob("booster", "enum", values=["tree", "dart", "linear"]), Knob("early", "bool"),
]


class Recorded:
    """Seconds per iteration of a real job of ours under every setting of a grid, several times each (tune_record.py)."""
    NEIGHBOURS = 50

    def __init__(self, path):
        self.rows = {}
        with open(path, encoding="utf-8") as file:
            reader = csv.DictReader(line for line in file if not line.startswith("#"))
            self.names = [name for name in reader.fieldnames if not name.startswith("us")]
            for row in reader:
                key = tuple(row[name] for name in self.names)
                self.rows[key] = [float(row[name]) for name in reader.fieldnames if name.startswith("us")]
        self.by_mean = sorted(self.rows.values(), key=lambda samples: sum(samples) / len(samples))
        self.means = [sum(samples) / len(samples) for samples in self.by_mean]
        self.levels = [sorted({key[i] for key in self.rows}, key=lambda text: (len(text), text)) for i in range(len(self.names))]

    def samples(self, setting):
        return self.rows[tuple(self.text(setting, i) for i in range(len(self.names)))]

    def text(self, setting, index):
        value, levels = setting[self.names[index]], self.levels[index]
        if isinstance(value, bool):
            return "on" if value else "off"
        return levels[value] if isinstance(value, int) and levels[0].isdigit() else str(value)

    def truth(self, setting):
        samples = self.samples(setting)
        return sum(samples) / len(samples)

    def noisy(self, rng, _, truth):
        """The truth times what some measurement was of its setting's mean, of one of the NEIGHBOURS settings nearest in time: fast
        ones are steadier. One of the measurements of this setting would come out the very same every third time, which nothing
        that is measured does."""
        at = bisect.bisect_left(self.means, truth) - self.NEIGHBOURS // 2
        at = min(max(at, 0), len(self.means) - self.NEIGHBOURS)
        samples = self.by_mean[at + rng.randrange(self.NEIGHBOURS)]
        return truth * rng.choice(samples) * len(samples) / sum(samples)

    def knobs(self):
        """Numbers become indices of their levels."""
        made = []
        for name, levels in zip(self.names, self.levels):
            if set(levels) == {"off", "on"}:
                made.append(Knob(name, "bool"))
            elif levels[0].isdigit():
                made.append(Knob(name, "int", 0, len(levels) - 1, cut_only=True))
            else:
                made.append(Knob(name, "enum", values=levels))
        return made

    def setting_of(self, key):
        setting = {}
        for name, levels, text in zip(self.names, self.levels, key):
            setting[name] = text == "on" if set(levels) == {"off", "on"} else levels.index(text) if text.isdigit() else text
        return setting


def least_of(knobs, value, seed=1, draws=40000):
    """Least value and setting that random search and then single changes find: the reference of problems without a formula."""
    rng = random.Random(seed)
    best = min(({knob.name: knob.decode(rng.random()) for knob in knobs} for _ in range(draws)), key=value)
    for width in (0.3, 0.1, 0.03, 0.01, 0.003):
        for _ in range(4000):
            trial = dict(best)
            knob = rng.choice(knobs)
            if knob.kind in ("bool", "enum"):
                trial[knob.name] = knob.decode(rng.random())
            else:
                to, back = (math.log, math.exp) if knob.log else (float, float)
                moved = back(to(best[knob.name]) + rng.gauss(0, width) * (to(knob.high) - to(knob.low)))
                moved = min(max(moved, knob.low), knob.high)
                trial[knob.name] = round(moved) if knob.kind == "int" else moved
            if value(trial) < value(best):
                best = trial
    return value(best), best


def mixed():
    """{name: Problem}; without the recorded one where its file is missing."""
    made = {}
    for name, knobs, value, noise in (
            ("cluster", CLUSTER_KNOBS, cluster_seconds, lambda rng, _, truth: truth * math.exp(rng.gauss(0, 0.05))),
            ("boosting", BOOSTING_KNOBS, boosting_loss, lambda rng, _, truth: truth + rng.gauss(0, 0.004))):
        least, best = least_of(knobs, value)
        made[name] = Problem(name, knobs, value, least, [best], noise)
    path = os.path.join(HERE, "tune_recorded.csv")
    if os.path.exists(path):
        recorded = Recorded(path)
        best = recorded.setting_of(min(recorded.rows, key=lambda key: sum(recorded.rows[key])))
        made["recorded"] = Problem("recorded", recorded.knobs(), recorded.truth, recorded.truth(best), [best],
                                   recorded.noisy)
    return made
