# SPDX-License-Identifier: GPL-2.0
"""Guests on QEMU, and the networks between them.

A Lab is one guest, or a server and clients on two networks. Every guest has
this machine's root folder, read only, under a tmpfs; an agent in it
(guest/agent) runs scripts and asks for things to be done on other guests.
"""

import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NETS = 2


class GuestError(Exception):
    """A guest did not do what it must, e.g. boot."""


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("RTRS_TESTING_CACHE") or home + "/rtrs-testing"


def chosen_modules():
    """The driver that is meant: MODULES=ours or intree."""
    return os.environ.get("MODULES") or "ours"


def setup(*sets):
    """Have setup.sh bring all that guests need; its settings as a dict."""
    subprocess.run([HERE + "/setup.sh", "guest", *sets], check=True)
    with open(cache() + "/current") as f:
        path = f.read().strip()
    with open(path + "/guest.env") as f:
        return dict(line.rstrip("\n").split("=", 1) for line in f)


class Guest:
    def __init__(self, lab, name, number):
        self.lab, self.name, self.number = lab, name, number
        self.dir = f"{lab.dir}/{name}"
        self.share = self.dir + "/share"
        self.console = self.dir + "/console.log"
        self.scanned = 0
        self.buffer = b""
        self.ready = False
        self.done = {}
        self.qemu = self.agent = self.qmp = None

    def start(self, memory, cpus, terminal):
        lab, env = self.lab, self.lab.env
        os.makedirs(self.share)
        sock = f"{lab.sockets}/{self.name}"
        words = [
            "console=ttyS0", "ignore_loglevel", "tsc=reliable",
            "mitigations=off", "nokaslr", "panic=-1", "net.ifnames=0",
            "no_timer_check", "random.trust_cpu=on", "acpi=on",
            f"rig.name={self.name}", f"rig.guests={','.join(lab.names)}",
            f"rig.tree={env['DIR']}/tree-{lab.modules}",
            f"rig.trees={env['DIR']}/tree-", f"rig.modules={lab.modules}",
            f"rig.kver={env['KVER']}", f"rig.dir={HERE}", *lab.append,
        ]
        share = "security_model=none,multidevs=remap"
        args = [
            "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64",
            "-nodefaults", "-no-reboot", "-display", "none",
            "-accel", "tcg,thread=multi", "-cpu", "max,-la57",
            "-m", str(memory), "-smp", str(cpus),
            "-kernel", env["DIR"] + "/vmlinux",
            "-initrd", env["DIR"] + "/initrd", "-append", " ".join(words),
            "-chardev", f"file,id=con,path={self.console}",
            "-serial", "chardev:con", "-qmp", f"unix:{sock}.qmp,server=on,wait=off",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=rig,path={sock}.rig,server=on,wait=off",
            "-device", "virtserialport,chardev=rig,name=rig",
            "-virtfs", f"local,path=/,mount_tag=root,readonly=on,{share}",
            "-virtfs", f"local,path={self.share},mount_tag=rig,{share}",
        ]
        if terminal:
            args += ["-chardev", "stdio,id=term,signal=off",
                     "-device", "virtconsole,chardev=term"]
        args += self.network()
        with open(self.dir + "/qemu.log", "w") as log:
            self.qemu = subprocess.Popen(
                args, stdout=None if terminal else log, stderr=log,
                stdin=None if terminal else subprocess.DEVNULL)
        self.qmp = self.connect(sock + ".qmp")
        self.qmp_file = self.qmp.makefile("rw")
        self.qmp_file.readline()
        self.command("qmp_capabilities")
        self.agent = self.connect(sock + ".rig")

    def network(self):
        """The server's end of each network is a hub with all clients on it."""
        if len(self.lab.names) < 2:
            return []
        args = []
        for net in range(NETS):
            end = f"{self.lab.sockets}/net{net}-"
            if self.number == 0:
                args += ["-netdev", f"hubport,id=net{net},hubid={net}"]
                for client in self.lab.names[1:]:
                    args += ["-netdev", f"stream,id=to{net}{client},server=on,"
                             f"addr.type=unix,addr.path={end}{client}",
                             "-netdev", f"hubport,id=hub{net}{client},"
                             f"hubid={net},netdev=to{net}{client}"]
            else:
                args += ["-netdev", f"stream,id=net{net},server=off,"
                         f"addr.type=unix,addr.path={end}{self.name}"]
            mac = f"52:54:00:00:{net:02x}:{self.number + 1:02x}"
            args += ["-device", f"virtio-net-pci,id=nic{net},netdev=net{net},"
                     f"mac={mac},host_mtu=9000,romfile="]
        return args

    def connect(self, path):
        end = time.monotonic() + 20
        while True:
            sock = socket.socket(socket.AF_UNIX)
            try:
                sock.connect(path)
                return sock
            except OSError:
                sock.close()
                if self.qemu.poll() is not None or time.monotonic() > end:
                    with open(self.dir + "/qemu.log") as log:
                        raise GuestError("QEMU did not start: " + log.read())
                time.sleep(0.02)

    def command(self, name, **arguments):
        """A command to QEMU's monitor, e.g. set_link."""
        text = json.dumps({"execute": name, "arguments": arguments})
        self.qmp_file.write(text + "\n")
        self.qmp_file.flush()
        while True:
            answer = json.loads(self.qmp_file.readline())
            if "return" in answer or "error" in answer:
                return answer

    def send(self, text):
        self.agent.sendall(text.encode() + b"\n")

    def begin(self, job, script, limit):
        with open(f"{self.share}/{job}.sh", "w") as f:
            f.write(script)
        self.send(f"RUN {job} {limit}")

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

    def alive(self):
        return self.qemu is not None and self.qemu.poll() is None

    def kill(self):
        if self.qemu is not None:
            self.qemu.kill()
            self.qemu.wait()
        for sock in (self.agent, self.qmp):
            if sock is not None:
                sock.close()


