# SPDX-License-Identifier: GPL-2.0
"""Headers of tests, and where each test runs."""

import os
import unittest

import catalog
from unit.fakes import job


def test(name, rdma="rxe", **settings):
    return job(name, "debug", rdma, **settings).test


class Header(unittest.TestCase):
    def test_settings(self):
        got = catalog.header(["# SPDX\n", "#\n", "# What it does: text.\n", "# Guests: 2\n",
                              "# Log-ok: a|b\n", "\n", "# Guests: 3\n"])
        self.assertEqual((got["guests"], got["log-ok"], got["memory"]), ("2", "a|b", "2048"))

    def test_unknown_line_is_text(self):
        self.assertEqual(catalog.header(["# Time: 60\n"]), catalog.FIELDS)


class Kernels(unittest.TestCase):
    def keys(self, tests, kernels=catalog.KERNELS, once=True):
        return [j.key for j in catalog.jobs(tests, kernels, once)]

    def test_debug_unless_the_header_says_otherwise(self):
        self.assertEqual(self.keys([test("a")]), ["debug/a"])
        self.assertEqual(self.keys([test("a", kernel="stock")]), ["stock/a"])
        self.assertEqual(self.keys([test("a", once="6.12 7.2")]), ["6.12/a", "7.2/a"])

    def test_every_test_on_a_kernel(self):
        self.assertEqual(self.keys([test("a"), test("b", once="stock")], ["debug"], False),
                         ["debug/a", "debug/b"])

    def test_siw_only_where_its_header_says(self):
        plain = test("a", siw="debug")
        both = [plain, plain.over_siw()]
        self.assertEqual(self.keys(both), ["debug/a", "debug/a-siw"])
        self.assertEqual(self.keys(both, ["7.2"], False), ["7.2/a"])

    def test_everything_over_siw(self):
        self.assertEqual(self.keys([test("a", "siw")], ["debug"], False), ["debug/a"])

    def test_rota_is_not_in_each_run(self):
        long = test("a", rota="stock", kernel="stock")
        self.assertEqual(self.keys([long]), [])
        self.assertEqual([j.key for j in catalog.rota([long, test("b")])], ["stock/a"])

    def test_names(self):
        tests = [test("map-a"), test("map-b"), test("rules")]
        self.assertEqual([t.name for t in catalog.named(tests, ["map-*"])], ["map-a", "map-b"])
        with self.assertRaises(KeyError):
            catalog.named(tests, ["map-*", "nothing"])


class Impossible(unittest.TestCase):
    def test_reasons(self):
        for modules, kernel, settings, why in (
                ("ours", "debug", {}, ""),
                ("ours", "debug", {"kernel": "debug"}, ""),
                ("ours", "7.2", {"kernel": "stock"}, ""),
                ("ours", "debug", {"kernel": "stock"}, "only on the stock kernel"),
                ("intree", "stock", {"modules": "ours"}, "not for intree modules"),
                ("ours", "stock", {"skip": "broken"}, "broken")):
            with self.subTest(f"{kernel} {settings}"):
                self.assertEqual(job("a", kernel, **settings).impossible(modules), why)


class Sets(unittest.TestCase):
    def test_of_a_plain_test(self):
        self.assertEqual(job("a").sets("ours"), {"ours"})

    def test_of_a_peer(self):
        self.assertEqual(job("a", sets="intree").sets("ours"), {"ours", "intree"})

    def test_siw_is_built_in_on_the_debug_kernel(self):
        self.assertEqual(job("a", "stock", "siw").sets("ours"), {"ours", "siw"})
        self.assertEqual(job("a", "debug", "siw").sets("ours"), {"ours"})


class Tree(unittest.TestCase):
    """The tests in the tree"""

    def test_each_runs_somewhere(self):
        for t in catalog.all_tests():
            self.assertTrue(t.kernels() or t.set["rota"], t.name)

    def test_kernels_exist(self):
        for t in catalog.all_tests():
            for name in "once", "siw", "rota", "quick":
                self.assertLessEqual(set(t.set[name].split()), set(catalog.KERNELS), t.name)

    def test_no_job_is_impossible_where_its_header_says(self):
        tests = catalog.all_tests()
        for j in [*catalog.jobs(tests, catalog.KERNELS, True), *catalog.rota(tests)]:
            self.assertEqual(j.impossible("ours"), "", j.key)

    def test_keys_are_unique(self):
        tests = catalog.all_tests()
        keys = [j.key for j in [*catalog.jobs(tests, catalog.KERNELS, True), *catalog.rota(tests),
                                *catalog.hostjobs.ALL]]
        self.assertEqual(len(keys), len(set(keys)))

    def test_steps_that_steps_name(self):
        self.assertLessEqual({"steps/stale.sh", "steps/failover.sh"},
                             catalog.steps(". $RIG_DIR/steps/stale.sh"))

    def test_steps_exist(self):
        for t in catalog.all_tests():
            for name in t.files:
                self.assertTrue(os.path.exists(f"{catalog.HERE}/{name}"), name)


if __name__ == "__main__":
    unittest.main()
