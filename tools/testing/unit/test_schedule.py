# SPDX-License-Identifier: GPL-2.0
"""The queue that lanes take jobs from, and what becomes of jobs that nobody took."""

import threading
import types
import unittest
from unittest import mock

import history
import schedule
from hostjobs import HostJob
from pace import Pace
from unit.fakes import job, FakeCommits


class FakeReport:
    def __init__(self):
        self.jobs, self.said = {}, []

    def result(self, key, result, why="", *_, **__):
        assert key not in self.jobs, key
        self.jobs[key] = (result, why)

    def say(self, *lines):
        self.said += lines


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
    options = types.SimpleNamespace(modules="ours", whole=strict, limit=60, jobs=0, results="/r",
                                    matrix=False, check=False, environment={}, all_debug=False)
    table = table or {j.key: {"passed": "new", "seconds": [10]} for j in jobs}
    known = history.History(table, {}, FakeCommits(ages or {"new": 0}))
    run = schedule.Run(jobs, kernels, FakeReport(), known, options)
    run.wall_left = run.left = lambda: left
    return run


def waits(test, run, lane):
    """The lane has asked for a job, and waits until something changes."""
    for _ in range(1000):
        with run.changed:
            if run.changed._waiters:    # pylint: disable=protected-access
                return
        lane.join(0.01)
    test.fail("the lane does not wait")


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
        waits(self, run, lane)
        run.set_up("debug", {"ours"})
        lane.join(10)
        self.assertEqual(got, ["a"])

    def test_further_lane_waits_until_the_other_kind_has_no_job(self):
        run = run_of([job("a"), job("b"), job("c", "7.2")],
                     FakeKernels({"debug": {"ours"}, "7.2": {"ours"}}))
        got = []
        lane = threading.Thread(target=lambda: got.append(self.next(run, "debug", 2)))
        lane.start()
        waits(self, run, lane)
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
        self.assertEqual(run.report.jobs["7.2/b"][0], "failed")
        self.assertIsNone(self.next(run, "stock"))
        self.assertEqual(self.next(run), "a")


class Late(unittest.TestCase):
    def late(self, strict):
        jobs = [job("a"), job("b"), job("c")]
        table = {"debug/a": {"passed": "new", "seconds": [10]},
                 "debug/b": {"passed": "old", "seconds": [10]}}
        run = run_of(jobs, FakeKernels({"debug": {"ours"}}), table, 0, strict,
                     {"new": 3, "old": 11})
        run.leave_out()
        return run

    def test_run_of_all_is_red_for_what_passed_long_ago(self):
        run = self.late(True)
        self.assertEqual({k: v[0] for k, v in run.report.jobs.items()},
                         {"debug/a": "skipped", "debug/b": "failed", "debug/c": "failed"})
        self.assertEqual(run.late, ["debug/c", "debug/b", "debug/a"])

    def test_run_of_some(self):
        self.assertEqual({v[0] for v in self.late(False).report.jobs.values()}, {"skipped"})

    def test_change_that_is_not_tested_is_told(self):
        self.assertIn("tests what has changed", self.late(False).report.jobs["debug/c"][1])

    def test_without_a_limit_no_job_is_late(self):
        run = run_of([job("a")], FakeKernels({"debug": {"ours"}}))
        run.options.limit = 0
        run.leave_out()
        self.assertEqual(run.report.jobs["debug/a"][0], "failed")


class Checks(unittest.TestCase):
    def test_no_guest_is_a_skip(self):
        run = run_of([], FakeKernels({"debug": {"ours"}}))
        run.coverage = lambda: None
        run.check([])
        self.assertEqual(run.report.jobs["debug/kmemleak"][0], "skipped")

    def test_check_that_has_not_passed_for_long(self):
        for table, result in ({}, "skipped"), ({schedule.COVERAGE: {"passed": "old"}}, "failed"):
            run = run_of([], FakeKernels({"debug": {"ours"}}), strict=True,
                         table={"x/y": {"passed": "new"}, **table}, ages={"old": 11, "new": 0})
            run.skip(schedule.COVERAGE, "only some of the tests ran")
            self.assertEqual(run.report.jobs[schedule.COVERAGE][0], result)

    def test_leak(self):
        run = run_of([], FakeKernels({"debug": {"ours"}}))
        run.coverage = lambda: None
        run.leaks.add([])
        run.leaks.add(["unreferenced object"])
        run.check([])
        self.assertEqual(run.report.jobs["debug/kmemleak"][0], "failed")

    def test_lost_test(self):
        for keys, result in (["debug/a"], "passed"), ([], "failed"):
            run = run_of([], FakeKernels({"7.2": {"ours"}}), strict=True,
                         table={"debug/a": {"passed": "new", "seconds": [1]}})
            run.check(keys)
            self.assertEqual(run.report.jobs["host/history"][0], result)


