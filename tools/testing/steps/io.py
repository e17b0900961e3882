#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0
"""Does I/O step by step and prints what each step gave: 0, or the name of an errno.

Usage: io.py DEVICE STEP...

	read:AT:LEN[:SEED]	direct; with a seed, "differs" if it isn't what was written
	write:AT:LEN:SEED	direct, from pages that don't lie side by side
	buffered:AT:LEN:SEED	into the page cache
	fsync			what the page cache holds, then a flush
	discard:AT:LEN, zeroes:AT:LEN

Numbers may end in k or m.
"""

import errno
import fcntl
import mmap
import os
import struct
import sys

BLKDISCARD, BLKZEROOUT = 0x1277, 0x127f
PAGE, SECTOR = mmap.PAGESIZE, 512


def number(text):
    return int(text.rstrip("km")) << {"k": 10, "m": 20}.get(text[-1], 0)


def views(memory, size):
    """Every other page, as many as hold the size."""
    return [memory[2 * at:2 * at + min(PAGE, size - at)] for at in range(0, size, PAGE)]


def pattern(seed, at, size):
    """Each sector has the seed and its number in it."""
    return b"".join(
        (b"%s %d;" % (seed.encode(), n)).ljust(SECTOR, b"-")
        for n in range(at // SECTOR, (at + size) // SECTOR))


def read(fd, at, size, seed=None):
    parts = views(memoryview(mmap.mmap(-1, 2 * size + PAGE)), size)
    done = 0
    # One call takes at most 1024 parts.
    for i in range(0, len(parts), 1024):
        done += os.preadv(fd, parts[i:i + 1024], at + i * PAGE)
    if done != size:
        return "short"
    return 0 if not seed or b"".join(parts) == pattern(seed, at, size) else "differs"


def write(fd, at, size, seed):
    data = pattern(seed, at, size)
    parts = views(memoryview(mmap.mmap(-1, 2 * size + PAGE)), size)
    done = 0
    for i, part in enumerate(parts):
        part[:] = data[i * PAGE:i * PAGE + len(part)]
    for i in range(0, len(parts), 1024):
        done += os.pwritev(fd, parts[i:i + 1024], at + i * PAGE)
    return 0 if done == size else "short"


def step(direct, cached, what):
    verb, *args = what.split(":")
    at, size = (number(a) for a in args[:2]) if args else (0, 0)
    if verb == "read":
        return read(direct, at, size, *args[2:])
    if verb == "write":
        return write(direct, at, size, args[2])
    if verb == "buffered":
        return write(cached, at, size, args[2])
    if verb == "fsync":
        os.fsync(cached)
    elif verb == "discard":
        fcntl.ioctl(cached, BLKDISCARD, struct.pack("QQ", at, size))
    elif verb == "zeroes":
        fcntl.ioctl(cached, BLKZEROOUT, struct.pack("QQ", at, size))
    else:
        sys.exit(f"io.py: what is {what}?")
    return 0


def main():
    direct = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
    cached = os.open(sys.argv[1], os.O_RDWR)
    said = []
    for what in sys.argv[2:]:
        try:
            said.append(str(step(direct, cached, what)))
        except OSError as e:
            said.append(errno.errorcode[e.errno])
    print(*said)


main()
