# SPDX-License-Identifier: Apache-2.0
"""Files that Python code writes: whole or not there, and never written where a link leads."""

import csv

from helpers import *
from msprobe.core.files import whole_file
from msprobe.pytorch import randomness


class Files(Case):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "out.csv")
        self.target = os.path.join(self.folder, "target")
        self.put(self.target, "mine")

    def put(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def test_what_is_replaced(self):
        for lay in (lambda: None, lambda: self.put(self.path, "old"), lambda: os.symlink(self.target, self.path),
                    lambda: os.symlink(os.path.join(self.folder, "nowhere"), self.path)):
            if os.path.lexists(self.path):
                os.unlink(self.path)
            lay()
            with whole_file(self.path, encoding="utf-8") as file:
                file.write("new")
            self.assertFalse(os.path.islink(self.path))
            self.assertEqual((self.read(self.path), self.read(self.target)), ("new", "mine"))
            self.assertEqual(sorted(os.listdir(self.folder)), ["out.csv", "target"])

    def test_a_failure_leaves_what_was_there(self):
        self.put(self.path, "old")
        with self.assertRaises(ValueError):
            with whole_file(self.path, encoding="utf-8") as file:
                file.write("half")
                raise ValueError()
        self.assertEqual(self.read(self.path), "old")
        self.assertEqual(sorted(os.listdir(self.folder)), ["out.csv", "target"])

    def test_what_is_no_file_is_refused(self):
        os.mkfifo(self.path)
        for path in (self.path, self.folder, "/dev/full"):
            with self.assertRaises(OSError):
                with whole_file(path):
                    pass

    def test_two_runs_in_one_second(self):
        """Even of one rank."""
        begun = randomness.time.time()
        self.addCleanup(setattr, randomness.time, "time", randomness.time.time)
        self.addCleanup(setattr, randomness.framework, "rank_of_process", randomness.framework.rank_of_process)
        randomness.time.time = lambda: begun
        for rank in (None, 3):
            randomness.framework.rank_of_process = lambda rank=rank: rank
            folder = os.path.join(self.folder, str(rank))
            os.mkdir(folder)
            for _ in range(3):
                randomness._RandomLog(folder)
            names = os.listdir(folder)
            self.assertEqual(len(names), 3)
            for name in names:
                self.assertRegex(name, r"^random_(proc|rank)\d+_\d{14}\.csv$")
                with open(os.path.join(folder, name), encoding="utf-8-sig", newline="") as file:
                    self.assertEqual(list(csv.reader(file)), [["api_name", "stack"]])


if __name__ == "__main__":
    unittest.main()
