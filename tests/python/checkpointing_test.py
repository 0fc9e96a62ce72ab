# SPDX-License-Identifier: Apache-2.0
"""Checkpointed blocks: the recomputed forward is call n + 1, and nothing is lost after it."""

from helpers import *
from torch.utils.checkpoint import checkpoint


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.block = Block()
        self.out = nn.Linear(8, 3)
        self.reentrant = reentrant

    def forward(self, x):
        return self.out(checkpoint(self.block, x, use_reentrant=self.reentrant))


class Checkpointing(Case):
    def run_level(self, level, reentrant):
        debugger = self.open(level)
        torch.manual_seed(1)
        model = Checkpointed(reentrant)
        x = make_input().requires_grad_()
        debugger.start(model=model)
        model(x).sum().backward()
        functional.relu(torch.ones(2))
        debugger.stop()
        debugger.step()
        tree = self.tree()
        self.assertEqual(tree.errors, "")
        return tree

    def check_modules(self, tree):
        for name in ("Module.block.Block.forward.0", "Module.block.l1.Linear.forward.0",
                     "Module.block.l1.Linear.forward.1", "Module.out.Linear.backward.0"):
            self.assertIn(name, tree.names)
        self.assertIn("Module.block.l1.Linear.parameters_grad.0", tree.names)

    def test_reentrant(self):
        tree = self.run_level("mix", True)
        self.check_modules(tree)
        self.assertNotIn("Module.block.Block.backward.0", tree.names)
        self.assertIn("Module.block.Block.backward.1", tree.names)
        self.assertIn("Module.block.Block.forward.1", tree.names)

    def test_not_reentrant(self):
        tree = self.run_level("mix", False)
        self.check_modules(tree)
        # The graph is that of the first forward.
        self.assertIn("Module.block.Block.backward.0", tree.names)
        self.assertIn("Module.block.Block.forward.1", tree.names)
        # Functions are recorded after the recomputation has stopped early.
        self.assertIn("Functional.relu.2.forward", tree.names)

    def test_what_is_done_again_has_no_parent(self):
        construct = self.run_level("mix", False).construct
        self.assertIsNone(construct["Module.block.Block.forward.1"])
        self.assertEqual(construct["Module.block.l1.Linear.forward.1"], "Module.block.Block.forward.1")
        self.assertIsNone(construct["Module.block.Block.backward.0"])

    def test_functions(self):
        for reentrant in (True, False):
            tree = self.run_level("L1", reentrant)
            self.assertIn("Functional.linear.2.forward", tree.names)
            self.assertIn("Functional.relu.2.forward", tree.names)


if __name__ == "__main__":
    unittest.main()
