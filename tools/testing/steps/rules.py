#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0
"""Changes the server's rules at random. After each change it compares with a model what two
sessions, which are connected, may have of a volume.

Usage: rules.py SEED CHANGES DISK ADDRESS FILE

The volume is v1, of the server's DISK, its host is web, and the sessions are web-1 and web-2. All of
them come from ADDRESS. Other sessions may map the volume meanwhile, but only to read; FILE is there
when one has. There are more changes, up to three times as many, if something is still to happen."""

import collections
import errno
import mmap
import os
import random
import sys
import time

CONF = "/sys/kernel/config/rnbd"
HOST, VOLUME = CONF + "/hosts/web", CONF + "/volumes/v1"
CTL = "/sys/class/rnbd-client/ctl"
# Seconds for what takes moments
LIMIT = 60
# Each of these must happen.
OUTCOMES = ("kept", "taken away", "mapped", "opened again", "ENOENT", "EACCES", "EBUSY")

dice, least = random.Random(int(sys.argv[1])), int(sys.argv[2])
disk, address, other = sys.argv[3], sys.argv[4], sys.argv[5]
counted = collections.Counter()
history = []


def fail(text):
    sys.exit(f"after {len(history)} changes, the last ones {', '.join(history[-12:])}: {text}")


def write(path, text):
    """0, or the name of an errno"""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    except OSError as e:
        return errno.errorcode[e.errno]
    finally:
        os.close(fd)
    return 0


def read(path):
    with open(path) as f:
        return f.read().strip()


def wait_for(what, condition):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            fail(what)
        time.sleep(0.01)


class Rules:
    """What is set, and what follows from that"""

    def __init__(self):
        self.link = os.path.lexists(VOLUME + "/hosts/web")
        for change in self.changes():
            change()

    def changes(self):
        return (self.change_policy, self.change_link, self.change_enable, self.change_any_host,
                self.change_sessions, self.change_modes, self.change_addresses)

    def set(self, path, text):
        history.append(f"{path[len(CONF) + 1:]}={text}")
        got = write(path, text)
        if got:
            fail(f"the change gives {got}")

    def change_policy(self):
        """A volume's rules are the same with both."""
        self.set(CONF + "/policy", dice.choice(("open", "listed")))

    def change_link(self):
        history.append("unlink" if self.link else "link")
        if self.link:
            os.unlink(VOLUME + "/hosts/web")
        else:
            os.symlink(HOST, VOLUME + "/hosts/web")
        self.link = not self.link

    def change_enable(self):
        self.enabled = dice.random() < 0.8
        self.set(VOLUME + "/enable", str(int(self.enabled)))

    def change_any_host(self):
        self.any_host = dice.random() < 0.6
        self.set(VOLUME + "/allow_any_host", str(int(self.any_host)))

    def change_sessions(self):
        self.sessions = dice.choice(("12", "12", "1", "2", "3"))
        self.set(HOST + "/sessions", f"web-[{self.sessions}]")

    def change_modes(self):
        self.modes = dice.choice(("ro", "rw", "ro rw", "ro rw"))
        self.set(VOLUME + "/modes", self.modes)

    def change_addresses(self):
        """Of two, the second one may be right."""
        self.near = dice.random() < 0.75
        self.set(HOST + "/addresses", f"ip:192.0.2.1 {address + '/24' if self.near else ''}")

    def change(self):
        dice.choice(self.changes())()

    def give(self, number, mode):
        """The errno with which this session opens the volume in that mode, 0 for none"""
        is_host = self.link and self.near and number in self.sessions
        if not self.enabled or not (self.any_host or is_host):
            return "ENOENT"
        return 0 if mode in self.modes.split() else "EACCES"


