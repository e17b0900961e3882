# SPDX-License-Identifier: GPL-2.0
"""What is read from kernel logs and output."""

import unittest

import judge


class Verdict(unittest.TestCase):
    def test_passed(self):
        self.assertEqual(judge.verdict(0, ["# said"]), ("passed", ""))

    def test_failed(self):
        self.assertEqual(judge.verdict(1, ["FAIL: x"])[0], "failed")

    def test_skipped(self):
        self.assertEqual(judge.verdict(4, ["SKIP: no such thing"]), ("skipped", "no such thing"))

    def test_code_of_a_skip_without_its_line(self):
        self.assertEqual(judge.verdict(4, ["# said"])[0], "failed")
        self.assertEqual(judge.verdict(4, [])[0], "failed")

    def test_mistake_that_the_shell_went_on_behind(self):
        self.assertEqual(judge.verdict(0, ["./x.sh: line 3: 1 + : syntax error: operand expected"]),
                         ("failed", "the shell found a mistake"))


class Trouble(unittest.TestCase):
    def test_silent(self):
        self.assertEqual(judge.trouble("vm", ["rtrs: connected", "nothing else"], ""), [])

    def test_lines_around(self):
        lines = [f"line {n}" for n in range(5)] + ["WARNING: CPU: 0", "next"]
        self.assertEqual(judge.trouble("vm", lines, ""),
                         ["vm's kernel log:", "  line 3", "  line 4", "  WARNING: CPU: 0", "  next"])

    def test_expected(self):
        lines = ["WARNING: of this kind", "BUG: of another"]
        self.assertEqual(judge.trouble("vm", lines[:1], "of this kind"), [])
        self.assertIn("  BUG: of another", judge.trouble("vm", lines, "of this kind"))

    def test_stack_contents_are_left_out(self):
        lines = ["[ 1.0] Stack:", "[ 1.0] 00112233 44556677", "BUG: x"]
        self.assertEqual(judge.trouble("vm", lines, ""), ["vm's kernel log:", "  BUG: x"])

    def test_two_reports_of_overwritten_poison(self):
        lines = ["BUG kmalloc: Poison overwritten", "Restoring Poison 1",
                 "quiet", "KASAN: second"]
        found = judge.trouble("vm", lines, "")
        self.assertEqual(found.count("vm's kernel log:"), 2)

    def test_every_pattern_is_found(self):
        for text in ("Oops", "blocked for more than", "unreferenced object", "UBSAN", "KFENCE",
                     "refcount_t: underflow", "list_add corruption", "lockdep"):
            self.assertTrue(judge.trouble("vm", [text], ""), text)


class Again(unittest.TestCase):
    def breakpoint(self, before="", code="00 <90> 11", after=""):
        text = (f"FAIL: x\nvm's kernel log:\n{before}"
                f"  Oops: int3: 0000 [#1]\n  CPU: 0\n  Code: {code}{after}")
        return judge.run_again(text.splitlines())

    def test_old_breakpoint(self):
        self.assertTrue(self.breakpoint())
        self.assertTrue(self.breakpoint("  one line\n  and another\n"))
        self.assertFalse(self.breakpoint(code="00 cc <90> 11"))

    def test_old_breakpoint_after_something_else(self):
        self.assertFalse(self.breakpoint("  BUG: x\n  one line\n  and another\n"))
        self.assertFalse(judge.run_again(["int3: 0000 [#1]", "Code: 00 <90> 11"]))

    def walk(self, before="", report="suspicious RCU usage", caller="free_ioctx", after=""):
        text = (f"vm's kernel log:\n{before}  =====\n  WARNING: {report}\n  7.2.13 #1\n"
                f"  mas_walk+0x7e\n  flush_tlb_mm+0x109\n  {caller}+0x1d{after}")
        return judge.run_again(text.splitlines())

    def test_unlocked_walk(self):
        self.assertTrue(self.walk())
        self.assertTrue(self.walk(before="  \n"))
        self.assertFalse(self.walk(report="possible recursive locking"))
        self.assertFalse(self.walk(caller="rnbd_clt_open"))
        self.assertFalse(self.walk(before="  BUG: x\n  one line\n  and another\n"))
        self.assertFalse(self.walk(after="\nclient's kernel log:\n  BUG: x"))

    def test_old_breakpoint_and_trouble_on_another_guest(self):
        self.assertFalse(self.breakpoint(after="\nclient's kernel log:\n  BUG: x"))
        self.assertTrue(self.breakpoint(after="\nend of client's kernel log:\n  silent"))


if __name__ == "__main__":
    unittest.main()
