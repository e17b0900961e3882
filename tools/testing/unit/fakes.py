# SPDX-License-Identifier: GPL-2.0
"""Jobs and commits that the unit tests make up."""

import catalog


def job(name, on="debug", rdma="rxe", **settings):
    """A job of a test whose header has these lines (log_ok is "Log-ok:")."""
    fields = {**catalog.FIELDS, **{k.replace("_", "-"): v for k, v in settings.items()}}
    return catalog.Job(catalog.Test(f"/tests/{name}.sh", fields, rdma, {f"tests/{name}.sh"}), on)


class FakeCommits:
    """ages: {commit: how many were made since}; changes: {commit: files changed since}"""

    def __init__(self, ages, changes=None):
        self.ages, self.changes = ages, changes or {}

    def age(self, commit):
        return self.ages.get(commit, 10 ** 6)

    def changed(self, commit):
        return self.changes.get(commit, set()) if commit in self.ages else None
