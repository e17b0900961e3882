# SPDX-License-Identifier: GPL-2.0
"""Guests, and the networks between them.

A Lab is one guest, or a server and clients on two networks. Every guest has
this machine's root folder, read only, under a tmpfs; an agent in it
(guest/agent) runs scripts and asks for things to be done on other guests, or to
them: cables pulled, power cut and given back.
"""

import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from guest import GuestError, HERE, NETS, ROOT
from hub import Hub
from pace import Allowance, PACE
from qemu import Qemu
from uml import Uml


def run_command(main):
    """Runs a program's main() and exits with its result, also on SIGTERM and Ctrl-C: guests end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except GuestError as e:
        sys.exit(str(e))


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("RTRS_TESTING_CACHE") or home + "/rtrs-testing"


def chosen_kernel():
    """The kernel of KERNEL=6.1 (or stock), 6.12, 7.2 or debug"""
    kernel = os.environ.get("KERNEL") or "stock"
    return "stock" if kernel == "6.1" else kernel


def chosen_modules():
    """The driver of MODULES=ours or intree"""
    return os.environ.get("MODULES") or "ours"


def setup(*sets):
    """Run setup.sh for everything that guests need; returns its settings as a dict."""
    subprocess.run([HERE + "/setup.sh", "guest", *sets], check=True)
    return environment(chosen_kernel())


def environment(kernel):
    """The settings that setup.sh has written for the guests of a kernel, as a dict"""
    with open(f"{ROOT}/.build/{kernel}/guest.env") as f:
        return dict(line.rstrip("\n").split("=", 1) for line in f)


# Seconds, as pace.py counts them.
BOOT_LIMIT = 60
END_LIMIT = 10


def facts():
    """The versions that measurements depend on, to be stored with them

    commit: the last one that changed the drivers
    """
    def said(*args):
        done = subprocess.run(args, capture_output=True, text=True, check=False, cwd=ROOT)
        return done.stdout.strip()
    drivers = "--", "drivers", "include"
    return {"commit": said("git", "log", "-1", "--format=%h", *drivers) +
                      ("-dirty" if said("git", "status", "--porcelain", *drivers) else ""),
            "qemu": said("qemu-system-x86_64", "--version").split("\n")[0]}


class Lab:
    """names: the guests, the server first. A single one is both sides.

    roots: by name, the folders that a guest's root folder is made of, upper ones first;
    disks: by name, files that are disks of its own.
    """

    def __init__(self, env, path, names=("vm",), modules="ours", memory=2048,
                 cpus=2, append=(), terminal=None, slub_debug="-", clock="wall",
                 roots=None, disks=None):
        self.env, self.dir, self.names = env, path, list(names)
        self.memory, self.cpus, self.clock = memory, cpus, clock
        self.modules, self.append = modules, append
        self.terminal, self.slub_debug = terminal, slub_debug
        self.roots, self.disks = roots or {}, disks or {}
        self.debug = env["KERNEL"] == "debug"
        self.hub = None
        self.counter = 0
        self.calls = {}         # job: guest and call that wait for it, where it runs
        self.booting = {}       # guest: guest and call that wait for it, its time
        self.boot_time = None
        self.spent = 0.0        # of the last run's limit: seconds as pace.py counts them
        # Under TCG, once in a while a kernel hangs early in its boot.
        for tries in 3, 2, 1:
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path)
            self.sockets = tempfile.mkdtemp(prefix="rig-")
            self.poll = selectors.DefaultSelector()
            self.guests = {}
            try:
                self.boot()
                return
            except GuestError as e:
                self.close()
                if tries == 1:
                    raise
                print(f"# {e}; trying again", flush=True)
            except BaseException:
                self.close()
                raise

    def boot(self):
        start, limit = time.monotonic(), Allowance(BOOT_LIMIT)
        self.slowness = 1
        if len(self.names) > 1:
            self.hub = Hub(len(self.names), NETS)
        kind = Uml if self.debug else Qemu
        for number, name in enumerate(self.names):
            self.guests[name] = kind(self, name, number)
            self.start(name)
        while not all(g.ready for g in self.guests.values()):
            self.serve(1)
            late = limit.over()
            for g in self.guests.values():
                if late or not g.alive():
                    raise GuestError(f"{g.name} did not boot; see {g.console}")
        self.boot_time = time.monotonic() - start

    def start(self, name):
        guest = self.guests[name]
        try:
            guest.start(self.memory, self.cpus, self.terminal == name)
        except BaseException:
            guest.kill()
            raise
        self.poll.register(guest.agent, selectors.EVENT_READ, guest)

    def kill(self, name):
        """Power off without a shutdown; ends scripts that wait for the guest."""
        guest = self.guests[name]
        if guest.agent and guest.agent in self.poll.get_map():
            self.poll.unregister(guest.agent)
        guest.kill()
        guest.ready, guest.buffer = False, b""
        for job, (caller, ident, where) in list(self.calls.items()):
            if guest in (where, caller):
                del self.calls[job]
            if where is guest:
                self.answer(caller, ident, 137, guest.output(job))

    def boot_again(self, name, caller, ident):
        """Boot a guest that was killed; the call returns when it is ready."""
        try:
            self.start(name)
        except (GuestError, OSError) as e:
            self.answer(caller, ident, 1, f"{e}\n")
        else:
            self.booting[name] = caller, ident, Allowance(BOOT_LIMIT)

    def look_after_boots(self):
        """Under TCG, once in a while a kernel hangs early in its boot."""
        for name, (caller, ident, limit) in list(self.booting.items()):
            guest = self.guests[name]
            if not guest.ready and guest.alive() and not limit.over():
                continue
            del self.booting[name]
            if guest.ready:
                self.answer(caller, ident, 0, "")
            else:
                print(f"# {name} did not boot; trying again", flush=True)
                self.kill(name)
                self.boot_again(name, caller, ident)

    def serve(self, timeout):
        """Handle messages of guests, for at most timeout seconds or one message."""
        self.look_after_boots()
        self.tell_pace()
        for key, _ in self.poll.select(timeout):
            guest, agent = key.data, key.fileobj
            if agent.fileno() < 0:
                continue    # it was killed just now
            try:
                data = agent.recv(65536)
            except OSError:
                data = b""
            if not data:
                self.poll.unregister(agent)
                continue
            guest.buffer += data
            while b"\n" in guest.buffer:
                line, guest.buffer = guest.buffer.split(b"\n", 1)
                self.message(guest, line.decode(errors="replace").split())

    def tell_pace(self):
        """Write the slowness for lib.sh, which scales time limits."""
        if self.slowness != PACE.whole():
            self.slowness = PACE.whole()
            for guest in self.guests.values():
                guest.tell_pace(self.slowness)

    def message(self, guest, words):
        if words[0] == "READY":
            guest.ready = True
        elif words[0] == "DONE":
            caller, ident, _ = self.calls.pop(words[1], (None, None, None))
            if caller:
                self.answer(caller, ident, int(words[2]), guest.output(words[1]))
            else:
                guest.done[words[1]] = int(words[2])
        elif words[0] == "CALL":
            self.call(guest, words[1], words[2])

    def call(self, caller, ident, target):
        with open(f"{caller.share}/{ident}.call") as f:
            text = f.read()
        guest = self.guests.get(target)
        if target == "host":
            try:
                self.host(caller, ident, text.split())
            except (GuestError, OSError) as e:
                self.answer(caller, ident, 1, f"{e}\n")
        elif guest and guest.ready:
            job = self.job(caller.name)
            self.calls[job] = (caller, ident, guest)
            guest.begin(job, text)
        elif guest:
            self.answer(caller, ident, 137, f"{target} is down\n")
        else:
            self.answer(caller, ident, 127, f"there's no guest '{target}'\n")

    def answer(self, caller, ident, code, text):
        with open(f"{caller.share}/{ident}.ret", "w") as f:
            f.write(text)
        if caller.alive():
            caller.send(f"RET {ident} {code}")

    def host(self, caller, ident, words):
        """Calls from tests to the host; lib.sh describes them."""
        code, text = 0, ""
        match words:
            case ["link", name, net, "on" | "off" | "silent" | "hold" | "short" | "stale" as how] \
                    if name in self.guests:
                self.guests[name].link(int(net), how)
            case ["kill", name] if name in self.guests:
                self.kill(name)
            case ["boot", name] if name in self.guests and not self.guests[name].alive():
                self.boot_again(name, caller, ident)
                return
            case ["listens", name] if name in self.guests:
                self.guests[name].listens(True)
            case ["freeze" | "thaw" as how, name] if name in self.guests:
                self.guests[name].freeze(how == "freeze")
            case _:
                code, text = 127, "the host can't do this: " + " ".join(words) + "\n"
        self.answer(caller, ident, code, text)

    def job(self, name):
        self.counter += 1
        return f"{self.counter:04d}-{name}"

    def run(self, guest, script, limit, name="run", late=None):
        """Run a script; its exit code (None: the limit was over) and output.

        The limit is in seconds, as pace.py counts them. When it is over, late() can look
        at what has come to a halt.
        """
        guest = self.guests[guest]
        job = self.job(name)
        allowed = Allowance(limit)
        guest.begin(job, script)
        while job not in guest.done and guest.alive():
            self.serve(1)
            over = allowed.over()
            self.spent = allowed.used
            if over:
                if late:
                    late()
                if job not in guest.done and guest.alive():
                    self.end(guest, job)
                guest.done.pop(job, None)
                return None, guest.output(job)
        return guest.done.pop(job, None), guest.output(job)

    def run_on(self, names, script, limit, name):
        """Run a script in these guests at the same time; by guest, what run() returns."""
        jobs = {n: self.job(name) for n in names}
        allowed = Allowance(limit)
        for n, job in jobs.items():
            self.guests[n].begin(job, script)

        def under_way():
            return [n for n, job in jobs.items()
                    if job not in self.guests[n].done and self.guests[n].alive()]
        while (late := under_way()) and not allowed.over():
            self.serve(1)
        for n in late:
            self.end(self.guests[n], jobs[n])
            self.guests[n].done.pop(jobs[n], None)
        return {n: (self.guests[n].done.pop(job, None), self.guests[n].output(job))
                for n, job in jobs.items()}

    def cpu(self):
        """Seconds of processor time that its guests have used so far."""
        return sum(guest.cpu() for guest in self.guests.values())

    def who_waits(self):
        """For which script on which guest, or for which guest's boot."""
        found = [f"{caller.name} waits until {name} has booted"
                 for name, (caller, _, _) in self.booting.items()]
        for job, (caller, _, where) in self.calls.items():
            with open(f"{where.share}/{job}.sh") as f:
                script = " ".join(f.read().split())
            found.append(f"{caller.name} waits for {where.name}: ...{script[-300:]}")
        return found

    def end(self, guest, job):
        """Kill a script that exceeds its time limit."""
        guest.send(f"END {job}")
        allowed = Allowance(END_LIMIT)
        while job not in guest.done and guest.alive() and not allowed.over():
            self.serve(1)

    def shell(self, name, welcome):
        """A shell on the terminal that is connected to the guest."""
        size = shutil.get_terminal_size()
        guest = self.guests[name]
        with open(guest.share + "/welcome", "w") as f:
            f.write(welcome)
        with open(guest.share + "/rc", "w") as f:
            f.write(f". {HERE}/lib.sh\nPS1='{name}:\\w# '\ncat /run/rig/welcome\n")
        tty = guest.terminal
        self.run(name, f"stty -F {tty} sane rows {size.lines} cols {size.columns}\n"
                 "exec setsid -c bash --rcfile /run/rig/rc -i "
                 f"<{tty} >{tty} 2>&1", 7 * 86400, "shell")

    def close(self):
        for guest in self.guests.values():
            guest.kill()
        if self.hub:
            self.hub.close()
            self.hub = None
        shutil.rmtree(self.sockets, ignore_errors=True)
        if self.terminal and sys.stdin.isatty():
            subprocess.run(["stty", "sane"], check=False)
