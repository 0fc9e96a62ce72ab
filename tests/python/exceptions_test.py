# SPDX-License-Identifier: Apache-2.0
"""Functions and modules that raise, and values that cannot be described: training goes on, and so does the dump."""

from helpers import *


class Raising(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        self.inner(x)
        raise ValueError("no")


class Guarded(nn.Module):
    def __init__(self):
        super().__init__()
        self.bad = Raising()
        self.good = nn.Linear(8, 8)

    def forward(self, x):
        try:
            self.bad(x)
        except ValueError:
            pass
        return self.good(x)


class Hostile:
    @property
    def __class__(self):
        raise RuntimeError("do not look at me")


class Exceptions(Case):
    def test_function_that_raises(self):
        debugger = self.open("L1")
        debugger.start()
        with self.assertRaises(RuntimeError):
            torch.matmul(torch.ones(2, 3), torch.ones(2, 3))
        functional.relu(torch.ones(2))
        debugger.stop()
        tree = self.tree()
        self.assertEqual(tree.names, ["Torch.matmul.0.forward", "Functional.relu.0.forward"])
        self.assertNotIn("output", tree.data["Torch.matmul.0.forward"])

    def test_module_that_raises(self):
        debugger = self.open("mix")
        model = Guarded()
        debugger.start(model=model)
        model(make_input()).sum().backward()
        debugger.stop()
        debugger.step()
        tree = self.tree()
        self.assertIn("Module.good.Linear.forward.0", tree.names)
        self.assertIsNone(tree.construct["Module.good.Linear.forward.0"])
        self.assertEqual(tree.construct["Functional.linear.1.forward"], "Module.good.Linear.forward.0")
        self.assertEqual(tree.construct["Module.bad.inner.Linear.forward.0"], "Module.bad.Raising.forward.0")

    def test_value_that_cannot_be_described(self):
        class Odd(dict):
            def items(self):
                raise RuntimeError("no items here")

        def function(x, odd):
            return x * 2

        import types
        library = types.ModuleType("library")
        library.function = function
        debugger = self.open("L1")
        debugger.register_custom_api(library, "function")
        debugger.start()
        result = library.function(torch.ones(2), Odd())
        self.assertEqual(result.tolist(), [2.0, 2.0])
        functional.relu(torch.ones(2))
        debugger.stop()
        tree = self.tree()
        self.assertIn("library.function.0.forward", tree.names)
        self.assertIn("output", tree.data["library.function.0.forward"])
        self.assertIn("Functional.relu.0.forward", tree.names)
        self.assertIn("no items here", tree.errors)
        self.assertEqual(tree.errors.count("[ERROR]"), 1)

    def test_hostile_results(self):
        import types
        library = types.ModuleType("library")
        library.function = lambda: Hostile()
        debugger = self.open("L1")
        debugger.register_custom_api(library, "function")
        debugger.start()
        self.assertIs(type(library.function()), Hostile)
        functional.relu(torch.ones(2))
        debugger.stop()
        self.assertIn("Functional.relu.0.forward", self.tree().names)

    def test_deep_and_cyclic_values(self):
        import types
        library = types.ModuleType("library")
        library.function = lambda value: None
        cyclic = []
        cyclic.append(cyclic)
        debugger = self.open("L1")
        debugger.register_custom_api(library, "function")
        debugger.start()
        library.function(cyclic)
        functional.relu(torch.ones(2))
        debugger.stop()
        self.assertIn("Functional.relu.0.forward", self.tree().names)


if __name__ == "__main__":
    unittest.main()
