# SPDX-License-Identifier: GPL-2.0
"""Documentation/quick-start.rst, as it stands, in two guests that know nothing of rnbd; and what
Documentation/snapshots.rst says of a snapshot that the server takes and reads."""

import doctest
import re
import subprocess
import textwrap
import time

from booted import Booted, Failed, make_disk
from guest import ROOT
from pace import PACE

MANUAL = ROOT + "/Documentation/quick-start.rst"
SNAPSHOTS = ROOT + "/Documentation/snapshots.rst"
TAKE, READ = "What a snapshot contains", "Reading it on the server"
RDMA, RPING_SERVER, RPING_CLIENT = "1. Does RDMA work?", "On the server", "On the client"
SERVER, CLIENT, SOFT = "3. The server", "4. The client", "Without RDMA hardware"
REBOOT, PULL = "5. Reboot", "6. Pull a cable"
UNDO_CLIENT, UNDO_SERVER = "7. Undo it on the client", "8. Undo it on the server"
OUTPUT = ".. code-block:: none"
# rping says so if it learns it before it ends, as the manual mentions.
RPING_END = "client DISCONNECT EVENT..."


def blocks(path):
    """The literal blocks of a document: section, whether it is output, and its lines"""
    with open(path) as f:
        lines = f.read().splitlines()
    title, kind, block = None, None, []
    for line, below in zip(lines + ["end"], lines[1:] + ["", ""]):
        if line and not line[0].isspace():
            if title and kind and block:
                yield title, kind == OUTPUT, block
            kind, block = line if line == OUTPUT or line.endswith("::") else None, []
            if re.fullmatch(r"=+|-+", below) and len(below) >= len(line):
                title = line
        elif kind:
            block.append(line)


def sections(path):
    """What to type, by section: pairs of commands and of the output that the document shows"""
    found = {}
    for title, is_output, block in blocks(path):
        text = textwrap.dedent("\n".join(block)).strip()
        steps = found.setdefault(title, [])
        if is_output:
            steps[-1] = steps[-1][0], text
        else:
            steps.append((text, ""))
    return found


def prompted(text):
    """The guests and commands of a block whose lines begin with a machine's name"""
    for guest, command in re.findall(r"^(server|client)1?#\s+(.*)$", text, re.M):
        yield guest, command


def count_commands(text):
    """A here-document belongs to its command, and a line that ends in a backslash goes on."""
    text = re.sub(r"<<'(\w+)'(.*)\n(?:.*\n)*?\1$", r"<<\1\2", text, flags=re.M)
    return len(re.findall(r"[^\\\s]$", text, re.M))


