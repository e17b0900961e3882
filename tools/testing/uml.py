# SPDX-License-Identifier: GPL-2.0
"""Guests as User Mode Linux, with the debug kernel."""

import os
import selectors
import socket
import threading

from guest import Guest, NETS


class Uml(Guest):
    terminal = "/dev/tty1"

    def start(self, memory, cpus, terminal):
        """A UML kernel has one CPU, whatever is asked for."""
        lab, env = self.lab, self.lab.env
        os.makedirs(self.share)
        self.agent, theirs = socket.socketpair()
        pass_on = [theirs]
        args = [
            env["DIR"] + "/linux-uml", f"mem={memory}M", "rootfstype=hostfs",
            "rootflags=/", "ro", f"init={os.path.dirname(__file__)}/guest/init-uml",
            f"umid={self.name}", f"uml_dir={lab.sockets}", "con=null",
            "con0=fd:0,fd:1" if not terminal else "con0=null",
            f"ssl0=fd:{theirs.fileno()}", "ignore_loglevel", "rig.port=ttyS0",
            "dummy.numdummies=0", "raid=noautodetect",
            "random.trust_cpu=on", *self.words(),
        ]
        if terminal:
            args.append("con1=fd:0,fd:1")
        if lab.hub:
            for net in range(NETS):
                nic = lab.hub.theirs[net][self.number]
                pass_on.append(nic)
                mac = f"52:54:00:00:{net:02x}:{self.number + 1:02x}"
                args.append(f"vec{net}:transport=fd,fd={nic.fileno()},mac={mac},"
                            "mtu=9000,vec=0")
        # The guest's memory is a file, best on a tmpfs that has room for it.
        shm = os.statvfs("/dev/shm")
        roomy = shm.f_bavail * shm.f_frsize > 2 * memory << 20
        with open(self.console, "w") as log:
            self.spawn(args, log, terminal, pass_fds=[s.fileno() for s in pass_on],
                       env={**os.environ, "TMPDIR": "/dev/shm" if roomy else "/tmp"})
        for sock in pass_on:
            sock.close()

    def link(self, net, up):
        """Plug or pull a network cable."""
        self.lab.hub.plugged[net][self.number] = up
        return ""


class Hub:
    """Networks: passes each frame on to all other guests that are plugged in."""

    def __init__(self, guests, nets):
        self.theirs, self.plugged, self.ours = [], [], []
        self.stopped, self.stop = socket.socketpair()
        for _ in range(nets):
            pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                     for _ in range(guests)]
            for pair in pairs:
                for end in pair:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
            self.ours.append([a for a, _ in pairs])
            self.theirs.append([b for _, b in pairs])
            self.plugged.append([True] * guests)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        poll = selectors.DefaultSelector()
        poll.register(self.stopped, selectors.EVENT_READ)
        for net, ports in enumerate(self.ours):
            for number, port in enumerate(ports):
                poll.register(port, selectors.EVENT_READ, (net, number))
        while True:
            for key, _ in poll.select():
                if key.fileobj is self.stopped:
                    return
                if not self.forward(*key.data):
                    poll.unregister(key.fileobj)

    def forward(self, net, number):
        """A frame; false when the guest is gone."""
        try:
            frame = self.ours[net][number].recv(65536)
        except OSError:
            frame = b""
        if not frame:
            return False
        if self.plugged[net][number]:
            for other, port in enumerate(self.ours[net]):
                if other != number and self.plugged[net][other]:
                    try:
                        port.send(frame)
                    except OSError:
                        pass
        return True

    def close(self):
        self.stop.close()
        for port in sum(self.ours, []):
            port.close()
