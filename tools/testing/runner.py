# SPDX-License-Identifier: GPL-2.0
"""Runs tests in one set of guests at a time."""

import contextlib
import fcntl
import os
import threading
import time

import guests
import judge
from guest import HERE, ROOT
from pace import PACE

# A test that used more than this share of its limit is slower than it usually is.
NEAR = 0.5
# Seconds for a guest to print the stacks of its processes
ANSWER = 10
# Seconds for the steps after a test: leftovers, memory leaks, counters
AFTER = 100


def append(kernel):
    """Words for the kernel's command line. The stock kernels have full preemption, and fill free
    pages to detect writes to them."""
    return [] if kernel == "debug" else ["preempt=full", "page_poison=1"]


@contextlib.contextmanager
def room(alone):
    """Lets a test run beside others or alone, among all runs of this tree.

    "inside" is locked while a test runs. A test that is to be alone locks "door" until it has
    "inside" for itself, so that no further test starts meanwhile.
    """
    path = ROOT + "/test-results"
    os.makedirs(path, exist_ok=True)
    with open(path + "/.room", "w") as inside, open(path + "/.door", "w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(inside, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


class Leaks:
    """What kmemleak found at the end of each set of guests of the debug kernel."""

    def __init__(self):
        self.lock = threading.Lock()
        self.found, self.asked = [], 0

    def add(self, lines):
        with self.lock:
            self.asked += 1
            self.found += lines


class Outcome:
    """The result of one run of a test, its reason, and lines to show"""

    def __init__(self, result, why="", show=()):
        self.result, self.why, self.show = result, why, list(show)


class Runner:
    """run: what all runners share: env(kernel), modules, new_folder(), report, leaks.

    matrix: whether to keep the counters of lines of each test by itself.
    """

    def __init__(self, run, matrix=False):
        self.shared, self.matrix = run, matrix
        self.lab = self.kind = None
        self.boot = 0.0         # seconds that guests took to boot for this test
        self.spent = self.wall = 0.0    # of the test alone; spent: as pace.py counts them
        self.cpu = 0.0

    def same(self, job):
        """Whether a job can use the running guests"""
        return self.lab is not None and self.kind == job.machine(self.shared.modules)

    def machine(self, job):
        """Provide guests for a job: the running ones, or new ones."""
        if self.same(job):
            return
        self.stop()
        kind = job.machine(self.shared.modules)
        kernel, count, modules, memory, cpus, words = kind
        names = ["vm"] if count == 1 else ["server", "client", "client2"][:count]
        self.lab = guests.Lab(self.shared.env(kernel),
                              self.shared.new_folder(kernel, names), names, modules,
                              memory=int(memory), cpus=cpus, append=append(kernel) + words.split(),
                              slub_debug="FZP")
        self.kind, self.boot = kind, self.lab.boot_time
        self.shared.guests_ready()
        self.shared.report.say(f"guests: {', '.join(names)}; {kernel} kernel; {modules} "
                               f"modules; booted in {self.boot:.1f} s; slowness "
                               f"{PACE.slowness:.1f}")

    def stop(self):
        lab, kind, self.lab = self.lab, self.kind, None
        if not lab:
            return
        try:
            if kind[0] == "debug":
                self.shared.leaks.add(self.end_of_life(lab))
        except Exception as e:
            self.shared.leaks.add([f"{lab.dir}: not known: {type(e).__name__}: {e}"])
        finally:
            lab.close()

    def end_of_life(self, lab):
        """Memory that leaked in guests of the debug kernel. Saves their counters of lines."""
        found = []
        alive = [name for name, guest in lab.guests.items() if guest.alive()]
        save = "" if self.matrix else "; save_coverage"
        script = f". {HERE}/lib.sh; leaked_memory{save}"
        for name, (code, out) in lab.run_on(alive, script, AFTER, "end").items():
            if code != 0 or out:
                how = "no answer" if code is None else f"status {code}"
                found += [f"{lab.dir}/{name}: {how}"] + ["  " + x for x in out.splitlines()[:40]]
        return found

    def trouble(self, job):
        """Lines of the guests' kernel logs that must not be there."""
        return [line for guest in self.lab.guests.values() for line in judge.trouble(
            guest.name, guest.news().splitlines(), job.test.set["log-ok"])]

    def ends_of_logs(self):
        """The last lines of each guest's kernel log."""
        found = []
        for guest in self.lab.guests.values():
            found += [f"end of {guest.name}'s kernel log:"]
            found += ["  " + x for x in guest.tail(15)]
        return found

    def blocked_tasks(self):
        """The stacks of the guests' processes, and the ends of the kernel logs"""
        found = self.lab.who_waits()
        for guest in self.lab.guests.values():
            if guest.alive():
                try:
                    code, out = self.lab.run(
                        guest.name, f". {HERE}/lib.sh; what_waits", ANSWER, "waits")
                except OSError as e:
                    code, out = None, f"{e}\n"
                found.append(f"{guest.name} " + ("didn't finish:" if code is None else "waits:"))
                found += ["  " + x for x in out.splitlines()]
            found += ["  " + x for x in guest.tail(30) if not judge.HEX.search(x)]
        return found

    def script(self, job):
        test = job.test
        return (f"echo 'test {test.name}: begin' >/dev/kmsg\n"
                f"SEED={os.environ.get('SEED', '')}\n"
                f"RIG_ROUNDS={job.rounds} RIG_SOAK={job.soak}\n"
                f"cd {HERE}/tests; set -eEu\n. {HERE}/lib.sh\n"
                "trap 'echo \"FAIL: line $LINENO of ${BASH_SOURCE[0]##*/}: "
                "$BASH_COMMAND\"' ERR\n"
                f". {test.path}\n")

    def run(self, job):
        """Run a test once; an Outcome."""
        self.machine(job)
        where = self.lab.names[-1] if job.guests < 3 else "client"
        for name in self.lab.names if self.matrix else ():
            self.lab.run(name, f". {HERE}/lib.sh; reset_coverage", AFTER, "reset")
        blocked = []
        start, before = time.monotonic(), self.lab.cpu()
        code, out = self.lab.run(where, self.script(job), job.limit, job.test.name,
                                 lambda: blocked.extend(self.blocked_tasks()))
        self.spent, self.wall = self.lab.spent, time.monotonic() - start
        self.cpu += self.lab.cpu() - before
        lines = out.splitlines()
        died = [name for name, guest in self.lab.guests.items() if guest.died()]
        if died:
            return Outcome("failed", " and ".join(died) + " went down",
                           lines[-20:] + blocked + self.trouble(job))
        if code is None:
            return Outcome("failed", f"TIMEOUT after {job.limit:.0f} s of a machine that is "
                           f"{PACE.slowness:.1f} times as fast as this one",
                           lines[-20:] + blocked + self.trouble(job))
        result, why = judge.verdict(code, lines)
        said = [line[2:] for line in lines if line.startswith("# ")]
        if result == "failed":
            show = lines[-50:] + self.ends_of_logs()
        else:
            show = said
            left = self.leftovers(job)
            if left:
                result, why, show = "failed", "left something behind", said + left
        bad = self.trouble(job)
        if bad:
            result, why = "failed", "kernel log"
            show += bad
        return Outcome(result, why, show)

    def leftovers(self, job):
        found = []
        there = [name for name, guest in self.lab.guests.items() if not guest.killed]
        more = f"; save_coverage {job.test.name}" if self.matrix else ""
        script = f". {HERE}/lib.sh; leftovers{more}"
        for name, (code, out) in self.lab.run_on(there, script, AFTER, "leftovers").items():
            guest = self.lab.guests[name]
            if code != 0:
                found.append(f"{name}: no answer when looking for leftovers")
            found += [f"{name}: {line}" for line in out.splitlines()]
            if guest.died():
                found.append(f"{name} is down")
            found += [f"{name}'s cable {net} is {how}"
                      for net, how in enumerate(guest.cables()) if how != "on"]
        return found

    def one(self, job):
        """Run a job, once more after a known fault of something else, and report it."""
        self.boot = 0.0
        if job.alone:
            # Other jobs go on while its guests boot. An error is reported when it runs.
            with contextlib.suppress(Exception):
                self.machine(job)
        with room(job.alone):
            self.one_in_room(job)

    def one_in_room(self, job):
        report = self.shared.report
        report.say(f"{job.key} begins")
        start = time.monotonic()
        self.spent, self.wall, self.cpu, first = 0.0, 0.0, 0.0, None
        try:
            done = self.run(job)
            again = done.result == "failed" and judge.run_again(done.show)
            if again:
                first = {"why": done.why, "again": again, "logs": self.lab.dir,
                         "lines": self.all_shown(done)}
                report.again(job.key, first)
                self.stop()
                done = self.run(job)
        except Exception as e:  # pylint: disable=broad-exception-caught
            # Any exception fails this job only.
            done = Outcome("failed", f"{type(e).__name__}: {e}")
        if done.result == "failed" and self.lab:
            done.show.append(f"logs: {self.lab.dir}")
        if done.result == "skipped" and self.shared.strict:
            # Headers say where a test runs, so that no test is skipped unnoticed.
            done.result, done.why = "failed", "skipped itself: " + done.why
        if done.result == "passed" and self.spent > NEAR * job.limit:
            done.why = f"({self.spent / job.limit:.0%} of its limit)"
            report.near.append(job.key)
        report.result(
            job.key, done.result, done.why, done.show,
            wall=round(time.monotonic() - start, 1), seconds=round(self.spent, 1),
            limit=round(job.limit, 1), cpu=round(self.cpu, 1), reruns=int(first is not None),
            slowness=round(self.wall / self.spent, 2) if self.spent else PACE.slowness,
            guests=list(self.lab.names) if self.lab else [], boot=round(self.boot, 1),
            repeated=job.rounds != int(job.test.set["rounds"] or 0) or job.soak > 0,
            **({"first": first} if first else {}))
        dead = self.lab and not all(g.alive() for g in self.lab.guests.values())
        if done.result == "failed" or dead:
            self.stop()

    def all_shown(self, done):
        """What is shown of a run after which the test runs again: the log of each guest too."""
        ends = self.ends_of_logs()
        return done.show + ([] if ends[0] in done.show else ends)
