# SPDX-License-Identifier: GPL-2.0
"""A test that is run again."""

import contextlib
import types
import unittest
from unittest import mock

from runner import Outcome, Runner
from unit.fakes import job


class FakeReport:
    def __init__(self):
        self.reruns, self.results, self.near = [], [], []

    def say(self, *_):
        pass

    def again(self, key, first):
        self.reruns.append((key, first))

    def result(self, *args, **more):
        self.results.append((*args, more))


class Again(unittest.TestCase):
    def setUp(self):
        self.report = FakeReport()
        self.runner = Runner(types.SimpleNamespace(report=self.report, strict=False))
        self.boots = 0

    def boot(self):
        self.boots += 1
        names = "server", "client"
        self.runner.lab = types.SimpleNamespace(
            dir=f"/r/{self.boots}", names=names, close=lambda: None,
            guests={n: types.SimpleNamespace(name=n, tail=lambda _, n=n: [f"last of {n}"],
                                             alive=lambda: True) for n in names})
        self.runner.kind = ("stock",)

    def results_of(self, outcomes):
        """What is reported of a test whose runs end like this."""
        outcomes = list(outcomes)

        def run(_):
            if not self.runner.lab:
                self.boot()
            return outcomes.pop(0)
        with mock.patch.object(self.runner, "run", run), \
                mock.patch("judge.run_again", lambda *_: "a known fault"):
            self.runner.one_in_room(job("a", "stock"))
        self.assertEqual(outcomes, [])
        return self.report.results[0]

    def test_first_run_is_kept_with_the_logs_of_all_guests(self):
        key, result, _, _, more = self.results_of(
            [Outcome("failed", "kernel log", ["server's kernel log:", "  int3"]),
             Outcome("passed")])
        first = {"why": "kernel log", "again": "a known fault", "logs": "/r/1", "lines": [
            "server's kernel log:", "  int3", "end of server's kernel log:", "  last of server",
            "end of client's kernel log:", "  last of client"]}
        self.assertEqual((key, result, more["reruns"], more["first"]),
                         ("stock/a", "passed", 1, first))
        self.assertEqual(self.report.reruns, [("stock/a", first)])

    def test_second_failure_counts(self):
        _, result, why, show, more = self.results_of(
            [Outcome("failed", "kernel log", ["first"]), Outcome("failed", "TIMEOUT", ["second"])])
        self.assertEqual((result, why, show[0], more["first"]["lines"][0]),
                         ("failed", "TIMEOUT", "second", "first"))

    def test_one_run(self):
        more = self.results_of([Outcome("passed")])[-1]
        self.assertEqual((more["reruns"], "first" in more), (0, False))


class Alone(unittest.TestCase):
    """The guests of a test that runs alone boot while others still run."""

    def order(self, alone):
        happened = []

        @contextlib.contextmanager
        def room(alone):
            happened.append(f"room {alone}")
            yield
        report = FakeReport()
        runner = Runner(types.SimpleNamespace(report=report, strict=False))
        test = job("a", "stock")
        test.test.set["alone"] = alone
        with mock.patch("runner.room", room), \
                mock.patch.object(runner, "machine", lambda _: happened.append("boot")), \
                mock.patch.object(runner, "run", lambda _: Outcome("passed")):
            runner.one(test)
        self.assertEqual(report.results[0][:2], ("stock/a", "passed"))
        return happened

    def test_order(self):
        self.assertEqual(self.order("yes"), ["boot", "room True"])
        self.assertEqual(self.order(""), ["room False"])


if __name__ == "__main__":
    unittest.main()
