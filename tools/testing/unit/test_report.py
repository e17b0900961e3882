# SPDX-License-Identifier: GPL-2.0
"""What is printed and kept of a run."""

import contextlib
import io
import json
import tempfile
import unittest

from report import note, Report


class Output(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)
        self.path = self.work.name + "/results.json"

    def printed(self, steps):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            report = Report(self.path, {"commit": "c1"})
            steps(report)
        return out.getvalue()

    def test_ktap(self):
        def steps(report):
            report.plan(3)
            report.result("k/a", "passed", wall=1.0, cpu=2.0, slowness=1.5)
            report.result("k/b", "failed", "kernel log", ["BUG: x"])
            report.result("k/c", "skipped", "no time left")
        self.assertEqual(self.printed(steps), """KTAP version 1
1..3
ok 1 k/a # 1.0 s, 2.0 s of CPU time, slowness 1.5
# BUG: x
not ok 2 k/b # kernel log
ok 3 k/c # SKIP no time left
""")

    def test_last_line_counts(self):
        def steps(report):
            report.result("k/a", "passed")
            report.result("k/b", "failed", "TIMEOUT", ["FAIL: line 3", "other"])
            report.summary()
        lines = self.printed(steps).splitlines()
        self.assertEqual(lines[-1], "1 passed, 1 failed")
        self.assertEqual(lines[-3:-1], ["# not ok k/b: TIMEOUT", "#   FAIL: line 3"])

    def test_skips_are_counted(self):
        def steps(report):
            report.result("k/a", "skipped", "no time left")
            report.summary()
        self.assertEqual(self.printed(steps).splitlines()[-1], "0 passed, 0 failed, 1 skipped")

    def test_first_run_is_kept_counted_and_shown(self):
        first = {"why": "kernel log", "again": "a known fault", "logs": "/r/stock/01-vm",
                 "lines": ["FAIL: x", "end of client's kernel log:"]}

        def steps(report):
            report.again("k/a", first)
            report.result("k/a", "passed", wall=1, cpu=1, slowness=1, reruns=1, first=first)
            report.summary()
        lines = self.printed(steps).splitlines()
        self.assertIn("run 2 times", lines[4])
        self.assertEqual(lines[5:], [
            "# k/a, first run: FAIL: x",
            "# k/a, first run: end of client's kernel log:",
            "# k/a was run again: a known fault; the first run failed: kernel log; "
            "its logs: /r/stock/01-vm",
            "# run again: 1",
            "1 passed, 0 failed"])
        with open(self.path) as f:
            self.assertEqual(json.load(f)["jobs"]["k/a"]["first"], first)

    def test_json_after_each_result(self):
        self.printed(lambda report: report.result("k/a", "passed", seconds=1.5))
        with open(self.path) as f:
            self.assertEqual(json.load(f), {"commit": "c1", "jobs": {
                "k/a": {"result": "passed", "why": "", "seconds": 1.5}}})

    def test_boot_is_told(self):
        text = note("passed", "", {"wall": 9, "cpu": 1, "slowness": 1, "boot": 5.5,
                                   "guests": ["server", "client"]})
        self.assertIn("boot of 2 in 5.5 s", text)

    def test_rerun_is_told(self):
        text = note("passed", "", {"wall": 1, "cpu": 1, "slowness": 1, "reruns": 1})
        self.assertIn("run 2 times", text)


if __name__ == "__main__":
    unittest.main()
