# SPDX-License-Identifier: GPL-2.0
"""Guests on QEMU, with Debian's own kernel."""

import json
import os
import socket
import time

from guest import Guest, GuestError, NETS


class Qemu(Guest):
    terminal = "/dev/hvc0"
    qmp = None

    def start(self, memory, cpus, terminal):
        lab, env = self.lab, self.lab.env
        os.makedirs(self.share)
        sock = f"{lab.sockets}/{self.name}"
        words = [
            "console=ttyS0", "ignore_loglevel", "tsc=reliable",
            "mitigations=off", "nokaslr", "panic=-1", "net.ifnames=0",
            "no_timer_check", "random.trust_cpu=on", "acpi=on",
            "slub_debug=" + lab.slub_debug, *self.words(),
        ]
        share = "security_model=none,multidevs=remap"
        args = [
            "qemu-system-x86_64", "-nodefaults", "-no-reboot",
            "-display", "none",
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
            self.spawn(args, log, terminal)
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
                if self.process.poll() is not None or time.monotonic() > end:
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


    def link(self, net, up):
        """Plug or pull a network cable; what was wrong, or nothing."""
        got = self.command("set_link", name=f"nic{net}", up=up)
        return str(got) if "error" in got else ""

    def kill(self):
        super().kill()
        if self.qmp is not None:
            self.qmp.close()
