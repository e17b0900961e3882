# SPDX-License-Identifier: GPL-2.0
"""A run: sets up kernels while the first tests run; each lane runs jobs in its guests.

A guest on QEMU has two CPUs, so one set of them runs at a time. A guest on User Mode Linux has
one CPU, so two sets run at a time. When one kind has no job left, the other gets a further lane.
"""

import json
import os
import re
import signal
import subprocess
import threading
import time
import traceback

import catalog
import choose
import guests
from catalog import COVERAGE, KMEMLEAK
from guest import HERE, ROOT
from history import NEVER
from hostjobs import CHECK, ROTA
from pace import PACE
from runner import Leaks, Runner

LANES = {"stock": 1, "debug": 2}
# The time limit starts when the first guest is ready, but at most this many seconds after the start
# of the run.
GRACE = 300
# Seconds for setup.sh
SETUP_LIMIT = 3000
# The least share of the drivers' lines that all tests on the debug kernel run
COVERED = 97
# The exit codes of timeout(1) when the time was over
TIMED_OUT = (124, 137)

TABLE = "host/history"


def command(args, limit, **more):
    """Start a command; it is killed at its time limit, or when the thread that started it ends."""
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", "timeout", "-k", "30", str(max(1, round(limit))),
         *args], text=True, errors="replace", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)


def printed(process, say, name):
    """Prints a command's output line by line, and returns the lines."""
    lines = []
    for line in process.stdout:
        line = line.rstrip("\n")
        lines.append(line)
        if line:
            say(f"{name}: {line}")
    return lines


class Kernels:
    """The kernels of a run, set up by setup.sh, and the sets of modules of each."""

    def __init__(self, names, say, times):
        self.names, self.say, self.times = names, say, times
        self.envs, self.sets = {}, {name: set() for name in names}
        self.broken = {}        # kernel: why
        self.busy = False       # whether some are still being set up

    def set_up(self, kernel, sets):
        """Prepare a kernel's guests, with these sets of modules; whether that worked.

        Sets that are there already are not made again: guests may be using them.
        """
        wanted = sorted(sets - self.sets[kernel])
        try:
            with command([HERE + "/setup.sh", "guest", *wanted], SETUP_LIMIT,
                         env={**os.environ, "KERNEL": kernel, "SETUP_TIMES": self.times}) \
                    as process:
                said = printed(process, self.say, kernel)
            if process.returncode != 0:
                self.broken[kernel] = said[-1] if said else f"status {process.returncode}"
                return False
            self.envs[kernel] = guests.environment(kernel)
        except Exception as e:
            self.broken[kernel] = f"{type(e).__name__}: {e}"
            return False
        self.sets[kernel] |= sets
        return True


