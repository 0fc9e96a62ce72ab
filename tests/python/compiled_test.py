# SPDX-License-Identifier: Apache-2.0
"""Modules inside of compiled code: the entries are those without a compiler, nothing is compiled anew by start() and stop(),
and the results of the compiled model are what they are without a recorder."""

import collections
import dataclasses
import json
import sys

from helpers import *

if VERSION < (2, 6):
    print("SKIPPED: PyTorch %s has no operators with effects" % torch.__version__)
    sys.exit(77)

from torch._dynamo.utils import counters

from msprobe.pytorch import compiled as recording


class Part(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.up, self.act, self.down = nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size)

    def forward(self, x, scale=1.0):
        return x + self.down(self.act(self.up(self.norm(x)))) * scale


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(Part() for _ in range(2))
        self.tied = nn.Linear(16, 16)

    def forward(self, x):
        for part in self.parts:
            x = part(x, scale=2.0)
        return self.tied(self.tied(x))


class Several(nn.Module):
    """Structures in and out, an output that is not used."""

    def __init__(self):
        super().__init__()
        self.inner = Pair()

    def forward(self, x):
        first, (second, _unused) = self.inner({"x": x, "more": [x * 2]}, True, flag=None)
        return first + second


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)

    def forward(self, values, use, flag=None):
        x = self.linear(values["x"] + values["more"][0])
        return x.sin(), (x.cos(), x.exp())


def make(kind=Model):
    torch.manual_seed(0)
    return kind()


def batch(number, rows=8):
    torch.manual_seed(10 + number)
    return torch.randn(rows, 16)


