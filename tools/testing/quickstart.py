# SPDX-License-Identifier: GPL-2.0
"""Documentation/quick-start.rst, as it stands, in two guests that know nothing of rnbd."""

import re
import textwrap
import time

from booted import Booted, make_disk
from guest import ROOT

MANUAL = ROOT + "/Documentation/quick-start.rst"
SERVER, CLIENT, SOFT = "2. The server", "3. The client", "Without RDMA hardware"


def sections(path):
    """The commands of a document, by section: what is in its literal blocks"""
    with open(path) as f:
        lines = f.read().splitlines()
    found, title, literal = {}, None, False
    for line, below in zip(lines, lines[1:] + [""]):
        if re.fullmatch(r"=+|-+", below) and len(below) >= len(line) > 0:
            title, literal = line, False
            found[title] = ""
        elif line and not line[0].isspace():
            literal = line.endswith("::")
        elif literal and title:
            found[title] += line + "\n"
    return {title: textwrap.dedent(text).strip() for title, text in found.items()}


class QuickStart(Booted):
    """Modules and the tool are the rig's; tests of the packages are in packages/."""

    steps = "quick_start_works",
    network = ""

    def __init__(self, *args):
        super().__init__(*args)
        self.text = sections(MANUAL)
        self.commands = self.seconds = 0

    def configure(self, _server, _client):
        make_disk(self.path + "/disk.img", 256)
        return [self.path + "/disk.img"]

    def follow(self, title, run):
        text = self.text[title]
        start = time.monotonic()
        run(text)
        # A line that ends in a backslash goes on.
        commands = len(re.findall(r"[^\\\s]$", text, re.M))
        seconds = time.monotonic() - start
        self.commands += commands
        self.seconds += seconds
        print(f"# {title}: {commands} lines, {seconds:.0f} s", flush=True)

    def quick_start_works(self):
        self.sh("server", "vgcreate -q vg0 /dev/vda\nlvcreate -q -y -n data -l 100%FREE vg0")
        for guest in "server", "client":
            self.sh(guest, "modprobe -q crc32_generic || true")
            self.follow(SOFT, lambda text, guest=guest: self.sh(guest, text))
            # It is said for one card, and the second path takes the other one.
            self.sh(guest, self.text[SOFT].replace("rxe0", "rxe1").replace("eth0", "eth1"))
        self.follow(SERVER, lambda text: self.sh("server", text))
        self.follow(CLIENT, lambda text: self.sh("client", text, 180))
        self.sh("client", """
equal source "$(findmnt -no SOURCE /srv/data)" "$(readlink -f /dev/disk/by-rnbd/storage1-data)"
equal paths "$(ls /sys/class/rtrs-client/storage1/paths | wc -l)" 2
echo text >/srv/data/file
sync
""")
        print(f"# {self.commands} lines to type, {self.seconds / 60:.1f} minutes", flush=True)
