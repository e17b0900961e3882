# SPDX-License-Identifier: GPL-2.0
"""Guests on QEMU, with Debian's own kernel."""

import json
import os
import socket
import time

from guest import Guest, GuestError
from pace import Allowance


# TCG copies a byte at a time for "rep movsb", which these would have the kernel use.
CPU = "max,-la57,-erms,-fsrm"
# Whose seconds the guest counts: this machine's, or its own instructions, two nanoseconds
# each, whatever this machine does meanwhile. That takes a guest of one CPU.
ACCEL = {
    "wall": ["-accel", "tcg,thread=multi"],
    "instructions": ["-accel", "tcg,thread=single",
                     "-icount", "shift=1,align=off,sleep=off"],
}


class Qemu(Guest):
    terminal = "/dev/hvc0"
    qmp = None

    def start(self, memory, cpus, terminal):
        lab, env = self.lab, self.lab.env
        os.makedirs(self.share, exist_ok=True)
        sock = f"{lab.sockets}/{self.name}"
        words = [
            "console=ttyS0", "ignore_loglevel", "tsc=reliable",
            # Not left to the guest: on a busy machine it finds a half or a fifth of it.
            "tsc_early_khz=" + (env["TSC_KHZ"] if lab.clock == "wall" else "1000000"),
            "mitigations=off", "nokaslr", "oops=panic", "panic=-1", "net.ifnames=0",
            "no_timer_check", "random.trust_cpu=on", "acpi=on",
            "slub_debug=" + lab.slub_debug, *self.words(),
        ]
        share = "security_model=none,multidevs=remap"
        args = [
            "qemu-system-x86_64", "-nodefaults", "-no-reboot",
            "-display", "none",
            *ACCEL[lab.clock], "-cpu", CPU,
            "-m", str(memory), "-smp", str(cpus),
            "-kernel", env["IMAGE"], "-initrd", env["INITRD"], "-append", " ".join(words),
            "-chardev", f"file,id=con,append=on,path={self.console}",
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
        for n, path in enumerate(lab.disks.get(self.name, [])):
            args += ["-drive", f"if=none,id=disk{n},format=raw,file={path}",
                     "-device", f"virtio-blk-pci,drive=disk{n},serial=disk{n}"]
        cables = self.connect()
        for net, cable in enumerate(cables):
            args += ["-netdev", f"socket,id=net{net},fd={cable.fileno()}",
                     "-device", f"virtio-net-pci,id=nic{net},netdev=net{net},"
                     f"mac={self.mac(net)},host_mtu=9000,romfile="]
        with open(self.dir + "/qemu.log", "w") as log:
            self.spawn(args, log, terminal, pass_fds=[c.fileno() for c in cables])
        for cable in cables:
            cable.close()
        self.qmp = self.dial(sock + ".qmp")
        self.qmp_file = self.qmp.makefile("rw")
        self.qmp_file.readline()
        self.command("qmp_capabilities")
        self.agent = self.dial(sock + ".rig")
        for net, how in enumerate(self.cables()):
            if how == "off":
                self.card(net, False)

    def dial(self, path):
        allowed = Allowance(20)
        while True:
            sock = socket.socket(socket.AF_UNIX)
            try:
                sock.connect(path)
                return sock
            except OSError as e:
                sock.close()
                if self.process.poll() is not None or allowed.over():
                    with open(self.dir + "/qemu.log") as log:
                        raise GuestError("QEMU did not start: " + log.read()) from e
                time.sleep(0.02)

    def command(self, what, **arguments):
        """A command to QEMU's monitor, e.g. set_link."""
        text = json.dumps({"execute": what, "arguments": arguments})
        self.qmp_file.write(text + "\n")
        self.qmp_file.flush()
        while True:
            line = self.qmp_file.readline()
            if not line.endswith("\n"):
                raise GuestError(f"{self.name}: QEMU is gone")
            answer = json.loads(line)
            if "error" in answer:
                raise GuestError(f"{self.name}: {what}: {answer['error']['desc']}")
            if "return" in answer:
                return

    def link(self, net, how):
        if self.alive():
            self.card(net, how != "off")
        super().link(net, how)

    def card(self, net, up):
        """What the network card sees of its cable."""
        self.command("set_link", name=f"nic{net}", up=up)

    def stand_still(self, on):
        self.command("stop" if on else "cont")

    def kill(self):
        super().kill()
        if self.qmp is not None:
            self.qmp.close()
