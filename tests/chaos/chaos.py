#!/usr/bin/env python3
"""Goal: whatever happens to the processes of a job, it ends with the right model, soon, and leaves nothing behind. Method: jobs
with kill -9, SIGSTOP and SIGCONT of random nodes and kill -9 of the program at random moments, while they train and while parameters
move; another process resumes the run, and takes the nodes over; half of the nodes that are stopped, or lose their host, take long
to be gone. Under bsp the model must equal that of an undisturbed run byte for byte, under asp and ssp the loss be near. Half of the
jobs have replicas: then, with some time between one fault and the next, no parameters may go back to a checkpoint (under bsp all may,
while partitions move). A quarter are sums of integers with replicas, which must be exact.

    chaos.py TRIMTAB [--rounds 100] [--seed 1] [--longest-stop 10] [--engine local]

    --engine local   processes of this host
    --engine ssh     as if of two hosts, over TCP: the processes that start nodes there are killed, too
    --engine hosts   of three emulated hosts (root; $TRIMTAB_EMULATED_HOSTS is the directory of hosts_up.sh), of which cables are cut
                     and power fails for a while, too

One round is one job, drawn from its seed: `chaos.py TRIMTAB --seed N --rounds 1` repeats it, as far as processes can be repeated.
"""
import argparse
import contextlib
import ctypes
import json
import os
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

JOB = """
data: {format: clicklog, rows: 12000, columns: 4000, fields: 11}
model: {kind: logistic_regression, l2: 1e-3, bias: on}
checkpoint: {every: 60ms, keep: 2}
"""
CONSISTENCIES = ("asp", "ssp", "bsp")
OPTIMIZERS = ("sgd", "adagrad", "adam")
RATE = {"sgd": 0.05, "adagrad": 0.05, "adam": 0.003}  # longer steps of sgd let the last loss swing by 1 % undisturbed
BATCH = {"asp": 32, "ssp": 32, "bsp": 192}
# Hinge loss whose steps are so short that every example stays on the wrong side of the margin: its gradient is its features with the
# sign of its label, whatever the parameters are, and the model is a sum of integers times SUMS_UNIT, which floats hold exactly.
SUMS_BATCH = 32
SUMS_RATE = 2.0 ** -30
SUMS_UNIT = SUMS_RATE / SUMS_BATCH
SUMS_ROWS = 12288        # whole batches
SUMS_EPOCHS_MAX = 1300   # fewer than 2^24 examples
SUMS_PART = 0.25
SECONDS = 4.0          # of a job that nothing happens to, about
NEAR = 0.01            # share of the loss
FAILURE_TIMEOUT_S = 3.0
UNSTRUCK_S = 0.5       # between faults of a job with replicas: copies are made again meanwhile
HELD_PART = 0.5        # of the nodes that are killed, stopped or lose their host take long to be gone
HELD_S = 0.7           # so long, where they or their host are killed
PROGRAM_PART = 0.4     # of the rounds kill the program, too, up to three times
HERE = os.path.dirname(os.path.abspath(__file__))


class Local:
    """Where nodes live, as the job says it, and what can go wrong there besides."""

    keys = {"cluster.engine": "local"}
    faults = ("kill", "kill", "stop")
    compressions = ()  # "setting.compression" there is, to draw from

    def close(self):
        pass


class TwoHosts(Local):
    keys = {"cluster.engine": "ssh", "cluster.hosts": "[127.0.0.1, localhost]", "cluster.encryption": "on",
            "cluster.remote_shell": os.path.join(HERE, "..", "hosts", "this_host.sh")}
    faults = ("kill", "kill", "stop", "host")
    compressions = ("none", "lz4")


