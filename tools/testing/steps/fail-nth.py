#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0
"""Does something again and again, with one of the kernel's allocations for it failing.

Usage: fail-nth.py FIRST STEP MOST WHAT ARGUMENT

WHAT:	map TEXT	write the text to map_device; what gets mapped is unmapped
	open DEVICE	and close it
	read DEVICE	1 MB, past the page cache
	write DEVICE	the same
	buffered DEVICE	write 64 KB, and fsync

The Nth allocation that this task makes fails (or what else fault injection counts),
with N from FIRST to MOST by STEP, until there's no Nth one. The last line of what is
printed is "end N"; before it a line for each result that there was: an errno's name or
0, and how often.
"""

import errno
import mmap
import os
import sys

CTL = "/sys/class/rnbd-client/ctl/"
MEMORY = mmap.mmap(-1, 1 << 20)


def put(path, text):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


def unmap():
    for link in os.listdir(CTL + "devices"):
        put(f"{CTL}devices/{link}/rnbd/unmap_device", b"normal")


class Job:
    """What is to be done; begin() and end() have all allocations that they need."""

    def __init__(self, what, argument):
        self.what, self.argument = what, argument
        self.fd = None
        if what == "map":
            self.text = argument.encode() + b"\n"
            self.fd = os.open(CTL + "map_device", os.O_WRONLY)
        elif what == "buffered":
            self.fd = os.open(argument, os.O_RDWR)
        elif what != "open":
            self.fd = os.open(argument, os.O_RDWR | os.O_DIRECT)

    def do(self):
        if self.what == "map":
            os.write(self.fd, self.text)
        elif self.what == "open":
            os.close(os.open(self.argument, os.O_RDWR | os.O_EXCL))
        elif self.what == "read":
            os.preadv(self.fd, [MEMORY], 0)
        elif self.what == "write":
            os.pwritev(self.fd, [MEMORY], 0)
        else:
            os.pwrite(self.fd, memoryview(MEMORY)[:65536], 0)
            os.fsync(self.fd)

    def undo(self, done):
        if self.what == "map" and done:
            unmap()


def main():
    first, step, most = (int(a) for a in sys.argv[1:4])
    job = Job(*sys.argv[4:6])
    nth = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
    results, n = {}, first
    MEMORY[:] = b"x" * len(MEMORY)
    while n <= most:
        said, text = "0", b"%d" % n
        os.write(nth, text)
        try:
            job.do()
        except OSError as e:
            said = errno.errorcode.get(e.errno, str(e.errno))
        left = os.pread(nth, 20, 0).split(b"\0")[0].strip()
        os.pwrite(nth, b"0", 0)
        job.undo(said == "0")
        if left != b"0":
            break
        results[said] = results.get(said, 0) + 1
        n += step
    for result, count in sorted(results.items()):
        print(result, count)
    print("end", n)
    sys.exit(0 if n > most or said == "0" else f"without a failure: {said}")


main()
