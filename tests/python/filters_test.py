# SPDX-License-Identifier: Apache-2.0
"""scope, list, data_mode, risk_level and tensor_list choose what is recorded."""

from helpers import *


class Filters(Case):
    def names(self, level, **keys):
        section = {name: keys.pop(name) for name in ("scope", "list", "data_mode", "tensor_list") if name in keys}
        debugger = self.open(level, section=section, **keys)
        net = make_net()
        debugger.start(model=net)
        net(make_input()).sum().backward()
        debugger.stop()
        debugger.step()
        tree = self.tree()
        self.assertEqual(tree.errors, "")
        self.last = tree
        return tree.names

    def test_list(self):
        self.assertEqual(self.names("L1", list=["relu"]), [
            "Functional.relu.0.forward", "Functional.relu.1.forward", "Functional.relu.1.backward",
            "Functional.relu.0.backward"])

    def test_list_of_a_module_at_mix(self):
        names = self.names("mix", list=["b1.l1"])
        self.assertEqual(set(names), {
            "Functional.linear.0.forward", "Module.b1.l1.Linear.forward.0", "Module.b1.l1.Linear.backward.0",
            "Module.b1.l1.Linear.parameters_grad.0"} | ({"Functional.linear.0.backward"} & set(names)))

    def test_scope_l1(self):
        names = self.names("L1", scope=["Functional.relu.0.forward", "Functional.linear.1.forward"])
        self.assertEqual(names, ["Functional.relu.0.forward", "Tensor.__add__.0.forward",
                                 "Functional.linear.1.forward"])
        self.assertNotIn("output", self.last.data["Functional.linear.1.forward"])

    def test_scope_l0(self):
        names = self.names("L0", scope=["Module.b2.Block.forward.0", "Module.out.Linear.forward.0"])
        self.assertEqual(names, ["Module.b2.l1.Linear.forward.0", "Module.b2.act.ReLU.forward.0",
                                 "Module.b2.Block.forward.0", "Module.out.Linear.forward.0"])

    def test_scope_that_ends_with_the_backward_of_a_module(self):
        """The Python tool 26.2 records these with PyTorch 2.13, in the same order but for parameters_grad."""
        scope = ["Module.out.Linear.forward.0", "Module.b2.Block.backward.0"]
        modules = ["Module.out.Linear.forward.0", "Module.out.Linear.backward.0", "Module.out.Linear.parameters_grad.0",
                   "Module.b2.act.ReLU.backward.0", "Module.b2.l1.Linear.backward.0", "Module.b2.Block.backward.0",
                   "Module.b2.l1.Linear.parameters_grad.0"]
        apis = ["Functional.linear.2.forward", "Tensor.sum.0.forward", "Tensor.sum.0.backward",
                "Functional.linear.2.backward", "Tensor.__add__.1.backward", "Functional.relu.1.backward",
                "Functional.linear.1.backward"]
        self.assertEqual(self.names("L0", scope=scope), modules)
        names = self.names("mix", scope=scope)
        self.assertEqual([name for name in names if name in modules], modules)
        self.assertEqual([name for name in names if name not in modules], apis)

    def test_data_mode(self):
        names = self.names("L1", data_mode=["forward"])
        self.assertTrue(names and all(name.endswith("forward") for name in names))
        names = self.names("L1", data_mode=["backward", "input"])
        self.assertTrue(names and all(name.endswith("backward") for name in names))
        self.assertEqual(list(self.last.data[names[0]]), ["input"])
        self.names("L0", data_mode=["output"])
        self.assertEqual(list(self.last.data["Module.out.Linear.forward.0"]), ["output", "parameters"])
        self.assertIn("Module.out.Linear.parameters_grad.0", self.last.names)
        names = self.names("L0", data_mode=["forward"])
        self.assertFalse([name for name in names if "grad" in name or "backward" in name])

    def test_risk_level(self):
        self.assertNotIn("Tensor.__add__.0.forward", self.names("L1", risk_level="CORE"))
        self.assertIn("Functional.linear.0.forward", self.last.names)

    def test_tensor_list(self):
        self.names("L1", tensor_list=["relu.0"])
        self.assertEqual(self.last.data["Functional.relu.0.forward"]["output"][0]["data_name"],
                         "Functional.relu.0.forward.output.0.pt")
        folder = os.path.join(self.last.folder, "dump_tensor_data")
        saved = torch.load(os.path.join(folder, "Functional.relu.0.forward.output.0.pt"))
        self.assertEqual(saved.shape, (4, 8))
        self.assertEqual(sorted(os.listdir(folder)), [
            "Functional.relu.0.backward.input.0.pt", "Functional.relu.0.backward.output.0.pt",
            "Functional.relu.0.forward.input.0.pt", "Functional.relu.0.forward.output.0.pt"])

    def test_structure(self):
        debugger = self.open("mix", task="structure")
        net = make_net()
        debugger.start(model=net)
        net(make_input()).sum().backward()
        debugger.stop()
        tree = self.tree()
        self.assertEqual(tree.data, {})
        self.assertEqual(tree.construct["Functional.relu.0.forward"], "Module.b1.act.ReLU.forward.0")
        self.assertIn("Functional.relu.0.backward", tree.construct)

    def test_wrong_scope(self):
        from msprobe.core.common.exceptions import ScopeException
        with self.assertRaises(ScopeException):
            self.open("L1", section={"scope": ["one"]})
        with self.assertRaises(ScopeException):
            self.open("L1", section={"scope": ["a", "b"]})


if __name__ == "__main__":
    unittest.main()
