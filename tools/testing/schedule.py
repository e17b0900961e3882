# SPDX-License-Identifier: GPL-2.0
"""A run: kernels are set up while the first tests run, and lanes of guests take the jobs.

Guests of QEMU have two CPUs and run one set at a time; those of User Mode Linux have one
CPU and run two. When one kind has no job left, the other gets a further lane.
"""

import json
import os
import subprocess
import threading
import time

import catalog
import choose
import guests

from guest import HERE, ROOT
from hostjobs import CHECK, ROTA
from history import NEVER
from pace import PACE
from runner import Leaks, Runner, room

LANES = {"stock": 1, "debug": 2}
# The time limit starts when the first guest is ready, but at most so many seconds after the
# start of the run.
GRACE = 300
# The least share of the drivers' lines that all tests on the debug kernel run
COVERED = 97


def spoken(process, say, name):
    """Print what a command says, line by line; its lines."""
    lines = []
    for line in process.stdout:
        line = line.rstrip("\n")
        lines.append(line)
        if line:
            say(f"{name}: {line}")
    return lines


class Kernels:
    """The kernels of a run, as setup.sh prepares them, and which sets of modules each has."""

    def __init__(self, names, say, times):
        self.names, self.say, self.times = names, say, times
        self.envs, self.sets = {}, {name: set() for name in names}
        self.broken = {}        # kernel: why
        self.busy = False       # whether some are still being set up

    def set_up(self, kernel, sets):
        """Have the guests of a kernel, with these sets of modules; whether that worked.

        Sets that it has are not made again: guests may be using them.
        """
        wanted = sorted(sets - self.sets[kernel], key="ours intree siw".split().index)
        with subprocess.Popen(
                [HERE + "/setup.sh", "guest", *wanted], text=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env={**os.environ, "KERNEL": kernel, "SETUP_TIMES": self.times}) as process:
            said = spoken(process, self.say, kernel)
        if process.returncode != 0:
            self.broken[kernel] = said[-1] if said else "setup.sh failed"
            return False
        self.envs[kernel] = guests.environment(kernel)
        self.sets[kernel] |= sets
        return True


