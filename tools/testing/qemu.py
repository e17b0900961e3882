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
        os.makedirs(self.share, exist_ok=True)
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
        args += self.network()
        with open(self.dir + "/qemu.log", "w") as log:
            self.spawn(args, log, terminal)
        self.qmp = self.connect(sock + ".qmp")
        self.qmp_file = self.qmp.makefile("rw")
        self.qmp_file.readline()
        self.command("qmp_capabilities")
        self.agent = self.connect(sock + ".rig")

    def hub(self):
        """The guest that has the networks' hubs: the one that tests run in, and that
        lives as long as they do. What is done to a cable is done there.
        """
        return self.lab.guests[self.lab.names[1]]

    def others(self):
        return [n for n in self.lab.names if n != self.name]

    def network(self):
        """The hub's end of each network has all the others on it."""
        if len(self.lab.names) < 2:
            return []
        args = []
        for net in range(NETS):
            end = f"{self.lab.sockets}/net{net}-"
            if self.hub() is self:
                args += ["-netdev", f"hubport,id=net{net},hubid={net}"]
                for other in self.others():
                    args += ["-netdev", f"stream,id=to{net}{other},server=on,"
                             f"addr.type=unix,addr.path={end}{other}",
                             "-netdev", f"hubport,id=hub{net}{other},"
                             f"hubid={net},netdev=to{net}{other}"]
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

    def command(self, what, **arguments):
        """A command to QEMU's monitor, e.g. set_link."""
        text = json.dumps({"execute": what, "arguments": arguments})
        self.qmp_file.write(text + "\n")
        self.qmp_file.flush()
        while True:
            line = self.qmp_file.readline()
            if not line:
                raise GuestError(f"{self.name}: QEMU is gone")
            answer = json.loads(line)
            if "return" in answer or "error" in answer:
                return answer

    def link(self, net, how):
        """A network cable: as lib.sh has it. What was wrong, or nothing."""
        hub, before, self.cable[net] = self.hub(), self.cable[net], how
        if how == before:
            return ""
        # Cables that end in the hub, and which way on them is the one from this guest.
        cables, way = ([f"to{net}{other}" for other in self.others()], "rx") \
            if hub is self else ([f"to{net}{self.name}"], "tx")
        todo = []
        if "off" in (before, how):
            todo.append((self, "set_link", {"name": f"nic{net}", "up": how != "off"}))
        for cable in cables:
            if "silent" in (before, how):
                todo.append((hub, "set_link", {"name": cable, "up": how != "silent"}))
            if how == "hold":
                # It holds frames up for so many microseconds, or until it goes.
                todo.append((hub, "object-add", {
                    "qom-type": "filter-buffer", "id": "hold-" + cable,
                    "netdev": cable, "queue": way, "interval": 10 ** 9}))
            if before == "hold":
                todo.append((hub, "object-del", {"id": "hold-" + cable}))
        answers = [guest.command(what, **arguments) for guest, what, arguments in todo]
        return "".join(f"{x}\n" for x in answers if "error" in x)

    def plug(self, on):
        """The hub's sockets block: a guest that doesn't read its frames, as it is
        frozen or its network card isn't up, would stop the hub's whole machine.
        """
        hub = self.hub() if len(self.lab.names) > 1 else self
        if hub is self or not hub.alive():
            return
        for net in range(NETS):
            # Not the socket, as a new connection brings the link of that up.
            hub.command("set_link", name=f"hub{net}{self.name}", up=on)

    def freeze(self, on):
        if on:
            self.plug(False)
        self.command("stop" if on else "cont")
        if not on:
            self.plug(True)

    def kill(self):
        super().kill()
        # What was done in the hub stays, the new one's network card is plugged in.
        self.cable = ["on" if how == "off" else how for how in self.cable]
        if self.qmp is not None:
            self.qmp.close()
