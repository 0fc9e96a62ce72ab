# SPDX-License-Identifier: Apache-2.0
"""A net of two blocks at each level: names, order and parents of entries, in two steps."""

from helpers import *

B = "Module.b%d.%s.backward.0"
F = "Module.b%d.%s.forward.0"

FORWARD_APIS = ["Functional.linear.%d.forward", "Functional.relu.%d.forward", "Tensor.__add__.%d.forward"]


def train(debugger, steps=2, model=True):
    net = make_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        debugger.start(model=net if model else None)
        net(make_input()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()
    return net


class TwoBlocks(Case):
    def test_l1(self):
        train(self.open("L1"), model=False)
        expected = []
        for block in (0, 1):
            expected += [name % block for name in FORWARD_APIS]
        expected += ["Functional.linear.2.forward", "Tensor.sum.0.forward", "Tensor.sum.0.backward",
                     "Functional.linear.2.backward", "Tensor.__add__.1.backward", "Functional.relu.1.backward",
                     "Functional.linear.1.backward", "Tensor.__add__.0.backward", "Functional.relu.0.backward",
                     "Functional.linear.0.backward"]
        for step in (0, 1):
            tree = self.tree(step)
            self.assertEqual([name for name in tree.names if not name.startswith(("Tensor.add_.", "Tensor.mul_"))], expected)
            self.assertEqual(tree.construct, {})
            self.assertEqual(tree.errors, "")

    def test_l0(self):
        train(self.open("L0"))
        forward = []
        for block in (1, 2):
            forward += [F % (block, part) for part in ("l1.Linear", "act.ReLU", "Block")]
        forward = [name.replace("Block", "Block") for name in forward] + ["Module.out.Linear.forward.0"]
        for step in (0, 1):
            tree = self.tree(step)
            self.assertEqual([name for name in tree.names if ".forward." in name], forward)
            backward = [name for name in tree.names if ".backward." in name]
            self.assertEqual(backward, [
                "Module.out.Linear.backward.0", B % (2, "act.ReLU"), B % (2, "l1.Linear"), B % (2, "Block"),
                B % (1, "Block"), B % (1, "act.ReLU"), B % (1, "l1.Linear")])
            gradients = [name for name in tree.names if ".parameters_grad." in name]
            self.assertEqual(gradients, ["Module.out.Linear.parameters_grad.0", "Module.b2.l1.Linear.parameters_grad.0",
                                         "Module.b1.l1.Linear.parameters_grad.0"])
            for name in gradients:
                self.assertEqual(sorted(tree.data[name]), ["bias", "weight"])
                self.assertEqual(len(tree.data[name]["weight"]), 1)
            linear = tree.data[F % (1, "l1.Linear")]
            self.assertEqual(list(linear), ["input_args", "input_kwargs", "output", "parameters"])
            self.assertEqual(list(linear["parameters"]), ["weight", "bias"])
            # No input of the first block needs a gradient.
            self.assertEqual(tree.data[B % (1, "Block")]["output"], [])
            self.assertEqual(len(tree.data[B % (2, "Block")]["output"]), 1)
            self.assertEqual(tree.construct[F % (1, "act.ReLU")], F % (1, "Block"))
            self.assertIsNone(tree.construct[F % (1, "Block")])
            # Parents of the backward are those of the forward, also in the first block.
            self.assertEqual(tree.construct[B % (1, "act.ReLU")], B % (1, "Block"))
            self.assertEqual(tree.construct[B % (2, "l1.Linear")], B % (2, "Block"))
            self.assertEqual(tree.errors, "")

    def test_mix(self):
        train(self.open("mix"))
        for step in (0, 1):
            tree = self.tree(step)
            self.assertEqual(tree.names[:6], [
                "Functional.linear.0.forward", F % (1, "l1.Linear"), "Functional.relu.0.forward", F % (1, "act.ReLU"),
                "Tensor.__add__.0.forward", F % (1, "Block")])
            parents = tree.construct
            self.assertEqual(parents["Functional.linear.0.forward"], F % (1, "l1.Linear"))
            self.assertEqual(parents["Tensor.__add__.1.forward"], F % (2, "Block"))
            self.assertEqual(parents["Functional.relu.0.backward"], B % (1, "act.ReLU"))
            self.assertEqual(parents["Functional.linear.0.backward"], B % (1, "l1.Linear"))
            self.assertIsNone(parents["Tensor.sum.0.forward"])
            if VERSION >= (2, 0):
                self.assertIsNone(parents["optimizer"])
                self.assertTrue([name for name, parent in parents.items() if parent == "optimizer"])
            frames = [frames for names, frames in tree.stack.values() if "Functional.linear.0.forward" in names][0]
            self.assertTrue(frames[0].startswith("File "))
            self.assertFalse([frame for frame in frames if "msprobe" + os.sep + "pytorch" in frame.split(",")[0]])
            self.assertTrue([frame for frame in frames if "in train, \n net(make_input())" in frame])

    def test_values(self):
        debugger = self.open("L1")
        x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
        debugger.start()
        functional.relu(x)
        debugger.stop()
        entry = self.tree().data["Functional.relu.0.forward"]
        self.assertEqual(entry["input_args"], [{
            "type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2], "Max": 4.0, "Min": -2.0, "Mean": 1.5,
            "Norm": entry["input_args"][0]["Norm"], "requires_grad": False}])
        self.assertAlmostEqual(entry["input_args"][0]["Norm"], 30 ** 0.5, places=5)
        self.assertEqual(entry["output"][0]["Min"], 0.0)


if __name__ == "__main__":
    unittest.main()
