# SPDX-License-Identifier: GPL-2.0
"""What the quick start says to type is told from what it shows, and the latter is compared."""

import re
import tempfile
import unittest

import quickstart

PAGE = """
Title
=====

Prose::

	one
	two \\
		more

.. code-block:: none

	said

::

	three

Another
-------

None of this is a command.

.. code-block:: none

	neither is this

::

	four
"""


class Pages(unittest.TestCase):
    def sections(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".rst") as f:
            f.write(text)
            f.flush()
            return quickstart.sections(f.name)

    def test_commands_and_output(self):
        page = PAGE.replace(".. code-block:: none\n\n\tneither is this\n\n", "")
        self.assertEqual(self.sections(page), {
            "Title": [("one\ntwo \\\n\tmore", "said"), ("three", "")], "Another": [("four", "")]})

    def test_number_of_commands(self):
        self.assertEqual(quickstart.count_commands("one \\\n\ttwo\nthree && four"), 2)
        self.assertEqual(quickstart.count_commands(
            "one\ncat >f <<'END'\n[a]\n\nb = c\nEND\ntwo"), 3)
        self.assertEqual(quickstart.count_commands("cat <<'END' >f\n[a]\nEND"), 1)

    def test_output_without_a_command(self):
        with self.assertRaises(IndexError):
            self.sections(PAGE)

    def test_comparison(self):
        self.assertTrue(quickstart.is_as_shown("", ""))
        self.assertTrue(quickstart.is_as_shown("/dev/rnbd...", "/dev/rnbd12"))
        self.assertTrue(quickstart.is_as_shown("a ...  c\nd", "a  b  c  \nd"))
        self.assertFalse(quickstart.is_as_shown("", "a warning"))
        self.assertFalse(quickstart.is_as_shown("/dev/rnbd...", "no such volume"))
        self.assertFalse(quickstart.is_as_shown("a\nd", "a"))


class Manual(unittest.TestCase):
    def setUp(self):
        self.text = quickstart.sections(quickstart.MANUAL)

    def test_sections(self):
        """All that is run is there."""
        for title in (quickstart.RDMA, quickstart.RPING_SERVER, quickstart.RPING_CLIENT,
                      quickstart.SERVER, quickstart.CLIENT, quickstart.REBOOT, quickstart.PULL, quickstart.SOFT,
                      quickstart.UNDO_CLIENT, quickstart.UNDO_SERVER):
            self.assertTrue(self.text[title], title)

    def test_snapshots(self):
        """The blocks that are run, and on which machine"""
        text = quickstart.sections(quickstart.SNAPSHOTS)
        self.assertEqual([guest for guest, _ in quickstart.prompted(text[quickstart.TAKE][0][0])],
                         ["client", "server", "client"])
        self.assertEqual([list(quickstart.prompted(block)) for block, _ in text[quickstart.READ]],
                         [[("server", "mount -o ro /dev/vg0/data-monday /mnt")],
                          [("server", "umount /mnt"),
                           ("server", "lvremove -y vg0/data-monday")]])

    def test_no_command_names_a_device_by_number(self):
        """It may be anybody's disk."""
        for title, steps in self.text.items():
            for command, _ in steps:
                self.assertIsNone(re.search(r"/dev/rnbd\d", command), f"{title}: {command}")
