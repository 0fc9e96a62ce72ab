# SPDX-License-Identifier: Apache-2.0
"""Compilers, tracers and function transforms, which inspect functions and modules, work as without a tool."""

from helpers import *


def outcome(function, *args):
    result = function(*args)
    return result.detach().clone()


class Compilers(Case):
    def check(self, make, level="mix"):
        """make(model) gives a function of the input; its result is the same while recording."""
        plain = outcome(make(make_net()), make_input())
        debugger = self.open(level)
        net = make_net()
        debugger.start(model=net)
        recorded = outcome(make(net), make_input())
        functional.relu(torch.ones(2))
        debugger.stop()
        debugger.step()
        self.assertTrue(torch.equal(plain, recorded))
        tree = self.tree()
        self.assertEqual(tree.errors, "")
        self.assertIn("Functional.relu", tree.names[-1])
        return tree

    def test_traced(self):
        tree = self.check(lambda net: torch.jit.trace(net.eval(), make_input(), check_trace=False), "L1")
        self.assertEqual(tree.names, ["Functional.relu.0.forward"])

    def test_scripted(self):
        self.check(lambda net: lambda x: torch.jit.script(nn.ReLU())(x))

    def test_symbolically_traced(self):
        self.check(lambda net: torch.fx.symbolic_trace(net))

    @unittest.skipIf(VERSION < (2, 1), "torch.compile needs a newer PyTorch")
    def test_compiled(self):
        for whole in (False, True):
            self.check(lambda net: torch.compile(net, backend="eager", fullgraph=whole))
            torch._dynamo.reset()

    @unittest.skipIf(not hasattr(torch, "func"), "torch.func needs a newer PyTorch")
    def test_function_transforms(self):
        self.check(lambda net: torch.vmap(net))
        self.check(lambda net: lambda x: torch.func.grad(
            lambda weights: torch.func.functional_call(net, weights, (x,)).sum())(
                dict(net.named_parameters()))["out.weight"])

    def test_second_derivative(self):
        def make(net):
            def function(x):
                x = x.requires_grad_()
                y = torch.sigmoid(net(x)).sum()
                gradient, = torch.autograd.grad(y, x, create_graph=True)
                return torch.autograd.grad(gradient.pow(2).sum(), x)[0]
            return function
        self.check(make)


if __name__ == "__main__":
    unittest.main()
