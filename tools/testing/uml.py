# SPDX-License-Identifier: GPL-2.0
"""Guests as User Mode Linux, with the debug kernel."""

import os
import signal
import socket

from guest import Guest


class Uml(Guest):
    terminal = "/dev/tty1"

    def start(self, memory, cpus, terminal):
        lab, env = self.lab, self.lab.env
        os.makedirs(self.share, exist_ok=True)
        self.agent, theirs = socket.socketpair()
        pass_on = [theirs]
        args = [
            env["IMAGE"], f"mem={memory}M", "rootfstype=hostfs",
            "rootflags=/", "ro", f"init={os.path.dirname(__file__)}/guest/init-uml",
            f"umid={self.name}", f"uml_dir={lab.sockets}", "con=null",
            "con0=fd:0,fd:1" if not terminal else "con0=null",
            f"ssl0=fd:{theirs.fileno()}", "ignore_loglevel", "rig.port=ttyS0",
            "dummy.numdummies=0", "raid=noautodetect",
            "random.trust_cpu=on", "seccomp=on", f"ncpus={cpus}",
            *self.words(),
        ]
        if terminal:
            args.append("con1=fd:0,fd:1")
        for net, cable in enumerate(self.connect()):
            pass_on.append(cable)
            args.append(f"vec{net}:transport=fd,fd={cable.fileno()},mac={self.mac(net)},"
                        "mtu=9000,vec=0")
        # The guest's memory is a file, best on a tmpfs that has room for it.
        shm = os.statvfs("/dev/shm")
        roomy = shm.f_bavail * shm.f_frsize > 2 * memory << 20
        with open(self.console, "a") as log:
            self.spawn(args, log, terminal, pass_fds=[s.fileno() for s in pass_on],
                       env={**os.environ, "TMPDIR": "/dev/shm" if roomy else "/tmp"})
        for sock in pass_on:
            sock.close()

    def stand_still(self, on):
        """The kernel's process: user space does not run without it."""
        os.kill(self.process.pid, signal.SIGSTOP if on else signal.SIGCONT)
