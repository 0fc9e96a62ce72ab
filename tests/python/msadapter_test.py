# SPDX-License-Identifier: Apache-2.0
"""MSAdapter, by a stand-in for it and for MindSpore: what is recorded of a program that is written for PyTorch."""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib

import doubles
import numpy
import mindspore
import mindtorch
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.functional import relu as relu_of_this_module

from msprobe import _native
from msprobe.mindspore import PrecisionDebugger, seed_all
from msprobe.mindtorch import apis, modules


def numbers(*shape, seed=1):
    return numpy.random.RandomState(seed).randn(*shape).astype("float32")


def linear(inputs, outputs, seed):
    return nn.Linear(numbers(outputs, inputs, seed=seed), numbers(outputs, seed=seed + 1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1 = linear(4, 3, 10)
        self.act = nn.ReLU()

    def forward(self, x, scale=1.0):
        return self.act(torch.add(self.linear1(x), 1.0)).mul(0.5) * scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.linear2 = linear(3, 2, 20)

    def forward(self, x):
        h = self.linear2(self.block(x, scale=2.0))
        return torch.cat([h, h]).sum()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="msprobe-test-")

    def tearDown(self):
        self.close()
        shutil.rmtree(self.folder)

    def open(self, level, task="statistics", section=None, **keys):
        self.close()
        self.dump_path = tempfile.mkdtemp(prefix="dump", dir=self.folder)
        path = os.path.join(self.folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"task": task, "dump_path": self.dump_path, "level": level, "rank": [], "step": [],
                       task: section or {}, **keys}, file)
        return PrecisionDebugger(config_path=path)

    def close(self):
        if PrecisionDebugger._instance is not None:
            PrecisionDebugger.stop()
            modules.hooks.detach_all()
            apis.registry.remove()
            PrecisionDebugger._instance = None
            _native.close()

    def train(self, function, weights, *inputs, model=None):
        """Loss and gradients of one step, which is recorded if there is a debugger."""
        debugger = PrecisionDebugger._instance
        if debugger:
            debugger.start(model=model)
        loss, gradients = mindspore.value_and_grad(function, None, weights)(*inputs)
        if debugger:
            debugger.stop()
            debugger.step()
        return loss.asnumpy(), [gradient.asnumpy() for gradient in gradients]

    def record(self, level, function, weights, *inputs, model=None, **keys):
        """Data of the only step. Loss and gradients are those without recording."""
        self.close()
        expected = self.train(function, weights, *inputs)
        self.open(level, **keys)
        loss, gradients = self.train(function, weights, *inputs, model=model)
        numpy.testing.assert_array_equal(loss, expected[0])
        for gradient, other in zip(gradients, expected[1]):
            numpy.testing.assert_array_equal(gradient, other)
        data = self.load("dump.json")["data"]
        self.assertEqual(glob.glob(os.path.join(self.place, "dump_error_info.log")), [])
        return data

    def load(self, name, step=0):
        self.place, = glob.glob(os.path.join(self.dump_path, "step%d" % step, "proc*"))
        with open(os.path.join(self.place, name), encoding="utf-8") as file:
            return json.load(file)


def shapes(leaves):
    return [leaf and leaf["shape"] for leaf in leaves]


MODULES = ["block.linear1.Linear", "block.act.ReLU", "block.Block", "linear2.Linear"]
FUNCTIONS = ["Functional.linear.0", "Torch.add.0", "Functional.relu.0", "Tensor.mul.0", "Tensor.__mul__.0",
             "Functional.linear.1", "Torch.cat.0", "Tensor.sum.0"]


