# SPDX-License-Identifier: GPL-2.0
"""Measures how slow this machine is at the moment, to scale time limits.

A thread packs the same text again and again and looks at the clock. All that makes
guests slow makes that slow: old processors, other work, a host that gives little.
"""

import collections
import math
import threading
import time
import zlib

# Seconds for compressing TEXT on an idle machine of the kind that limits were chosen on
TEXT = b"".join(b"%d " % (n * n * n % 9973) for n in range(120000))
USUAL = 0.05
EVERY = 3
SAMPLES = 5


class Pace:
    """slowness is 1 on such a machine, 3 on one that is three times slower."""

    def __init__(self):
        self.samples = collections.deque(maxlen=SAMPLES)
        self.thread = None
        self.slowness = 1.0
        self.sum = self.count = 0

    def follow(self):
        """From now on; the first look is taken before this returns."""
        if self.thread is None:
            self.look()
            self.thread = threading.Thread(target=self.run, daemon=True)
            self.thread.start()

    def run(self):
        while True:
            time.sleep(EVERY)
            self.look()

    def look(self):
        start = time.monotonic()
        zlib.compress(TEXT, 6)
        taken = (time.monotonic() - start) / USUAL
        self.samples.append(taken)
        self.sum, self.count = self.sum + taken, self.count + 1
        self.slowness = max(1.0, sum(self.samples) / len(self.samples))

    def mark(self):
        """The time from which mean() is to count"""
        return self.sum, self.count

    def mean(self, since=(0, 0)):
        """Of all the time since mark(), or since follow()"""
        if self.count == since[1]:
            return self.slowness
        return (self.sum - since[0]) / (self.count - since[1])

    def whole(self):
        """As shell scripts can reckon with it."""
        return math.ceil(self.slowness)


PACE = Pace()


class Allowance:
    """A time limit in seconds of a fast machine"""

    def __init__(self, seconds):
        PACE.follow()
        self.seconds, self.used = seconds, 0.0
        self.last = time.monotonic()

    def share(self):
        """The used share of the time; more than 1 if it is over"""
        now = time.monotonic()
        self.used += (now - self.last) / PACE.slowness
        self.last = now
        return self.used / self.seconds

    def over(self):
        return self.share() > 1
