# SPDX-License-Identifier: GPL-2.0
"""Verdicts on exit codes, on the output of tests and on kernel logs."""

import re

from guest import HERE

# Patterns that no kernel log may hold
with open(HERE + "/trouble") as patterns:
    TROUBLE = re.compile("|".join(x.rstrip("\n") for x in patterns if x[0] != "#"))

# The contents of the stack, which UML prints before the calls
HEX = re.compile(r"\] +(Stack:|[0-9a-f]{8}[0-9a-f ]*$)")

# After such a mistake the shell continues behind the command of the file in which it is.
MISTAKE = re.compile(r": line \d+: .*(syntax error|division by 0|value too great for base)")

# The exit code of skip() in lib.sh
SKIPPED = 4


def trouble(name, lines, log_ok):
    """The lines of a guest's kernel log that must not be there, with what is around them.

    log_ok: a pattern of lines that are expected in this test, or an empty text.
    """
    found = []
    lines = [x for x in lines if not HEX.search(x)]
    after = 0
    for i, line in enumerate(lines):
        if i >= after and TROUBLE.search(line) and not (log_ok and re.search(log_ok, line)):
            found.append(f"{name}'s kernel log:")
            found += ["  " + x for x in lines[max(0, i - 2):i + 60]]
            # A report of overwritten poison has an end, and another report may follow.
            ends = [n for n, x in enumerate(lines[i:], i) if "Restoring Poison" in x]
            if "Poison overwritten" not in line or not ends:
                break
            after = ends[0] + 1
    return found


def verdict(code, lines):
    """Result and reason of a test that ended with this code and printed these lines."""
    if code == SKIPPED and lines and lines[-1].startswith("SKIP: "):
        return "skipped", lines[-1][6:]
    if code != 0:
        return "failed", ""
    if any(MISTAKE.search(line) for line in lines):
        return "failed", "the shell found a mistake"
    return "passed", ""


def old_breakpoint(lines):
    """Whether TCG ran an int3 that was no longer in the kernel's code: see README.md."""
    found = re.search(r"\bint3: 0000 \[.*?\bCode: ([^\n]*)", "\n".join(lines), re.DOTALL)
    return found and "<" in found[1] and not re.search(r"\bcc <", found[1])


# Patterns of the kernel's log for three faults of rxe, which uses a queue pair after freeing it.
# It wakes the queue pair's task, looks the queue pair up for a packet, or stores the task's result
# in it (-EAGAIN, in four bytes). In the first case a new queue pair may have reused the memory,
# which is zeroed then. Each entry has: the kernels; how the test failed; whether the fault takes a
# program that sends from the same machine.
SAME_TRACE = r"(?:(?!.*end trace).*\n)*?"
FAULT = r"(?:.*\n){0,2}.*\bfault, .*0x6b6b6b6b.*\n" + SAME_TRACE
ZEROED = (r"(?:.*\n){0,2}.*\b(?:fault, .*0x6b6b6b6b|NULL pointer dereference, "
          r"address: 0{13}[0-9a-f]{3}$).*\n") + SAME_TRACE
FREED_QUEUE_PAIR = (
    (("6.12", "7.2"), " went down", False,
     ZEROED + r".*RIP: 0010:rxe_sched_task\b.*\n" + SAME_TRACE + r"(?!.*\? ).* rxe_xmit_packet\+"),
    (("stock", "6.12", "7.2"), " went down", False,
     FAULT + r".*RIP: 0010:check_type_state\b.*\n(?:.*\n){3}.*\bRSI: 6b6b6b6b6b6b6b6b\b.*\n" +
     SAME_TRACE + r"(?!.*\? ).* rxe_rcv\+"),
    (("stock",), "kernel log", True,
     r"(?:.*\n){0,2}.*\bPoison overwritten\n(?:.*\n){2}"
     r".* 0x(?P<at>\w*)8-0x(?P=at)b @offset=\d+\. First byte 0xf5 instead of 0x6b\n"
     r".* Allocated in create_qp\b"),
)


def freed_queue_pair(kernel, script, why, lines):
    """Whether rxe used a queue pair that it had freed, and that alone: see README.md."""
    text = "\n".join(lines)
    peer = "hostile" in script
    return len(re.findall(r"^\w+'s kernel log:$", text, re.MULTILINE)) == 1 and any(
        kernel in kernels and why.endswith(how) and (peer or not program) and
        re.search(r"^\w+'s kernel log:\n" + pattern, text, re.MULTILINE)
        for kernels, how, program, pattern in FREED_QUEUE_PAIR)


def run_again(kernel, script, why, lines):
    """Why a failed test is to be run once more, or an empty text."""
    if old_breakpoint(lines):
        return "a guest ran a breakpoint that was gone"
    if freed_queue_pair(kernel, script, why, lines):
        return "rxe used a queue pair that it had freed"
    return ""
