# SPDX-License-Identifier: GPL-2.0
"""Verdicts on exit codes, on the output of tests and on kernel logs."""

import re

from guest import HERE

# Patterns that no kernel log may contain
with open(HERE + "/trouble") as patterns:
    TROUBLE = re.compile("|".join(x.rstrip("\n") for x in patterns if x[0] != "#"))

# The contents of the stack, which UML prints before the backtrace
HEX = re.compile(r"\] +(Stack:|[0-9a-f]{8}[0-9a-f ]*$)")

# After such an error the shell continues after the command that has sourced the file.
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


def one_log(lines):
    """Whether exactly one guest's kernel log has lines that it must not contain"""
    return sum(bool(re.fullmatch(r"\w+'s kernel log:", line)) for line in lines) == 1


def old_breakpoint(lines):
    """Whether TCG ran an int3 that was no longer in the kernel's code, and nothing was wrong
    before that, nor on another guest: see README.md."""
    found = re.search(r"^\w+'s kernel log:\n(?:.*\n){0,2}.*\bint3: 0000 \[(?s:.*?)\bCode: (.*)",
                      "\n".join(lines), re.MULTILINE)
    return found and one_log(lines) and "<" in found[1] and not re.search(r"\bcc <", found[1])


def unlocked_walk(lines):
    """Whether User Mode Linux walked the VMAs of a process without a lock, when the kernel freed an
    AIO context of that process, and nothing was wrong before that: see README.md."""
    found = re.search(r"^\w+'s kernel log:\n(?:.*\n){0,3}.*\bsuspicious RCU usage\n"
                      r"(?s:.*?)\bmas_walk\b(?s:.*?)\bflush_tlb_mm\b(?s:.*?)\bfree_ioctx\b",
                      "\n".join(lines), re.MULTILINE)
    return found and one_log(lines)


def run_again(lines):
    """Why a failed test is to be run once more, or an empty text."""
    if old_breakpoint(lines):
        return "a guest ran a breakpoint that was gone"
    return "User Mode Linux walked VMAs without a lock" if unlocked_walk(lines) else ""
