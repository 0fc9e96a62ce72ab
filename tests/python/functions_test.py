# SPDX-License-Identifier: Apache-2.0
"""The functions that are wrapped: not fewer than the Python tool wraps on the same PyTorch, and wrapped well."""

import importlib.util
import inspect
import pickle

from helpers import *
from msprobe.core import wrapping
from msprobe.pytorch import apis

# As counted from the Python tool's lists on PyTorch 1.13 and 2.13.
AT_LEAST = {"functional": 124, "tensor": 489, "torch": 505, "vf": 1, "distributed": 18}


def python_tools_lists():
    """Its lists, if it is installed and named: {group: names}."""
    path = os.environ.get("MSPROBE_PYTHON_TOOL_APIS")
    if not path or importlib.util.find_spec("yaml") is None:
        return None
    import yaml
    with open(path, encoding="utf-8") as file:
        lists = yaml.safe_load(file)
    spaces = {"functional": [functional], "tensor": [torch.Tensor], "torch": [torch],
              "distributed": [torch.distributed, torch.distributed.distributed_c10d]}
    return {group: {name for name in lists[group] if any(wrapping.find(space, name) for space in spaces[group])}
            for group in spaces}


class Functions(Case):
    def test_counts(self):
        found = apis.find_functions()
        for group, least in AT_LEAST.items():
            self.assertGreaterEqual(len(found[group]), least, group)
        print("wrapped functions:", {group: len(names) for group, names in found.items()})
        lists = python_tools_lists()
        for group, names in (lists or {}).items():
            print("%s: only here %s, only in the Python tool %s" % (
                group, sorted(set(found[group]) - names), sorted(names - set(found[group]))))
            self.assertLessEqual(names, set(found[group]))

    def test_no_two_rules_for_one_name(self):
        for group, names in apis.find_functions().items():
            self.assertEqual(len(names), len(set(names)), group)

    def test_functions_of_newer_versions(self):
        found = apis.find_functions()
        self.assertLessEqual({"cholesky", "qr"}, set(found["torch"]))  # from 2.14 on they say that they are removed
        if VERSION >= (2, 13):
            self.assertLessEqual({"all_gather_single", "reduce_scatter_single"}, set(found["distributed"]))
        if VERSION >= (2, 14):
            self.assertLessEqual({"gather_single", "gather_into_tensor"}, set(found["distributed"]))
            debugger = self.open("L1")
            debugger.start()
            matrix = torch.eye(2)
            torch.linalg.matrix_sqrth(torch.linalg.polar(matrix)[0])
            torch.polar(matrix, matrix)
            debugger.stop()
            self.assertEqual([name for name in self.tree().names if "polar" in name or "sqrth" in name],
                             ["Torch.linalg.polar.0.forward", "Torch.matrix_sqrth.0.forward", "Torch.polar.0.forward"])
        self.assertFalse({"scaled_mm", "scaled_addmm", "scaled_addmm_"} & set(found["functional"]))

    def test_wrapping_is_undone(self):
        before = (torch.relu, functional.relu, torch.Tensor.__add__, torch.linalg.norm, "add" in torch.Tensor.__dict__)
        debugger = self.open("L1")
        self.assertIs(torch.relu, before[0])
        debugger.start()
        self.assertIsNot(torch.relu, before[0])
        self.assertEqual(torch.relu.__name__, "relu")
        self.assertIs(pickle.loads(pickle.dumps(torch.relu)), torch.relu)
        self.assertEqual(inspect.signature(functional.relu), inspect.signature(before[1]))
        debugger.stop()
        self.assertEqual(before, (torch.relu, functional.relu, torch.Tensor.__add__, torch.linalg.norm,
                                  "add" in torch.Tensor.__dict__))

    def test_methods_and_operators_work(self):
        debugger = self.open("L1")
        debugger.start()
        x = torch.tensor([1.0, 2.0])
        self.assertEqual((x + 1).tolist(), [2.0, 3.0])
        self.assertEqual((2 - x).tolist(), [1.0, 0.0])
        self.assertEqual(x.add(other=1).tolist(), [2.0, 3.0])
        self.assertFalse(x == None)  # noqa: E711
        x[0] = 5.0
        self.assertTrue(bool(x[0] > 1))
        self.assertEqual(torch.Tensor.mul(x, 2).tolist(), [10.0, 4.0])
        debugger.stop()
        tree = self.tree()
        self.assertEqual(tree.errors, "")
        self.assertIn("Tensor.__setitem__.0.forward", tree.names)
        self.assertIn("Tensor.__rsub__.0.forward", tree.names)


if __name__ == "__main__":
    unittest.main()