class Levels(Case):
    def run_net(self, level, **keys):
        net = Net()
        return self.record(level, net, net.parameters(), torch.tensor(numbers(5, 4)), model=net, **keys)

    def test_functions(self):
        data = self.run_net("L1")
        self.assertEqual([name for name in data if "forward" in name], [name + ".forward" for name in FUNCTIONS])
        self.assertEqual([name for name in data if "backward" in name],
                         [name + ".backward" for name in reversed(FUNCTIONS)])
        self.assertEqual(self.load("construct.json"), {})
        dump = self.load("dump.json")
        self.assertEqual((dump["framework"], dump["level"], dump["dump_data_dir"]), ("mindtorch", "L1", None))
        names = [name for listed, _ in self.load("stack.json").values() for name in listed]
        self.assertEqual(sorted(names), sorted(name for name in data if "forward" in name))

    def test_modules(self):
        data = self.run_net("L0")
        self.assertEqual([name for name in data if "forward" in name],
                         ["Module.%s.forward.0" % name for name in MODULES])
        self.assertEqual({name for name in data if "backward" in name},
                         {"Module.%s.backward.0" % name for name in MODULES})
        self.assertEqual({name: list(value) for name, value in data.items() if "parameters_grad" in name},
                         {"Module.%s.parameters_grad.0" % name: ["weight", "bias"] for name in MODULES if "linear" in name})
        self.assertEqual(data["Module.block.Block.forward.0"]["input_kwargs"], {"scale": {"type": "float", "value": 2.0}})
        self.assertEqual(shapes(data["Module.linear2.Linear.backward.0"]["output"]), [[5, 3]])
        self.assertEqual(self.load("construct.json")["Module.block.act.ReLU.backward.0"], "Module.block.Block.backward.0")

    def test_mix(self):
        data = self.run_net("mix")
        self.assertEqual(len(data), 2 * len(FUNCTIONS) + 2 * len(MODULES) + 2)
        construct = self.load("construct.json")
        self.assertEqual(construct["Functional.linear.0.forward"], "Module.block.linear1.Linear.forward.0")
        self.assertEqual(construct["Functional.relu.0.backward"], "Module.block.act.ReLU.backward.0")

    def test_records(self):
        x = numbers(5, 4)
        leaf = self.run_net("L1", section={"summary_mode": "md5"})["Functional.linear.0.forward"]["input_args"][0]
        self.assertEqual({name: leaf[name] for name in ("type", "dtype", "shape", "md5")},
                         {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [5, 4],
                          "md5": "%08x" % zlib.crc32(x.tobytes())})
        self.assertNotIn("requires_grad", leaf)
        leaf = self.run_net("L1", python_compatible=True)["Functional.linear.0.forward"]["input_args"][0]
        self.assertEqual(leaf["dtype"], "mindspore.float32")
        self.assertAlmostEqual(leaf["Max"], x.max(), places=6)

    def test_gradients_are_right(self):
        net = Net()
        x = numbers(5, 4)
        data = self.record("mix", net, net.parameters(), torch.tensor(x), model=net)
        weight = net.linear2.weight.asnumpy()
        at_output = numpy.full((5, 2), 2.0)
        self.assertEqual(data["Functional.linear.1.backward"]["input"][0]["Mean"], 2.0)
        expected = [at_output @ weight, at_output.T @ (numpy.maximum(
            x @ net.block.linear1.weight.asnumpy().T + net.block.linear1.bias.asnumpy() + 1.0, 0)), at_output.sum(0)]
        for leaf, gradient in zip(data["Functional.linear.1.backward"]["output"], expected):
            self.assertEqual(leaf["shape"], list(gradient.shape))
            self.assertAlmostEqual(leaf["Norm"], numpy.linalg.norm(gradient), places=4)
        of_weight, = data["Module.linear2.Linear.parameters_grad.0"]["weight"]
        self.assertAlmostEqual(of_weight["Norm"], numpy.linalg.norm(expected[1]), places=4)

    def test_files(self):
        x = numbers(5, 4)
        self.run_net("mix", task="tensor")
        folder = os.path.join(self.place, "dump_tensor_data")
        numpy.testing.assert_array_equal(numpy.load(os.path.join(folder, "Functional.linear.0.forward.input.0.npy")), x)
        for name in ("Module.linear2.Linear.forward.0.parameters.weight.npy", "Module.linear2.Linear.parameters_grad.0.bias.npy",
                     "Module.linear2.Linear.backward.0.input.0.npy", "Torch.cat.0.forward.input.0.1.npy"):
            self.assertTrue(os.path.exists(os.path.join(folder, name)), name)

    def test_structure(self):
        self.run_net("mix", task="structure")
        construct = self.load("construct.json")
        self.assertEqual(len(construct), 2 * len(FUNCTIONS) + 2 * len(MODULES))
        self.assertIn("Torch.cat.0.backward", construct)

    def test_filters(self):
        self.assertEqual(list(self.run_net("L1", section={"list": ["relu"], "data_mode": ["forward"]})),
                         ["Functional.relu.0.forward"])

    def test_saved_values(self):
        weight = torch.nn.Parameter(numbers(3))

        def function(x):
            y = x * weight
            debugger.save({"y": [y]}, "kept")
            return y.sum()

        debugger = self.open("debug")
        mindspore.value_and_grad(function, None, [weight])(torch.tensor(numbers(3, seed=2)))
        debugger.step()
        data = self.load("debug.json")["data"]
        self.assertEqual(data["kept.0.debug"]["y"][0]["dtype"], "Float32")
        self.assertEqual(data["kept_grad.0.debug"]["y"][0]["Mean"], 1.0)