class EmulatedHosts(Local):
    """Of network namespaces with a cable each; see the scripts' own description."""

    faults = ("kill", "kill", "stop", "host", "cut", "power")
    compressions = ("none", "lz4")
    count = 3

    def __init__(self):
        self.scripts = os.environ.get("TRIMTAB_EMULATED_HOSTS", "")
        if os.geteuid() != 0 or not os.path.exists(os.path.join(self.scripts, "hosts_up.sh")):
            print("SKIP: emulated hosts need root and TRIMTAB_EMULATED_HOSTS")
            sys.exit(77)
        self.id = os.environ.setdefault("HOSTS_ID", "7")
        self.shell(f"{self.scripts}/hosts_up.sh {self.count} >/dev/null")
        network = f"10.{200 + int(self.id)}.0"
        self.keys = {"cluster.engine": "ssh", "cluster.hosts": "[" + ", ".join(f"h{k}" for k in range(self.count)) + "]",
                     "cluster.remote_shell": f"{self.scripts}/host_rsh", "cluster.address": f"{network}.1"}

    def shell(self, command):
        subprocess.run(["bash", "-c", command], check=True)

    def cut(self, host):
        self.shell(f". /tmp/hosts-{self.id}/hosts.sh; host_cut h{host}")

    def heal(self, host):
        self.shell(f". /tmp/hosts-{self.id}/hosts.sh; host_heal h{host}")

    def power_off(self, host):
        self.shell(f". /tmp/hosts-{self.id}/hosts.sh; host_kill h{host}")

    def power_on(self, host):
        self.shell(f". /tmp/hosts-{self.id}/hosts.sh; host_start h{host}")

    def close(self):
        self.shell(f"{self.scripts}/hosts_down.sh >/dev/null")


ENGINES = {"local": Local, "ssh": TwoHosts, "hosts": EmulatedHosts}


class Failed(Exception):
    pass


def stat_of(pid):
    """A process's state, a letter, and its parent."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            text = file.read()
    except OSError:
        return "X", 0  # it has just ended
    state, parent = text[text.rindex(")") + 1:].split()[:2]
    return state, int(parent)


class Held:
    """A process that, when it is killed, is not gone before this is released: its memory, files and connections stay, as on a
    system that is slow to take them away."""

    SEIZE, DETACH, TRACE_EXIT = 0x4206, 17, 0x40
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    libc.ptrace.restype = ctypes.c_long

    def __init__(self, pid):
        self.pid = pid
        if self.libc.ptrace(self.SEIZE, pid, None, self.TRACE_EXIT) != 0 and stat_of(pid)[0] not in "ZX":
            raise Failed(f"process {pid} cannot be held: {os.strerror(ctypes.get_errno())}")

    def release(self):
        self.libc.ptrace(self.DETACH, self.pid, None, None)


class Standstills:
    """Times at which a processor gave nothing, for long, to a process that is bound to it, asks for it every few milliseconds and
    goes before all others, where that is allowed: a virtual one that its host has stopped. Said beside what comes late; it excuses
    nothing."""

    PERIOD_S, LONG_S = 0.005, 0.1

    def __init__(self):
        self.seen = []  # (processor, monotonic seconds, seconds)
        for processor in sorted(os.sched_getaffinity(0)):
            end, other_end = os.pipe()
            if os.fork() == 0:
                try:
                    self.watch(processor, other_end)
                finally:
                    os._exit(0)
            os.close(other_end)
            threading.Thread(target=self.listen, args=(processor, end), daemon=True).start()

    def watch(self, processor, pipe):
        parent = os.getppid()
        os.sched_setaffinity(0, {processor})
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        last = time.monotonic()
        while os.getppid() == parent:
            time.sleep(self.PERIOD_S)
            now = time.monotonic()
            if now - last > self.LONG_S:
                os.write(pipe, f"{last} {now - last}\n".encode())
            last = now

    def listen(self, processor, pipe):
        with open(pipe, encoding="ascii") as lines:
            for line in lines:
                at, length = line.split()
                self.seen.append((processor, float(at), float(length)))

    def between(self, begin, end):
        """In words, with times from `begin` on."""
        found = [f"processor {processor} at {at - begin:.3f} s for {length:.3f} s"
                 for processor, at, length in sorted(self.seen, key=lambda one: one[1]) if begin <= at + length and at <= end]
        return "stood still: " + ", ".join(found) if found else "no processor stood still"


def processes_of(mark):
    """{pid: name} of the processes of one job: their environment carries the mark."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if mark.encode() not in file.read():
                    continue
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                text = file.read()
            if text[text.rindex(")") + 2] != "Z":
                found[int(entry)] = text[text.index("(") + 1:text.rindex(")")]
        except OSError:
            continue  # it has just ended
    return found


