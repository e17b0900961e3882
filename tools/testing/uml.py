# SPDX-License-Identifier: GPL-2.0
"""Guests as User Mode Linux, with the debug kernel."""

import os
import queue
import selectors
import signal
import socket
import struct
import threading

from guest import Guest, NETS


class Uml(Guest):
    terminal = "/dev/tty1"

    def start(self, memory, cpus, terminal):
        """A UML kernel has one CPU, whatever is asked for."""
        lab, env = self.lab, self.lab.env
        os.makedirs(self.share, exist_ok=True)
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
                nic = lab.hub.plug(net, self.number)
                pass_on.append(nic)
                mac = f"52:54:00:00:{net:02x}:{self.number + 1:02x}"
                args.append(f"vec{net}:transport=fd,fd={nic.fileno()},mac={mac},"
                            "mtu=9000,vec=0")
        # The guest's memory is a file, best on a tmpfs that has room for it.
        shm = os.statvfs("/dev/shm")
        roomy = shm.f_bavail * shm.f_frsize > 2 * memory << 20
        with open(self.console, "a") as log:
            self.spawn(args, log, terminal, pass_fds=[s.fileno() for s in pass_on],
                       env={**os.environ, "TMPDIR": "/dev/shm" if roomy else "/tmp"})
        for sock in pass_on:
            sock.close()

    def link(self, net, how):
        """A network cable: as lib.sh has it. Off is as silent as silent is here."""
        self.cable[net] = how
        self.lab.hub.set(net, self.number, how)
        return ""

    def freeze(self, on):
        """The kernel's process alone: those of user space do nothing without it."""
        if self.lab.hub:
            self.lab.hub.freeze(self.number, on)
        os.kill(self.process.pid, signal.SIGSTOP if on else signal.SIGCONT)


class Hub:
    """Networks: passes each frame on to all other guests that are plugged in.

    A thread of its own does so; others ask it for changes by its queue.
    """

    def __init__(self, guests, nets):
        self.ports = [[None] * guests for _ in range(nets)]
        self.cables = [["on"] * guests for _ in range(nets)]
        self.held = [[[] for _ in range(guests)] for _ in range(nets)]
        self.frozen = [False] * guests
        self.poll = selectors.DefaultSelector()
        self.asked = queue.SimpleQueue()
        self.woken, self.wake = socket.socketpair()
        self.poll.register(self.woken, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def ask(self, *what):
        self.asked.put(what)
        self.wake.send(b"x")

    def plug(self, net, number):
        """A new cable for a guest that is about to start: its end of it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in ours, theirs:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 5, 0))
        self.ask(self.new_port, net, number, ours)
        return theirs

    def set(self, net, number, how):
        self.ask(self.new_state, net, number, how)

    def freeze(self, number, on):
        self.ask(self.new_frost, number, on)

    def close(self):
        self.ask(None)
        self.thread.join()
        self.wake.close()
        self.woken.close()
        for port in sum(self.ports, []):
            if port:
                port.close()

    # From here on: the thread

    def run(self):
        while True:
            for key, _ in self.poll.select():
                if key.fileobj is not self.woken:
                    if key.fileobj.fileno() >= 0:
                        self.receive(*key.data)
                    continue
                self.woken.recv(1)
                what, *args = self.asked.get()
                if not what:
                    return
                what(*args)

    def new_port(self, net, number, port):
        self.no_port(net, number)
        self.frozen[number] = False
        self.ports[net][number] = port
        self.poll.register(port, selectors.EVENT_READ, (net, number))

    def no_port(self, net, number):
        old, self.ports[net][number] = self.ports[net][number], None
        if old:
            self.poll.unregister(old)
            old.close()

    def new_state(self, net, number, how):
        self.cables[net][number] = how
        held, self.held[net][number] = self.held[net][number], []
        for frame in held if how == "on" else []:
            self.forward(net, number, frame)

    def new_frost(self, number, on):
        self.frozen[number] = on

    def receive(self, net, number):
        try:
            frame = self.ports[net][number].recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            frame = b""
        if not frame:
            self.no_port(net, number)
        elif self.cables[net][number] == "hold":
            self.held[net][number].append(frame)
        elif self.cables[net][number] == "on":
            self.forward(net, number, frame)

    def forward(self, net, number, frame):
        """A guest that has no room is waited for, but not one that is frozen."""
        for other, port in enumerate(self.ports[net]):
            if other != number and port and self.cables[net][other] in ("on", "hold"):
                try:
                    port.send(frame, socket.MSG_DONTWAIT if self.frozen[other] else 0)
                except OSError:
                    pass
