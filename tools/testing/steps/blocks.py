#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0
"""Writes blocks of a disk at once, and tells later whether they are the newest.

Usage: blocks.py DEVICE NUMBER SIZE,...

Blocks have the sizes in turn.

Reads commands, a line each, and answers with a line:

	start GENERATION	all blocks are being written, each by a thread; answers at once
	wait			until they are; answers 0, or the names of errnos
	write GENERATION	start and wait
	read GENERATION		answers 0, or which blocks have which generation instead
"""

import errno
import mmap
import os
import sys
import threading


def block(generation, number, size):
    return (b"%d %d;" % (generation, number)).ljust(512, b"-") * (size // 512)


class Blocks:
    def __init__(self, device, number, sizes):
        self.fd = os.open(device, os.O_RDWR | os.O_DIRECT)
        self.number, self.sizes = number, sizes
        self.threads, self.said = [], []

    def place(self, number):
        """Size of a block, and where it is: apart from others, so that none are merged."""
        return self.sizes[number % len(self.sizes)], 2 * number * max(self.sizes)

    def one(self, generation, number):
        size, at = self.place(number)
        memory = mmap.mmap(-1, size)
        memory[:] = block(generation, number, size)
        try:
            if os.pwrite(self.fd, memory, at) != size:
                self.said.append("short")
        except OSError as e:
            self.said.append(errno.errorcode[e.errno])

    def start(self, generation):
        self.said = []
        self.threads = [threading.Thread(target=self.one, args=(generation, n))
                        for n in range(self.number)]
        for thread in self.threads:
            thread.start()
        return "0"

    def wait(self):
        for thread in self.threads:
            thread.join()
        return " ".join(sorted(self.said)) or "0"

    def write(self, generation):
        self.start(generation)
        return self.wait()

    def read(self, generation):
        wrong = []
        for number in range(self.number):
            size, at = self.place(number)
            memory = mmap.mmap(-1, size)
            os.preadv(self.fd, [memory], at)
            if memory[:] != block(generation, number, size):
                wrong.append(f"{number}:" + memory[:16].split(b" ")[0].decode("ascii", "replace"))
        return " ".join(wrong) or "0"


def main():
    blocks = Blocks(sys.argv[1], int(sys.argv[2]), [int(s) for s in sys.argv[3].split(",")])
    for line in sys.stdin:
        verb, *args = line.split()
        print(getattr(blocks, verb)(*map(int, args)), flush=True)


main()