class Rota(unittest.TestCase):
    def test_one_runs_and_the_others_are_counted(self):
        run = run_of([], FakeKernels({"7.2": {"ours"}}))
        ran = []
        run.host_job = ran.append
        run.history.table["host/a"] = {"passed": "new", "seconds": [5]}
        run.rota([HostJob("a", []), HostJob("b", [])])
        self.assertEqual([j.name for j in ran], ["b"])
        self.assertEqual(list(run.report.jobs.items()),
                         [("host/a", ("skipped",
                                      "not chosen in this run; it passed at this commit"))])

    def test_no_time(self):
        run = run_of([], FakeKernels({"7.2": {"ours"}}), left=899)
        run.host_job = None
        run.rota([HostJob("a", [])])
        self.assertEqual(run.report.jobs["host/a"][0], "skipped")

    def test_test_of_the_rota(self):
        run = run_of([], FakeKernels({"7.2": set()}))
        with mock.patch.object(schedule, "Runner") as runner:
            run.rota([job("a", "7.2")])
        runner.return_value.one.assert_called_once()
        runner.return_value.stop.assert_called_once()

    def test_kernel_of_the_rota_cannot_be_set_up(self):
        run = run_of([], FakeKernels({"7.2": set()}, broken=["7.2"]))
        run.rota([job("a", "7.2")])
        self.assertEqual(run.report.jobs["7.2/a"][0], "failed")


class Whole(unittest.TestCase):
    """A run from its start to its end, with lanes that boot nothing"""

    def all(self, run, one):
        runner = types.SimpleNamespace(same=lambda j: False, stop=lambda: None, one=one)
        with mock.patch.object(schedule, "Runner", lambda *_: runner):
            run.all()
        run.complete([j.key for j in run.jobs])
        return {k: v[0] for k, v in run.report.jobs.items()}

    def test_every_job_runs(self):
        jobs = [job("a"), job("b", guests="2"), job("c", "7.2"), job("d", "7.2", alone="yes")]
        run = run_of(jobs, FakeKernels({"debug": set(), "7.2": set()}))
        got = self.all(run, lambda j: run.report.result(j.key, "passed"))
        self.assertEqual(got, {j.key: "passed" for j in jobs})

    def test_lane_that_breaks(self):
        def one(_):
            raise OSError("no space left")
        run = run_of([job("a"), job("b")], FakeKernels({"debug": set()}))
        got = self.all(run, one)
        self.assertEqual(got, {"debug/a": "failed", "debug/b": "failed", "host/run": "failed"})

    def test_set_up_that_breaks(self):
        run = run_of([job("a"), job("b", "7.2")], FakeKernels({"debug": set(), "7.2": set()}))
        plain = run.set_up

        def set_up(kernel, sets):
            if kernel == "7.2":
                run.left = run.wall_left = lambda: 0    # or the lanes would wait
                raise OSError("no space left")
            plain(kernel, sets)
        run.set_up = set_up
        got = self.all(run, lambda j: run.report.result(j.key, "passed"))
        self.assertEqual(got["7.2/b"], "failed")
        self.assertEqual(got["host/run"], "failed")

    def test_job_without_a_result(self):
        run = run_of([job("a")], FakeKernels({"debug": set()}))
        self.assertEqual(self.all(run, lambda j: None), {"debug/a": "failed"})


class Commands(unittest.TestCase):
    def run_it(self, script, counts=False, left=float("inf")):
        run = run_of([], FakeKernels({"debug": {"ours"}}), left=left)
        run.host_job(HostJob("x", ["/bin/sh", "-c", script], counts=counts))
        self.said = run.report.said
        return run.report.jobs["host/x"]

    def test_status(self):
        self.assertEqual(self.run_it("true"), ("passed", ""))
        self.assertEqual(self.run_it("exit 3"), ("failed", "status 3"))

    def test_output_is_shown_as_it_comes(self):
        self.run_it("echo a; echo b")
        self.assertEqual(self.said, ["host/x begins", "host/x: a", "host/x: b"])

    def test_output_in_no_encoding(self):
        self.assertEqual(self.run_it(r"printf 'a\377\n'")[0], "passed")

    def test_nothing_passed(self):
        self.assertEqual(self.run_it("echo 0 passed, 0 failed", True), ("failed", "nothing passed"))
        self.assertEqual(self.run_it("true", True), ("failed", "nothing passed"))
        self.assertEqual(self.run_it("echo 2 passed, 0 failed, 1 skipped", True)[0], "passed")

    def test_end_of_the_run(self):
        self.assertEqual(self.run_it("sleep 20", left=1)[0], "skipped")

    def test_slowness_is_that_of_the_whole_job(self):
        pace = Pace()
        pace.sum, pace.count = 100, 10
        mark = pace.mark()
        self.assertEqual(pace.mean(mark), 1)
        pace.sum, pace.count, pace.slowness = 100 + 2 + 4 + 12, 13, 12
        self.assertEqual(pace.mean(mark), 6)
        self.assertAlmostEqual(pace.mean(), 118 / 13)

    def test_timeout(self):
        self.assertEqual(schedule.host_verdict(124, [], False, False), ("failed", "TIMEOUT"))

    def test_kernel_that_breaks_while_it_is_set_up(self):
        kernels = schedule.Kernels(["7.2"], lambda *_: None, "/dev/null")
        with mock.patch.object(schedule, "HERE", "/nonexistent"):
            self.assertFalse(kernels.set_up("7.2", {"ours"}))
        self.assertIn("7.2", kernels.broken)


if __name__ == "__main__":
    unittest.main()