class Job:
    """One run of the program, its standard error read as it comes."""

    def __init__(self, trimtab, arguments, directory, mark):
        self.lines = []  # (monotonic seconds, text)
        self.mark = mark
        environment = {**os.environ, "TRIMTAB_REPOSITORY": "off", "CHAOS_MARK": mark}
        self.begun = time.monotonic()
        self.process = subprocess.Popen([trimtab, "run", *arguments, "--json"], cwd=directory, env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.readers = [threading.Thread(target=self.read_errors), threading.Thread(target=self.read_output)]
        for reader in self.readers:
            reader.start()

    def read_errors(self):
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    def read_output(self):
        self.output = self.process.stdout.read()

    def runs(self):
        return self.process.poll() is None

    def nodes(self):
        return {pid: int(name[len("trimtab-n"):]) for pid, name in processes_of(self.mark).items()
                if re.fullmatch(r"trimtab-n\d+", name)}

    def end(self, timeout):
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            left = processes_of(self.mark)
            for pid in left:
                with contextlib.suppress(ProcessLookupError):  # it went with its parent
                    os.kill(pid, signal.SIGKILL)
            raise Failed(f"it has not ended within {timeout} s; its processes: {left}\n{self.text()}") from None
        finally:
            for reader in self.readers:
                reader.join()

    def text(self):
        return "\n".join(f"{when - self.begun:8.3f} | {line}" for when, line in self.lines)


class Round:
    def __init__(self, options, seed):
        self.options, self.seed = options, seed
        self.rng = rng = random.Random(seed)
        self.consistency = rng.choice(CONSISTENCIES)
        self.optimizer = rng.choice(OPTIMIZERS)
        self.nodes = rng.randint(3, 6)
        self.replicas = rng.randint(0, 1)
        self.sums = random.Random(f"sums {seed}").random() < SUMS_PART
        if self.sums:
            self.replicas = 1
            self.optimizer = "sgd"
            self.consistency = self.consistency if self.consistency != "bsp" else "asp"
        self.held_rng = random.Random(f"held {seed}")
        self.directory = tempfile.mkdtemp(prefix="trimtab-chaos-")
        self.mark = f"chaos-{os.getpid()}-{seed}"
        self.times = {"kill": [], "stop": [], "host": [], "cut": [], "power": []}
        self.faults = self.masters_killed = self.masters_replaced = 0
        self.before, self.earlier = [], []  # programs that were killed; what they said
        self.place = options.place
        with open(os.path.join(self.directory, "job.yaml"), "w", encoding="ascii") as file:
            file.write(JOB)

    def arguments(self, epochs):
        keys = {"seed": self.seed, "consistency": self.consistency, "optimizer.kind": self.optimizer,
                "optimizer.learning_rate": RATE[self.optimizer], "optimizer.batch_size": BATCH[self.consistency],
                "cluster.nodes": self.nodes, "stop.max_epochs": epochs, "model.table": self.rng.choice(["sparse", "dense"]),
                "cluster.failure_timeout": f"{FAILURE_TIMEOUT_S}s", "cluster.replicas": self.replicas, **self.place.keys,
                **({"setting.compression": self.place.compressions[self.seed % 2]} if self.place.compressions else {})}
        moves = self.rng.choice(["script", "tuner", "none"]) if self.consistency != "bsp" else self.rng.choice(["script", "none"])
        if self.sums:  # settings of a tuner's would round, and add up what is pushed at a time
            moves = "script" if moves == "tuner" else moves
            keys.update({"model.kind": "linear_svm", "model.l2": 0, "optimizer.learning_rate": SUMS_RATE,
                         "optimizer.batch_size": SUMS_BATCH, "data.rows": SUMS_ROWS})
        if moves != "tuner":
            keys["tuner.enabled"] = "off"
        if moves == "script":
            steps = [f"{{iteration: {40 * (i + 1)}, servers: {self.rng.randint(1, self.nodes - 1)}}}" for i in range(200)]
            keys["tuner.script"] = "[" + ", ".join(steps) + "]"
        else:
            keys["tuner.compare"] = "off"
        return ["job.yaml"] + [part for key, value in keys.items() for part in ("--set", f"{key}={value}")]

    # ---- one undisturbed run ---------------------------------------------------------------------------------------

    def epochs_of(self, arguments):
        """How many epochs take about SECONDS: of a short run."""
        arguments = [("stop.max_epochs=1000000" if a.startswith("stop.max_epochs") else a) for a in arguments]
        result = self.finish(Job(self.options.trimtab, arguments + ["--set", "stop.max_time=1s"], self.directory, self.mark), 60)
        epochs = max(3, int(SECONDS * result["epochs"] / max(result["train_seconds"], 0.1)))
        return min(epochs, SUMS_EPOCHS_MAX) if self.sums else epochs

    def finish(self, job, timeout):
        job.end(timeout)
        if job.process.returncode != 0:
            raise Failed(f"exit code {job.process.returncode}\n{job.text()}")
        self.check_nothing_left(job)
        return json.loads(job.output)

    def check_nothing_left(self, job):
        deadline = time.monotonic() + 2
        while processes_of(job.mark):
            if time.monotonic() > deadline:
                raise Failed(f"processes are left behind: {processes_of(job.mark)}\n{job.text()}")
            time.sleep(0.01)
        for folder, _, names in os.walk(self.directory):
            for name in names:
                if not os.path.isfile(os.path.join(folder, name)) or ".tmp" in name:
                    raise Failed(f"left behind: {os.path.join(folder, name)}")

    # ---- faults ----------------------------------------------------------------------------------------------------

    def note(self, what, nodes):
        self.faults += 1
        self.struck.append((time.monotonic(), what, nodes))

    def cut_off(self, what, seconds):
        """A host's cable, or its power."""
        host = self.rng.randrange(self.place.count)
        self.note(what, [n for n in range(self.nodes) if n % self.place.count == host])
        (self.place.cut if what == "cut" else self.place.power_off)(host)
        time.sleep(seconds)
        (self.place.heal if what == "cut" else self.place.power_on)(host)

    def strike_host(self, job):
        """Kills a process that starts nodes for the master, and so all of them."""
        hosts = [pid for pid, name in processes_of(job.mark).items() if name == "trimtab-node"]
        if not hosts:
            return
        host = self.rng.choice(sorted(hosts))
        held = []
        if self.held_rng.random() < HELD_PART:  # between a host and its nodes is the process that starts them
            held = [Held(pid) for pid in job.nodes() if stat_of(stat_of(pid)[1])[1] == host]
        os.kill(host, signal.SIGKILL)
        self.note("host", [])
        if held:
            time.sleep(HELD_S)
        for one in held:
            one.release()

    def strike(self, job):
        """Does something to a random node or host, if there is one."""
        what = self.rng.choice(self.place.faults)
        seconds = self.rng.uniform(1, self.options.longest_stop)
        nodes = job.nodes()
        if not nodes:
            return
        if what in ("cut", "power"):
            self.cut_off(what, seconds)
            return
        try:
            if what == "host":
                self.strike_host(job)
                return
            pid = self.rng.choice(sorted(nodes))
            held = Held(pid) if self.held_rng.random() < HELD_PART else None
            os.kill(pid, signal.SIGSTOP if what == "stop" else signal.SIGKILL)
        except ProcessLookupError:
            return
        self.note(what, [nodes[pid]])
        if what == "stop" or held:
            time.sleep(seconds if what == "stop" else HELD_S)
        if held:
            held.release()
        if what == "stop":
            with contextlib.suppress(ProcessLookupError):  # it was declared dead
                os.kill(pid, signal.SIGCONT)

    def disturb(self, job):
        self.struck = []
        for _ in range(self.rng.randint(1, 4)):
            time.sleep(self.rng.uniform(0.1, 1.2) + self.replicas * UNSTRUCK_S)
            if not job.runs():
                return
            self.strike(job)

    def check_copies(self, job):
        if self.replicas and self.consistency != "bsp":
            lost = [line for _, line in job.lines if re.search("of which there was no copy", line)]
            if lost:
                struck = ", ".join(f"{at - job.begun:.3f} s {how} nodes {whom}" for at, how, whom in self.struck)
                raise Failed(f"{lost[0]}; {struck}\n{job.text()}")

    def check_service(self, job):
        """Between a fault and the next one, how long until the node, or the job without it, was at work again. Nodes behind a
        cable that is cut come back when it is mended: the others are at work when they have heard of the death."""
        for i, (when, what, nodes) in enumerate(self.struck):
            until = self.struck[i + 1][0] if i + 1 < len(self.struck) else float("inf")
            lines = [(t, line) for t, line in job.lines if when < t < until]
            which = r"\d+" if what == "host" else "(" + "|".join(map(str, nodes)) + ")"
            dead = [t for t, line in lines if re.search(rf"node {which} \(", line)]
            back = [t for t, line in lines if re.search(rf"node {which} is back|all nodes go back", line)]
            seen = dead if what in ("cut", "power") else back
            if not dead or not seen:
                continue  # the job ended first, or it was not away for long enough
            took = seen[0] - when
            self.times[what].append(took)
            limit = 1 if what in ("kill", "host") else FAILURE_TIMEOUT_S + 1
            if took > limit * self.options.slack:
                struck = ", ".join(f"{at - job.begun:.3f} s {how} nodes {whom}" for at, how, whom in self.struck)
                stood = self.options.standstills.between(job.begun, seen[0])
                raise Failed(f"back {took:.2f} s after a {what}; {limit} s are allowed; {struck}; {stood}\n{job.text()}")

    # ---- the whole of it -------------------------------------------------------------------------------------------

    def model(self, result):
        with open(os.path.join(self.directory, result["run_dir"], "model.safetensors"), "rb") as file:
            return file.read()

    def check_sums(self, calm, result, job):
        """Counts how many times a feature of an example counts more or less often than it should."""
        right, sums = weights_of(self.model(calm)), weights_of(self.model(result))
        wrong = sum(abs(a - b) for a, b in zip(right, sums)) / SUMS_UNIT
        workers = sum("(worker) is dead" in line for _, line in self.earlier + job.lines)
        if not any(right) or len(right) != len(sums) or wrong > 0:
            raise Failed(f"sums differ by {wrong:.0f}; {workers} workers died\n{job.text()}")
        return f"exact sums, {workers} workers died"

    def disturbed(self, arguments):
        job = Job(self.options.trimtab, arguments, self.directory, self.mark)
        for _ in range(self.rng.randint(1, 3) if self.rng.random() < PROGRAM_PART else 0):
            time.sleep(self.rng.uniform(0.1, SECONDS / 2))
            if not job.runs():
                break
            self.strike_program(job)
            run = next((line.split("(")[1].rstrip(")") for _, line in job.lines if line.startswith("run ")), None)
            if run is None:
                return None  # killed before it began
            self.before.append(job)
            job = Job(self.options.trimtab, ["--resume", run], self.directory, self.mark)
        self.disturb(job)
        result = self.finish(job, 180)
        for one in self.before:
            one.end(10)
            self.earlier += one.lines
        self.masters_replaced = sum("took over from a process" in line for _, line in self.earlier + job.lines)
        self.check_service(job)
        self.check_copies(job)
        return result, job

    def strike_program(self, job):
        """Kills it; nodes that outlive it may be killed, too, before there is another one."""
        job.process.kill()
        job.process.wait()
        self.faults += 1
        self.masters_killed += 1
        # Nodes have its standard error open: what is read from there ends with them.
        time.sleep(self.rng.choice([0, self.rng.uniform(0, 1.5)]))
        nodes = sorted(job.nodes())
        if nodes and self.rng.random() < 0.3:
            os.kill(self.rng.choice(nodes), signal.SIGKILL)
            self.faults += 1

    def run(self):
        arguments = self.arguments(1)
        epochs = self.epochs_of(arguments)
        arguments = [(f"stop.max_epochs={epochs}" if a.startswith("stop.max_epochs") else a) for a in arguments]
        calm = self.finish(Job(self.options.trimtab, arguments, self.directory, self.mark), 120)
        disturbed = self.disturbed(arguments)
        if disturbed is None:
            return "killed before it began"
        result, job = disturbed
        sums = f", {self.check_sums(calm, result, job)}" if self.sums else ""
        if self.consistency == "bsp" and self.model(result) != self.model(calm):
            raise Failed(f"another model than undisturbed: loss {result['loss']} and {calm['loss']}")
        if abs(result["loss"] / calm["loss"] - 1) > NEAR:
            raise Failed(f"loss {result['loss']}, undisturbed {calm['loss']}")
        masters = f"{self.masters_replaced} of {self.masters_killed} masters replaced, " if self.masters_killed else ""
        return (f"{self.faults} faults, {masters}{result['counters']['deaths']} deaths, {result['generations']} generations, "
                f"loss {result['loss']:.5f} ({calm['loss']:.5f}){sums}")


def weights_of(model):
    """All numbers of a safetensors file of 32-bit floats."""
    header = 8 + int.from_bytes(model[:8], "little")
    return [value for value, in struct.iter_unpack("<f", model[header:])]


def describe(name, seconds):
    if not seconds:
        return f"{name}: none"
    return f"{name}: {len(seconds)}, median {statistics.median(seconds):.3f} s, worst {max(seconds):.3f} s"


def play(options):
    """All rounds. Returns how many of them failed."""
    times, faults, failed = {"kill": [], "stop": [], "host": [], "cut": [], "power": []}, 0, 0
    killed = replaced = 0
    for seed in range(options.seed, options.seed + options.rounds):
        one = Round(options, seed)
        what = f"seed {seed}: {one.consistency} {one.optimizer} {one.nodes} nodes{' with replicas' if one.replicas else ''}{', sums' if one.sums else ''}"
        try:
            print(f"{what}: {one.run()}", flush=True)
        except Failed as failure:
            failed += 1
            print(f"FAILED {what}: {failure}\n  again: chaos.py {options.trimtab} --seed {seed} --rounds 1 --engine {options.engine}", flush=True)
            for number, job in enumerate(one.before, 1):
                print(f"  before, from master {number}:\n{job.text()}", flush=True)
            if options.keep:
                shutil.copytree(one.directory, os.path.join(options.keep, f"seed-{seed}"), dirs_exist_ok=True)
        finally:
            shutil.rmtree(one.directory, ignore_errors=True)
        faults += one.faults
        killed += one.masters_killed
        replaced += one.masters_replaced
        for kind, seconds in one.times.items():
            times[kind] += seconds
    print(f"{options.rounds} rounds, {faults} faults, {failed} failed; {replaced} of {killed} masters replaced while nodes went on; back in service after {describe('kill -9', times['kill'])}; "
          f"{describe('silence', times['stop'])}; {describe('a host', times['host'])}; {describe('a cut cable', times['cut'])}; "
          f"{describe('a power failure', times['power'])}")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("trimtab")
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("CHAOS_ROUNDS", "100")))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CHAOS_SEED", "1")))
    parser.add_argument("--longest-stop", type=float, default=float(os.environ.get("CHAOS_LONGEST_STOP", "10")))
    parser.add_argument("--engine", choices=sorted(ENGINES), default=os.environ.get("CHAOS_ENGINE", "local"))
    parser.add_argument("--slack", type=float, default=float(os.environ.get("CHAOS_SLACK", "1")),
                        help="times the allowed time until a node is back")
    parser.add_argument("--keep", help="directory for the runs of rounds that failed")
    options = parser.parse_args()
    options.trimtab = os.path.abspath(options.trimtab)
    options.place = ENGINES[options.engine]()
    options.standstills = Standstills()
    try:
        return 1 if play(options) else 0
    finally:
        options.place.close()


if __name__ == "__main__":
    sys.exit(main())
