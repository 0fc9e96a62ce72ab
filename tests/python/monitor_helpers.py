# SPDX-License-Identifier: Apache-2.0
"""Code that the tests of the training monitor share: monitors in fresh folders, and the rows that they wrote."""

import csv
import glob
import json
import math
import os
import shutil
import tempfile
import unittest

from helpers import VERSION, run_script, run_two_ranks, torch

from msprobe.pytorch import TrainerMon

OPS = ["norm", "min", "max", "mean", "zeros", "nans"]
EVERYTHING = {"xy_distribution": True, "wg_distribution": True, "mv_distribution": True, "param_distribution": True,
              "mg_direction": True, "ur_distribution": True, "ops": OPS, "ndigits": 17}


class MonitorCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="msprobe-test-")
        self.monitors = []
        torch.manual_seed(1)

    def tearDown(self):
        for monitor in self.monitors:
            monitor.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def configure(self, **keys):
        """The path of a configuration; from now on output goes into a new folder."""
        self.output = tempfile.mkdtemp(prefix="out", dir=self.folder)
        os.environ["MONITOR_OUTPUT_DIR"] = self.output
        path = os.path.join(self.output, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dict({"targets": {}, "step_count_per_record": 100}, **keys), file)
        return path

    def monitor(self, model, optimizer, more=None, **keys):
        """A monitor of this configuration; `more`: arguments of set_monitor()."""
        monitor = TrainerMon(self.configure(**keys))
        monitor.set_monitor(model, optimizer, **(more or {}))
        self.monitors.append(monitor)
        return monitor

    def rows(self, prefix, rank=0):
        return read_rows(self.output, prefix, rank)

    def figures(self, prefix, column="norm", rank=0):
        """(step, name[, micro step]) -> number."""
        found = {}
        for row in self.rows(prefix, rank):
            key = (int(row["step"]), row["name"])
            if "micro_step" in row:
                key += (int(row["micro_step"]),)
            self.assertNotIn(key, found)
            found[key] = float(row[column])
        return found

    def assert_figures(self, got, expected):
        self.assertEqual(sorted(got), sorted(expected))
        for key, value in expected.items():
            if math.isnan(value):
                self.assertTrue(math.isnan(got[key]), key)
            else:
                self.assertAlmostEqual(got[key], value, delta=1e-6 * abs(value) + 1e-12, msg=key)


def read_rows(folder, prefix, rank=0):
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "*-rank%d-*" % rank, prefix + "_*.csv"))):
        if os.path.basename(path).rsplit("_", 1)[0] == prefix:
            with open(path, encoding="utf-8", newline="") as file:
                found += list(csv.DictReader(file))
    return found


def norm(tensor):
    return math.sqrt(sum(float(value) ** 2 for value in tensor.detach().double().flatten()))


__all__ = ["EVERYTHING", "MonitorCase", "OPS", "TrainerMon", "VERSION", "glob", "json", "math", "norm", "os",
           "read_rows", "run_script", "run_two_ranks", "torch", "unittest"]