class Run:
    """What the lanes share, under one lock."""

    def __init__(self, jobs, kernels, report, history, options):
        self.kernels, self.report, self.history = kernels, report, history
        self.modules, self.strict = options.modules, options.whole
        self.options = options
        self.ranking = choose.Ranking(history, jobs, self.modules)
        self.todo = list(self.ranking.order)
        self.jobs = list(jobs)
        self.leaks = Leaks()
        self.changed = threading.Condition()
        self.started = time.time()
        self.first_guest = None
        self.folders = {}

    # ---- what runners ask for ----

    def env(self, kernel):
        return self.kernels.envs[kernel]

    def new_folder(self, kernel, names):
        with self.changed:
            self.folders[kernel] = n = self.folders.get(kernel, 0) + 1
        return f"{self.options.results}/{kernel}/{n:02d}-{'-'.join(names)}"

    def guests_ready(self):
        with self.changed:
            if self.first_guest is None:
                self.first_guest = time.time()

    # ---- time ----

    def left(self):
        """Seconds until the end, as pace.py counts them."""
        if not self.options.limit:
            return float("inf")
        latest = self.started + GRACE
        start = min(self.first_guest or time.time(), latest)
        return (start + self.options.limit * 60 - time.time()) / PACE.slowness

    # ---- the queue ----

    def lanes(self, kind):
        """How many sets of guests of a kind run at a time, while there are jobs for both."""
        return self.options.jobs or LANES[kind]

    def ready(self, job):
        """Whether a job's guests can be booted. Beside builds only jobs of one guest run:
        several guests would slow down the builds, and themselves more."""
        return (job.kernel in self.kernels.envs and
                job.sets(self.modules) <= self.kernels.sets[job.kernel] and
                (not self.kernels.busy or (job.guests == 1 and not job.alone)))

    def next(self, runner, kind, index):
        """The next job for a lane; None if there is none left for it, or no time."""
        with self.changed:
            while True:
                mine = [j for j in self.todo if catalog.kind_of(j.kernel) == kind]
                others = len(self.todo) - len(mine)
                # Several guests at a time load this machine enough.
                fit = [j for j in mine if index == 0 or j.guests == 1]
                left, lanes = self.left(), self.lanes(kind)
                if not any(self.ranking.cost[j] <= left for j in fit):
                    return None
                job = None
                if index < lanes or not others:
                    job = choose.next_job(fit, self.ranking, left, lanes, runner.same,
                                          self.ready)
                if job:
                    self.todo.remove(job)
                    return job
                self.changed.wait(5)

    def lane(self, kind, index):
        """Run the jobs of a lane, until there is none."""
        runner = Runner(self, self.options.matrix and kind == "debug")
        try:
            while job := self.next(runner, kind, index):
                runner.one(job)
                with self.changed:
                    self.changed.notify_all()
        finally:
            runner.stop()

    # ---- setting up ----

    def needed(self, kernel):
        return set().union(*(j.sets(self.modules) for j in self.jobs if j.kernel == kernel))

    def set_up(self, kernel, sets):
        worked = self.kernels.set_up(kernel, sets)
        with self.changed:
            if not worked:
                lost = [j for j in self.todo if j.kernel == kernel]
                self.todo = [j for j in self.todo if j.kernel != kernel]
                for job in lost:
                    self.report.result(job.key, "failed", "its kernel could not be set up: " +
                                       self.kernels.broken[kernel])
            self.changed.notify_all()

    def set_up_rest(self):
        """In the background: what the first guests did not need. The debug kernel comes first,
        as its guests use this machine well beside those of QEMU."""
        first, *others = self.kernels.names
        try:
            for kernel in sorted([first, *others], key=lambda k: (k != "debug", k != first)):
                sets = self.needed(kernel) - self.kernels.sets[kernel]
                if sets and kernel not in self.kernels.broken:
                    self.set_up(kernel, sets)
                if kernel == first and self.options.check:
                    self.host_job(CHECK)
        finally:
            with self.changed:
                self.kernels.busy = False
                self.changed.notify_all()

    # ---- commands on this machine ----

    def host_job(self, job):
        """Run a command, and report it as one job."""
        self.report.say(f"{job.key} begins")
        start = time.monotonic()
        limit = max(self.history.limit(job.key), 3000) * PACE.slowness
        with room(False), subprocess.Popen(
                ["timeout", "-k", "30", str(round(limit)), *job.command], text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                cwd=ROOT, env={**self.options.environment, **job.env}) as process:
            lines = spoken(process, self.report.say, job.key)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - start
        self.report.result(
            job.key, "failed" if process.returncode else "passed",
            f"status {process.returncode}" if process.returncode else "",
            lines if process.returncode else [],
            wall=round(wall, 1), seconds=round(wall / PACE.slowness, 1), limit=round(limit, 1),
            cpu=round(used.ru_utime + used.ru_stime, 1), slowness=round(PACE.slowness, 2),
            reruns=0, guests=[], boot=0, repeated=False)

    # ---- all of it ----

    def all(self):
        """Set up, and run all jobs that there is time for."""
        first, *others = self.kernels.names
        self.set_up(first, {self.modules})
        if first in self.kernels.broken and not others:
            return
        self.kernels.busy = True
        threads = [threading.Thread(target=self.set_up_rest, daemon=True)]
        kinds = sorted({catalog.kind_of(k) for k in self.kernels.names})
        # A further lane begins when the other kind has no job left.
        threads += [threading.Thread(target=self.lane, args=(kind, i), daemon=True)
                    for kind in kinds
                    for i in range(self.options.jobs or LANES[kind] + 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.late()

    def late(self):
        """Jobs that there was no time for: those that passed long ago make the run red."""
        self.todo.sort(key=lambda j: -self.history.age(j.key))
        for job in self.todo:
            why = f"no time left; {since(self.history.age(job.key))}"
            stale = self.strict and self.history.stale(job.key)
            self.report.result(job.key, "failed" if stale else "skipped", why)

    def rota(self, jobs):
        """One of the long jobs, if there is time for it: the one that passed longest ago."""
        job = choose.oldest(jobs, self.history, self.left())
        for other in jobs:
            if other is not job:
                self.report.result(other.key, "skipped", "the rota leaves it out; " +
                                   since(self.history.age(other.key)))
        if isinstance(job, catalog.Job):
            runner = Runner(self)
            try:
                self.kernels.set_up(job.kernel, job.sets(self.modules))
                runner.one(job)
            finally:
                runner.stop()
        elif job:
            self.host_job(job)

    def setup_times(self):
        """The steps of setup.sh, and how long each took."""
        with open(self.kernels.times) as f:
            return [json.loads(line) for line in f]

    # ---- checks of the run as a whole ----

    def checks(self):
        """Names of these checks."""
        return (["debug/kmemleak", "debug/coverage"] if "debug" in self.kernels.names else []) + \
            (["host/history"] if self.strict else [])

    def check(self, keys):
        """Report these checks. keys: of all jobs that there are."""
        if "debug" in self.kernels.names:
            leaks = self.leaks
            if leaks.asked:
                self.report.result("debug/kmemleak", "failed" if leaks.found else "passed",
                                   f"at the end of {leaks.asked} sets of guests", leaks.found)
            else:
                self.report.result("debug/kmemleak", "skipped", "no guest of the debug kernel")
            self.coverage()
        if self.strict:
            gone = self.history.gone(keys)
            self.report.result("host/history", "failed" if gone else "passed",
                               "tests of the table that there are no more; if that is meant, "
                               "run make record: " + " ".join(gone) if gone else "")

    def coverage(self):
        """Of some of the tests nothing is expected."""
        expected = self.options.whole and not any(j.kernel == "debug" for j in self.todo)
        least = COVERED if expected else 0
        done = subprocess.run([HERE + "/coverage", f"--least={least}"], check=False, text=True,
                              capture_output=True)
        lines = [x.removeprefix("# ") for x in (done.stdout + done.stderr).splitlines()]
        if least:
            self.report.result("debug/coverage", "failed" if done.returncode else "passed",
                               f"{least} % expected", lines)
        else:
            self.report.result("debug/coverage", "skipped", "only some of the tests ran", lines)


def since(age):
    """When a job last passed, in words."""
    if age >= NEVER:
        return "it never passed"
    return f"it passed {age} commits ago" if age else "it passed at this commit"


def rota_jobs(tests, history):
    found = [*catalog.rota(tests), *ROTA]
    for job in found:
        job.limit = history.limit(job.key)
    return found