def is_as_shown(shown, said):
    """Blanks and line ends are all alike; ... stands for anything."""
    return doctest.OutputChecker().check_output(
        shown + "\n", said + "\n", doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


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

    def follow(self, title, guest, limit=60):
        start = time.monotonic()
        commands = 0
        for text, shown in self.text[title]:
            said = self.reboot(guest) if text == "reboot" else self.sh(guest, text, limit)
            said = "".join(line for line in said.splitlines(True) if line.strip() != RPING_END)
            if not is_as_shown(shown, said):
                raise Failed(f"{guest}: after\n{text}\nthe manual shows:\n{shown}\n"
                             f"It is:\n{said}")
            commands += count_commands(text)
        seconds = time.monotonic() - start
        self.commands += commands
        self.seconds += seconds
        print(f"# {title}: {commands} commands, {seconds:.0f} s", flush=True)

    def keep(self, guest):
        """What a guest writes stays in its memory: copy what a disk would keep, as far as it is
        needed, to the directory that is laid over the guest's root directory."""
        self.sh(guest, "cd / && find etc srv -xdev -newer etc/machine-id |\n"
                "tar --no-recursion -T - -cf /run/rig/kept.tar")
        subprocess.run(["tar", "-C", f"{self.path}/{guest}.root", "-xf",
                        self.lab.guests[guest].share + "/kept.tar"], check=True)

    def reboot(self, guest):
        """Returns its output, when the boot has mounted the volume."""
        self.keep(guest)
        self.said(guest)
        self.goes_down(guest, 60, "reboot")
        self.check_unmapped(self.said(guest), ["data"])
        self.comes_up(guest)
        self.must(guest, 60, "mountpoint -q /srv/data")
        return ""

    def transfer(self):
        """By rping, which the server runs until its client has ended"""
        (text, _), = self.text[RPING_SERVER]
        for guest in "server", "client":
            self.sh(guest, "modprobe -a ib_uverbs rdma_ucm && udevadm settle")
        self.sh("server", f"{text} >/tmp/rping 2>&1 9>&- &")
        self.must("server", 20, "rdma resource show cm_id | grep -q LISTEN")
        self.follow(RPING_CLIENT, "client")
        self.must("server", 20, "! pidof rping")

    def quick_start_works(self):
        self.sh("server", "vgcreate -q vg0 /dev/vda\nlvcreate -q -y -n data -l 50%FREE vg0")
        for guest in "server", "client":
            self.sh(guest, "modprobe -q crc32_generic || true")
            self.follow(SOFT, guest)
            # It is said for one card, and the second path takes the other one.
            for text, _ in self.text[SOFT]:
                self.sh(guest, text.replace("eth0", "eth1"))
            self.follow(RDMA, guest)
        self.transfer()
        self.follow(SERVER, "server")
        self.follow(CLIENT, "client", 180)
        uuid = self.links_lead_to_the_disk()
        self.sh("server", f"grep -qx 'uuid = {uuid}' /etc/rnbd/server.conf")
        self.sh("client", "echo text >/srv/data/file")
        self.follow(REBOOT, "client")
        if self.links_lead_to_the_disk() != uuid:
            raise Failed(f"the volume's UUID was {uuid}")
        self.sh("client", """
equal "the file" "$(cat /srv/data/file)" text
must "it was not unmounted" [ -z "$(journalctl -b -o cat | grep -i 'recover.*journal')" ]
""")
        print(f"# {self.commands} commands, {self.seconds / 60:.1f} minutes, with this machine "
              f"{PACE.slowness:.1f} times slower", flush=True)
        self.follow(PULL, "client")
        self.only_this_client()
        self.snapshot()
        self.undo()

    def links_lead_to_the_disk(self):
        """Of the volume that is mounted; returns its UUID"""
        return self.sh("client", """
udevadm settle
disk=$(findmnt -no SOURCE /srv/data)
uuid=$(rnbd discover client1-storage1 --no-headings | awk '$1 == "data" { print $4 }')
for link in rnbd/data disk/by-rnbd/client1-storage1-data "disk/by-id/rnbd-$uuid"; do
	equal "$link" "$(readlink -f "/dev/$link")" "$disk"
done
equal paths "$(ls /sys/class/rtrs-client/client1-storage1/paths | wc -l)" 2
echo "$uuid"
""")

    def only_this_client(self):
        """Another session, or another volume, gets nothing."""
        self.sh("client", """
code=0
said=$(rnbd map data from other 10.0.0.1 2>&1) || code=$?
must "a session of another name has the volume: $said" [ $code != 0 ]
code=0
said=$(rnbd map vda from client1-storage1 2>&1) || code=$?
must "another disk can be mapped: $said" [ $code != 0 ]
""")

    def snapshot(self):
        """It has the file system as it was, and the client goes on."""
        text = sections(SNAPSHOTS)
        for guest, command in prompted(text[TAKE][0][0]):
            self.sh(guest, command)
        self.sh("client", "echo later >/srv/data/file; sync")
        (mount, _), (unmount, _) = text[READ]
        for guest, command in prompted(mount):
            self.sh(guest, command)
        self.sh("server", 'equal "the file in the snapshot" "$(cat /mnt/file)" text')
        for guest, command in prompted(unmount):
            self.sh(guest, command)
        self.sh("client", "echo text >/srv/data/file; sync")

    def undo(self):
        before = self.sh("client", "grep -v ' /srv/data ' /etc/fstab || true")
        self.follow(UNDO_CLIENT, "client", 120)
        self.sh("client", """
must "there is a disk" [ ! -e /dev/rnbd0 ]
udevadm settle
must "there is a link" [ ! -L /dev/rnbd/data ]
must "the table has a volume" [ -z "$(grep -v '^#' /etc/rnbd/volumes)" ]
""")
        after = self.sh("client", "cat /etc/fstab")
        if after != before:
            raise Failed(f"/etc/fstab had other lines:\n{before}\nnow:\n{after}")
        self.follow(UNDO_SERVER, "server", 120)
        self.sh("server", """
must "modules are loaded" [ -z "$(lsmod | grep -E '^(rnbd|rtrs)_server')" ]
must "there are rules" [ -z "$(grep client1 /etc/rnbd/server.conf)" ]
mount -r /dev/vg0/data /mnt
equal "the file" "$(cat /mnt/file)" text
umount /mnt
""")
