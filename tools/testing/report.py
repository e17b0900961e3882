# SPDX-License-Identifier: GPL-2.0
"""The output of a run (KTAP, version 1), and its record (results.json).

results.json: "commit"; "dirty", whether the work tree had changes; "started"; "cores";
"seconds", "first_guest" and "slowness" of the run; "setup", the steps of setup.sh; "jobs", for
each key:

result, why     passed, failed or skipped; the reason
wall            seconds of this machine, boots and a second run included
seconds         of the test alone, as pace.py counts them; limit: at most so many
cpu             seconds of processor time that its guests, or its command, used
slowness        of this machine while it ran
guests, boot    their names; seconds that they took to boot, 0 if they were running
reruns          how often it was run again after a known fault of something else
first           if it was: of the first run, why it failed, the fault ("again"), the folder with
                the guests' logs, and the lines that were shown
repeated        its rounds were repeated, so its time is no usual one
"""

import json
import os
import threading

# Lines of a failed test that are shown again at the end
SHOWN = 150
# Lines of failures in the summary, which may be the only part that is read
TELLING = ("FAIL: ", "BUG", "WARNING", "int3", "went down", "unreferenced")


class Report:
    def __init__(self, path, facts):
        self.path, self.facts = path, facts
        self.lock = threading.RLock()
        self.jobs, self.failures = {}, []
        self.reruns = []    # of tests that were run again: key, and "first" as described above
        self.near = []      # jobs that used more of their limit than they usually do
        self.count = {"passed": 0, "failed": 0, "skipped": 0}

    def say(self, *lines):
        with self.lock:
            for line in lines:
                print("# " + line)
            if lines:
                print(end="", flush=True)

    def plan(self, jobs):
        with self.lock:
            print(f"KTAP version 1\n1..{jobs}", flush=True)

    def result(self, key, result, why="", lines=(), **more):
        """A job has ended. lines: what to show; more: as described above."""
        with self.lock:
            self.count[result] += 1
            self.jobs[key] = {"result": result, "why": why, **more}
            self.say(*lines)
            if result == "failed":
                self.failures.append((key, why, list(lines)))
            print(f"{'not ok' if result == 'failed' else 'ok'} {sum(self.count.values())} "
                  f"{key} # {note(result, why, more)}", flush=True)
            self.save()

    def again(self, key, first):
        """A test is run again after a known fault of something else."""
        with self.lock:
            self.reruns.append((key, first))
            self.say(*first["lines"], f"logs: {first['logs']}",
                     f"{key} again: {first['again']}")

    def save(self):
        text = json.dumps({**self.facts, "jobs": self.jobs}, indent=1, sort_keys=True)
        with open(self.path + ".new", "w") as f:
            f.write(text + "\n")
        os.rename(self.path + ".new", self.path)

    def summary_of_reruns(self):
        for key, first in self.reruns:
            for line in first["lines"][-SHOWN:]:
                print(f"# {key}, first run: {line}")
        for key, first in self.reruns:
            print(f"# {key} was run again: {first['again']}; the first run failed: "
                  f"{first['why']}; its logs: {first['logs']}")
        if self.reruns:
            print(f"# run again: {len(self.reruns)}")

    def summary(self):
        """Prints all failures and first runs once more, and the counts."""
        self.summary_of_reruns()
        for key, why, lines in self.failures:
            for line in lines[-SHOWN:]:
                print(f"# {key}: {line}")
            print(f"# {key} failed: {why}")
        for key, why, lines in self.failures:
            print(f"# not ok {key}: {why}")
            for line in [x for x in lines if any(t in x for t in TELLING)][:2]:
                print(f"#   {line[:300]}")
        if self.near:
            print("# near their limits:", *sorted(self.near))
        count = self.count
        print(f"{count['passed']} passed, {count['failed']} failed" +
              (f", {count['skipped']} skipped" if count["skipped"] else ""), flush=True)


def note(result, why, more):
    """The times or the reason that follow a result"""
    if result == "skipped":
        return ("SKIP " + why).strip()
    text = ""
    if "wall" in more:
        text = f"{more['wall']:.1f} s, {more['cpu']:.1f} s of CPU time"
        text += f", slowness {more['slowness']:.1f}"
        if more.get("boot"):
            text += f", boot of {len(more['guests'])} in {more['boot']:.1f} s"
    if more.get("reruns"):
        text += f", run {more['reruns'] + 1} times"
    return f"{text} {why}".strip()
