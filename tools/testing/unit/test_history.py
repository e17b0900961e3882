# SPDX-License-Identifier: GPL-2.0
"""What is known of earlier runs, and how a run's results get into it."""

import json
import os
import tempfile
import unittest

import history
from unit.fakes import FakeCommits


def known(table, covers=None, commits=None):
    return history.History(table, covers or {}, commits or FakeCommits({}))


def row(commit, *seconds, run="1"):
    return {"passed": commit, "seconds": list(seconds), "run": run}


class Limits(unittest.TestCase):
    def test_three_times_the_slowest_run(self):
        self.assertEqual(known({"debug/a": row("x", 20, 50, 30)}).limit("debug/a"), 150)

    def test_at_least(self):
        self.assertEqual(known({"debug/a": row("x", 1)}).limit("debug/a"), history.LEAST)

    def test_new_on_this_kernel(self):
        self.assertEqual(known({"debug/a": row("x", 40), "stock/a": row("x", 50)}).limit("7.2/a"),
                         2 * history.ROOM * 50)

    def test_new_everywhere(self):
        self.assertEqual(known({"debug/b": row("x", 40)}).limit("debug/a"),
                         2 * history.ROOM * history.UNKNOWN)

    def test_row_without_times(self):
        self.assertEqual(known({"debug/a": row("x")}).limit("debug/a"),
                         2 * history.ROOM * history.UNKNOWN)

    def test_usual_is_the_median(self):
        self.assertEqual(known({"debug/a": row("x", 20, 500, 30)}).usual("debug/a"), 30)


class Age(unittest.TestCase):
    def test_stale_after_ten_commits(self):
        h = known({"a/a": row("ten", 1), "a/b": row("eleven", 1)}, None,
                  FakeCommits({"ten": 10, "eleven": 11}))
        self.assertFalse(h.stale("a/a"))
        self.assertTrue(h.stale("a/b"))

    def test_never_passed_is_stale(self):
        self.assertTrue(known({"a/a": row(None, 5)}).stale("a/a"))
        self.assertTrue(known({}).stale("a/a"))

    def test_commit_that_git_does_not_know(self):
        commits = history.Commits(lambda *args: None)
        self.assertEqual(commits.age("gone"), history.NEVER)
        self.assertIsNone(commits.changed("gone"))

    def test_git_is_asked_once(self):
        asked = []
        commits = history.Commits(lambda *args: asked.append(args) or "3")
        self.assertEqual([commits.age("x"), commits.age("x")], [3, 3])
        self.assertEqual(len(asked), 1)

    def test_changes_of_the_work_tree_and_new_files(self):
        commits = history.Commits(lambda what, *_: "a.c\nb.c" if what == "diff" else "new.c")
        self.assertEqual(commits.changed("x"), {"a.c", "b.c", "new.c"})


class Touched(unittest.TestCase):
    def setUp(self):
        self.history = known(
            {"debug/a": row("x", 1)}, {"drivers/f.c": ["a"], "drivers/g.c": ["b"]},
            FakeCommits({"x": 1}, {"x": {"drivers/f.c", "tools/testing/steps/s.sh"}}))

    def test_by_the_matrix(self):
        self.assertTrue(self.history.touched("debug/a", "a", set()))
        self.assertFalse(self.history.touched("debug/a", "b", set()))

    def test_by_its_own_files(self):
        self.assertTrue(self.history.touched("debug/a", "b", {"tools/testing/steps/s.sh"}))

    def test_never_passed(self):
        self.assertTrue(self.history.touched("debug/new", "new", set()))


class Merge(unittest.TestCase):
    def merge(self, table, jobs, dirty=False, keys=("k/a", "k/b"), started="2"):
        jobs = {k: {"result": "passed", "repeated": False, **v} for k, v in jobs.items()}
        return history.merge(table, {"commit": "c1", "dirty": dirty, "started": started,
                                     "jobs": jobs}, set(keys))

    def test_passed(self):
        got = self.merge({}, {"k/a": {"seconds": 1.234}})
        self.assertEqual(got, {"k/a": row("c1", 1.2, run="2")})

    def test_check_without_a_time(self):
        self.assertEqual(self.merge({}, {"k/a": {}}), {"k/a": row("c1", run="2")})

    def test_failed_and_skipped_change_nothing(self):
        before = {"k/a": row("c0", 1.0), "k/b": row("c0", 2.0)}
        got = self.merge(before, {"k/a": {"result": "failed", "seconds": 99},
                                  "k/b": {"result": "skipped"}})
        self.assertEqual(got, before)

    def test_last_runs_are_kept(self):
        got = self.merge({"k/a": row("c0", 1.0, 2.0, 3.0, 4.0, 5.0)}, {"k/a": {"seconds": 6}})
        self.assertEqual(got["k/a"]["seconds"], [2.0, 3.0, 4.0, 5.0, 6])

    def test_changed_tree_passes_at_no_commit(self):
        got = self.merge({"k/a": row("c0", 1.0)}, {"k/a": {"seconds": 2}}, dirty=True)
        self.assertEqual(got["k/a"], row("c0", 1.0, 2, run="2"))

    def test_repeated_rounds_are_no_usual_time(self):
        got = self.merge({"k/a": row("c0", 1.0)}, {"k/a": {"seconds": 50, "repeated": True}})
        self.assertEqual(got["k/a"], row("c1", 1.0, run="2"))

    def test_a_run_counts_once(self):
        once = self.merge({"k/a": row("c0", 1.0)}, {"k/a": {"seconds": 2}})
        self.assertEqual(self.merge(once, {"k/a": {"seconds": 2}}), once)

    def test_older_run_changes_nothing(self):
        before = {"k/a": row("c0", 1.0, run="3")}
        self.assertEqual(self.merge(before, {"k/a": {"seconds": 2}}), before)

    def test_unknown_jobs_are_dropped(self):
        self.assertEqual(self.merge({"k/gone": row("c0", 1.0)}, {"k/other": {"seconds": 1}}), {})

    def test_the_given_table_is_left_alone(self):
        before = {"k/a": row("c0", 1.0)}
        self.merge(before, {"k/a": {"seconds": 2}})
        self.assertEqual(before, {"k/a": row("c0", 1.0)})


class Files(unittest.TestCase):
    def test_a_line_for_each_key(self):
        with tempfile.TemporaryDirectory() as work:
            path = work + "/t.json"
            history.save(path, {"b": row("x", 1), "a": row("y", 2)})
            with open(path) as f:
                text = f.read()
            self.assertEqual(json.loads(text), {"b": row("x", 1), "a": row("y", 2)})
            self.assertEqual([x[1:4] for x in text.splitlines()[1:-1]], ['"a"', '"b"'])
            self.assertEqual(os.listdir(work), ["t.json"])

    def test_no_table_yet(self):
        self.assertEqual(history.load("/nonexistent/t.json"), {})

    def test_gone(self):
        self.assertEqual(known({"k/a": row("x"), "k/b": row("x")}).gone(["k/b"]), ["k/a"])


class Matrix(unittest.TestCase):
    def test_tests_that_run_more_of_a_file_than_most(self):
        got = history.matrix({"a": {"f": 10, "g": 5}, "b": {"f": 10, "g": 50},
                              "c": {"f": 90, "g": 5}, "d": {"g": 5}})
        self.assertEqual(got, {"f": ["c"], "g": ["b"]})


if __name__ == "__main__":
    unittest.main()