class Run:
    """State that the lanes share. "changed" guards the queue, and is notified of each change."""

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
        self.late, self.broken = [], []

    # ---- for runners ----

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

    def wall_left(self):
        """Seconds of this machine until the end of the run."""
        if not self.options.limit:
            return float("inf")
        start = min(self.first_guest or time.time(), self.started + GRACE)
        return start + self.options.limit * 60 - time.time()

    def left(self):
        """The same in seconds of a fast machine; see pace.py."""
        return self.wall_left() / PACE.slowness

    # ---- the queue ----

    def lanes(self, kind):
        """The number of concurrent sets of guests of a kind, while there are jobs for both."""
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
                # Only one lane of each kind runs several guests at a time, to limit the load.
                mine = [j for j in mine if index == 0 or j.guests == 1]
                # The slowness may change: a lane ends when even a fast machine has no time.
                if not any(self.ranking.cost[j] <= self.wall_left() for j in mine):
                    return None
                job = None
                if index < self.lanes(kind) or not others:
                    job = choose.next_job(mine, self.ranking, self.left(), self.lanes(kind),
                                          runner.same, self.ready)
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
        """The sets of modules that the jobs on a kernel need"""
        return set().union(*(j.sets(self.modules) for j in self.jobs if j.kernel == kernel))

    def set_up(self, kernel, sets):
        """Set up a kernel with these sets; if that fails, the jobs on the kernel fail."""
        if kernel in self.kernels.envs and sets <= self.kernels.sets[kernel]:
            return
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
        """In the background: kernels and sets that the first guests do not need. The debug
        kernel comes first, as its guests use this machine well beside those of QEMU."""
        first, *others = self.kernels.names
        try:
            for kernel in sorted([first, *others], key=lambda k: (k != "debug", k != first)):
                if kernel not in self.kernels.broken:
                    self.set_up(kernel, self.needed(kernel))
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
        start, mark = time.monotonic(), PACE.mark()
        limit = self.history.limit(job.key, job.expected) * PACE.slowness
        cut = self.wall_left() < limit
        with command(job.command, min(limit, self.wall_left()), cwd=ROOT,
                     env={**self.options.environment, **job.env}) as process:
            try:
                lines = printed(process, self.report.say, job.key)
                _, status, used = os.wait4(process.pid, 0)
            except BaseException:
                process.send_signal(signal.SIGTERM)
                raise
            process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - start
        slowness = max(1.0, PACE.mean(mark))
        result, why = host_verdict(process.returncode, lines, job.counts, cut)
        self.report.result(
            job.key, result, why, lines if result == "failed" else [],
            wall=round(wall, 1), seconds=round(wall / slowness, 1), limit=round(limit, 1),
            cpu=round(used.ru_utime + used.ru_stime, 1), slowness=round(slowness, 2),
            reruns=0, guests=[], boot=0, repeated=False)

    # ---- all of it ----

    def thread(self, what, *args):
        """Run a part of the run in a thread. An exception makes the run red."""
        def guarded():
            try:
                what(*args)
            except BaseException:
                with self.changed:
                    self.broken.append(traceback.format_exc())
                    self.changed.notify_all()
        return threading.Thread(target=guarded, daemon=True)

    def all(self):
        """Set up, and run all jobs that there is time for."""
        first, *_ = self.kernels.names
        self.kernels.busy = True
        self.set_up(first, {self.modules})
        kinds = sorted({catalog.kind_of(k) for k in self.kernels.names})
        # A further lane starts when the other kind has no job left.
        lanes = [(kind, i) for kind in kinds for i in range(self.options.jobs or LANES[kind] + 1)]
        threads = [self.thread(self.set_up_rest), *(self.thread(self.lane, *x) for x in lanes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.leave_out()

    def leave_out(self):
        """Report jobs that no lane ran. Skipping one that passed long ago makes the run red."""
        self.todo.sort(key=lambda j: -self.history.age(j.key))
        for job in self.todo:
            if self.broken or not self.options.limit:
                self.report.result(job.key, "failed", "no lane ran it")
                continue
            why = "no time left"
            if not self.ranking.rank[job][0]:
                why += ", though it tests what has changed"
            self.late.append(job.key)
            self.skip(job.key, why)

    def skip(self, key, why, lines=()):
        """Skip a job or a check: a run of everything fails if it has not passed for long."""
        age = self.history.age(key)
        stale = self.strict and self.history.stale(key)
        # A check of the whole run passes for the first time when all tests have run.
        if key in catalog.CHECKS and key not in self.history.table:
            stale = False
        self.report.result(key, "failed" if stale else "skipped", f"{why}; {since(age)}", lines)

    def rota(self, jobs):
        """Run the job of the rota that passed the longest ago, if there is time for it."""
        job = choose.oldest(jobs, self.history, self.left())
        for other in jobs:
            if other is not job:
                self.report.result(other.key, "skipped", "not chosen in this run; " +
                                   since(self.history.age(other.key)))
        if isinstance(job, catalog.Job):
            self.todo.append(job)
            self.set_up(job.kernel, job.sets(self.modules))
            if job in self.todo:
                self.todo.remove(job)
                runner = Runner(self)
                try:
                    runner.one(job)
                finally:
                    runner.stop()
        elif job:
            self.host_job(job)

    def setup_times(self):
        """The steps of setup.sh and their times"""
        found = []
        with open(self.kernels.times) as f:
            for line in f:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass    # half a line, of a step that was ended
        return found

    # ---- checks of the run as a whole ----

    def checks(self):
        """Names of these checks"""
        return ([KMEMLEAK, COVERAGE] if "debug" in self.kernels.names else []) + \
            ([TABLE] if self.strict else [])

    def check(self, keys):
        """Report these checks. keys: of all jobs that exist"""
        if "debug" in self.kernels.names:
            leaks = self.leaks
            if leaks.asked:
                self.report.result(KMEMLEAK, "failed" if leaks.found else "passed",
                                   f"at the end of {leaks.asked} sets of guests", leaks.found)
            else:
                self.skip(KMEMLEAK, "no guest of the debug kernel")
            self.coverage()
        if self.strict:
            gone = self.history.gone(keys)
            self.report.result(TABLE, "failed" if gone else "passed",
                               "tests of the table that no longer exist; if that is meant, run "
                               "make record: " + " ".join(gone) if gone else "")

    def coverage(self):
        """Require the share of lines of a run in which all tests on the debug kernel ran."""
        ran = self.options.all_debug and not any(k.startswith("debug/") for k in self.late)
        done = subprocess.run([HERE + "/coverage", f"--least={COVERED if ran else 0}"],
                              check=False, text=True, capture_output=True,
                              env={**os.environ, "RESULTS": self.options.results})
        lines = [x.removeprefix("# ") for x in (done.stdout + done.stderr).splitlines()]
        if ran:
            self.report.result(COVERAGE, "failed" if done.returncode else "passed",
                               f"{COVERED} % expected", lines)
        else:
            self.skip(COVERAGE, "only some of the tests ran", lines)

    def complete(self, planned):
        """Report jobs without a result, and parts of the run that broke, as failed."""
        for key in planned:
            if key not in self.report.jobs:
                self.report.result(key, "failed", "it has not run to its end")
        if self.broken:
            self.report.result("host/run", "failed", "a part of the run broke",
                               "\n".join(self.broken).splitlines())


def host_verdict(code, lines, counts, cut):
    """Result and reason of a command.

    counts: it ends in "N passed, N failed"; cut: its time was shorter than its limit, since
    the run ends then.
    """
    if code in TIMED_OUT:
        return ("skipped", "ended at the end of the run's time") if cut else \
            ("failed", "TIMEOUT")
    if code:
        return "failed", f"status {code}"
    if counts and not any(re.match(r"[1-9]\d* passed, 0 failed", x) for x in lines[-1:]):
        return "failed", "nothing passed"
    return "passed", ""


def since(age):
    """When a job last passed, in words"""
    if age >= NEVER:
        return "it never passed"
    return f"it passed {age} commits ago" if age else "it passed at this commit"


def rota_jobs(tests, history):
    """The jobs of the rota, with their limits"""
    for job in (found := [*catalog.rota(tests), *ROTA]):
        if isinstance(job, catalog.Job):
            job.repeat(0, 0)
            job.limit = history.limit(job.key)
    return found
