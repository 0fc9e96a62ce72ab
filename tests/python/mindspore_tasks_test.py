# SPDX-License-Identifier: Apache-2.0
"""Tasks of the collector under MindSpore, by a stand-in for it."""

import csv
import json
import os
import tempfile
import unittest
import zlib

import doubles  # noqa: F401 - the stand-in
import numpy
import mindspore as ms

from msprobe.core.common.exceptions import MsprobeException
from msprobe.mindspore import PrecisionDebugger
from msprobe.mindspore.free_benchmark import arrays
from msprobe.mindspore.free_benchmark.task import _is_called_once


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


class FreeBenchmark(Case):
    def train(self, weights, rounds=1):
        """Losses and gradients of some steps, recorded if there is a debugger."""
        debugger, found = PrecisionDebugger._instance, []
        for _ in range(rounds):
            if debugger:
                debugger.start()
            gradients_of = ms.value_and_grad(lambda: ms.ops.differences(ms.ops.multiply(weights, ms.ops.rand(4))), None, [weights])
            loss, (gradient,) = gradients_of()
            if debugger:
                debugger.stop()
                debugger.step()
            found.append((loss.asnumpy().tolist(), gradient.asnumpy().tolist()))
        return found

    def run_task(self, section, values, rounds=1):
        numpy.random.seed(3)
        expected = self.train(named("w", values), rounds)
        numpy.random.seed(3)
        self.open("free_benchmark", section)
        self.assertEqual(self.train(named("w", values), rounds), expected)
        PrecisionDebugger.close()
        process = os.listdir(os.path.join(self.dump_path, "step0"))[0]
        self.assertEqual(os.listdir(os.path.join(self.dump_path, "step0", process)), ["free_benchmark.csv"])
        return [self.table("step%d" % step, process, "free_benchmark.csv") for step in range(rounds)]

    def test_an_unstable_call(self):
        tables = self.run_task({"pert_mode": "change_value"}, [1.0, 5.0, 2.0, 4.0], 2)
        for step, rows in enumerate(tables):
            names = ["Functional.multiply.0.forward", "Functional.differences.0.forward"]
            self.assertEqual([(row["api_name"], row["step"], row["stage"], row["dtype"], row["shape"]) for row in rows],
                             [(name, str(step), "forward", "Float32", "(%d,)" % (4 - at)) for at, name in enumerate(names)])
            self.assertEqual(float(rows[0]["max_rel"]), 3.0)  # 4 and 1 were exchanged

    def test_a_stable_one(self):
        for mode in ("no_change", "add_noise", "bit_noise", "improve_precision"):
            self.assertEqual(self.run_task({"pert_mode": mode}, [1.0, 500.0, 2.0, 4000.0]), [[]], mode)

    def test_refusals(self):
        with self.assertRaisesRegex(MsprobeException, "to_cpu is for PyTorch"):
            self.open("free_benchmark", {"pert_mode": "to_cpu", "fuzz_device": "cpu"})

    def test_which_are_called_once(self):
        for name in ("rand", "dropout2d", "standard_normal", "add_", "__iadd__", "assign_add", "batch_norm", "random_gamma", "normal",
                     "uniform"):
            self.assertTrue(_is_called_once(name), name)
        for name in ("add", "__add__", "__radd__", "matmul", "softmax", "layer_norm", "norm", "logical_and", "normalize", "lgamma"):
            self.assertFalse(_is_called_once(name), name)

    def test_perturbations(self):
        for kind, bits in (("float16", "int16"), ("float32", "int32"), ("float64", "int64")):
            array = numpy.array([1.0, -3.5, 0.0, numpy.inf], kind)
            noisy = arrays.perturbed("bit_noise", array, kind)
            self.assertEqual((noisy.view(bits) - array.view(bits)).tolist(), [1, 1, 0, 0], kind)
        noisy = arrays.perturbed("bit_noise", numpy.array([1.0, -3.5], "float32"), "bfloat16")
        self.assertEqual(noisy.tolist(), [1.0 + 2.0 ** -7, -3.5 - 2.0 ** -6])
        noisy = arrays.perturbed("add_noise", numpy.array([1.0, 1e-3, -2.0]), "float16")
        self.assertEqual(noisy.tolist(), [1.0 + 1e-6, 1e-3, -2.0 + 1e-6])
        exchanged = arrays.perturbed("change_value", numpy.arange(6.0).reshape(2, 3).T, "float64")
        self.assertEqual(exchanged.tolist(), [[5.0, 3.0], [1.0, 4.0], [2.0, 0.0]])

    def test_ratios(self):
        nan, inf = numpy.nan, numpy.inf
        for first, second, expected in (([1.0, 2.0], [1.0, 2.0], 1.0), ([1.0, 4.0], [1.0, 2.0], 2.0), ([1.0, 2.0], [1.0, 4.0], 2.0),
                                        ([1e-9], [1e-7], 1.0), ([1.0, -1.0], [1.0, 1.0], "symbol_flipping"), ([1e-5], [-1e-5], 1.0),
                                        ([nan, 1.0], [nan, 1.0], 1.0), ([nan], [1.0], inf), ([inf], [1.0], inf), ([], [], 1.0)):
            self.assertEqual(arrays.ratio(numpy.array(first), numpy.array(second), 1e-4), expected, (first, second))


if __name__ == "__main__":
    unittest.main()
