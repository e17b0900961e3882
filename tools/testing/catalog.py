# SPDX-License-Identifier: GPL-2.0
"""The tests, and the kernels that each of them runs on.

A Test is a file of tests/ with the settings of its leading comment. A Job is a test on one
kernel: it is what the runner runs, what the table of recorded runs is about, and what is
counted in the end.
"""

import dataclasses
import fnmatch
import os
import re

import hostjobs
from guest import HERE

TESTS = HERE + "/tests"
KERNELS = ("stock", "debug", "6.12", "7.2")
# Checks of a run as a whole, of leaks and of the lines that ran
KMEMLEAK, COVERAGE = CHECKS = "debug/kmemleak", "debug/coverage"

FIELDS = {"guests": "1", "modules": "", "memory": "2048", "log-ok": "", "skip": "",
          "append": "", "sets": "", "kernel": "", "cpus": os.environ.get("CPUS") or "1", "rounds": "", "once": "",
          "rota": "", "quick": "", "alone": "", "siw": ""}


def kind_of(kernel):
    """The kind of kernel, as the header line "Kernel:" names it."""
    return "debug" if kernel == "debug" else "stock"


def header(lines):
    """The settings in the leading comment of a test."""
    found = dict(FIELDS)
    for line in lines:
        if not line.startswith("#"):
            break
        m = re.match(r"#\s*([A-Z][a-z-]+):\s*(.*?)\s*$", line)
        if m and m[1].lower() in found:
            found[m[1].lower()] = m[2]
    return found


def steps(text, known=()):
    """The files of steps/ that a test reads in or runs, and those that these name"""
    found = {f"steps/{name}" for name in re.findall(r"\bsteps/([\w.-]+\w)", text)} - set(known)
    for name in sorted(found):
        with open(f"{HERE}/{name}") as f:
            found |= steps(f.read(), found | set(known))
    return found


class Test:
    """A file of tests/, over one kind of RDMA device.

    files: those that it consists of, relative to tools/testing
    """

    def __init__(self, path, settings, rdma="rxe", files=()):
        self.path, self.rdma, self.set, self.files = path, rdma, dict(settings), set(files)
        self.name = os.path.basename(path)[:-3]
        if rdma != "rxe":
            self.set["append"] += f" rig.rdma={rdma}"

    def kernels(self):
        """The kernels that it runs on in a run of everything."""
        if self.rdma == "siw":
            return self.set["siw"].split()
        if self.set["rota"]:
            return []
        return (self.set["once"] or self.set["kernel"] or "debug").split()

    def over_siw(self):
        """The same test over soft-iWARP, as a test of its own."""
        other = Test(self.path, self.set, "siw", self.files)
        other.name += "-siw"
        return other


@dataclasses.dataclass(eq=False)
class Job:
    """A test on a kernel. limit: seconds as pace.py counts them, before it is ended."""

    test: Test
    kernel: str
    limit: float = 0
    rounds: int = 0
    repeats: int = 1
    soak: int = 0
    expected = 300      # seconds, of a job of the rota that never ran

    @property
    def key(self):
        return f"{self.kernel}/{self.test.name}"

    @property
    def guests(self):
        return int(self.test.set["guests"])

    @property
    def alone(self):
        return bool(self.test.set["alone"])

    def machine(self, modules):
        """Jobs of which this is equal can use the same guests."""
        s = self.test.set
        return self.kernel, self.guests, modules, s["memory"], self.cpus, s["append"]

    @property
    def cpus(self):
        """The CPUs of each guest. Those with the debug kernel have one more only where a test asks
        for it: each spins while the host runs another one that holds a lock."""
        wanted = int(self.test.set["cpus"])
        return wanted if self.kernel == "debug" else max(wanted, 2)

    def sets(self, modules):
        """The sets of modules that the guests need."""
        siw = ["siw"] if self.test.rdma == "siw" and self.kernel != "debug" else []
        return {modules, *self.test.set["sets"].split(), *siw}

    def impossible(self, modules):
        """The reason why it cannot run on this kernel with these modules, or an empty text"""
        s = self.test.set
        if s["skip"]:
            return s["skip"]
        if s["kernel"] not in ("", kind_of(self.kernel)):
            return f"only on the {s['kernel']} kernel"
        if s["modules"] and modules not in s["modules"].split():
            return f"not for {modules} modules"
        return ""

    def repeat(self, rounds, seconds):
        """Set the number of rounds, or their time. Either may be 0 for the default."""
        self.rounds = usual = int(self.test.set["rounds"] or 0)
        if usual and rounds:
            self.repeats = max(1, -(-rounds // usual))
            self.rounds = rounds
        if usual and seconds:
            self.soak = seconds


def all_tests(rdma="rxe"):
    """Every test; those with a line "Siw:" also over soft-iWARP."""
    found = []
    for name in sorted(os.listdir(TESTS)):
        if not name.endswith(".sh"):
            continue
        with open(f"{TESTS}/{name}") as f:
            text = f.read()
        test = Test(f"{TESTS}/{name}", header(text.splitlines()), rdma,
                    {f"tests/{name}"} | steps(text))
        found.append(test)
        if rdma == "rxe" and test.set["siw"]:
            found.append(test.over_siw())
    return found


def jobs(tests, kernels, once):
    """Those tests on these kernels. once: only where the headers say that each runs.

    What runs over soft-iWARP as a test of its own does so on the kernels that "Siw:" names.
    """
    found = []
    for kernel in kernels:
        for test in tests:
            over_siw = test.rdma == "siw" and test.name.endswith("-siw")
            if kernel in test.kernels() or not (once or over_siw):
                found.append(Job(test, kernel))
    return found


def rota(tests):
    """Tests that take too long for each run: one of them runs in the time that is left."""
    return [Job(t, kernel) for t in tests if t.rdma == "rxe"
            for kernel in t.set["rota"].split()]


def every_key():
    """The keys of all jobs and checks of a run of everything"""
    tests = all_tests()
    return {*CHECKS, *(job.key for job in [*jobs(tests, KERNELS, True), *rota(tests),
                                           *hostjobs.ALL])}


def named(tests, patterns):
    """The tests with these names, which may be patterns. KeyError: no test has the name."""
    for pattern in patterns:
        if not any(fnmatch.fnmatch(t.name, pattern) for t in tests):
            raise KeyError(pattern)
    return [t for t in tests if any(fnmatch.fnmatch(t.name, p) for p in patterns)]