class Compiled(Case):
    def setUp(self):
        super().setUp()
        torch._dynamo.reset()
        counters.clear()

    def train(self, model, call, debugger=None, rows=(8, 8, 8), skipped=()):
        """Losses and gradients of some steps, as bytes."""
        results = []
        for number, count in enumerate(rows):
            if debugger is not None and number not in skipped:
                debugger.start(model)
            loss = call(batch(number, count)).square().mean()
            loss.backward()
            if debugger is not None and number not in skipped:
                debugger.stop()
                debugger.step()
            results += [loss.detach().numpy().tobytes()] + [one.grad.numpy().tobytes() for one in model.parameters()]
            model.zero_grad()
        return results

    def trees(self, steps):
        trees = [self.tree(step) for step in range(steps)]
        self.assertEqual([tree.errors for tree in trees], [""] * steps)
        return trees

    def eager(self, kind=Model, level="L0", **keys):
        model = make(kind)
        debugger = self.open(level)
        self.train(model, model, debugger, **keys)
        return self.trees(len(keys.get("rows", "abc")) - len(keys.get("skipped", ())))

    def assert_same(self, tree, eager):
        self.assertEqual(sorted(tree.names), sorted(eager.names))
        self.assertEqual(tree.construct, eager.construct)
        for name in tree.names:
            for side in ("input_args", "input_kwargs", "output", "input", "weight", "bias"):
                if (side == "output" and ".backward." in name) or side not in eager.data[name]:
                    continue
                self.assert_values(tree.data[name][side], eager.data[name][side], name)

    def assert_values(self, value, expected, name):
        if isinstance(expected, dict) and "Norm" not in expected and "type" not in expected:
            self.assertEqual(list(value), list(expected))
            value, expected = list(value.values()), list(expected.values())
        if isinstance(expected, list):
            self.assertEqual(len(value), len(expected), name)
            for one, other in zip(value, expected):
                self.assert_values(one, other, name)
        elif isinstance(expected, dict) and expected.get("type") == "torch.Tensor":
            for key in ("dtype", "shape", "requires_grad"):
                self.assertEqual(value[key], expected[key], name)
            self.assertAlmostEqual(value["Norm"], expected["Norm"], delta=1e-5 * expected["Norm"] + 1e-9, msg=name)

    def test_entries_bits_and_graphs(self):
        for backend, whole in (("aot_eager", True), ("inductor", True)):
            torch._dynamo.reset()
            counters.clear()
            model = make()
            plain = self.train(model, torch.compile(model, backend=backend, fullgraph=whole))
            graphs = counters["stats"]["unique_graphs"]
            self.assertEqual(graphs, 1)
            model = make()
            debugger = self.open("L0")
            compiled = torch.compile(model, backend=backend, fullgraph=whole)
            torch._dynamo.reset()
            counters.clear()
            self.assertEqual(self.train(model, compiled, debugger, skipped=(1,)), plain)
            self.assertEqual(counters["stats"]["unique_graphs"], 1)  # start() and stop() compile nothing
            self.assertEqual(dict(counters["graph_break"]), {})
            trees = self.trees(2)
            # The line of the model comes first.
            stack = next(frames for names, frames in trees[0].stack.values()
                         if "Module.parts.0.up.Linear.forward.0" in names)
            line = next(frame for frame in stack if "/torch/" not in frame)
            self.assertIn("self.up(self.norm(x))", line)
            for tree, eager in zip(trees, self.eager(skipped=(1,))):
                self.assert_same(tree, eager)

    def test_ways_to_compile(self):
        eager = self.eager()

        def after(model):
            return torch.compile(model, backend="aot_eager")

        def method(model):
            model.compile(backend="aot_eager")
            return model

        def regions(model):
            for number, part in enumerate(model.parts):
                model.parts[number] = torch.compile(part, backend="aot_eager")
            return model

        def methods(model):
            for part in model.parts:
                part.compile(backend="aot_eager")
            return model

        for way in (after, method, regions, methods):
            torch._dynamo.reset()
            model = make()
            compiled = way(model)
            self.train(model, compiled, self.open("L0"))
            for tree, other in zip(self.trees(3), eager):
                self.assert_same(tree, other)

    def test_compiled_before_it_was_recorded(self):
        model = make()
        compiled = torch.compile(model, backend="aot_eager")
        for _ in range(2):
            compiled(batch(0))
        for _ in range(2):
            self.train(model, compiled, self.open("L0"))
            for tree, other in zip(self.trees(3), self.eager()):
                self.assert_same(tree, other)
            model, compiled = make(), torch.compile(make(), backend="aot_eager")
            model = compiled._orig_mod

    def test_dynamic_shapes(self):
        rows = (8, 9, 10, 11)
        model = make()
        compiled = torch.compile(model, backend="aot_eager", dynamic=True)
        self.train(model, compiled, self.open("L0"), rows=rows)
        for tree, other in zip(self.trees(4), self.eager(rows=rows)):
            self.assert_same(tree, other)

    def test_graph_breaks(self):
        class Breaking(Model):
            def forward(self, x):
                x = self.parts[0](x, scale=2.0)
                torch._dynamo.graph_break()
                return self.tied(self.parts[1](x, scale=2.0))

        model = make(Breaking)
        self.train(model, torch.compile(model, backend="aot_eager"), self.open("L0"))
        for tree, other in zip(self.trees(3), self.eager(Breaking)):
            self.assert_same(tree, other)

    def test_structures(self):
        model = make(Several)
        self.train(model, torch.compile(model, backend="aot_eager", fullgraph=True), self.open("L0"))
        for tree, other in zip(self.trees(3), self.eager(Several)):
            self.assert_same(tree, other)

    def test_outputs_changed_in_place(self):
        def kind():
            return nn.Sequential(nn.Linear(16, 16), nn.ReLU(inplace=True), nn.Linear(16, 16), nn.Flatten())

        for backend in ("aot_eager", "inductor"):
            torch._dynamo.reset()
            model = make(kind)
            plain = self.train(model, torch.compile(model, backend=backend, fullgraph=True))
            model = make(kind)
            self.assertEqual(self.train(model, torch.compile(model, backend=backend, fullgraph=True), self.open("L0")),
                             plain)
            for tree, other in zip(self.trees(3), self.eager(kind)):
                self.assertEqual(sorted(tree.names), sorted(other.names))

    def test_named_structures(self):
        Named = collections.namedtuple("Named", "first second")

        @dataclasses.dataclass
        class Fields:
            first: torch.Tensor
            second: torch.Tensor = None

        class Naming(nn.Module):
            def __init__(self, kind):
                super().__init__()
                self.linear, self.kind = nn.Linear(16, 16), kind

            def forward(self, x):
                return self.kind(self.linear(x), None)

        for kind in (Named, Fields):
            whole = lambda: nn.ModuleDict({"inner": Naming(kind)})
            trees = []
            for compiling in (False, True):
                model = make(whole)
                call = torch.compile(model["inner"], backend="aot_eager") if compiling else model["inner"]
                self.train(model, lambda x: call(x).first, self.open("L0"))
                trees.append(self.trees(3))
            for tree, other in zip(trees[1], trees[0]):
                self.assert_same(tree, other)
                self.assertEqual(json.dumps(other.data["Module.inner.Naming.forward.0"]["output"]).count("second"), 1)

    def test_layers_with_a_fast_path(self):
        def kind():
            layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
            return nn.ModuleDict({"encoder": nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)})

        model = make(kind)
        compiled = torch.compile(model["encoder"], backend="aot_eager")
        counters.clear()
        self.train(model, lambda x: compiled(x[None]), self.open("L0"), rows=(8, 8, 8, 8), skipped=(1,))
        self.assertEqual(counters["stats"]["unique_graphs"], 1)
        trees = self.trees(3)
        self.assertGreater(len(trees[0].names), 30)
        self.assertEqual([tree.names for tree in trees[1:]], [trees[0].names] * 2)

    def test_arrays_of_the_program(self):
        class Counting(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(16, 16)

            def forward(self, x):
                return self.linear(x) * float(x.detach().numpy().shape[0])

        for level in ("L0", "mix"):
            torch._dynamo.reset()
            model = make(Counting)
            self.train(model, torch.compile(model, backend="aot_eager"), self.open(level))
            self.assertIn("Module.linear.Linear.backward.0", self.trees(3)[2].names)

    def test_calls_that_the_compiler_moves(self):
        """Inductor computes projections of one input together: inputs of the second one come before the output of the first."""
        class Heads(nn.Module):
            def __init__(self):
                super().__init__()
                self.q, self.k, self.o = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)

            def forward(self, x):
                return self.o(self.q(x) * self.k(x))

        class Whole(nn.Module):
            def __init__(self):
                super().__init__()
                self.heads = Heads()

            def forward(self, x):
                return self.heads(x)

        trees = []
        for moved in (False, True):
            torch._dynamo.reset()
            model = make(Whole)
            debugger = self.open("L0")
            debugger.start(model)
            first = len(recording._sites)
            with torch.no_grad():
                torch.compile(model, backend="aot_eager")(batch(0))
            debugger.stop()
            debugger.step()
            sites = range(first, len(recording._sites))
            self.assertEqual(len(sites), 8)  # inputs and outputs of heads, q, k and o, as the model calls them
            order = [0, 3, 1, 4, 2, 5, 6, 7] if moved else range(8)
            debugger.start(model)
            for place in order:
                kind = 0 if place in (0, 1, 3, 5) else 1
                recording._tap([torch.full((2,), float(place))], sites[place], kind)
            debugger.stop()
            debugger.step()
            trees.append(self.trees(2)[1])
        self.assertEqual(trees[1].construct, trees[0].construct)
        self.assertEqual(trees[1].data, trees[0].data)
        self.assertEqual(len(trees[0].names), 4)
        self.assertEqual(trees[0].construct["Module.heads.k.Linear.forward.0"], "Module.heads.Heads.forward.0")

    def test_optimizers(self):
        breaks = []
        for recorded in (False, True):
            torch._dynamo.reset()
            counters.clear()
            model = make()
            optimizer = torch.optim.Adam(model.parameters())
            step = torch.compile(optimizer.step, backend="aot_eager")
            debugger = self.open("L0") if recorded else None
            for number in range(3):
                if recorded:
                    debugger.start(model)
                model(batch(number)).square().mean().backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                step()
                if recorded:
                    debugger.stop()
                    debugger.step()
                optimizer.zero_grad()
            breaks.append((sum(counters["graph_break"].values()), counters["stats"]["unique_graphs"],
                           [one.detach().numpy().tobytes() for one in model.parameters()]))
        self.assertEqual(breaks[0], breaks[1])
        self.trees(3)

    def test_several_forwards_before_their_backwards(self):
        recorded = []
        for compiling in (False, True):
            model = make()
            call = torch.compile(model, backend="aot_eager") if compiling else model
            debugger = self.open("L0")
            debugger.start(model)
            losses = [call(batch(number)).square().mean() for number in range(3)]
            for loss in losses:
                loss.backward()
            debugger.stop()
            debugger.step()
            recorded.append(self.trees(1)[0])
        self.assert_same(recorded[1], recorded[0])

    def test_without_gradients(self):
        model = make()
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        debugger = self.open("L0")
        with torch.no_grad():
            expected = model(batch(0))
            debugger.start(model)
            self.assertTrue(torch.equal(compiled(batch(0)), expected))
            debugger.stop()
            debugger.step()
        self.assertEqual(len(self.trees(1)[0].names), 12)

    def test_export_is_left_alone(self):
        model = make().eval()
        debugger = self.open("L0")
        debugger.start(model)
        exported = torch.export.export(model, (batch(0),))
        debugger.stop()
        debugger.step()
        targets = collections.Counter(str(node.target) for node in exported.graph.nodes)
        self.assertFalse([target for target in targets if "msprobe" in target])
        torch.testing.assert_close(exported.module()(batch(0)), model(batch(0)))

    def test_operations_are_said_to_be_left_out(self):
        folder = self.folder
        script = (
            "import torch\n"
            "from msprobe.pytorch import PrecisionDebugger\n"
            "model = torch.compile(torch.nn.Sequential(torch.nn.Linear(2, 2)), backend='eager')\n"
            "debugger = PrecisionDebugger(dump_path=%r, level='L1', task='statistics')\n"
            "for _ in range(2):\n"
            "    debugger.start(model)\n"
            "    model(torch.ones(1, 2)).sum().backward()\n"
            "    debugger.stop()\n"
            "    debugger.step()\n")
        result = run_script(script % os.path.join(folder, "out"), folder)
        said = result.stdout + result.stderr
        self.assertEqual(said.count("operations inside of compiled code are not recorded"), 1)
        self.assertEqual(said.count("TORCH_COMPILE_DISABLE=1"), 1)
        # With the variable that the message advises, the calls are there, and no message comes.
        result = run_script(script % os.path.join(folder, "without"), folder,
                            environment={"TORCH_COMPILE_DISABLE": "1"})
        self.assertNotIn("compiled code", result.stdout + result.stderr)
        self.assertIn("Functional.linear.0.forward", find_tree(os.path.join(folder, "without")).names)

    def test_graphs_of_a_device_are_refused(self):
        result = run_script(
            "import torch\n"
            "from msprobe.pytorch import PrecisionDebugger\n"
            "debugger = PrecisionDebugger(dump_path=%r, level='L0', task='statistics')\n"
            "model = torch.nn.Sequential(torch.nn.Linear(2, 2))\n"
            "available, torch.cuda.is_available = torch.cuda.is_available, lambda: True\n"
            "torch.compile(model, mode='reduce-overhead')\n"
            "torch.cuda.is_available = available\n"
            "debugger.start(model)\n"
            "torch.compile(model, backend='eager')(torch.ones(1, 2)).sum().backward()\n"
            "debugger.stop()\n"
            "debugger.step()\n" % os.path.join(self.folder, "out"), self.folder)
        self.assertEqual((result.stdout + result.stderr).count("compiled code is not recorded: CUDA graphs"), 2)
        self.assertIn("0 entries: compiled code is not recorded", result.stdout + result.stderr)
        self.assertEqual(find_tree(os.path.join(self.folder, "out")).names, [])

    def test_a_function_that_is_compiled_later(self):
        for level, count in (("mix", 1), ("L0", 0)):
            result = run_script(
                "import torch\n"
                "from msprobe import _native\n"
                "from msprobe.pytorch import PrecisionDebugger\n"
                "debugger = PrecisionDebugger(dump_path=%r, level=%r, task='statistics')\n"
                "debugger.start(torch.nn.Linear(2, 2))\n"
                "loss = torch.compile(lambda x: (x * 2).sum(), backend='eager')\n"
                "loss(torch.ones(2, requires_grad=True)).backward()\n"
                "debugger.stop()\n"
                "debugger.step()\n"
                "_native.close()\n"
                "torch.compile(loss)\n" % (os.path.join(self.folder, level), level), self.folder)
            said = (result.stdout + result.stderr).count("operations inside of compiled code are not recorded")
            self.assertEqual(said, count)


if __name__ == "__main__":
    unittest.main()
