# SPDX-License-Identifier: GPL-2.0
"""Jobs that are commands on this machine: make check, and the long tests of the rota."""

import dataclasses

from guest import HERE, ROOT


@dataclasses.dataclass(eq=False)
class HostJob:
    """A command. counts: it ends in a line "N passed, N failed".

    expected: seconds, as pace.py counts them, that it takes if nothing is known of it yet
    """

    name: str
    command: list
    env: dict = dataclasses.field(default_factory=dict)
    counts: bool = True
    expected: float = 600

    @property
    def key(self):
        return f"host/{self.name}"


CHECK = HostJob("check", [HERE + "/check.sh"], counts=False)

# Each takes minutes. One of them runs in the time that the tests leave.
ROTA = [
    HostJob("boot-12", [HERE + "/boot", "12"], {"T": "[!pq]*"}),
    HostJob("boot-13", [HERE + "/boot", "13"]),
    HostJob("upgrade", [HERE + "/boot", "12"], {"T": "packages_change_in_use"}),
    HostJob("quickstart", [HERE + "/boot", "12"], {"T": "quick_start_works"}),
    HostJob("packages-12", [HERE + "/packages/run"], {"RELEASES": "12"}),
    HostJob("packages-13", [HERE + "/packages/run"], {"RELEASES": "13"}),
    HostJob("packages-unstable", [HERE + "/packages/run"], {"RELEASES": "unstable"}),
    HostJob("consumers", [HERE + "/consumers"], expected=90),
    HostJob("two-clones", [HERE + "/two-clones.sh"], expected=200),
    HostJob("tree-6.1", [HERE + "/tree.sh", "6.1"]),
    HostJob("tree-6.12", [HERE + "/tree.sh", "6.12"]),
    HostJob("tree-7.2", [HERE + "/tree.sh", "7.2"]),
    *(HostJob(f"soak-{kernel}", [HERE + "/run-tests"],
              {"SOAK": "10", "KERNEL": kernel, "RESULTS": ROOT + "/test-results/soak"})
      for kernel in ("stock", "debug")),
]
ALL = [CHECK, *ROTA]
