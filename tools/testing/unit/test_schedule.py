# SPDX-License-Identifier: GPL-2.0
"""The queue that lanes take jobs from, and what becomes of jobs that nobody took."""

import threading
import types
import unittest

import choose
import history
import schedule
from unit.fakes import job, FakeCommits


class FakeReport:
    def __init__(self):
        self.results = {}

    def result(self, key, result, why="", *_, **__):
        self.results[key] = (result, why)

    def say(self, *lines):
        pass


class FakeKernels:
    """Kernels that are ready with these sets, and those that cannot be set up."""

    def __init__(self, sets, broken=()):
        self.names = list(sets)
        self.sets, self.broken, self.busy = sets, {}, 0
        self.envs = {k: {} for k in sets if sets[k]}
        self.fail = broken

    def set_up(self, kernel, sets):
        if kernel in self.fail:
            self.broken[kernel] = "no compiler"
            return False
        self.envs[kernel] = {}
        self.sets[kernel] = self.sets[kernel] | sets
        return True


def run_of(jobs, kernels, table=None, left=float("inf"), strict=False, ages=None):
    options = types.SimpleNamespace(modules="ours", whole=strict, limit=0, jobs=0, results="/r",
                                    matrix=False, check=False, environment={})
    table = table or {j.key: {"passed": "new", "seconds": [10]} for j in jobs}
    known = history.History(table, {}, FakeCommits(ages or {"new": 0}))
    run = schedule.Run(jobs, kernels, FakeReport(), known, options)
    run.left = lambda: left
    return run


NO_GUESTS = types.SimpleNamespace(same=lambda j: False)


class Queue(unittest.TestCase):
    def next(self, run, kind="debug", index=0):
        found = run.next(NO_GUESTS, kind, index)
        return found and found.test.name

    def test_each_job_once(self):
        run = run_of([job("a"), job("b")], FakeKernels({"debug": {"ours"}}))
        self.assertEqual([self.next(run) for _ in range(3)], ["a", "b", None])

    def test_kinds_of_guests(self):
        run = run_of([job("a", "7.2"), job("b")], FakeKernels({"debug": {"ours"}, "7.2": {"ours"}}))
        self.assertEqual(self.next(run, "stock"), "a")
        self.assertIsNone(self.next(run, "stock"))
        self.assertEqual(self.next(run, "debug"), "b")

    def test_only_the_first_lane_runs_several_guests(self):
        run = run_of([job("a", guests="2"), job("b")], FakeKernels({"debug": {"ours"}}))
        self.assertEqual(self.next(run, index=1), "b")
        self.assertIsNone(self.next(run, index=1))
        self.assertEqual(self.next(run), "a")

    def test_no_time(self):
        run = run_of([job("a")], FakeKernels({"debug": {"ours"}}), left=10)
        self.assertIsNone(self.next(run))
        self.assertEqual([j.test.name for j in run.todo], ["a"])

    def test_lane_waits_until_its_kernel_is_there(self):
        kernels = FakeKernels({"debug": set()})
        run = run_of([job("a")], kernels)
        got = []
        lane = threading.Thread(target=lambda: got.append(self.next(run)))
        lane.start()
        lane.join(0.2)
        self.assertEqual(got, [])
        run.set_up("debug", {"ours"})
        lane.join(10)
        self.assertEqual(got, ["a"])

    def test_further_lane_waits_until_the_other_kind_has_no_job(self):
        run = run_of([job("a"), job("b"), job("c", "7.2")],
                     FakeKernels({"debug": {"ours"}, "7.2": {"ours"}}))
        got = []
        lane = threading.Thread(target=lambda: got.append(self.next(run, "debug", 2)))
        lane.start()
        lane.join(0.2)
        self.assertEqual(got, [])
        self.assertEqual(self.next(run, "stock"), "c")
        with run.changed:
            run.changed.notify_all()
        lane.join(10)
        self.assertEqual(got, ["a"])

    def test_peer_that_is_not_built_yet(self):
        run = run_of([job("a", sets="intree"), job("b")], FakeKernels({"debug": {"ours"}}))
        self.assertEqual(self.next(run), "b")

    def test_beside_a_build(self):
        kernels = FakeKernels({"debug": {"ours"}})
        run = run_of([job("a", alone="yes"), job("b", guests="2"), job("c")], kernels)
        kernels.busy = True
        self.assertEqual(self.next(run), "c")
        kernels.busy = False
        self.assertEqual({self.next(run), self.next(run)}, {"a", "b"})

    def test_kernel_that_cannot_be_set_up(self):
        run = run_of([job("a"), job("b", "7.2")],
                     FakeKernels({"debug": {"ours"}, "7.2": set()}, broken=["7.2"]))
        run.set_up("7.2", {"ours"})
        self.assertEqual(run.report.results["7.2/b"][0], "failed")
        self.assertIsNone(self.next(run, "stock"))
        self.assertEqual(self.next(run), "a")


class Late(unittest.TestCase):
    def late(self, strict):
        jobs = [job("a"), job("b"), job("c")]
        table = {"debug/a": {"passed": "new", "seconds": [10]},
                 "debug/b": {"passed": "old", "seconds": [10]}}
        run = run_of(jobs, FakeKernels({"debug": {"ours"}}), table, 0, strict,
                     {"new": 3, "old": 11})
        run.late()
        return run

    def test_run_of_all_is_red_for_what_passed_long_ago(self):
        run = self.late(True)
        self.assertEqual({k: v[0] for k, v in run.report.results.items()},
                         {"debug/a": "skipped", "debug/b": "failed", "debug/c": "failed"})
        self.assertEqual([j.test.name for j in run.todo], ["c", "b", "a"])

    def test_run_of_some(self):
        self.assertEqual({v[0] for v in self.late(False).report.results.values()}, {"skipped"})


class Checks(unittest.TestCase):
    def test_no_guest_is_a_skip(self):
        run = run_of([], FakeKernels({"debug": {"ours"}}))
        run.coverage = lambda: None
        run.check([])
        self.assertEqual(run.report.results["debug/kmemleak"][0], "skipped")

    def test_leak(self):
        run = run_of([], FakeKernels({"debug": {"ours"}}))
        run.coverage = lambda: None
        run.leaks.add([])
        run.leaks.add(["unreferenced object"])
        run.check([])
        self.assertEqual(run.report.results["debug/kmemleak"][0], "failed")

    def test_lost_test(self):
        for keys, result in (["debug/a"], "passed"), ([], "failed"):
            run = run_of([], FakeKernels({"7.2": {"ours"}}), strict=True,
                         table={"debug/a": {"passed": "new", "seconds": [1]}})
            run.check(keys)
            self.assertEqual(run.report.results["host/history"][0], result)


class Rota(unittest.TestCase):
    def test_one_runs_and_the_others_are_counted(self):
        run = run_of([], FakeKernels({"7.2": {"ours"}}))
        ran = []
        run.host_job = ran.append
        jobs = [choose_job(n) for n in "ab"]
        run.rota(jobs)
        self.assertEqual(len(ran), 1)
        self.assertEqual([r[0] for r in run.report.results.values()], ["skipped"])

    def test_no_time(self):
        run = run_of([], FakeKernels({"7.2": {"ours"}}), left=choose.LONG - 1)
        run.host_job = None
        run.rota([choose_job("a")])
        self.assertEqual(run.report.results["host/a"][0], "skipped")


def choose_job(name):
    return schedule.CHECK.__class__(name, [])


if __name__ == "__main__":
    unittest.main()
