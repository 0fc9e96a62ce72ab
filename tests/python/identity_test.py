# SPDX-License-Identifier: Apache-2.0
"""Functions are what they were wherever code looks, but while something is recorded; and references that a program took
before are recorded and look the same."""

import copy
import io
import pickle
import types

from helpers import *
from msprobe.pytorch import seed_all

# In a tuple: names of this file are looked into.
ORIGINALS = (functional.relu, functional.silu, torch.Tensor.add)


def encoder_layer():
    torch.manual_seed(2)
    return nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()


class Fused:
    """How often PyTorch takes the fast path of its encoder layer."""

    def __enter__(self):
        self.calls = 0
        self._original = original = torch._transformer_encoder_layer_fwd

        def counting(*args):
            self.calls += 1
            return original(*args)
        torch._transformer_encoder_layer_fwd = counting
        return self

    def __exit__(self, *error):
        torch._transformer_encoder_layer_fwd = self._original


class Asking(nn.Module):
    """As Megatron's MLP: holds a function, and asks in each call which one it is."""

    def __init__(self):
        super().__init__()
        self.act = functional.silu

    def forward(self, x):
        if self.act is not functional.silu:
            raise ValueError("only silu can be fused")
        return self.act(x)


TABLE = {functional.relu: "relu", functional.linear: "linear", functional.softmax: "softmax", torch.cat: "cat",
         torch.Tensor.add: "add", torch.Tensor.sum: "sum", torch.Tensor.backward: "backward"}


