#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0
"""Does I/O step by step and prints what each step gave: 0, or the name of an errno.

Usage: io.py DEVICE STEP...

	read:AT:LEN[:SEED[:OLD]] direct; with a seed, "differs" if it isn't what was written,
				or was there before, where a write has failed
	write:AT:LEN:SEED	direct, from pages that don't lie side by side
	dsync:AT:LEN:SEED	the same, and durable: in a file that has the blocks, with FUA
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


def views(size):
    """Pages that hold the size, no two of which are neighbours in the machine."""
    memory = memoryview(mmap.mmap(-1, size + PAGE))
    parts = [memory[at:at + min(PAGE, size - at)] for at in range(0, size, PAGE)]
    for first in range(16):
        for part in parts[first::16]:
            part[0] = 0     # now it gets its page
    return parts


def pattern(seed, at, size):
    """Each sector has the seed and its number in it."""
    return b"".join(
        (b"%s %d;" % (seed.encode(), n)).ljust(SECTOR, b"-")
        for n in range(at // SECTOR, (at + size) // SECTOR))


FAILED = []     # writes: first byte, and the one after the last


def may_be(data, at, seed, old):
    """Can this be there? Each sector of a write that failed is new or old."""
    new = pattern(seed, at, len(data))
    if data == new:
        return True
    if not any(at < end and start < at + len(data) for start, end in FAILED):
        return False
    before = pattern(old, at, len(data))
    return all(data[i:i + SECTOR] in (new[i:i + SECTOR], before[i:i + SECTOR])
               for i in range(0, len(data), SECTOR))


def read(fd, at, size, seed=None, old=""):
    parts = views(size)
    done = 0
    # One call takes at most 1024 parts.
    for i in range(0, len(parts), 1024):
        done += os.preadv(fd, parts[i:i + 1024], at + i * PAGE)
    if done != size:
        return "short"
    return 0 if not seed or may_be(b"".join(parts), at, seed, old) else "differs"


def write(fd, at, size, seed, flags=0):
    data = pattern(seed, at, size)
    parts = views(size)
    done = 0
    for i, part in enumerate(parts):
        part[:] = data[i * PAGE:i * PAGE + len(part)]
    try:
        for i in range(0, len(parts), 1024):
            done += os.pwritev(fd, parts[i:i + 1024], at + i * PAGE, flags)
    except OSError:
        FAILED.append((at, at + size))
        raise
    return 0 if done == size else "short"


def step(direct, cached, what):
    verb, *args = what.split(":")
    at, size = (number(a) for a in args[:2]) if args else (0, 0)
    if verb == "read":
        return read(direct, at, size, *args[2:])
    if verb == "write":
        return write(direct, at, size, args[2])
    if verb == "dsync":
        return write(direct, at, size, args[2], os.RWF_DSYNC)
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
