# SPDX-License-Identifier: Apache-2.0
"""Modules of many shapes: in-place, shared, in lists, with keywords only, with dicts and dataclasses; copies."""

import collections
import copy
import dataclasses
import pickle

from helpers import *


class InPlaceChain(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.0, inplace=True)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        y = self.norm(self.conv(x))
        y.add_(0.5)
        self.act(y)  # the result is not used: y itself has changed
        y = self.drop(y)
        return self.out(y)


class Views(nn.Module):
    def __init__(self):
        super().__init__()
        self.pass_on = nn.Identity()

    def forward(self, x):
        y = self.pass_on(x.view(2, 16)).view(4, 8)
        y[0].mul_(2.0)
        return y.t()


class Scaled(nn.Module):
    """Changes one of its inputs in place, and then once more."""

    def forward(self, x, factor):
        return functional.relu(x.mul_(factor), inplace=True)


class ScaledNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.scaled = Scaled()

    def forward(self, x):
        y = self.first(x)
        return self.scaled(y, self.first.bias)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = self.first

    def forward(self, x):
        return self.second(self.first(x))


class KeywordsOnly(nn.Module):
    def forward(self, *, x, scale=2.0):
        return x * scale


class DictOut(nn.Module):
    def forward(self, x, y):
        return {"a": x * 2, "rest": [y, None]}


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor


class PairOut(nn.Module):
    def forward(self, x):
        return Pair(x * 2, x + 1)


Named = collections.namedtuple("Named", "first rest")


class NamedOut(nn.Module):
    def forward(self, x):
        return Named(x * 2, [x + 1, "text"])


class Holder(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args, **kwargs):
        return self.inner(*args, **kwargs)


def gradients(model):
    return [None if parameter.grad is None else parameter.grad.clone() for parameter in model.parameters()]


