# SPDX-License-Identifier: Apache-2.0
"""Gradients at the borders of modules: they are those of the module alone, and no bit of the training's changes."""

import copy
import threading

from helpers import *
from torch.utils.checkpoint import checkpoint

from monitor_helpers import MonitorCase
from msprobe.pytorch import describe, gradients


class Function(nn.Module):
    """A module that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


class Around(nn.Module):
    """A model that calls its modules as `call` does."""

    def __init__(self, call, **parts):
        super().__init__()
        self.call = call
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x):
        return self.call(self, x)


class Attention(nn.Module):
    """Sums of three gradients: their order shows in the last bits."""

    def __init__(self, size=16):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.q, self.k, self.v, self.o = (nn.Linear(size, size) for _ in range(4))
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        h = self.norm(x)
        x = x + self.o(torch.softmax(self.q(h) @ self.k(h).transpose(-1, -2), -1) @ self.v(h))
        h = self.norm(x)
        return x + self.down(functional.gelu(self.up(h))), h


class Decoder(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(depth))

    def forward(self, x):
        total = 0
        for layer in self.layers:
            x, h = layer(x)
            total = total + h
        return x, total


def bits(tensors):
    return [None if tensor is None else (tensor.dtype, tensor.shape, tensor.detach().numpy().tobytes())
            for tensor in tensors]


def make_decoder():
    torch.manual_seed(1)
    model = Decoder()
    x = torch.randn(2, 8, 16)
    return model, x


def train_decoder(model, x):
    first, second = model(x)
    loss = first.square().mean() + second.sum()
    loss.backward()
    return bits([loss] + [parameter.grad for parameter in model.parameters()])


class Unchanged(Case):
    def test_no_bit_of_a_gradient(self):
        expected = train_decoder(*make_decoder())
        for level in ("L0", "mix"):
            debugger = self.open(level)
            model, x = make_decoder()
            debugger.start(model)
            self.assertEqual(train_decoder(model, x), expected)
            debugger.stop()
            debugger.step()
            self.assertEqual(self.tree().errors, "")
            self.assertEqual(sum(name.startswith("Module.") and ".backward." in name for name in self.tree().names), 27)


class UnchangedByTheMonitor(MonitorCase):
    def test_no_bit_of_a_gradient(self):
        expected = train_decoder(*make_decoder())
        model, x = make_decoder()
        self.configure(targets={}, all_xy=True, xy_distribution=True, ops=["norm"])
        self.monitor(model, torch.optim.SGD(model.parameters(), lr=0.1))
        self.assertEqual(train_decoder(model, x), expected)


class Recorded(Case):
    def setUp(self):
        super().setUp()
        torch.manual_seed(4)
        self.x = torch.randn(4, 6)

    def record(self, model, x=None, backward=None, level="L0"):
        """{module: [(gradients of outputs, gradients of inputs)] by call}, and dump.json's records of the same."""
        debugger = self.open(level, "tensor")
        debugger.start(model)
        output = model(self.x if x is None else x)
        if backward is not None:
            backward(output)
        else:
            output.square().sum().backward()
        debugger.stop()
        debugger.step()
        self.assertEqual(self.tree().errors, "")
        self.entries = {name: entry for name, entry in self.tree().data.items() if ".backward." in name}
        found = {}
        for name, entry in self.entries.items():
            if name.startswith("Module."):
                path, _, number = name[len("Module."):].rpartition(".backward.")
                found[path.rpartition(".")[0], int(number)] = tuple(
                    [self.load(one) for one in entry[side]] for side in ("input", "output"))
        return found

    def load(self, described):
        if described is None:
            return None
        path = os.path.join(self.tree().folder, "dump_tensor_data", described["data_name"])
        return torch.load(path)

    def note(self, name, side, position):
        return (self.entries[name][side][position] or {}).get("gradient_of", "")

    def same(self, got, expected):
        self.assertEqual(len(got), len(expected))
        for one, other in zip(got, expected):
            if other is None:
                self.assertIsNone(one)
            else:
                self.assertEqual((one.dtype, one.shape), (other.dtype, other.shape))
                torch.testing.assert_close(one, other.detach(), rtol=1e-6, atol=1e-6)

    def test_the_share_of_this_module_only(self):
        # x has two other uses.
        model = Around(lambda m, x: m.b(m.a(x)) + 3 * m.a.last + m.c(m.a.last), a=nn.Linear(6, 6), b=nn.Linear(6, 6),
                       c=nn.Linear(6, 6))
        model.a.register_forward_hook(lambda module, args, output: setattr(module, "last", output))
        output = model(self.x)
        last = 2 * output.detach()
        found = self.record(model)
        self.same(found["b", 0][0], [last])
        self.same(found["b", 0][1], [last @ model.b.weight])
        self.same(found["c", 0][1], [last @ model.c.weight])
        self.same(found["a", 0][0], [last @ model.b.weight + 3 * last + last @ model.c.weight])

    def test_several_uses_inside_are_added(self):
        part = Function(lambda x: x * 2 + x * 3 + x.sin())
        found = self.record(Around(lambda m, x: m.part(m.a(x)), a=nn.Linear(6, 6), part=part),
                            backward=lambda output: output.sum().backward())
        inner = found["a", 0][0][0]
        self.same(found["part", 0][1], [inner])
        self.assertFalse(self.note("Module.part.Function.backward.0", "output", 0))

    def test_half_precision_is_rounded_once(self):
        part = Function(lambda x: sum((x * float(factor) for factor in range(1, 300, 7)), x * 0.001))
        model = Around(lambda m, x: m.part(x * 1), part=part).bfloat16()
        found = self.record(model, self.x.bfloat16().requires_grad_(), lambda output: output.sum().backward())
        exact = sum(float(factor) for factor in range(1, 300, 7)) + float(torch.tensor(0.001).bfloat16())
        self.same(found["part", 0][1], [torch.full((4, 6), exact).bfloat16()])

    def test_one_tensor_as_several_inputs(self):
        model = Around(lambda m, x: m.part(x * 1, x * 2, *[x * 3] * 2), part=Function(lambda a, b, c, d: a + b * c * d))
        found = self.record(model, self.x.requires_grad_(), lambda output: output.sum().backward())
        x = self.x
        self.same(found["part", 0][1], [torch.ones(4, 6), 9 * x * x, 12 * x * x, None])
        self.assertIn("inputs 2 and 3 together", self.note("Module.part.Function.backward.0", "output", 2))

    def test_one_tensor_as_several_outputs(self):
        def inside(x):
            h = x * 2
            return h, [x * 3, h]
        model = Around(lambda m, x: m.part(m.a(x)), a=nn.Linear(6, 6), part=Function(inside))
        found = self.record(model, backward=lambda output: (output[0] + 5 * output[1][1]).sum().backward())
        self.same(found["part", 0][0], [torch.full((4, 6), 6.0), None, None])
        self.assertIn("outputs 0 and 2 together", self.note("Module.part.Function.backward.0", "input", 0))

    def test_a_note_about_any_kind_of_tensor(self):
        for tensor in (torch.ones(2), torch.ones(2).to_sparse(), torch.ones(2, device="meta")):
            described = describe.describe(gradients.Noted(tensor, "two together"))
            self.assertEqual(described[6], '{"gradient_of": "two together"}')

    def test_modules_that_return_what_they_got(self):
        for part in (nn.Identity(), nn.Sequential(nn.Identity()), nn.Dropout(0.5).eval()):
            model = Around(lambda m, x: m.part(m.a(x)) * 2, a=nn.Linear(6, 6), part=part)
            found = self.record(model, backward=lambda output: output.sum().backward())
            self.same(found["part", 0][0], [torch.full((4, 6), 2.0)])
            self.same(found["part", 0][1], [torch.full((4, 6), 2.0)])
            name = "Module.part.%s.backward.0" % type(part).__name__
            for side in ("input", "output"):
                self.assertIn("returns as it got it", self.note(name, side, 0))

    def test_an_output_that_is_used_inside_too(self):
        def inside(x):
            h = x * 2
            return h, h * h
        model = Around(lambda m, x: sum(m.part(m.a(x))), a=nn.Linear(6, 6), part=Function(inside))
        found = self.record(model, backward=lambda output: output.sum().backward())
        self.same(found["part", 0][0], [torch.ones(4, 6)] * 2)
        self.assertIn("less those inside", self.note("Module.part.Function.backward.0", "input", 0))
        # One that has no other use has no gradient.
        model = Around(lambda m, x: m.part(m.a(x))[1], a=nn.Linear(6, 6), part=Function(inside))
        found = self.record(model, backward=lambda output: output.sum().backward())
        self.same(found["part", 0][0], [None, torch.ones(4, 6)])

    def test_leaves(self):
        model = Around(lambda m, x: m.part(x, m.weight), part=Function(lambda x, w: x * w))
        model.weight = nn.Parameter(torch.full((6,), 3.0))
        x = self.x.requires_grad_()
        found = self.record(model, x, lambda output: output.sum().backward())
        self.same(found["part", 0][1], [torch.full((4, 6), 3.0), x.sum(0)])

    def test_in_place(self):
        def inside(x):
            x.mul_(3)
            return x.neg_()
        model = Around(lambda m, x: m.part(m.a(x)).add_(1), a=nn.Linear(6, 6), part=Function(inside))
        for level in ("L0", "mix"):
            found = self.record(model, backward=lambda output: output.sum().backward(), level=level)
            self.same(found["part", 0][0], [torch.ones(4, 6)])
            self.same(found["part", 0][1], [torch.full((4, 6), -3.0)])

    def test_a_module_may_return_a_view(self):
        model = Around(lambda m, x: m.part(m.a(x))[0].sum() * 5, a=nn.Linear(6, 6),
                       part=Function(lambda x: (x[:, :3], x[:, 3:])))
        found = self.record(model, backward=lambda output: output.backward())
        self.same(found["part", 0][0], [torch.full((4, 3), 5.0), None])
        self.same(found["part", 0][1], [torch.tensor([5.0] * 3 + [0.0] * 3).expand(4, 6)])

    def test_outputs_may_be_detached_in_place(self):
        model = Around(lambda m, x: m.b(m.a(x).detach_()), a=nn.Linear(6, 6), b=nn.Linear(6, 6))
        for level in ("L0", "mix"):
            found = self.record(model, level=level)
            self.assertEqual(set(found), {("b", 0)})

    def test_calls_of_one_module(self):
        model = Around(lambda m, x: m.a(m.a(x * 1) * 2) * 3, a=nn.Linear(6, 6))
        found = self.record(model, self.x.requires_grad_(), lambda output: output.sum().backward())
        outer = torch.full((4, 6), 3.0)
        self.same(found["a", 1][0] + found["a", 1][1], [outer, outer @ model.a.weight])
        self.same(found["a", 0][0], [2 * found["a", 1][1][0]])

    def test_nested_modules(self):
        torch.manual_seed(1)
        model = Decoder()
        model.first = nn.Linear(16, 16)
        model.forward = lambda x: Decoder.forward(model, model.first(x))
        expected = {}
        for name, module in model.named_modules():
            if name:
                module.register_full_backward_hook(
                    lambda module, leaving, entering, name=name: expected.setdefault(name, []).append(
                        [[one if one is None else one.clone() for one in side] for side in (entering, leaving)]))
        x = torch.randn(2, 8, 16)
        first, second = model(x)
        (first.square().mean() + second.sum()).backward()
        for module in model.modules():
            module._backward_hooks.clear()
        found = self.record(model, x, lambda outputs: (outputs[0].square().mean() + outputs[1].sum()).backward())
        self.assertEqual({name for name, _ in found}, set(expected) | {"first"})
        del expected["first"]  # has no hook: its input needs no gradient
        for name, calls in expected.items():
            for number, (entering, leaving) in enumerate(reversed(calls)):
                self.same(found[name, number][0], entering)
                self.same(found[name, number][1], leaving)

    def test_operations_before_a_module_inside(self):
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(6)

            def forward(self, x):
                return self.norm(x.sin() * x).cos(), x.exp()

        model = Around(lambda m, x: sum(m.outer(m.a(x))), a=nn.Linear(6, 6), outer=Outer())
        y = model.a(self.x).detach().requires_grad_()
        sum(model.outer(y)).sum().backward()
        found = self.record(model, backward=lambda output: output.sum().backward())
        self.same(found["outer", 0][1], [y.grad])
        self.same(found["a", 0][0], [y.grad])

    @unittest.skipIf(VERSION < (2, 0), "before PyTorch 2.0 hooks do not see keyword arguments")
    def test_what_comes_by_keyword_and_is_returned(self):
        model = Around(lambda m, x: sum(m.part(x * 1, kept=m.a(x))), a=nn.Linear(6, 6),
                       part=Function(lambda x, kept: (x + kept, kept)))
        self.record(model, self.x.requires_grad_(), lambda output: output.sum().backward())
        self.assertIn("returns as it got it", self.note("Module.part.Function.backward.0", "input", 1))

    def test_an_output_without_a_use_waits_for_nobody(self):
        def inside(x):
            return x * 2, (x * 3).exp(), torch.ones(1, requires_grad=True) * 4
        model = Around(lambda m, x: m.part(m.a(x))[0] + m.part(m.a(x))[2], a=nn.Linear(6, 6), part=Function(inside))
        found = self.record(model, backward=lambda output: output.sum().backward())
        self.same(found["part", 0][0], [torch.ones(4, 6), None, None])
        self.same(found["part", 1][0], [None, None, torch.full((1,), 24.0)])
        self.same(found["part", 1][1], [None])

    @unittest.skipIf(VERSION < (2, 0), "before PyTorch 2.0 hooks of a node are called in the order of registration")
    def test_hooks_of_the_program(self):
        # The module gets the gradient that these hooks return.
        def hooked(module, args, output):
            output.register_hook(lambda gradient: gradient * 10)
        model = Around(lambda m, x: m.a(x), a=nn.Linear(6, 6))
        model.a.register_forward_hook(hooked)
        found = self.record(model, backward=lambda output: output.sum().backward())
        self.same(found["a", 0][0], [torch.full((4, 6), 10.0)])
        self.same([model.a.bias.grad], [torch.full((6,), 40.0)])

    def test_functions_of_the_program(self):
        class Doubled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, unused):
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                return gradient * 7, None

        model = Around(lambda m, x: m.part(m.a(x)), a=nn.Linear(6, 6), part=Function(lambda x: Doubled.apply(x, None)))
        found = self.record(model, backward=lambda output: output.sum().backward())
        self.same(found["part", 0][1], [torch.full((4, 6), 7.0)])

    def test_checkpointing(self):
        inner = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
        plain = copy.deepcopy(inner)
        x = (self.x * 2).requires_grad_()
        plain(x).square().sum().backward()
        for reentrant in (False, True):
            model = Around(lambda m, x: checkpoint(m.inner, x * 2, use_reentrant=reentrant), inner=inner)
            found = self.record(model, self.x.clone().requires_grad_())
            self.same(found["inner", 1 if reentrant else 0][1], [x.grad])
            self.same(found["inner.1", 1 if reentrant else 0][0], [2 * plain(x)])

    def test_a_graph_that_is_used_again(self):
        model = Around(lambda m, x: m.a(x), a=nn.Linear(6, 6))

        def twice(output):
            loss = output.sum()
            loss.backward(retain_graph=True)
            loss.backward()
        found = self.record(model, self.x.requires_grad_(), twice)
        self.same(found["a", 0][0], [torch.ones(4, 6)])
        self.same(found["a", 0][1], [torch.ones(4, 6) @ model.a.weight])

    def test_a_backward_that_failed_leaves_nothing_behind(self):
        model = Around(lambda m, x: m.b(m.part(m.a(x))), a=nn.Linear(6, 6), b=nn.Linear(6, 6),
                       part=Function(lambda x: x * 2 + x * 3))

        def again(output):
            fail = [True]

            def failing(gradient):
                if fail.pop():
                    raise ValueError("a hook of the program")
            handle = model.part.first.register_hook(failing)
            with self.assertRaises(ValueError):
                output.sum().backward(retain_graph=True)
            handle.remove()
            output.sum().backward()
        model.part.register_forward_pre_hook(lambda module, args: setattr(module, "first", args[0]))
        found = self.record(model, backward=again)
        self.same(found["part", 0][1], [5 * found["part", 0][0][0]])

    def test_second_derivatives(self):
        model = Around(lambda m, x: m.b(torch.tanh(m.a(x))), a=nn.Linear(6, 6), b=nn.Linear(6, 1))

        def penalty(output):
            gradient, = torch.autograd.grad(output.sum(), x, create_graph=True)
            (output.sum() + gradient.square().sum()).backward()
        expected = copy.deepcopy(model)
        x = self.x.clone().requires_grad_()
        penalty(expected(x))
        x = self.x.clone().requires_grad_()
        self.record(model, x, penalty)
        self.assertEqual(bits(one.grad for one in model.parameters()), bits(one.grad for one in expected.parameters()))

    def test_other_threads(self):
        model = Around(lambda m, x: m.part(m.a(x)), a=nn.Linear(6, 6), part=Function(lambda x: x * 2 + x.sin()))

        def elsewhere(output):
            thread = threading.Thread(target=output.sum().backward)
            thread.start()
            thread.join()
        found = self.record(model, backward=elsewhere)
        self.same(found["part", 0][1], [2 + model.a(self.x).cos()])

    def test_a_backward_in_two_parts(self):
        # As schedules of pipelines without bubbles: first what goes on to the stage before, then the parameters.
        model = Around(lambda m, x: m.b(m.part(m.a(x))), a=nn.Linear(6, 6), b=nn.Linear(6, 6),
                       part=Function(lambda x: x * 2 + x * 3))
        x = self.x.requires_grad_()

        def split(output):
            loss = output.sum()
            torch.autograd.grad(loss, x, retain_graph=True)
            torch.autograd.backward(loss, inputs=list(model.parameters()))
        found = self.record(model, x, split)
        self.same(found["b", 0][1], [torch.ones(4, 6) @ model.b.weight])
        self.same(found["part", 0][1], [5 * found["part", 0][0][0]])
        self.assertEqual(sum(name.endswith(".backward.0") for name in self.entries), 3)

    @unittest.skipIf(not hasattr(torch, "func"), "no torch.func")
    def test_transformations(self):
        model = Around(lambda m, x: m.a(x).tanh(), a=nn.Linear(6, 6))
        parameters = dict(model.named_parameters())

        def loss(parameters, x):
            return torch.func.functional_call(model, parameters, (x,)).sum()
        expected = torch.func.grad(loss)(parameters, self.x)
        debugger = self.open("L0")
        debugger.start(model)
        got = torch.func.grad(loss)(parameters, self.x)
        torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, self.x)
        debugger.stop()
        debugger.step()
        self.assertEqual(self.tree().errors, "")
        self.assertEqual(bits(got.values()), bits(expected.values()))


class Inference(Case):
    def test_a_module_that_is_first_called_in_inference_mode(self):
        """Gradients of its parameters are recorded once it is trained, and nothing fails before."""
        for mode in (torch.inference_mode, torch.no_grad):
            debugger = self.open("mix")
            net = nn.Sequential(nn.Linear(3, 2))
            debugger.start(net)
            with mode():
                net(torch.ones(1, 3))
            net(torch.ones(1, 3)).sum().backward()
            debugger.stop()
            debugger.step()
            tree = self.tree()
            self.assertEqual(tree.errors, "")
            self.assertEqual(sorted(tree.data["Module.0.Linear.parameters_grad.0"]), ["bias", "weight"])
            self.assertEqual(tree.data["Module.0.Linear.parameters_grad.0"]["weight"][0]["Max"], 1.0)


if __name__ == "__main__":
    unittest.main()