class Session:
    def __init__(self, rules, number):
        self.rules, self.number, self.name = rules, number, "web-" + number
        self.others = []
        self.disk = None        # folder of its disk, None if it has none
        self.fd = self.mode = None
        self.open = False
        self.page = mmap.mmap(-1, mmap.PAGESIZE)

    def expected(self, mode):
        found = self.rules.give(self.number, mode)
        if not found and mode == "rw" and any(o.open and o.mode == "rw" for o in self.others):
            return "EBUSY"
        return found

    def gets(self, outcome, mode, path, text):
        """Writes a text that opens the volume. The server may still be closing it."""
        want, end = self.expected(mode), time.monotonic() + LIMIT
        got = write(path, text)
        while got != want and got in ("EBUSY", "EAGAIN", "EEXIST") and time.monotonic() < end:
            time.sleep(0.02)
            got = write(path, text)
        if got != want:
            fail(f"{self.name}, {mode}: {text} to {path} gives {got}, not {want}")
        counted[got or outcome] += 1
        self.open = not got
        return self.open

    def map(self):
        self.mode = dice.choice(("ro", "rw", "rw"))
        if self.gets("mapped", self.mode, CTL + "/map_device",
                     f"sessname={self.name} device_path=v1 access_mode={self.mode}"):
            self.disk = os.path.realpath(f"{CTL}/devices/v1@{self.name}")
            self.fd = os.open("/dev/" + os.path.basename(self.disk), os.O_RDONLY | os.O_DIRECT)

    def remap(self):
        if self.gets("opened again", self.mode, self.disk + "/rnbd/remap_device", "1"):
            self.look()

    def unmap(self):
        os.close(self.fd)
        got = write(self.disk + "/rnbd/unmap_device", "normal")
        if got:
            fail(f"unmapping gives {got}")
        gone = self.disk
        wait_for(f"{self.name} still has its disk", lambda: not os.path.exists(gone) and
                 not os.path.lexists(f"{CTL}/devices/v1@{self.name}"))
        self.disk, self.open = None, False

    def look(self):
        """Has it still what it had open? The change counts for the first request after it."""
        want = "EIO" if self.rules.give(self.number, self.mode) else 0
        try:
            got = 0
            os.preadv(self.fd, [self.page], 0)
        except OSError as e:
            got = errno.errorcode[e.errno]
        state = read(self.disk + "/rnbd/state")
        if (got, state) != (want, "closed" if want else "open"):
            fail(f"{self.name}, {self.mode}: a read gives {got}, not {want}; it is {state}")
        counted["taken away" if want else "kept"] += 1
        self.open = not want

    def act(self):
        what = dice.randrange(8)
        if not self.disk:
            if what < 4:
                self.map()
        elif self.open:
            if what < 1:
                self.unmap()
        elif what < 5:
            self.remap()
        elif what < 6:
            self.unmap()


def on_server(sessions):
    """The names of these sessions that have the disk open, as the server sees it"""
    try:
        names = os.listdir(f"/sys/class/rnbd-server/ctl/devices/{disk}/sessions")
    except FileNotFoundError:
        names = []
    return {s.name for s in sessions if s.name in names}


def missing():
    found = [what for what in OUTCOMES if not counted[what]]
    return found if os.path.exists(other) else found + ["mapped by another session"]


def main():
    rules = Rules()
    sessions = [Session(rules, n) for n in "12"]
    for one in sessions:
        one.others = [s for s in sessions if s is not one]
    history.clear()
    while len(history) < least or (missing() and len(history) < 3 * least):
        rules.change()
        for one in sessions:
            if one.open:
                one.look()
        for one in sessions:
            one.act()
        opened = {s.name for s in sessions if s.open}
        wait_for(f"the server has it open for {on_server(sessions)}, not {opened}",
                 lambda opened=opened: on_server(sessions) == opened)
    for one in sessions:
        if one.disk:
            one.unmap()
    print(f"{len(history)} changes;", ", ".join(f"{what}: {counted[what]}" for what in OUTCOMES))
    if missing():
        sys.exit("never: " + ", ".join(missing()))


main()