class Modules(Case):
    def train(self, level, model, *args, **kwargs):
        debugger = self.open(level)
        debugger.start(model=model)
        result = model(*args, **kwargs)
        total = sum(part.sum() for part in torch.utils._pytree.tree_flatten(result)[0] if isinstance(part, torch.Tensor)) \
            if not dataclasses.is_dataclass(result) else result.left.sum() + result.right.sum()
        if total.requires_grad:
            total.backward()
        debugger.stop()
        debugger.step()
        tree = self.tree()
        self.assertEqual(tree.errors, "")
        return tree, total

    def test_in_place_operations_keep_their_meaning(self):
        for kind in (InPlaceChain, Views):
            torch.manual_seed(2)
            plain = kind()
            hooked = copy.deepcopy(plain)
            leaf = make_input().requires_grad_()
            again = make_input().requires_grad_()
            expected = plain(leaf * 1.0)
            expected.sum().backward()
            _, total = self.train("mix", Holder(hooked), again * 1.0)
            self.assertEqual(float(expected.detach().sum()), float(total.detach()))
            self.assertTrue(torch.allclose(leaf.grad, again.grad))
            for one, other in zip(gradients(plain), gradients(hooked)):
                self.assertTrue(torch.allclose(one, other, rtol=1e-5, atol=1e-6))

    def test_in_place_relu(self):
        net = make_net(inplace=True)
        tree, _ = self.train("L0", net, make_input())
        self.assertIn("Module.b1.act.ReLU.forward.0", tree.names)
        self.assertIn("Module.b1.l1.Linear.parameters_grad.0", tree.names)

    def test_gradients_of_in_place_operations_are_those_without_modules(self):
        for kind in (InPlaceChain, ScaledNet, lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True))):
            recorded = {}
            for level in ("L1", "mix"):
                torch.manual_seed(2)
                tree, _ = self.train(level, kind(), make_input())
                recorded[level] = {name: entry for name, entry in tree.data.items()
                                   if name.startswith(("Functional.", "Tensor.")) and name.endswith("backward")}
            self.assertTrue(any("relu" in name for name in recorded["L1"]))
            self.assertEqual(recorded["mix"], recorded["L1"])

    def test_shared_module(self):
        tree, _ = self.train("L0", Shared(), make_input())
        self.assertEqual([name for name in tree.names if "forward" in name],
                         ["Module.first.Linear.forward.0", "Module.first.Linear.forward.1"])
        self.assertEqual([name for name in tree.names if "backward" in name],
                         ["Module.first.Linear.backward.1", "Module.first.Linear.backward.0"])

    def test_list_of_models(self):
        debugger = self.open("L0")
        models = [Shared(), Shared()]
        debugger.start(model=models)
        models[1](models[0](make_input()))
        debugger.stop()
        names = self.tree().names
        self.assertEqual(names[0], "Module.0.first.Linear.forward.0")
        self.assertEqual(names[-1], "Module.1.first.Linear.forward.1")

    def test_keywords_only(self):
        tree, _ = self.train("L0", Holder(KeywordsOnly()), x=make_input(), scale=3.0)
        entry = tree.data["Module.inner.KeywordsOnly.forward.0"]
        self.assertEqual(entry["input_args"], [])
        if VERSION >= (2, 0):
            self.assertEqual(entry["input_kwargs"]["x"]["shape"], [4, 8])
            self.assertEqual(entry["input_kwargs"]["scale"], {"type": "float", "value": 3.0})

    def test_several_inputs_and_dict_output(self):
        x = make_input().requires_grad_()
        y = make_input().requires_grad_()
        tree, _ = self.train("L0", Holder(DictOut()), x * 1.0, y * 1.0)
        entry = tree.data["Module.inner.DictOut.forward.0"]
        self.assertEqual(entry["output"][0]["rest"][1], None)
        self.assertEqual(entry["output"][0]["a"]["shape"], [4, 8])
        backward = tree.data["Module.inner.DictOut.backward.0"]
        self.assertEqual(len(backward["input"]), 2)
        self.assertEqual([part["Max"] for part in backward["output"]], [2.0, 1.0])

    def test_dataclass_output(self):
        tree, _ = self.train("L0", Holder(PairOut()), make_input())
        output = tree.data["Module.inner.PairOut.forward.0"]["output"][0]
        self.assertEqual(list(output), ["left", "right"])

    def test_namedtuple_output(self):
        debugger = self.open("L0", task="tensor")
        debugger.start(model=(model := Holder(NamedOut())))
        result = model(make_input().requires_grad_())
        self.assertIsInstance(result, Named)
        (result.first.sum() + result.rest[0].sum()).backward()
        debugger.stop()
        tree = self.tree()
        self.assertEqual(tree.errors, "")
        output = tree.data["Module.inner.NamedOut.forward.0"]["output"]
        self.assertEqual(list(output), ["first", "rest"])
        self.assertEqual(output["first"]["data_name"], "Module.inner.NamedOut.forward.0.output.first.pt")
        self.assertEqual(output["rest"][1], {"type": "str", "value": "text"})
        self.assertEqual(len(tree.data["Module.inner.NamedOut.backward.0"]["input"]), 2)

    def test_copies_record_nothing(self):
        debugger = self.open("L0")
        net = make_net()
        debugger.start(model=net)
        net(make_input())
        twin = copy.deepcopy(net)
        loaded = pickle.loads(pickle.dumps(net))
        twin(make_input()).sum().backward()
        loaded(make_input()).sum().backward()
        debugger.stop()
        tree = self.tree()
        self.assertNotIn("Module.out.Linear.forward.1", tree.names)
        self.assertFalse([name for name in tree.names if "grad" in name or "backward" in name])
        for one in twin.modules():
            self.assertEqual([table for name, table in vars(one).items() if "hook" in name and table], [])
        # A copy can be recorded in its own right.
        debugger.step()
        debugger.start(model=twin)
        twin(make_input())
        debugger.stop()
        self.assertIn("Module.out.Linear.forward.0", self.tree(1).names)

    def test_pipelines_of_megatron(self):
        import sys
        import types
        name = "megatron.core.pipeline_parallel.schedules"
        schedules = types.ModuleType(name)
        net = make_net()
        schedules.forward_step = lambda: net(make_input())
        schedules.backward_step = lambda out: out.sum().backward()

        def deallocate_output_tensor(out, deallocate_pipeline_outputs=False):
            assert not deallocate_pipeline_outputs or out._base is None

        schedules.deallocate_output_tensor = deallocate_output_tensor
        user = types.ModuleType("user_of_schedules")
        user.forward_step = schedules.forward_step
        sys.modules[name], sys.modules["user_of_schedules"] = schedules, user
        try:
            debugger = self.open("L0")
            debugger.start(model=[net, nn.Sequential(nn.Identity())])
            for _ in range(2):
                out = user.forward_step()
                schedules.backward_step(out)
                schedules.deallocate_output_tensor(net.out(make_input()), True)
            debugger.stop()
            debugger.step()
        finally:
            del sys.modules[name], sys.modules["user_of_schedules"]
        tree = self.tree()
        self.assertEqual(tree.errors, "")
        self.assertEqual(tree.construct["Module.0.b1.l1.Linear.forward.0"], ["Module.0.b1.Block.forward.0", 0])
        self.assertEqual(tree.construct["Module.0.b1.l1.Linear.backward.1"], ["Module.0.b1.Block.backward.1", 1])
        self.assertEqual(tree.construct["megatron_micro_step_number"], 1)

    def test_the_optimizer_of_megatron_clips(self):
        import sys
        import types

        class MegatronOptimizer:
            def clip_grad_norm(self, limit):
                return torch.add(torch.ones(2), limit)

        debugger = self.open("mix")
        name = "megatron.core.optimizer"
        sys.modules[name] = types.ModuleType(name)  # imported after the debugger was made
        sys.modules[name].MegatronOptimizer = MegatronOptimizer
        try:
            debugger.start(model=make_net())
            MegatronOptimizer().clip_grad_norm(1.0)
            torch.sigmoid(torch.ones(2))
            debugger.stop()
        finally:
            del sys.modules[name]
        self.assertEqual(self.tree().construct, {"clip_grad": None, "Torch.add.0.forward": "clip_grad",
                                                 "Torch.sigmoid.0.forward": None})

    def test_scripted_modules_are_left_alone(self):
        model = nn.Sequential(nn.Linear(8, 8), torch.jit.script(nn.ReLU()))
        tree, _ = self.train("L0", model, make_input())
        self.assertEqual([name for name in tree.names if "forward" in name], ["Module.0.Linear.forward.0"])

    def test_scripting_while_functions_are_wrapped(self):
        self.open("L1")

        class Scripted(nn.Module):
            def forward(self, x):
                return functional.relu(x) + torch.add(x, 1.0)

        scripted = torch.jit.script(Scripted())
        self.assertEqual(scripted(torch.tensor([-1.0, 2.0])).tolist(), [0.0, 5.0])


class Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class UsersHooks(Case):
    def record(self, level, hook, everywhere):
        debugger = self.open(level)
        net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        register = (nn.modules.module.register_module_full_backward_hook if everywhere
                    else net[0].register_full_backward_hook)
        handle = register(lambda *unused: hook.append(1)) if hook is not None else None
        debugger.start(net)
        y = Identity.apply(net(torch.ones(2, 3, requires_grad=True)))
        y.view_as(torch.ones(2, 3)).sum().backward()
        debugger.stop()
        debugger.step()
        if handle is not None:
            handle.remove()
        self.assertEqual(self.tree().errors, "")
        return self.tree()

    def test_full_backward_hooks_add_no_entries(self):
        for level in ("L1", "L0", "mix"):
            plain = self.record(level, None, False)
            self.assertEqual([name for name in plain.names if "view_as" in name],
                             ["Tensor.view_as.0.forward", "Tensor.view_as.0.backward"] if level != "L0" else [])
            for everywhere in (False, True):
                called = []
                hooked = self.record(level, called, everywhere)
                # Such a hook puts a node at the border of its module, later than which the gradient does not leave it.
                self.assertEqual((sorted(hooked.names), hooked.construct), (sorted(plain.names), plain.construct))
                self.assertEqual(len(called), 3 if everywhere else 1)


if __name__ == "__main__":
    unittest.main()