class Lab:
    """names: the guests, the server first. A single one is both sides."""

    def __init__(self, env, path, names=("vm",), modules="ours", memory=2048,
                 cpus=2, append=(), terminal=None):
        self.env, self.dir, self.names = env, path, list(names)
        self.modules, self.append = modules, append
        self.terminal = terminal
        self.counter = 0
        self.calls = {}
        self.boot_time = None
        # Under TCG, once in a while a kernel hangs early in its boot.
        for tries in 3, 2, 1:
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path)
            self.sockets = tempfile.mkdtemp(prefix="rig-")
            self.poll = selectors.DefaultSelector()
            self.guests = {}
            try:
                self.boot(memory, cpus, terminal)
                return
            except GuestError as e:
                self.close()
                if tries == 1:
                    raise
                print(f"# {e}; trying again", flush=True)
            except BaseException:
                self.close()
                raise

    def boot(self, memory, cpus, terminal):
        start = time.monotonic()
        for number, name in enumerate(self.names):
            guest = self.guests[name] = Guest(self, name, number)
            guest.start(memory, cpus, terminal == name)
            self.poll.register(guest.agent, selectors.EVENT_READ, guest)
        while not all(g.ready for g in self.guests.values()):
            self.serve(1)
            late = time.monotonic() - start > 60
            for g in self.guests.values():
                if late or not g.alive():
                    raise GuestError(f"{g.name} did not boot; see {g.console}")
        self.boot_time = time.monotonic() - start

    def serve(self, timeout):
        """Handle what guests say, for at most timeout seconds or one message."""
        for key, _ in self.poll.select(timeout):
            guest = key.data
            try:
                data = guest.agent.recv(65536)
            except OSError:
                data = b""
            if not data:
                self.poll.unregister(guest.agent)
                continue
            guest.buffer += data
            while b"\n" in guest.buffer:
                line, guest.buffer = guest.buffer.split(b"\n", 1)
                self.message(guest, line.decode(errors="replace").split())

    def message(self, guest, words):
        if words[0] == "READY":
            guest.ready = True
        elif words[0] == "DONE":
            caller = self.calls.pop(words[1], None)
            if caller:
                self.answer(*caller, int(words[2]), guest.output(words[1]))
            else:
                guest.done[words[1]] = int(words[2])
        elif words[0] == "CALL":
            self.call(guest, words[1], words[2])

    def call(self, caller, ident, target):
        with open(f"{caller.share}/{ident}.call") as f:
            text = f.read()
        if target == "host":
            self.answer(caller, ident, *self.host(text.split()))
        elif target in self.guests:
            job = self.job(caller.name)
            self.calls[job] = (caller, ident)
            self.guests[target].begin(job, text, 300)
        else:
            self.answer(caller, ident, 127, f"there's no guest '{target}'\n")

    def answer(self, caller, ident, code, text):
        with open(f"{caller.share}/{ident}.ret", "w") as f:
            f.write(text)
        if caller.alive():
            caller.send(f"RET {ident} {code}")

    def host(self, words):
        """What a test may ask of the host: link GUEST NET on|off, kill GUEST."""
        if len(words) == 4 and words[0] == "link" and words[1] in self.guests:
            got = self.guests[words[1]].command(
                "set_link", name="nic" + words[2], up=words[3] == "on")
            return (1, str(got)) if "error" in got else (0, "")
        if len(words) == 2 and words[0] == "kill" and words[1] in self.guests:
            self.guests[words[1]].kill()
            return 0, ""
        return 127, "the host does not know: " + " ".join(words) + "\n"

    def job(self, name):
        self.counter += 1
        return f"{self.counter:04d}-{name}"

    def run(self, guest, script, limit, name="run"):
        """Run a script; its exit code (None: no answer in time) and output."""
        guest = self.guests[guest]
        job = self.job(name)
        guest.begin(job, script, limit)
        end = time.monotonic() + limit + 10
        while job not in guest.done:
            left = end - time.monotonic()
            if left <= 0 or not guest.alive():
                return None, guest.output(job)
            self.serve(min(left, 1))
        return guest.done.pop(job), guest.output(job)

    def shell(self, name, welcome):
        """A shell on the terminal that is connected to the guest's hvc0."""
        size = shutil.get_terminal_size()
        guest = self.guests[name]
        with open(guest.share + "/welcome", "w") as f:
            f.write(welcome)
        with open(guest.share + "/rc", "w") as f:
            f.write(f". {HERE}/lib.sh\nPS1='{name}:\\w# '\ncat /run/rig/welcome\n")
        self.run(name, f"stty -F /dev/hvc0 sane rows {size.lines} cols {size.columns}\n"
                 "exec setsid -c bash --rcfile /run/rig/rc -i "
                 "</dev/hvc0 >/dev/hvc0 2>&1", 7 * 86400, "shell")

    def close(self):
        for guest in self.guests.values():
            guest.kill()
        shutil.rmtree(self.sockets, ignore_errors=True)
        if self.terminal and sys.stdin.isatty():
            subprocess.run(["stty", "sane"], check=False)
