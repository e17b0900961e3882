#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Vectored direct I/O from odd places in memory, checked against a copy.

Usage: pieces.py DEVICE ROUNDS
"""

import mmap
import os
import random
import sys

SECTOR, SPAN, MOST = 512, 4 << 20, 1 << 20


def pieces(memory, total, rnd):
    """Views of memory, total bytes in all: pieces of a few sectors with gaps between."""
    views, at, largest = [], 0, rnd.choice((1, 4, 8, 64, 2048))
    while total and len(views) < 1000:
        at += SECTOR * rnd.choice((0, 0, 1, 3, 7))
        size = min(total, SECTOR * rnd.randint(1, largest))
        views.append(memory[at:at + size])
        at, total = at + size, total - size
    return views


def main():
    device, rounds = sys.argv[1], int(sys.argv[2])
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"# seed {seed}")
    rnd = random.Random(seed)
    fd = os.open(device, os.O_RDWR | os.O_DIRECT)
    memory = memoryview(mmap.mmap(-1, 16 << 20))
    # Touched in no order, neighbours in memory are none in the machine's: many segments.
    for page in rnd.sample(range(len(memory) // mmap.PAGESIZE), len(memory) // mmap.PAGESIZE):
        memory[page * mmap.PAGESIZE] = 0
    copy = bytearray(SPAN)
    os.pwritev(fd, [memory[:SPAN]], 0)
    for _ in range(rounds):
        total = SECTOR * rnd.randint(1, rnd.choice((8, 64, MOST // SECTOR)))
        at = SECTOR * rnd.randrange((SPAN - total) // SECTOR + 1)
        views = pieces(memory, total, rnd)
        total = sum(len(v) for v in views)
        data = b""
        for view in views:
            view[:] = rnd.randbytes(len(view))
            data += view
        if os.pwritev(fd, views, at) != total:
            sys.exit(f"short write: {total} bytes at {at}")
        copy[at:at + total] = data

        total = SECTOR * rnd.randint(1, rnd.choice((8, 64, MOST // SECTOR)))
        at = SECTOR * rnd.randrange((SPAN - total) // SECTOR + 1)
        views = pieces(memory, total, rnd)
        total = sum(len(v) for v in views)
        if os.preadv(fd, views, at) != total:
            sys.exit(f"short read: {total} bytes at {at}")
        if b"".join(views) != copy[at:at + total]:
            sys.exit(f"read something else: {total} bytes at {at}, "
                     f"{len(views)} pieces")
    os.preadv(fd, [memory[:SPAN]], 0)
    if memory[:SPAN] != copy:
        sys.exit("the end result differs")


main()