class Around(nn.Module):
    """A module of a class of the test's, and a linear one."""

    def __init__(self):
        super().__init__()
        self.inner = self.inner_class()
        self.linear = linear(4, 2, 3)


class Models(Case):
    def run_model(self, model, given):
        return self.record("L0", model, model.parameters(), torch.tensor(numbers(5, 4)), model=given)

    def test_lists(self):
        for kind in (list, tuple):
            net = Net()
            self.assertIn("Module.0.block.linear1.Linear.forward.0", self.run_model(net, kind([net])))

    def test_the_model_itself_is_left_out(self):
        net = Net()
        self.assertFalse([name for name in self.run_model(net, net) if "Net" in name])

    def test_keywords_and_dicts(self):
        class Inner(nn.Module):
            def forward(self, *, x):
                return {"y": x * 2.0}

        class Outer(Around):
            inner_class = Inner

            def forward(self, x):
                return self.inner(x=self.linear(x))["y"].sum()

        data = self.run_model(*[Outer()] * 2)
        entry = data["Module.inner.Inner.backward.0"]
        self.assertEqual((shapes(entry["input"]), entry["input"][0]["Mean"], entry["output"]), ([[5, 2]], 1.0, []))

    def test_lists_of_tensors(self):
        kept = []

        class Inner(nn.Module):
            def forward(self, parts):
                parts.append(parts[0])
                return torch.cat(parts)

        class Outer(Around):
            inner_class = Inner

            def forward(self, x):
                given = [self.linear(x), torch.tensor(numbers(1, 2))]
                parts = list(given)
                result = self.inner(parts).sum()
                kept.append(len(parts) == 3 and all(one is other for one, other in zip(parts, given)))
                return result

        data = self.run_model(*[Outer()] * 2)
        self.assertEqual(kept, [True, True])  # the list is what the program has made of it
        entry = data["Module.inner.Inner.backward.0"]
        self.assertEqual(shapes(entry["output"]), [[5, 2], [1, 2]])
        self.assertEqual([leaf["Mean"] for leaf in entry["output"]], [2.0, 1.0])

    def test_lists_are_given_back(self):
        """After any call: of a module that returns nothing, of one that raises, of one whose inputs are one list."""
        kept = []

        class Fill(nn.Module):
            def forward(self, parts, out):
                out.append(parts[0] * 2.0)

        class Twice(nn.Module):
            def forward(self, a, b):
                return a[0] + b[0]

        class Raise(nn.Module):
            def forward(self, parts):
                raise ValueError

        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = linear(4, 2, 3)
                self.fill, self.twice, self.failing = Fill(), Twice(), Raise()

            def forward(self, x):
                x = self.linear(x)
                filled, same, raised, out = [x * 1.0], [x * 1.0], [x * 1.0], []
                given = [filled[0], same[0], raised[0]]
                self.fill(filled, out)
                result = self.twice(same, same) + out[0]
                try:
                    self.failing(raised)
                except ValueError:
                    pass
                kept.append([one is other for one, other in zip([filled[0], same[0], raised[0]], given)])
                return result.sum()

        self.run_model(*[Outer()] * 2)
        self.assertEqual(kept, [[True] * 3] * 2)

    def test_a_parameter_that_is_returned_stays_itself(self):
        kept = []

        class Inner(nn.Module):
            def __init__(self):
                super().__init__()
                object.__setattr__(self, "weights", [torch.nn.Parameter(numbers(2))])

            def forward(self, x):
                return self.weights

        class Outer(Around):
            inner_class = Inner

            def forward(self, x):
                weight = self.inner.weights[0]
                given, = self.inner(x)
                kept.append((self.inner.weights[0] is weight, given is weight))
                return (self.linear(x) * given).sum()

        self.run_model(*[Outer()] * 2)
        self.assertEqual(kept, [(True, True)] * 2)

    def test_one_that_raises(self):
        class Inner(nn.Module):
            def forward(self, x):
                return torch.cat([x, torch.tensor(numbers(2, 7))])

        class Outer(Around):
            inner_class = Inner

            def forward(self, x):
                try:
                    self.inner(x)
                except ValueError:
                    pass
                return self.linear(x).sum()

        net = Outer()
        data = self.record("mix", net, net.parameters(), torch.tensor(numbers(5, 4)), model=net)
        self.assertEqual([name for name in data if "forward" in name and "inner" not in name and "cat" not in name],
                         ["Functional.linear.0.forward", "Module.linear.Linear.forward.0", "Tensor.sum.0.forward"])
        self.assertIsNone(self.load("construct.json")["Module.linear.Linear.forward.0"])


