#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0
"""Prints how far the machine of counter.S has counted on a disk; it stands still meanwhile.

Usage: counter.py DEVICE

Fails if one of the last 256 numbers is missing, or was overwritten by an older one, or if the
machine has found that of one before.
"""

import mmap
import os
import struct
import sys

SECTOR, SECTORS = 512, 256


def numbers(disk):
    memory = mmap.mmap(-1, (2 + SECTORS) * SECTOR)
    done = os.preadv(os.open(disk, os.O_RDONLY | os.O_DIRECT), [memory], 0)
    if done != len(memory):
        sys.exit(f"counter.py: {done} bytes read")
    there, after = struct.unpack("<2I", memory[-SECTOR:][:8])
    if after:
        sys.exit(f"counter.py: the machine found {there} where it had written {after - SECTORS}")
    for at in range(SECTOR, (1 + SECTORS) * SECTOR, SECTOR):
        words = set(struct.unpack("<128I", memory[at:at + SECTOR]))
        if len(words) > 1:
            sys.exit(f"counter.py: sector {at // SECTOR} has {words}")
        yield words.pop()


def main():
    found = list(numbers(sys.argv[1]))
    last = max(found)
    for n in range(max(1, last - SECTORS + 1), last + 1):
        if found[n % SECTORS] != n:
            sys.exit(f"counter.py: {found[n % SECTORS]} where {n} was written, before {last}")
    print(last)


main()
