# SPDX-License-Identifier: GPL-2.0
"""State machines are read from C, and pictures that are older than their data are found."""

import os
import tempfile
import unittest
from unittest import mock

import pictures
import states

HEADER = """
/**
 * enum x_state - state of a thing; see x_next()
 * @X_OFF: off,
 *	and x_work isn't queued
 * @X_ON: on
 * @X_NR_STATES: number of states
 */
enum x_state {
	X_OFF,
	X_ON,
	X_NR_STATES
};

/**
 * enum x_event - event
 * @X_EV_PUSH: somebody pushes
 * @X_EV_PULL: somebody pulls
 * @X_NR_EVENTS: number of events
 */
enum x_event {
	X_EV_PUSH,
	X_EV_PULL,
	X_NR_EVENTS
};
"""

TABLE = """
int x_next(int state, int ev)
{
	static const u8 next[X_NR_STATES][X_NR_EVENTS] = {
		[X_OFF] = {
			[X_EV_PUSH]	= X_ON + 1,
			[X_EV_PULL]	= X_OFF + 1,
		},
		[X_ON] = {
			[X_EV_PUSH]	= X_ON,
			[X_EV_PULL]	= X_OFF,
		},
	};
"""


class Tree(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.root = work.name
        self.write("drivers/x/x.h", HEADER)
        self.write("drivers/x/x.c", TABLE)

    def write(self, path, text):
        path = f"{self.root}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)


class Machines(Tree):
    def test_moves(self):
        machine, = states.machines(self.root)
        self.assertEqual(machine.moves, {("X_OFF", "X_EV_PUSH"): "X_ON",
                                         ("X_ON", "X_EV_PULL"): "X_OFF"})
        dot = "\n".join(machine.dot())
        self.assertIn('"OFF" -> "ON" [label="PUSH"];', dot)
        self.assertEqual(dot.count("->"), 2)

    def test_page(self):
        page = states.page(self.root)
        self.assertIn("``OFF``\n    Off, and ``x_work`` isn't queued.\n", page)
        self.assertIn("State of a thing.", page)

    def test_a_table_without_comments_is_an_error(self):
        self.write("drivers/x/x.h", HEADER.replace("@X_ON: on\n *", "X_ON"))
        with self.assertRaises(states.Wrong):
            states.page(self.root)
        self.write("drivers/x/x.h", HEADER.replace("X_NR_STATES", "X_NR"))
        with self.assertRaises(states.Wrong):
            states.page(self.root)

    def test_an_unknown_state_is_an_error(self):
        self.write("drivers/x/x.c", TABLE.replace("X_ON + 1", "X_AWAY + 1"))
        with self.assertRaises(states.Wrong):
            states.page(self.root)


class Check(Tree):
    def setUp(self):
        super().setUp()
        self.write("Documentation/pictures/top.txt", "rnbd top\n")
        self.write("README.md", "[x](drivers/x/x.c) [web](https://example.org/)\n")
        self.write("include/rdma/z.h", "")
        self.write("Documentation/architecture.rst", "``x/x.c``, ``z.h`` and ``rnbd_x()``\n")
        self.write("drivers/x/y.c", "void rnbd_x(void)\n")
        for name, value in (("ROOT", self.root), ("FOLDER", self.root + "/Documentation/pictures")):
            patch = mock.patch.object(pictures, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        for draw in "draw_top", "draw_machine":
            patch = mock.patch.object(pictures, draw, getattr(self, draw))
            patch.start()
            self.addCleanup(patch.stop)
        with mock.patch("builtins.print"):
            pictures.draw_all()

    @staticmethod
    def draw_top(text):
        return f"<?xml version='1.0'?>\n<svg>{text}</svg>"

    @staticmethod
    def draw_machine(text):
        return f"<svg>{text}</svg>"

    def finds(self, *words):
        found = list(pictures.check())
        self.assertEqual(len(found), len(words), found)
        for text, word in zip(found, words):
            self.assertIn(word, text)

    def test_all_is_up_to_date(self):
        self.finds()

    def test_newer_data(self):
        self.write("Documentation/pictures/top.txt", "rnbd top - again\n")
        self.finds("top.svg is older")

    def test_newer_table(self):
        self.write("drivers/x/x.c", TABLE.replace("X_ON + 1", "X_OFF + 1"))
        self.finds("x-state.svg is older")

    def test_newer_comment(self):
        self.write("drivers/x/x.h", HEADER.replace("somebody pulls", "it is pulled"))
        self.finds("states.rst is older")

    def test_no_data(self):
        os.remove(f"{self.root}/Documentation/pictures/top.txt")
        self.finds("top.svg has no data")

    def test_no_picture(self):
        os.remove(f"{self.root}/Documentation/pictures/top.svg")
        self.finds("top.svg is older")

    def test_names(self):
        self.write("README.md", "[x](drivers/x/z.c)\n")
        self.write("Documentation/architecture.rst", "``x/z.c`` and ``rnbd_z()``\n")
        self.finds("drivers/x/z.c", "rnbd_z()", "x/z.c")
