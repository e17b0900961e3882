#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The record of earlier runs: history.json and covers.json, which are kept in the tree.

history.json has a line for each job: "passed", the commit at which it last passed; "run", when
the last run began that is counted here; "seconds", how long it took in its last runs, as
pace.py counts them. covers.json names, for each file of the drivers, the tests that run more of
its lines than most tests do.

Usage: history.py [RESULTS]	merge the results of a run (test-results/results.json) and,
				if there are any, its counters of lines into these tables
"""

import json
import os
import statistics
import subprocess
import sys

import catalog
from guest import HERE, ROOT

TABLE = HERE + "/history.json"
COVERS = HERE + "/covers.json"
RESULTS = ROOT + "/test-results/results.json"

# Number of runs kept for each job
RUNS = 5
# A job's limit is this multiple of the slowest of them, and at least this many seconds.
ROOM, LEAST = 3, 30
# For a job that never ran on any kernel
UNKNOWN = 200
# A run fails if a job that it skips has not passed within this number of commits.
STALE = 10
NEVER = 10 ** 6


def git(*args):
    """What git prints, or None if it fails: this may be no checkout."""
    done = subprocess.run(["git", "-C", ROOT, *args], check=False, capture_output=True,
                          text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def load(path):
    try:
        with open(path) as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def save(path, table):
    """A line for each key, so that git shows what changed."""
    lines = ",\n".join(f" {json.dumps(k)}: {json.dumps(table[k], sort_keys=True)}"
                       for k in sorted(table))
    with open(path + ".new", "w") as f:
        f.write("{\n" + lines + "\n}\n")
    os.rename(path + ".new", path)


class Commits:
    """Questions to git, each asked once."""

    def __init__(self, ask=git):
        self.ask, self.ages, self.changes = ask, {}, {}

    def age(self, commit):
        """The number of commits since that one; NEVER if git does not know it"""
        if commit not in self.ages:
            count = self.ask("rev-list", "--count", f"{commit}..HEAD") if commit else None
            self.ages[commit] = int(count) if count else NEVER
        return self.ages[commit]

    def changed(self, commit):
        """Files that differ between that commit and the work tree; None if unknown."""
        if commit not in self.changes:
            names = self.ask("diff", "--name-only", commit) if commit else None
            new = self.ask("ls-files", "--others", "--exclude-standard")
            self.changes[commit] = None if names is None else \
                set(names.splitlines()) | set((new or "").splitlines())
        return self.changes[commit]


class History:
    def __init__(self, table=None, covers=None, commits=None):
        self.table = load(TABLE) if table is None else table
        self.covers = load(COVERS) if covers is None else covers
        self.commits = commits or Commits()

    def seconds(self, key, unknown=UNKNOWN):
        """The slowest of its last runs; that on another kernel if it never ran on this one."""
        own = self.table.get(key, {}).get("seconds")
        if own:
            return max(own)
        name = key.partition("/")[2]
        others = [max(row["seconds"]) for k, row in self.table.items()
                  if k.partition("/")[2] == name and row["seconds"]]
        return max(others, default=unknown)

    def usual(self, key, unknown=UNKNOWN):
        """How long it usually takes; unknown: what is expected of a job that never ran."""
        own = self.table.get(key, {}).get("seconds")
        return statistics.median(own) if own else self.seconds(key, unknown)

    def limit(self, key, unknown=UNKNOWN):
        """Seconds that it may take"""
        room = ROOM if self.table.get(key, {}).get("seconds") else 2 * ROOM
        return max(LEAST, room * self.seconds(key, unknown))

    def age(self, key):
        """The number of commits since it last passed"""
        return self.commits.age(self.table.get(key, {}).get("passed"))

    def stale(self, key):
        return self.age(key) > STALE

    def touched(self, key, name, own):
        """Whether files that it tests have changed since it last passed.

        name: the test's name in the matrix; own: the files that it consists of.
        """
        changed = self.commits.changed(self.table.get(key, {}).get("passed"))
        if changed is None:
            return True
        return bool(own & changed) or any(name in self.covers.get(f, ()) for f in changed)

    def gone(self, keys):
        """Jobs of the table that are not among these: tests that no longer exist"""
        return sorted(set(self.table) - set(keys))


def merge(table, results, keys):
    """The table with a run's results; rows whose key is not among keys are dropped.

    A run of a changed work tree shows how long a job takes, but not that it passes at a
    commit. Results that are not newer than a row are ignored, so a run counts once.
    """
    merged = {k: dict(row) for k, row in table.items() if k in keys}
    for key, job in results["jobs"].items():
        if job["result"] != "passed" or key not in keys:
            continue
        row = merged.setdefault(key, {"passed": None, "seconds": [], "run": ""})
        if results["started"] <= row["run"]:
            continue
        row["run"] = results["started"]
        if "seconds" in job and not job["repeated"]:
            row["seconds"] = [*row["seconds"], round(job["seconds"], 1)][-RUNS:]
        if not results["dirty"]:
            row["passed"] = results["commit"]
    return merged


def matrix(lines):
    """From {test: {file: lines that it ran}}: for each file, the tests that run more of it
    than most do, which tell more of the file than those that only pass through."""
    files = sorted({f for ran in lines.values() for f in ran})
    found = {}
    for file in files:
        counts = {test: ran.get(file, 0) for test, ran in lines.items()}
        usual = statistics.median(counts.values())
        found[file] = sorted(t for t, n in counts.items() if n > usual)
    return found


def lines_by_test():
    """{test: {file of the drivers: lines that it ran}}, if the last run counted them."""
    done = subprocess.run([HERE + "/coverage", "--by-test"], check=True, text=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else RESULTS
    if not os.path.exists(path):
        sys.exit(f"no results in {path}; run: make test")
    with open(path) as f:
        results = json.load(f)
    if (results["modules"], results["rdma"]) != ("ours", "rxe"):
        sys.exit(f"{path} is of {results['modules']} modules over {results['rdma']}: the table "
                 "is about this driver, as a run of everything tests it")
    before = load(TABLE)
    table = merge(before, results, catalog.every_key())
    save(TABLE, table)
    passed = sum(job["result"] == "passed" for job in results["jobs"].values())
    print(f"{TABLE}: {passed} results of commit {results['commit'][:12]}" +
          (" with changes, so only their times" if results["dirty"] else "") +
          f"; {len(set(before) - set(table))} rows dropped")
    lines = lines_by_test()
    if lines:
        save(COVERS, matrix(lines))
        print(f"{COVERS}: from the lines that {len(lines)} tests ran")


if __name__ == "__main__":
    main()