class Functions(Case):
    """One function after the other, of `w` and `x`; the loss is the sum of what comes out."""

    def run_function(self, function, level="L1", **keys):
        weight = torch.nn.Parameter(numbers(3, 3))
        return self.record(level, lambda x: function(x, weight).sum(), [weight], torch.tensor(numbers(3, 3, seed=2)), **keys)

    def test_list_of_tensors(self):
        entry = self.run_function(lambda x, w: torch.cat([x, w * 2.0, x]))["Torch.cat.0.backward"]
        self.assertEqual(shapes(entry["output"]), [[3, 3]] * 3)

    def test_keywords(self):
        data = self.run_function(lambda x, w: torch.add(other=w, input=x))
        self.assertEqual(list(data["Torch.add.0.forward"]["input_kwargs"]), ["other", "input"])
        self.assertEqual(len(data["Torch.add.0.backward"]["output"]), 2)

    def test_in_place(self):
        def function(x, w):
            y = w * 1.0
            y.mul_(3.0)
            F.relu(y, True)
            y[0] = 7.0
            z = y * y
            self.same.append(y.mul_(x) is y)
            return z + y

        self.same = []
        data = self.run_function(function)
        self.assertEqual(self.same, [True, True])
        for name in ("Tensor.mul_.0", "Functional.relu.0", "Tensor.__setitem__.0", "Tensor.mul_.1"):
            self.assertIn(name + ".forward", data)
        for name in ("Tensor.mul_.0", "Functional.relu.0", "Tensor.mul_.1"):
            self.assertEqual(shapes(data[name + ".backward"]["input"]), [[3, 3]])
        self.assertEqual(data["Tensor.mul_.0.forward"]["input_args"][0]["Max"],
                         data["Tensor.__mul__.0.forward"]["output"][0]["Max"])

    def test_what_passes_through(self):
        same = []

        def function(x, w):
            y = x * w
            same.append(F.dropout(y, 0.0) is y)
            return y

        data = self.run_function(function)
        self.assertEqual(same, [True, True])
        self.assertIn("Functional.dropout.0.forward", data)
        self.assertNotIn("Functional.dropout.0.backward", data)

    def test_dropout_drops_while_it_is_recorded(self):
        leaf, = self.run_function(lambda x, w: F.dropout(w, 0.5))["Functional.dropout.0.forward"]["output"]
        self.assertAlmostEqual(leaf["Max"], 2 * numbers(3, 3).max(), places=5)

    def test_one_that_raises(self):
        def function(x, w):
            try:
                torch.cat([x, torch.tensor(numbers(1, 7))])
            except ValueError:
                pass
            return torch.cat([x, w])

        data = self.run_function(function)
        self.assertEqual([name for name in data if name.endswith("forward") and "output" in data[name]][-2:],
                         ["Torch.cat.1.forward", "Tensor.sum.0.forward"])

    def test_compiled_functions(self):
        given = []

        @mindspore.jit
        def scaled(x, factor=2.0):
            given.append(x)
            return torch.mul(x, factor)

        class Inner(nn.Module):
            @mindspore.jit
            def construct(self, x):
                return scaled(x, 3.0)

        inner = Inner()
        data = self.run_function(lambda x, w: scaled(w) + scaled(x, factor=4.0) + inner.construct(w * 1.0))
        self.assertEqual(list(data)[:6], ["Jit.scaled.0.forward", "Jit.scaled.1.forward", "Tensor.__add__.0.forward",
                                          "Tensor.__mul__.0.forward", "Jit.Inner.0.forward", "Tensor.__add__.1.forward"])
        self.assertFalse([name for name in data if name.startswith("Jit") and "backward" in name])
        self.assertIsInstance(given[-3], torch.nn.Parameter)  # what is compiled depends on what is given
        self.assertEqual(data["Jit.scaled.1.forward"]["input_kwargs"], {"factor": {"type": "float", "value": 4.0}})
        self.assertEqual([leaf and leaf["shape"] for leaf in data["Jit.Inner.0.forward"]["input_args"]], [None, [3, 3]])
        self.assertAlmostEqual(data["Jit.Inner.0.forward"]["output"][0]["Max"], 3 * numbers(3, 3).max(), places=5)
        self.assertEqual([name for name in self.run_function(lambda x, w: scaled(w), "L0", model=Net()) if "Jit" in name], [])

    def test_functions_that_a_program_has_taken(self):
        self.assertIn("Functional.relu.0.forward", self.run_function(lambda x, w: relu_of_this_module(w)))
        self.assertIs(relu_of_this_module, F.relu)

    def test_which_functions(self):
        found = apis.find_functions()
        self.assertEqual(found["functional"], ["dropout", "linear", "relu"])
        self.assertEqual(found["torch"], ["add", "cat", "linalg.vector_norm", "mul", "sum"])
        self.assertEqual([name for name in found["tensor"] if not name.startswith("__")], ["mul", "mul_", "sum"])
        self.assertEqual(found["distributed"], ["all_reduce"])

    def test_communication(self):
        import torch.distributed as distributed

        def function(x, w):
            distributed.all_reduce(x)
            return w * 1.0

        entry = self.run_function(function)["Distributed.all_reduce.0.forward"]
        self.assertEqual(shapes(entry["input_args"]), [[3, 3]])
        self.assertAlmostEqual(entry["output"][0]["Max"], 2 * entry["input_args"][0]["Max"], places=5)

    def test_tasks_of_other_frameworks(self):
        for task in ("grad_probe", "free_benchmark"):
            with self.assertRaisesRegex(Exception, "grad_probe and free_benchmark are for PyTorch and MindSpore"):
                self.open("L1", task)

    def test_its_generator_is_seeded(self):
        seed_all(7)
        self.assertEqual(mindtorch.seeds[-1], 7)

    def test_dropout_can_be_removed(self):
        kept = mindtorch.nn.functional.dropout
        try:
            seed_all(rm_dropout=True)
            x = torch.tensor(numbers(2))
            self.assertIs(F.dropout(x, 0.5), x)
            self.assertIn("dropout", apis.find_functions()["functional"])
        finally:
            mindtorch.nn.functional.dropout = kept