class Mode(torch.overrides.TorchFunctionMode):
    """Writes down what it sees."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(TABLE.get(function, function))
        if TABLE.get(function) == "relu" and function is not functional.relu:
            self.seen.append("not the same")
        return function(*args, **kwargs or {})


class Subclass(torch.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        cls.seen.append(TABLE.get(function, function))
        if TABLE.get(function) == "softmax" and function is not functional.softmax:
            cls.seen.append("not the same")
        return super().__torch_function__(function, types, args, kwargs or {})


class Identity(Case):
    def test_a_debugger_that_never_starts_changes_nothing(self):
        plain = encoder_layer()
        with torch.no_grad():
            expected = plain(torch.ones(1, 3, 8))
        for level in ("L1", "mix"):
            self.open(level)
            self.assertIs(functional.relu, ORIGINALS[0])
            self.assertIs(torch.Tensor.add, ORIGINALS[2])
            self.assertNotIn("add", torch.Tensor.__dict__)
            layer = encoder_layer()
            self.assertEqual(layer.activation_relu_or_gelu, 1)
            with Fused() as fused, torch.no_grad():
                self.assertTrue(torch.equal(layer(torch.ones(1, 3, 8)), expected))
            self.assertEqual(fused.calls, 1)

    def test_between_recordings_nothing_is_changed(self):
        for level in ("L1", "L0", "mix"):
            debugger = self.open(level)
            layer = encoder_layer()
            model = nn.Sequential(layer)
            for _ in range(2):
                debugger.start(model=model)
                model(torch.ones(1, 3, 8)).sum().backward()
                debugger.stop()
                with Fused() as fused, torch.no_grad():
                    model(torch.ones(1, 3, 8))
                self.assertEqual(fused.calls, 1, level)
                self.assertIs(functional.relu, ORIGINALS[0])
                self.assertIs(torch.Tensor.add, ORIGINALS[2])
                debugger.step()
            names = self.tree(1).names
            self.assertEqual(level != "L1", "Module.0.linear1.Linear.backward.0" in names)
            self.assertEqual(level != "L0", "Functional.layer_norm.1.backward" in names)
            self.close()

    def test_not_recorded_steps_find_the_functions(self):
        debugger = self.open("L1", step=[1])
        for step in range(3):
            debugger.start()
            self.assertEqual(functional.relu is ORIGINALS[0], step != 1)
            debugger.stop()
            debugger.step()

    def test_what_was_taken_before_is_recorded(self):
        model = Asking()
        library = types.ModuleType("library_of_this_test")
        exec("from torch.nn.functional import relu\ndef use(x): return relu(x)", vars(library))
        import sys
        sys.modules[library.__name__] = library
        try:
            debugger = self.open("L1")
            late = Asking()
            for _ in range(2):
                debugger.start()
                for one in (model, late):
                    one(torch.ones(2))
                library.use(torch.ones(2))
                self.assertIs(library.relu, functional.relu)
                debugger.stop()
                self.assertIs(model.act, ORIGINALS[1])
                self.assertIs(library.relu, ORIGINALS[0])
                model(torch.ones(2))
                debugger.step()
            for step in (0, 1):
                self.assertEqual(self.tree(step).names, ["Functional.silu.0.forward", "Functional.silu.1.forward",
                                                         "Functional.relu.0.forward"])
            self.assertEqual(self.tree().errors, "")
        finally:
            del sys.modules[library.__name__]

    def test_a_model_that_comes_later(self):
        debugger = self.open("mix")
        debugger.start(model=nn.Sequential(Asking()))
        debugger.stop()
        model = nn.Sequential(Asking())
        debugger.start(model=model)
        model(torch.ones(2))
        debugger.stop()
        self.assertIn("Functional.silu.0.forward", self.tree().names)

    def test_what_is_taken_meanwhile_is_given_back(self):
        debugger = self.open("L1")
        debugger.start()
        made, table = Asking(), {"silu": functional.silu}
        twin = copy.deepcopy(made)
        made(torch.ones(2))
        debugger.stop()
        for one in (made, twin):
            self.assertIs(one.act, ORIGINALS[1])
            one(torch.ones(2))
        self.assertIs(table["silu"], ORIGINALS[1])
        file = io.BytesIO()
        torch.save(made, file)
        self.assertIn(b"silu", file.getvalue())

    def test_pickles_made_meanwhile_name_the_function(self):
        debugger = self.open("L1")
        model = Asking()
        debugger.start()
        text = pickle.dumps(model)
        debugger.stop()
        self.assertIs(pickle.loads(text).act, ORIGINALS[1])

    def test_what_a_program_replaces_stays_replaced(self):
        original = functional.dropout
        debugger = self.open("L1")
        try:
            for _ in range(2):
                seed_all(3, rm_dropout=True)
                replaced = functional.dropout
                self.assertIsNot(replaced, original)
                debugger.start()
                x = torch.ones(50)
                y = functional.dropout(x, 0.5)
                debugger.stop()
                self.assertTrue(torch.equal(x, y))
                self.assertIs(functional.dropout, replaced)
                debugger.step()
            self.assertEqual(self.tree(1).names, ["Functional.dropout.0.forward"])
        finally:
            self.close()
            for name in ("dropout", "dropout2d", "dropout3d"):
                function = getattr(functional, name)
                while hasattr(function, "__wrapped__"):
                    function = function.__wrapped__
                setattr(functional, name, function)
            self.assertIs(functional.dropout, original)

    def test_a_hidden_write_between_recordings_is_seen(self):
        debugger = self.open("L1")
        x = torch.ones(4)
        for _number in (1.0, 5.0):
            debugger.start()
            torch.relu(x)
            debugger.stop()
            x.data.add_(4.0)
            x.numpy()[0] += 0.0
        data = self.tree().data
        self.assertEqual([data["Torch.relu.%d.forward" % n]["input_args"][0]["Max"] for n in (0, 1)], [1.0, 5.0])

    @unittest.skipIf(VERSION < (1, 13), "modes need a newer PyTorch")
    def test_who_sees_calls_sees_the_same(self):
        def work():
            x, weight = torch.ones(2, 3, requires_grad=True), torch.ones(3, 3)
            mode = Mode()
            with mode:
                y = functional.softmax(functional.relu(functional.linear(x, weight)), -1)
                torch.cat([y, y]).add(1).sum().backward()
            s = torch.ones(2, 3).as_subclass(Subclass)
            torch.cat([functional.softmax(s, -1), s]).add(1)
            seen = list(Subclass.seen)
            Subclass.seen.clear()
            return mode.seen, seen

        expected = work()
        self.assertEqual(expected, (["linear", "relu", "softmax", "cat", "add", "sum", "backward"],
                                    ["softmax", "cat", "add"]))
        for level in ("L1", "mix"):
            debugger = self.open(level)
            debugger.start(model=nn.Identity())
            got = work()
            debugger.stop()
            self.assertEqual(got, expected, level)
            self.assertEqual(self.tree().errors, "")
            self.assertEqual([name for name in self.tree().names if name.endswith("forward")], [
                "Functional.linear.0.forward", "Functional.relu.0.forward", "Functional.softmax.0.forward",
                "Torch.cat.0.forward", "Tensor.add.0.forward", "Tensor.sum.0.forward", "Functional.softmax.1.forward",
                "Torch.cat.1.forward", "Tensor.add.1.forward"])
            self.close()

    def test_a_default_device_reaches_factories(self):
        # The list of those is made when it is first asked for, which may be while something is recorded.
        script = """
import sys, torch
from msprobe.pytorch import PrecisionDebugger
debugger = PrecisionDebugger(dump_path=sys.argv[1])
debugger.start()
torch.set_default_device("meta")
print(torch.arange(3).device, torch.full((2,), 1.0).device, torch.eye(2).device)
debugger.stop()
print(torch.arange(3).device)
"""
        if VERSION < (2, 0):
            self.skipTest("set_default_device() needs a newer PyTorch")
        result = run_script(script, self.folder, os.path.join(self.folder, "dump"))
        self.assertEqual(result.stdout.split(), ["meta"] * 4)


if __name__ == "__main__":
    unittest.main()
