#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints what a file of sysfs shows, and again each time that poll(2) tells of a change."""

import os
import select
import sys

fd = os.open(sys.argv[1], os.O_RDONLY)
poller = select.poll()
poller.register(fd, select.POLLPRI)
try:
    while True:
        print(os.pread(fd, 4096, 0).decode().strip(), flush=True)
        poller.poll()
except OSError:
    print("gone", flush=True)
