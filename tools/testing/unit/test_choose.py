# SPDX-License-Identifier: GPL-2.0
"""The order of jobs, and what is left out when there is no time for all."""

import unittest

import catalog
import choose
import history
from unit.fakes import job, FakeCommits


def ranking(jobs, table, covers=None, commits=None):
    known = history.History(table, covers or {}, commits or FakeCommits({"new": 0, "old": 7}))
    return choose.Ranking(known, jobs, "ours")


def row(commit, *seconds):
    return {"passed": commit, "seconds": list(seconds)}


class Order(unittest.TestCase):
    def test_longest_since_it_passed_comes_first(self):
        jobs = [job("a"), job("b"), job("c")]
        order = ranking(jobs, {"debug/a": row("new", 5), "debug/b": row("old", 5),
                               "debug/c": row("new", 5)}).order
        self.assertEqual([j.test.name for j in order], ["b", "a", "c"])

    def test_never_passed_comes_before_passed_long_ago(self):
        jobs = [job("a"), job("b")]
        order = ranking(jobs, {"debug/a": row("old", 5)}).order
        self.assertEqual([j.test.name for j in order], ["b", "a"])

    def test_changed_files_come_before_age(self):
        commits = FakeCommits({"new": 1, "old": 9},
                              {"new": {"drivers/x.c"}, "old": {"README.md"}})
        jobs = [job("a"), job("b")]
        order = ranking(jobs, {"debug/a": row("old", 5), "debug/b": row("new", 5)},
                        {"drivers/x.c": ["b"]}, commits).order
        self.assertEqual([j.test.name for j in order], ["b", "a"])

    def test_changed_test_comes_first(self):
        commits = FakeCommits({"new": 1}, {"new": {"tools/testing/tests/b.sh"}})
        jobs = [job("a"), job("b")]
        order = ranking(jobs, {"debug/a": row("new", 5), "debug/b": row("new", 5)},
                        commits=commits).order
        self.assertEqual([j.test.name for j in order], ["b", "a"])

    def test_equals_with_the_same_guests_stand_together(self):
        jobs = [job("a"), job("b", guests="2"), job("c"), job("d", guests="2")]
        order = ranking(jobs, {j.key: row("new", 5) for j in jobs}).order
        self.assertEqual([j.test.name for j in order], ["b", "d", "a", "c"])


class Time(unittest.TestCase):
    def test_most_recent_are_left_out(self):
        jobs = [job("a"), job("b"), job("c")]
        ranks = ranking(jobs, {"debug/a": row("new", 12), "debug/b": row("old", 12),
                               "debug/c": row("new", 12)})
        fit = choose.that_fit(ranks.order, ranks.cost, 45, 45)
        self.assertEqual([j.test.name for j in fit], ["b", "a"])

    def test_too_long_for_the_rest_does_not_stop_shorter_ones(self):
        jobs = [job("a"), job("b")]
        ranks = ranking(jobs, {"debug/a": row("old", 100), "debug/b": row("new", 5)})
        fit = choose.that_fit(ranks.order, ranks.cost, 50, 100)
        self.assertEqual([j.test.name for j in fit], ["b"])

    def test_one_lane_runs_all_jobs_of_several_guests(self):
        jobs = [job("a", guests="2"), job("b", guests="2"), job("c")]
        ranks = ranking(jobs, {j.key: row("new", 12) for j in jobs})
        fit = choose.that_fit(ranks.order, ranks.cost, 30, 60)
        self.assertEqual([j.test.name for j in fit], ["a", "c"])

    def test_running_guests_are_used_for_what_fits(self):
        jobs = [job("a", guests="2"), job("b"), job("c")]
        ranks = ranking(jobs, {"debug/a": row("old", 5), "debug/b": row("new", 5),
                               "debug/c": row("new", 5)})
        self.assertEqual(self.next(ranks, 1000).test.name, "b")
        # There is no time for all: the oldest one must not be lost.
        self.assertEqual(self.next(ranks, 15).test.name, "a")

    def next(self, ranks, left, ready=lambda j: True):
        return choose.next_job(ranks.order, ranks, left, 1, lambda j: j.guests == 1, ready)

    def test_not_ready(self):
        jobs = [job("a"), job("b")]
        ranks = ranking(jobs, {j.key: row("new", 5) for j in jobs})
        self.assertEqual(self.next(ranks, 100, lambda j: j.test.name == "b").test.name, "b")
        self.assertIsNone(self.next(ranks, 100, lambda j: False))

    def test_others_run_while_those_that_fit_are_not_ready(self):
        jobs = [job("a", guests="2"), job("b"), job("c")]
        ranks = ranking(jobs, {"debug/a": row("old", 20), "debug/b": row("new", 25),
                               "debug/c": row("new", 5)})

        def one_guest(j):
            return j.guests == 1
        # There is time for a, or for b or c.
        self.assertEqual(self.next(ranks, 30).test.name, "a")
        self.assertEqual(self.next(ranks, 30, one_guest).test.name, "b")
        self.assertEqual(self.next(ranks, 25, one_guest).test.name, "c")
        self.assertIsNone(self.next(ranks, 5, one_guest))

    def test_changed_before_running_guests(self):
        commits = FakeCommits({"new": 1}, {"new": {"drivers/x.c"}})
        jobs = [job("a", guests="2"), job("b")]
        ranks = ranking(jobs, {j.key: row("new", 5) for j in jobs}, {"drivers/x.c": ["a"]},
                        commits)
        self.assertEqual(self.next(ranks, 1000).test.name, "a")

    def test_repeated_rounds_take_longer(self):
        long = job("a", rounds="2")
        long.repeat(10, 0)
        self.assertEqual(ranking([long], {"debug/a": row("new", 10)}).cost[long],
                         50 + choose.OVERHEAD)


class Rota(unittest.TestCase):
    def setUp(self):
        self.jobs = [catalog.hostjobs.HostJob(n, []) for n in ("a", "b", "c")]
        self.history = history.History(
            {"host/a": row("new", 50), "host/b": row("old", 50), "host/c": row("old", 500)},
            {}, FakeCommits({"new": 1, "old": 5}))

    def test_oldest_that_fits(self):
        self.assertEqual(choose.oldest(self.jobs, self.history, 100).name, "b")

    def test_room_for_a_slow_run(self):
        self.assertIsNone(choose.oldest(self.jobs, self.history, 74))
        self.assertEqual(choose.oldest(self.jobs, self.history, 75).name, "b")

    def test_no_time(self):
        self.assertIsNone(choose.oldest(self.jobs, self.history, 40))

    def test_never_run_is_taken_for_long(self):
        new = catalog.hostjobs.HostJob("d", [], expected=100)
        self.assertEqual(choose.oldest([*self.jobs, new], self.history, 149).name, "b")
        self.assertEqual(choose.oldest([*self.jobs, new], self.history, 150).name, "d")


if __name__ == "__main__":
    unittest.main()
