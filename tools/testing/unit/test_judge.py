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


FAULT = """vm's kernel log:
  general protection fault, probably for 0x6b6b6b6b6b6b6bdb
  RIP: 0010:rxe_sched_task+0x10/0x20
  Call Trace:
   rxe_xmit_packet+0x1/0x2"""


class Again(unittest.TestCase):
    def again(self, kernel="7.2", script="", why="vm went down", text=FAULT):
        return judge.run_again(kernel, script, why, text.splitlines())

    def test_freed_queue_pair(self):
        self.assertTrue(self.again())

    def test_freed_queue_pair_that_is_in_use_again(self):
        null = FAULT.replace("general protection fault, probably for 0x6b6b6b6b6b6b6bdb",
                             "BUG: kernel NULL pointer dereference, address: 0000000000000160")
        self.assertTrue(self.again(text=null))
        self.assertFalse(self.again(text=null.replace("0000000000000160", "0000000000001160")))
        self.assertFalse(self.again(text=null.replace("rxe_sched_task", "rtrs_clt_free")))
        self.assertFalse(self.again(text=null.replace("rxe_xmit_packet", "rtrs_clt_free")))

    def test_other_kernel(self):
        self.assertFalse(self.again(kernel="stock"))

    def test_failed_otherwise(self):
        self.assertFalse(self.again(why="TIMEOUT"))

    def test_second_log_with_trouble(self):
        self.assertFalse(self.again(text=FAULT + "\nclient's kernel log:\n  BUG: other"))

    def test_guessed_frame_of_the_stack(self):
        self.assertFalse(self.again(text=FAULT.replace(" rxe_xmit", " ? rxe_xmit")))

    def test_poison_needs_a_program_as_peer(self):
        text = """vm's kernel log:
  BUG kmalloc-1k (Not tainted): Poison overwritten
  ----
  ----
  0xffff888100b8-0xffff888100bb @offset=1. First byte 0xf5 instead of 0x6b
  Allocated in create_qp+0x1"""
        self.assertTrue(self.again("stock", "hostile server", "kernel log", text))
        self.assertFalse(self.again("stock", "fio", "kernel log", text))

    def test_old_breakpoint(self):
        self.assertTrue(self.again("stock", "", "x", "int3: 0000 [#1]\nCode: 00 <90> 11"))
        self.assertFalse(self.again("stock", "", "x", "int3: 0000 [#1]\nCode: 00 cc <90> 11"))


if __name__ == "__main__":
    unittest.main()
