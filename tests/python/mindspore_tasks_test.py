# SPDX-License-Identifier: Apache-2.0
"""Tasks of the collector under MindSpore, by a stand-in for it."""

import csv
import json
import os
import sys
import tempfile
import unittest
import zlib

try:
    import numpy
except ImportError:
    print("SKIPPED: NumPy is not installed (python3-numpy)")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "doubles"))

import mindspore as ms

from msprobe.core.common.exceptions import MsprobeException
from msprobe.mindspore import PrecisionDebugger


class Optimizer(ms.nn.Cell):
    """Counts its steps, and runs the hooks that it was given."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.hooks = []
        self.steps = 0

    def register_forward_pre_hook(self, hook, with_kwargs=False):
        self.hooks.append(hook)

    def __call__(self, *gradients):
        for hook in self.hooks:
            hook(self, gradients)
        self.steps += 1


def named(name, values):
    parameter = ms.Parameter(numpy.array(values, "float32"))
    parameter.name = name
    return parameter


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="msprobe-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def open(self, task, section, **keys):
        PrecisionDebugger.close()
        self.addCleanup(PrecisionDebugger.close)
        path = os.path.join(self.folder, "config.json")
        self.dump_path = os.path.join(self.folder, "out")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"task": task, "dump_path": self.dump_path, "level": "L1", "rank": [], "step": [], task: section, **keys}, file)
        return PrecisionDebugger(config_path=path)

    def table(self, *place):
        with open(os.path.join(self.dump_path, *place), encoding="utf-8-sig") as file:
            return list(csv.DictReader(file))


class GradProbe(Case):
    def test_steps(self):
        parameters = [named("fc.weight", [[0.0] * 2] * 2), named("fc.bias", [0.0] * 3), named("none", [0.0])]
        gradients = [ms.Tensor(numpy.array([[1.5, -2.0], [0.0, 0.25]], "float32")), ms.Tensor(numpy.array([3.0, -1.0, 2.0], "float32")),
                     None]
        optimizer, other = Optimizer(parameters), Optimizer(parameters)
        debugger = self.open("grad_probe", {"grad_level": "L0"}, step=[1])
        debugger.monitor(optimizer)
        other.hooks = optimizer.hooks  # as a copy shares them
        debugger.start()
        optimizer(tuple(gradients))
        optimizer(*gradients)
        other(tuple(gradients))
        optimizer(tuple(gradients))
        self.assertEqual((optimizer.steps, other.steps), (3, 1))
        debugger.close()
        self.assertEqual(os.listdir(os.path.join(self.dump_path, "rank0")), ["grad_summary_1.csv"])
        rows = self.table("rank0", "grad_summary_1.csv")
        self.assertEqual([row["param_name"] for row in rows], ["fc.weight", "fc.bias"])
        for row, gradient in zip(rows, gradients):
            values = gradient.asnumpy()
            self.assertEqual(row["MD5"], "%08x" % zlib.crc32(values.tobytes()))
            self.assertEqual([float(row[name]) for name in ("max", "min")], [values.max(), values.min()])
            self.assertAlmostEqual(float(row["norm"]), numpy.linalg.norm(values), places=6)
            self.assertEqual(json.loads(row["shape"]), list(values.shape))

    def test_signs(self):
        optimizer = Optimizer([named("w", [0.0, 0.0])])
        self.open("grad_probe", {}).monitor(optimizer)
        optimizer((ms.Tensor(numpy.array([0.5, -0.5], "float32")),))
        PrecisionDebugger.close()
        signs = numpy.load(os.path.join(self.dump_path, "rank0", "step0", "w.npy"))
        self.assertEqual(signs.tolist(), [True, False])

    def test_refusals(self):
        with self.assertRaisesRegex(MsprobeException, "the optimizer must be a mindspore.nn.Cell"):
            self.open("grad_probe", {}).monitor(object())
        self.open("statistics", {}).monitor(object())  # other tasks: no effect


if __name__ == "__main__":
    unittest.main()
