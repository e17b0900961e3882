# SPDX-License-Identifier: GPL-2.0
"""Guests that systemd boots: a server and a client, whose root folder is a Debian release."""

import fnmatch
import os
import shutil
import subprocess
import time

import guests
from guest import GuestError, HERE, ROOT
from pace import Allowance

RELEASES = {"12": "bookworm", "13": "trixie"}
MIB = 1 << 20

NETWORK = """#!/bin/bash
if [ "$1" = stop ]; then
	ip link set eth0 down
	ip link set eth1 down
	exit
fi
modprobe -q crc32_generic
modprobe virtio_net
for net in 0 1; do
	ip link set eth$net mtu 9000 up
	ip addr add 10.0.$net.NUMBER/24 dev eth$net
done
"""

RDMA = """modprobe rdma_rxe
rdma link add rxe0 type rxe netdev eth0
rdma link add rxe1 type rxe netdev eth1
"""

NETWORK_UNIT = """[Unit]
Wants=network.target
Before=network.target network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/rig-network start
ExecStop=/usr/local/sbin/rig-network stop
"""

AGENT_UNIT = f"""[Unit]
DefaultDependencies=no
After=rig-network.service

[Service]
ExecStart=/bin/bash {HERE}/guest/agent
"""

# The console has the journal, to check a shutdown from outside.
APPEND = ["systemd.show_status=0", "systemd.mask=systemd-firstboot.service",
          "systemd.journald.forward_to_console=1", "systemd.journald.max_level_console=info"]


class Failed(Exception):
    """A check has failed."""


def make_root(release):
    """A root folder of a release, in the cache."""
    subprocess.run([HERE + "/setup.sh", "boot", RELEASES[release]], check=True)
    return f"{guests.cache()}/boot-{RELEASES[release]}"


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def link(path, to):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(to, path)


def make_disk(path, size):
    with open(path, "w") as f:
        f.truncate(size * MIB)


def configure(top, number, more):
    """Write the files of a guest on top of its release; more is run when the network is up."""
    units = top + "/etc/systemd/system"
    write(top + "/etc/machine-id", f"{number:032x}\n")
    write(top + "/usr/local/sbin/rig-network", NETWORK.replace("NUMBER", str(number)) + more, 0o755)
    write(units + "/rig-network.service", NETWORK_UNIT)
    write(units + "/rig-agent.service", AGENT_UNIT)
    for unit in "rig-network", "rig-agent":
        link(f"{units}/multi-user.target.wants/{unit}.service", f"../{unit}.service")
    for unit in "serial-getty@ttyS0", "getty@tty1", "apt-daily", "fstrim":
        link(f"{units}/{unit}.service", "/dev/null")


def quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


class Booted:
    """configure() gives the guests what their steps take, and returns the server's disks."""

    steps = ()
    network = RDMA      # what is done when the network is up

    def __init__(self, env, release, path):
        self.env, self.release, self.path = env, release, path
        self.failed = self.passed = 0
        self.lab = None

    def boot(self):
        root = make_root(self.release)
        shutil.rmtree(self.path, ignore_errors=True)
        software = self.install(root)
        tops = [f"{self.path}/{name}.root" for name in ("server", "client")]
        for number, top in enumerate(tops, 1):
            configure(top, number, self.network)
        disks = self.configure(*tops)
        self.lab = guests.Lab(
            self.env, self.path + "/guests", ["server", "client"], memory=1024,
            append=APPEND,
            roots={"server": [tops[0], software, root], "client": [tops[1], software, root]},
            disks={"server": disks})
        for name in "server", "client":
            self.lab.guests[name].listens(True)

    def configure(self, server, client):
        """Writes to the directories that are laid over the guests' root directories"""
        raise NotImplementedError

    def install(self, _root):
        """What is tested, as a directory that is laid over the release's root directory; the
        modules come with the guests' kernel"""
        tool = self.path + "/tool"
        subprocess.run(["make", "-s", "-C", ROOT, "tools_install", "prefix=/usr",
                        "DESTDIR=" + tool], check=True, stdout=subprocess.DEVNULL)
        return tool

    # ---- steps ----

    def sh(self, guest, script, limit=60):
        """Run a script with the functions of lib.sh in a guest; returns its output."""
        code, out = self.lab.run(guest, f"set -eu\n. {HERE}/lib.sh\n{script}", limit)
        if code != 0:
            raise Failed(f"{guest}: exit code {code}:\n{script}\n{out}")
        return out.strip()

    def must(self, guest, seconds, condition):
        self.sh(guest, f"wait_for {seconds} eval {quote(condition)} || {{ journalctl -b -n 40; "
                "systemctl list-jobs; exit 1; }", 2 * seconds + 30)

    def goes_down(self, name, seconds, how):
        """It ends by itself, if it runs; how many seconds of an idle machine that took"""
        allowed = Allowance(seconds)
        guest = self.lab.guests[name]
        if not guest.alive():
            return 0
        guest.begin(self.lab.job(name), f"systemctl --no-block {how}")
        while guest.alive():
            self.lab.serve(1)
            if allowed.over():
                raise Failed(f"{name} does not {how} within {seconds} s")
        self.lab.kill(name)
        return allowed.share() * seconds

    def comes_up(self, name):
        for tries in 3, 2, 1:
            allowed = Allowance(120)
            self.lab.start(name)
            guest = self.lab.guests[name]
            while not guest.ready and guest.alive() and not allowed.over():
                self.lab.serve(1)
            if guest.ready:
                guest.listens(True)
                return
            print(f"# {name} did not boot; {tries - 1} more tries", flush=True)
            self.lab.kill(name)
        raise Failed(f"{name} did not boot")

    def said(self, name):
        """Its kernel's log since the last call"""
        return self.lab.guests[name].news()

    def check_unmapped(self, log, volumes):
        """Of a shutdown: each volume was unmapped, and the network went after that"""
        network = log.find("Stopping rig-network")
        for name in volumes:
            if not 0 <= log.find(f"unmapping {name},") < network:
                raise Failed(f"{name} was not unmapped before the network went:\n{log[-6000:]}")

    def wanted(self):
        """Its steps that the environment's T names"""
        return [step for step in self.steps
                if any(fnmatch.fnmatch(step, x) for x in os.environ.get("T", "").split() or ["*"])]

    def run(self):
        """Steps one after the other, up to the first one that fails"""
        for name in self.wanted():
            start = time.monotonic()
            try:
                if self.lab is None:
                    self.boot()
                getattr(self, name)()
            except (Failed, GuestError, OSError, subprocess.CalledProcessError) as e:
                print("\n".join("# " + line for line in str(e).splitlines()))
                print(f"not ok {name.replace('_', ' ')}", flush=True)
                self.failed += 1
                return
            print(f"ok {name.replace('_', ' ')} # {time.monotonic() - start:.1f} s", flush=True)
            self.passed += 1

    def close(self):
        if self.lab:
            self.lab.close()
