# SPDX-License-Identifier: Apache-2.0
"""Tensors on a device, with a class that says it is on one: same values as on the host, fetched together."""

import types

from helpers import *
from msprobe.pytorch import device


class OnDevice(torch.Tensor):
    """Plain memory of the host that nobody may read directly."""

    is_cpu = False


def on_device(tensor):
    return tensor.as_subclass(OnDevice)


class Device(Case):
    TENSORS = [torch.tensor([[1.0, -2.0], [3.0, 4.5]]), torch.tensor([1, 2 ** 60, -3]), torch.tensor([True, False]),
               torch.tensor([1.0, float("nan")]), torch.tensor([3 + 4j, 1j]), torch.tensor(2.5), torch.empty(0, 2),
               torch.tensor([60000.0, 60000.0], dtype=torch.float16).repeat(50),
               torch.ones(3, dtype=torch.bfloat16).expand(4, 3), torch.tensor([-1, 5], dtype=torch.int8)]

    def record(self, tensors, section=None):
        library = types.ModuleType("library")
        library.function = lambda *args: None
        debugger = self.open("L1", section=section or {})
        debugger.register_custom_api(library, "function")
        debugger.start()
        fetched = []
        original = device._Ring.drain

        def drain(ring):
            fetched.append(len(ring._slots))
            original(ring)

        device._Ring.drain = drain
        try:
            library.function(*tensors)
            self.assertEqual(fetched, [])
            debugger.stop()
        finally:
            device._Ring.drain = original
        tree = self.tree()
        self.assertEqual(tree.errors, "")
        return tree.data["library.function.0.forward"]["input_args"], fetched

    def test_same_values_as_on_the_host(self):
        expected, _ = self.record(self.TENSORS)
        got, fetched = self.record([on_device(tensor) for tensor in self.TENSORS])
        self.assertEqual(len(fetched), 1)
        self.assertEqual(fetched[0], len(self.TENSORS) - 1)  # the empty one has nothing to fetch
        for one, other in zip(expected, got):
            self.assertEqual(list(one), list(other))
            for key in one:
                if key in ("Mean", "Norm", "Max", "Min") and isinstance(one[key], float) and one[key] == one[key]:
                    self.assertAlmostEqual(one[key], other[key], delta=abs(one[key]) * 1e-3, msg=str((one, other)))
                elif one[key] == one[key]:
                    self.assertEqual(one[key], other[key], msg=str((one, other)))
                else:
                    self.assertNotEqual(other[key], other[key])

    def test_checksums_need_the_elements(self):
        section = {"summary_mode": "md5"}
        expected, _ = self.record(self.TENSORS, section)
        got, fetched = self.record([on_device(tensor) for tensor in self.TENSORS], section)
        self.assertEqual([one["md5"] for one in expected], [other["md5"] for other in got])
        self.assertEqual(sum(fetched), 0)

    def test_copies_go_through_locked_memory(self):
        """As far as that can be seen without a GPU: what is asked for, and what happens if it is refused."""
        asked = []
        original = torch.empty

        def empty(*args, pin_memory=False, **keys):
            asked.append(pin_memory)
            if len(asked) > 1:
                raise RuntimeError("no more memory can be locked")
            return original(*args, **keys)

        class Cuda:
            """A tensor that says it lies on a GPU."""

            def __init__(self, tensor):
                self.tensor = tensor
                self.device = types.SimpleNamespace(type="cuda")
                self.shape, self.dtype = tensor.shape, tensor.dtype
                self.numel, self.element_size = tensor.numel, tensor.element_size

            def cpu(self):
                return self.tensor.clone()

        copies = []
        copy = torch.Tensor.copy_
        torch.empty = empty
        torch.Tensor.copy_ = lambda self, other: copies.append(other) or copy(self, other.tensor)
        try:
            tensor = Cuda(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t())
            for _ in range(2):
                self.assertTrue(torch.equal(device._to_host(tensor), tensor.tensor))
            large = Cuda(torch.ones(1).expand(device._MOST_LOCKED // 4 + 1))
            self.assertEqual(device._to_host(large).numel(), large.numel())
        finally:
            torch.empty = original
            torch.Tensor.copy_ = copy
        self.assertEqual((asked, len(copies)), ([True, True], 1))

    def test_nothing_is_measured_while_a_graph_is_captured(self):
        original = device.is_captured
        device.is_captured = lambda tensor: True
        try:
            for section in ({}, {"summary_mode": "md5"}):
                got, _ = self.record([on_device(torch.ones(3))], section)
                self.assertEqual((got[0]["dtype"], got[0]["shape"], got[0]["Max"]), ("torch.float32", [3], None))
        finally:
            device.is_captured = original

    def test_full_buffer_is_fetched(self):
        ring = device._Ring(torch.device("cpu"), 4)
        told = []
        original = device._native
        device._native = types.SimpleNamespace(fill_statistics=lambda *values: told.append(values))
        try:
            for number in range(9):
                tensor = torch.full((3,), float(number))
                ring.add(number, device.measure(tensor), 3)
            self.assertEqual(len(told), 8)
            ring.drain()
        finally:
            device._native = original
        self.assertEqual([(values[0], values[1]) for values in told], [(n, float(n)) for n in range(9)])


if __name__ == "__main__":
    unittest.main()
