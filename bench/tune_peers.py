"""The peers of bench/run tune, each as a function run(problem, seed, evaluations, observe): calls observe(setting) so often.

ours: trimtab tune through its pipes; optuna: TPE with its defaults; direct, bobyqa: NLopt over the unit cube, rounded;
skgp: a Gaussian process of scikit-learn (Matern 5/2, a length scale a knob, learned noise) with expected improvement.
"""
import json
import math
import os
import random
import subprocess
import tempfile
import warnings

import trimtab_runs as runs


class Enough(Exception):
    """All evaluations are used."""


class Tuner:
    """A trimtab tune at the other end of two pipes."""

    def __init__(self, problem, seed, more=()):
        self.directory = tempfile.TemporaryDirectory(prefix="trimtab-tune-")
        space = os.path.join(self.directory.name, "space.yaml")
        with open(space, "w", encoding="utf-8") as file:
            file.write(problem.yaml())
        self.process = subprocess.Popen([runs.PROGRAM, "tune", "--space", space, "--seed", str(seed), *more],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def request(self, body):
        self.process.stdin.write(json.dumps(body) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise runs.RunFailed(f"trimtab tune ended with {self.process.wait()} at {body}")
        answer = json.loads(line)
        if "error" in answer:
            raise runs.RunFailed(f"trimtab tune: {answer['error']} at {body}")
        return answer

    def close(self):
        self.process.stdin.close()
        code = self.process.wait()
        self.directory.cleanup()
        if code != 0:
            raise runs.RunFailed(f"trimtab tune ended with {code}")


def ours(problem, seed, evaluations, observe):
    tuner = Tuner(problem, seed)
    for _ in range(evaluations):
        asked = tuner.request({"ask": 1})
        tuner.request({"tell": {"id": asked["id"], "y": observe(asked["setting"])}})
        if observe.asks():
            observe.name_best(tuner.request({"best": 1})["setting"])
    tuner.close()


def decode(problem, unit):
    return {knob.name: knob.decode(u) for knob, u in zip(problem.knobs, unit)}


def chance(problem, seed, evaluations, observe):
    rng = random.Random(seed * 7919 + 1)
    for _ in range(evaluations):
        observe(decode(problem, [rng.random() for _ in problem.knobs]))


def optuna(problem, seed, evaluations, observe):
    import optuna as peer
    peer.logging.set_verbosity(peer.logging.ERROR)

    def objective(trial):
        setting = {}
        for knob in problem.knobs:
            if knob.kind == "real":
                setting[knob.name] = trial.suggest_float(knob.name, knob.low, knob.high, log=knob.log)
            elif knob.kind == "int":
                log = knob.log and knob.low >= 1
                setting[knob.name] = trial.suggest_int(knob.name, knob.low, knob.high, log=log)
            else:
                setting[knob.name] = trial.suggest_categorical(knob.name, [False, True] if knob.kind == "bool" else knob.values)
        return observe(setting)

    peer.create_study(sampler=peer.samplers.TPESampler(seed=seed)).optimize(objective, n_trials=evaluations)


def nlopt(algorithm):
    def run(problem, seed, evaluations, observe):
        import nlopt as peer
        rng = random.Random(seed)
        left = [evaluations]

        def objective(unit, _):
            if left[0] == 0:
                raise Enough
            left[0] -= 1
            return observe(decode(problem, [float(u) for u in unit]))

        while left[0] > 0:  # one that has converged begins anew somewhere else
            solver = peer.opt(getattr(peer, algorithm), len(problem.knobs))
            solver.set_lower_bounds([0.0] * len(problem.knobs))
            solver.set_upper_bounds([1.0] * len(problem.knobs))
            solver.set_min_objective(objective)
            solver.set_maxeval(left[0])
            solver.set_xtol_rel(1e-9)
            try:
                solver.optimize([rng.random() for _ in problem.knobs])
            except Enough:
                break
            except (peer.RoundoffLimited, RuntimeError):
                pass

    return run


def features(problem, unit):
    """What the process sees: coordinates, put on the grid, enums one by one."""
    row = []
    for knob, u in zip(problem.knobs, unit):
        if knob.kind == "enum":
            row += [1.0 if value == knob.decode(u) else 0.0 for value in knob.values]
        elif knob.kind == "bool":
            row.append(float(u >= 0.5))
        elif knob.kind == "int":
            to = math.log if knob.log and knob.low >= 1 else float
            row.append((to(knob.decode(u)) - to(knob.low)) / (to(knob.high) - to(knob.low)))
        else:
            row.append(u)
    return row


def skgp(problem, seed, evaluations, observe):
    import numpy as np
    from scipy.stats import norm
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    warnings.simplefilter("ignore", ConvergenceWarning)
    rng = np.random.default_rng(seed)
    units, values = [], []

    def fitted():
        x = np.array([features(problem, u) for u in units])
        kernel = (ConstantKernel(1.0, (1e-2, 1e2)) * Matern([0.3] * x.shape[1], (1e-2, 1e2), nu=2.5)
                  + WhiteKernel(1e-3, (1e-9, 1.0)))
        process = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=int(seed))
        return process.fit(x, values), x

    for i in range(evaluations):
        if i < 10:
            unit = rng.random(len(problem.knobs))
        else:
            process, x = fitted()
            best = min(process.predict(x))

            def improvement(candidates):
                mean, sd = process.predict(np.array([features(problem, u) for u in candidates]), return_std=True)
                z = (best - mean) / np.maximum(sd, 1e-12)
                return sd * (norm.pdf(z) + z * norm.cdf(z))

            candidates = rng.random((2000, len(problem.knobs)))
            for scale in (0.1, 0.03, 0.01, 0.003, 0.001):  # around the best, and around the best of those
                scores = improvement(candidates)
                top = candidates[np.argsort(-scores)[:10]]
                near = np.repeat(top, 40, axis=0) + rng.normal(0, scale, (400, len(problem.knobs)))
                candidates = np.concatenate([top, np.clip(near, 0, 1)])
            unit = candidates[int(np.argmax(improvement(candidates)))]
        units.append([float(u) for u in unit])
        values.append(observe(decode(problem, units[-1])))
        if observe.asks():
            process, x = fitted()
            observe.name_best(decode(problem, units[int(np.argmin(process.predict(x)))]))


METHODS = {"ours": ours, "optuna": optuna, "direct": nlopt("GN_DIRECT_L"), "bobyqa": nlopt("LN_BOBYQA"), "skgp": skgp,
           "random": chance}
MODULES = {"optuna": "optuna", "direct": "nlopt", "bobyqa": "nlopt", "skgp": "sklearn"}
