# SPDX-License-Identifier: GPL-2.0
"""The networks between guests of any kind."""

import contextlib
import queue
import selectors
import socket
import struct
import threading


# Longest frame of a network whose MTU is 1500
SHORT = 1514


def connection_request(frame):
    """The transaction ID of a connection request over soft-RoCE and IPv4; None: it is none."""
    mad = frame[62:]    # behind the headers: Ethernet 14, IPv4 20, UDP 8, BTH 12, DETH 8 bytes
    if frame[12:14] == b"\x08\x00" and frame[36:38] == struct.pack(">H", 4791) and \
            mad[1:2] == b"\x07" and mad[16:18] == b"\x00\x10":
        return mad[8:16]
    return None


class Hub:
    """Passes each frame on to all other guests on its network, in the order they came.

    A thread of its own does so, and what others ask it for. (QEMU has hubs, too, but in
    its version 7.2 a frame can overtake another one there that waits for a slow guest.)
    """

    def __init__(self, guests, nets):
        self.ports = [[None] * guests for _ in range(nets)]
        self.cables = [["on"] * guests for _ in range(nets)]
        self.held = [[[] for _ in range(guests)] for _ in range(nets)]
        self.stale = [[None] * guests for _ in range(nets)]
        self.listening = [False] * guests
        self.running = True
        self.poll = selectors.DefaultSelector()
        self.asked, self.done = queue.SimpleQueue(), queue.SimpleQueue()
        self.woken, self.wake = socket.socketpair()
        self.poll.register(self.woken, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def ask(self, what, *args):
        """Returns when the command has been executed."""
        self.asked.put((what, args))
        self.wake.send(b"x")
        if error := self.done.get():
            raise error

    def connect(self, net, number):
        """A new cable for a guest that is about to start; returns the guest's end."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end in ours, theirs:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 5, 0))
        self.ask(self.new_port, net, number, ours)
        return theirs

    def set(self, net, number, how):
        """Change a cable, as set_link in lib.sh."""
        self.ask(self.new_state, net, number, how)

    def listens(self, number, on):
        """Whether this guest gets frames, which wait until it has read those before. To
        one that doesn't listen they are lost; so it is with a new cable.
        """
        self.ask(self.new_listener, number, on)

    def close(self):
        self.ask(self.stop)
        self.thread.join()
        self.poll.close()
        self.wake.close()
        self.woken.close()
        for port in sum(self.ports, []):
            if port:
                port.close()

    # ---- in the thread ----

    def run(self):
        while self.running:
            for key, _ in self.poll.select():
                if key.fileobj is self.woken:
                    self.asked_for()
                elif key.fileobj.fileno() >= 0:
                    self.receive(*key.data)

    def asked_for(self):
        self.woken.recv(1)
        what, args = self.asked.get()
        error = None
        try:
            what(*args)
        except Exception as e:  # for who asked
            error = e
        self.done.put(error)

    def stop(self):
        self.running = False

    def new_port(self, net, number, port):
        self.listening[number] = False
        old, self.ports[net][number] = self.ports[net][number], port
        if old:
            self.poll.unregister(old)
            old.close()
        self.poll.register(port, selectors.EVENT_READ, (net, number))

    def new_state(self, net, number, how):
        self.cables[net][number] = how
        self.stale[net][number] = None
        if how == "hold":
            return
        held, self.held[net][number] = self.held[net][number], []
        for frame in held if how == "on" else []:
            self.forward(net, number, frame)

    def new_listener(self, number, on):
        self.listening[number] = on

    def receive(self, net, number):
        try:
            frame = self.ports[net][number].recv(65536, socket.MSG_DONTWAIT)
        except OSError:
            return
        if self.cables[net][number] == "hold":
            self.held[net][number].append(frame)
        elif self.passes(net, number, frame) and not self.is_stale(net, number, frame):
            self.forward(net, number, frame)

    def passes(self, net, number, frame):
        how = self.cables[net][number]
        return how in ("on", "hold", "stale") or how == "short" and len(frame) <= SHORT

    def is_stale(self, net, number, frame):
        """Whether a guest sends the connection request that a stale cable loses"""
        request = connection_request(frame)
        if self.cables[net][number] != "stale" or not request:
            return False
        self.stale[net][number] = self.stale[net][number] or request
        return request == self.stale[net][number]

    def forward(self, net, number, frame):
        for other, port in enumerate(self.ports[net]):
            if other == number or not self.listening[other] or \
                    not self.passes(net, other, frame):
                continue
            try:
                port.send(frame)
            except BlockingIOError:
                with contextlib.suppress(OSError):
                    print(f"# guest {other} reads nothing from network {net}: "
                          "a frame is lost", flush=True)
            except OSError:
                pass    # its power is gone
