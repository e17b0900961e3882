# SPDX-License-Identifier: GPL-2.0
"""The networks between guests of any kind."""

import queue
import selectors
import socket
import struct
import threading


class Hub:
    """Passes each frame on to all other guests on its network, in the order they came.

    A thread of its own does so, and what others ask it for. (QEMU has hubs, too, but in
    its version 7.2 a frame can overtake another one there that waits for a slow guest.)
    """

    def __init__(self, guests, nets):
        self.ports = [[None] * guests for _ in range(nets)]
        self.cables = [["on"] * guests for _ in range(nets)]
        self.held = [[[] for _ in range(guests)] for _ in range(nets)]
        self.awaited = [False] * guests
        self.poll = selectors.DefaultSelector()
        self.asked, self.done = queue.SimpleQueue(), queue.SimpleQueue()
        self.woken, self.wake = socket.socketpair()
        self.poll.register(self.woken, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def ask(self, *what):
        """Returns when it is done."""
        self.asked.put(what)
        self.wake.send(b"x")
        self.done.get()

    def connect(self, net, number):
        """A new cable for a guest that is about to start: its end of it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end in ours, theirs:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 5, 0))
        self.ask(self.new_port, net, number, ours)
        return theirs

    def set(self, net, number, how):
        """What becomes of a cable, as lib.sh has it."""
        self.ask(self.new_state, net, number, how)

    def wait_for(self, number, on):
        """Whether frames wait for this guest to read those before, or get lost then."""
        self.ask(self.new_patience, number, on)

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
                if what:
                    what(*args)
                self.done.put(None)
                if not what:
                    return

    def new_port(self, net, number, port):
        old, self.ports[net][number] = self.ports[net][number], port
        if old:
            self.poll.unregister(old)
            old.close()
        self.poll.register(port, selectors.EVENT_READ, (net, number))

    def new_state(self, net, number, how):
        self.cables[net][number] = how
        held, self.held[net][number] = self.held[net][number], []
        for frame in held if how == "on" else []:
            self.forward(net, number, frame)

    def new_patience(self, number, on):
        self.awaited[number] = on

    def receive(self, net, number):
        try:
            frame = self.ports[net][number].recv(65536, socket.MSG_DONTWAIT)
        except OSError:
            return
        if self.cables[net][number] == "hold":
            self.held[net][number].append(frame)
        elif self.cables[net][number] == "on":
            self.forward(net, number, frame)

    def forward(self, net, number, frame):
        for other, port in enumerate(self.ports[net]):
            if other != number and port and self.cables[net][other] in ("on", "hold"):
                try:
                    port.send(frame, 0 if self.awaited[other] else socket.MSG_DONTWAIT)
                except OSError:
                    pass
