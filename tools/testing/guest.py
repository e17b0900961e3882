# SPDX-License-Identifier: GPL-2.0
"""Common to all guests: files, the agent, the kernel's log"""

import glob
import os
import signal
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NETS = 2


class GuestError(Exception):
    """A guest did not do what it must, e.g. boot."""


class Guest:
    """Of a kind of machine that start(), stand_still() and terminal are about.

    start() may be called again after kill(): the share, and what the console said,
    stay.
    """

    terminal = None     # device of the shell's terminal

    def __init__(self, lab, name, number):
        self.lab, self.name, self.number = lab, name, number
        self.dir = f"{lab.dir}/{name}"
        self.share = self.dir + "/share"
        self.console = self.dir + "/console.log"
        self.scanned = 0
        self.buffer = b""
        self.ready = False
        self.killed = False     # on purpose
        self.done = {}
        self.process = self.agent = None
        self.cpu_before = 0.0   # seconds of processor time of processes that have ended
        self.cpu_now = 0.0      # of this one, as far as it was last seen

    def stand_still(self, on):
        raise NotImplementedError

    def words(self):
        """Words of the kernel's command line for guest/init and guest/agent"""
        lab, env = self.lab, self.lab.env
        return [
            f"rig.name={self.name}", f"rig.guests={','.join(lab.names)}",
            f"rig.tree={env['DIR']}/tree-{lab.modules}",
            f"rig.trees={env['DIR']}/tree-", f"rig.modules={lab.modules}",
            f"rig.kernel={env['KERNEL']}", f"rig.kver={env['KVER']}",
            f"rig.share={self.share}", f"rig.dir={HERE}", f"rig.source={env['SOURCE']}",
            *(["rig.root=" + ":".join(lab.roots[self.name])]
              if self.name in lab.roots else []), *lab.append,
        ]

    def spawn(self, args, log, terminal, **more):
        """Start the guest's process, in a group of its own that dies with us."""
        self.killed = False
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *args],
            stdin=None if terminal else subprocess.DEVNULL,
            stdout=None if terminal else log, stderr=log,
            process_group=None if terminal else 0, **more)

    def send(self, text):
        self.agent.sendall(text.encode() + b"\n")

    def tell_pace(self, slowness):
        with open(self.share + "/slowness.new", "w") as f:
            f.write(f"{slowness}\n")
        os.rename(self.share + "/slowness.new", self.share + "/slowness")

    def begin(self, job, script):
        with open(f"{self.share}/{job}.sh", "w") as f:
            f.write(script)
        self.send(f"RUN {job}")

    def output(self, job):
        try:
            with open(f"{self.share}/{job}.out", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def news(self):
        """The kernel's log since the last time that this was called."""
        with open(self.console, "rb") as f:
            f.seek(self.scanned)
            text = f.read()
        text = text[:text.rfind(b"\n") + 1]
        self.scanned += len(text)
        return text.decode(errors="replace").replace("\r", "")

    def tail(self, lines):
        with open(self.console, errors="replace") as f:
            return f.read().replace("\r", "").splitlines()[-lines:]

    def connect(self):
        """This guest's ends of new cables, one for each network, if there are any."""
        hub = self.lab.hub
        return [hub.connect(net, self.number) for net in range(NETS)] if hub else []

    def mac(self, net):
        return f"52:54:00:00:{net:02x}:{self.number + 1:02x}"

    def cables(self):
        """The state of each cable"""
        hub = self.lab.hub
        return [net[self.number] for net in hub.cables] if hub else []

    def link(self, net, how):
        """Change a network cable, as set_link in lib.sh. Its state survives a power-off."""
        self.lab.hub.set(net, self.number, how)

    def listens(self, on):
        """Whether it receives frames: when its networks are up"""
        if self.lab.hub:
            self.lab.hub.listens(self.number, on)

    def freeze(self, on):
        if on:
            self.listens(False)
        self.stand_still(on)
        if not on:
            self.listens(True)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def died(self):
        """Whether it has ended by itself"""
        return not self.alive() and not self.killed

    def cpu(self):
        """Seconds of processor time that the guest has used: its process, the threads and
        children of that, and those children that have ended."""
        if self.process is None:
            return self.cpu_before
        ticks = 0.0
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path) as f:
                    words = f.read().rpartition(")")[2].split()
            except OSError:
                continue    # it has ended
            # From the process group on: see proc(5).
            if int(words[2]) == self.process.pid:
                ticks += sum(map(int, words[11:13]))
                if path == f"/proc/{self.process.pid}/stat":
                    ticks += sum(map(int, words[13:15]))
        self.cpu_now = max(self.cpu_now, ticks / os.sysconf("SC_CLK_TCK"))
        return self.cpu_before + self.cpu_now

    def kill(self):
        self.cpu_before, self.cpu_now = self.cpu(), 0.0
        self.killed = True
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                self.process.kill()     # with a terminal it is in our own group
            self.process.wait()
        if self.agent is not None:
            self.agent.close()
            self.agent = None
