# SPDX-License-Identifier: Apache-2.0
"""Gradients accumulated over micro batches, and backward after stop()."""

from helpers import *


class Accumulation(Case):
    def test_three_micro_batches(self):
        debugger = self.open("L0")
        net = make_net()
        debugger.start(model=net)
        sums = []
        for part in range(3):
            net(make_input() + part).sum().backward()
            sums.append(float(net.out.weight.grad.sum()) / net.out.weight.numel())
        debugger.stop()
        debugger.step()
        data = self.tree().data
        for part in range(3):
            gradient = data["Module.out.Linear.parameters_grad.%d" % part]["weight"][0]
            self.assertEqual(gradient["shape"], [3, 8])
            self.assertAlmostEqual(gradient["Mean"], sums[part], places=4)
        self.assertNotIn("Module.out.Linear.parameters_grad.3", data)
        self.assertIn("Module.out.Linear.forward.2", data)
        self.assertIn("Module.out.Linear.backward.2", data)

    def test_backward_after_stop(self):
        debugger = self.open("mix")
        net = make_net()
        debugger.start(model=net)
        loss = net(make_input()).sum()
        debugger.stop()
        functional.relu(make_input())
        loss.backward()
        debugger.step()
        names = self.tree().names
        for name in ("Tensor.sum.0.backward", "Functional.linear.2.backward", "Module.out.Linear.backward.0",
                     "Module.b1.Block.backward.0", "Module.out.Linear.parameters_grad.0"):
            self.assertIn(name, names)
        self.assertNotIn("Functional.relu.2.forward", names)


if __name__ == "__main__":
    unittest.main()
