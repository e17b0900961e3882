# SPDX-License-Identifier: GPL-2.0
"""The choice of the next job.

Jobs are ranked. Jobs whose files, or whose subject, changed since their last pass come first.
The others follow in the order of their last pass, the oldest first. If the time does not suffice
for all jobs, those at the end of this order are left out.
"""

# Seconds of a fast machine that a test takes for the check of leftovers and the unloading
OVERHEAD = 4
# A job of the rota starts if this multiple of its usual time is left.
ROOM = 1.5


class Ranking:
    """The order of jobs according to the history"""

    def __init__(self, history, jobs, modules):
        self.rank, self.cost = {}, {}
        for job in jobs:
            touched = history.touched(job.key, job.test.name, {
                "tools/testing/" + f for f in job.test.files})
            self.rank[job] = (not touched, -history.age(job.key))
            self.cost[job] = history.usual(job.key) * job.repeats + job.soak + OVERHEAD
        # Among equals, jobs for the same guests stand together, long ones first.
        self.order = sorted(jobs, key=lambda j: (
            self.rank[j], [-j.guests, *map(str, j.machine(modules))], -self.cost[j], j.key))


def that_fit(jobs, cost, each, total):
    """The jobs, in the order of their rank, that can run in the time that is left.

    each: seconds until the end; total: seconds until the end of all lanes together. One lane
    runs all jobs of several guests.
    """
    found, used, several = [], 0, 0
    for job in jobs:
        there = several + cost[job] if job.guests > 1 else cost[job]
        if there <= each and used + cost[job] <= total:
            found.append(job)
            used += cost[job]
            several = there if job.guests > 1 else several
    return found


def next_job(jobs, ranking, left, lanes, same, ready):
    """The next job, or None.

    jobs: what remains, in the order of the ranking. left: seconds until the end, as pace.py
    counts them; lanes: how many sets of guests run such jobs at the same time. same(job):
    whether the running guests suit it; ready(job): whether it can be started now.
    """
    fit = that_fit(jobs, ranking.cost, left, left * lanes)
    found = [j for j in fit if ready(j)]
    if fit and not found:
        # Those wait for a kernel that is being built. Meanwhile there is time for others.
        found = [j for j in jobs if ready(j) and ranking.cost[j] <= left]
    changed = [j for j in found if not ranking.rank[j][0]]
    found = changed or found
    return next((j for j in found if same(j)), next(iter(found), None))


def oldest(jobs, history, left):
    """The job of the rota that passed the longest ago, of those that there is time for."""
    found = [j for j in jobs if ROOM * history.usual(j.key, j.expected) <= left]
    return max(found, key=lambda j: history.age(j.key), default=None)