class Imports(unittest.TestCase):
    def run_script(self, text):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([doubles.FOLDER, os.environ.get("PYTHONPATH", "")]))
        with tempfile.TemporaryDirectory(prefix="msprobe-test-") as folder:
            return subprocess.run([sys.executable, "-c", text], check=False, cwd=folder, env=environment, capture_output=True,
                                  text=True)

    def test_msprobe_first(self):
        done = self.run_script("from msprobe.mindspore import PrecisionDebugger\nimport mindtorch, torch\n"
                               "debugger = PrecisionDebugger(level='L0', task='statistics', dump_path='.')\n"
                               "debugger.start(model=torch.nn.Identity())\n"
                               "print(type(debugger).__module__)\n")
        self.assertEqual(done.stdout, "msprobe.mindtorch.debugger\n", done.stderr)

    def test_debugger_first(self):
        begin = ("from msprobe.mindspore import PrecisionDebugger\n"
                 "debugger = PrecisionDebugger(level='L1', task='statistics', dump_path='.')\n"
                 "import mindtorch, torch\n")
        text = "torch is MSAdapter's, but was imported after the PrecisionDebugger was created"
        done = self.run_script(begin + "debugger.start()\ndebugger.start()\n")
        self.assertEqual((done.returncode, done.stderr.count(text)), (0, 1), done.stderr)
        done = self.run_script(begin + "debugger.start(model=torch.nn.Identity())\n")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len([line for line in done.stderr.splitlines() if text in line]), 1, done.stderr)

    def test_the_front_end_for_pytorch(self):
        done = self.run_script("import mindtorch\nfrom msprobe.pytorch import PrecisionDebugger\n")
        self.assertEqual(done.stderr.strip().splitlines()[-1],
                         "ImportError: torch is MSAdapter's in this process: use msprobe.mindspore")


if __name__ == "__main__":
    unittest.main()
