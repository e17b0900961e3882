# SPDX-License-Identifier: GPL-2.0
"""A script that runs in several guests at the same time."""

import unittest
from unittest import mock

import guests


class FakeGuest:
    def __init__(self, name):
        self.name, self.done, self.began, self.sent = name, {}, [], []

    def alive(self):
        return True

    def begin(self, job, _script):
        self.began.append(job)

    def output(self, job):
        return f"{self.name} {job}"

    def send(self, text):
        self.sent.append(text)


class FakeAllowance:
    """Over after some looks."""

    def __init__(self, looks):
        self.looks = looks

    def over(self):
        self.looks -= 1
        return self.looks < 0


class RunOn(unittest.TestCase):
    def lab(self, served):
        """A lab whose guests say in this order that their script has ended."""
        lab = guests.Lab.__new__(guests.Lab)
        lab.counter = 0
        lab.guests = {n: FakeGuest(n) for n in ("server", "client", "client2")}
        lab.began_when_served = []

        def serve(_):
            lab.began_when_served.append([n for n, g in lab.guests.items() if g.began])
            if served:
                name, code = served.pop(0)
                lab.guests[name].done[lab.guests[name].began[0]] = code
        lab.serve = serve
        return lab

    def run_on(self, lab, looks):
        with mock.patch("guests.Allowance", lambda _: FakeAllowance(looks)):
            return lab.run_on(["server", "client"], "script", 10, "end")

    def test_all_begin_before_one_ends(self):
        lab = self.lab([("client", 0), ("server", 3)])
        self.assertEqual(self.run_on(lab, 9), {"server": (3, "server 0001-end"),
                                               "client": (0, "client 0002-end")})
        self.assertEqual(lab.began_when_served, [["server", "client"]] * 2)
        self.assertEqual([g.sent for g in lab.guests.values()], [[]] * 3)

    def test_who_is_late_is_ended_and_has_no_code(self):
        lab = self.lab([("client", 0)])
        found = self.run_on(lab, 2)
        self.assertEqual((found["server"][0], found["client"][0]), (None, 0))
        self.assertEqual(lab.guests["server"].sent, ["END 0001-end"])
        self.assertEqual(lab.guests["client"].sent, [])


if __name__ == "__main__":
    unittest.main()
