# SPDX-License-Identifier: Apache-2.0
"""Tensors on a device, with a class that says it is on one: same values as on the host, fetched together."""

import contextlib
import os
import sys
import threading
import types

from helpers import *
from msprobe.pytorch import device, framework, gpu


class OnDevice(torch.Tensor):
    """Plain memory of the host that must not be read directly."""

    is_cpu = False
    is_cuda = True

    def cpu(self):
        return self.as_subclass(torch.Tensor).clone()


def on_device(tensor):
    return tensor.as_subclass(OnDevice)


class Device(Case):
    COPIED = ("tensor", "statistics")  # the tasks with tensors that come to the host
    TENSORS = [torch.tensor([[1.0, -2.0], [3.0, 4.5]]), torch.tensor([1, 2 ** 60, -3]), torch.tensor([True, False]),
               torch.tensor([1.0, float("nan")]), torch.tensor([3 + 4j, 1j]), torch.tensor(2.5), torch.empty(0, 2),
               torch.tensor([60000.0, 60000.0], dtype=torch.float16).repeat(50),
               torch.ones(3, dtype=torch.bfloat16).expand(4, 3), torch.tensor([-1, 5], dtype=torch.int8)]

    def record(self, tensors, section=None, task="statistics"):
        library = types.ModuleType("library")
        library.function = lambda *args: None
        debugger = self.open("L1", task, section=section or {})
        debugger.register_custom_api(library, "function")
        debugger.start()
        fetched = []
        original = device._Results.fetch

        def fetch(results):
            fetched.append(len(results._slots))
            original(results)

        device._Results.fetch = fetch
        try:
            library.function(*tensors)
            self.assertEqual(fetched, [])
            debugger.stop()
        finally:
            device._Results.fetch = original
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

    @contextlib.contextmanager
    def copying(self, events, most_events=None, most_bytes=None):
        """Locked memory that is memory, and events that are over when they are waited for. `events` has the numbers of those."""
        made = []

        class Event:
            def __init__(self):
                self.number = len(made)
                made.append(self)

            def query(self):
                return self.number in events

            def synchronize(self):
                events.append(self.number)

        def empty(*args, pin_memory=False, **keys):
            if pin_memory and len(made) == most_events:
                raise RuntimeError("no more memory can be locked")
            return originals[0](*args, **keys)

        def copy(to, tensor, non_blocking=False):
            # PyTorch changes signs at once, on the host; on a GPU the elements come after that.
            self.assertFalse(tensor.is_conj() or tensor.is_neg())
            return plain_copy(to, tensor)

        plain_copy = torch.Tensor.copy_
        originals = torch.empty, gpu.event_now, framework.detach, device._MOST_LOCKED
        torch.empty, gpu.event_now, torch.Tensor.copy_ = empty, lambda where: Event(), copy
        framework.detach = lambda tensor: on_device(originals[2](tensor))
        device._MOST_LOCKED = most_bytes or device._MOST_LOCKED
        try:
            yield
        finally:
            torch.empty, gpu.event_now, framework.detach, device._MOST_LOCKED = originals
            torch.Tensor.copy_ = plain_copy

    def test_copies_come_later(self):
        """The order in which things are waited for, and refused memory, as these can be tested without a GPU."""
        tensors = [torch.arange(60.0).reshape(3, 4, 5).permute(2, 0, 1)[::2], torch.tensor([1, 2 ** 60, -3]),
                   torch.empty(0, 2), torch.ones(3, dtype=torch.bfloat16).expand(4, 3), torch.tensor(2.5),
                   torch.tensor([1 + 2j, 3 - 4j]).conj(), torch.tensor([1 + 2j, 3 - 4j]).conj().imag]
        for task, section in (("tensor", {}), ("tensor", {"summary_mode": "md5"}), ("statistics", {"summary_mode": "xor"}),
                              ("statistics", {"slice": [{"dim": 0, "begin": 1}]}),
                              ("tensor", {"slice": [{"dim": 0, "begin": 1}], "summary_mode": "md5"})):
            if task not in self.COPIED:
                continue
            expected, _ = self.record(tensors, section, task)
            files = self.saved(expected)
            for most_events, most_bytes, copied in ((None, None, 6), (2, None, 2), (None, 300, 6), (None, 8, 2)):
                events = []
                with self.copying(events, most_events, most_bytes):
                    got, fetched = self.record([on_device(tensor) for tensor in tensors], section, task)
                self.assertEqual((got, sum(fetched), self.saved(got)), (expected, 0, files))
                self.assertEqual(events, list(range(copied)))

    def test_a_tensor_that_is_seen_again_has_one_file(self):
        tensor = on_device(torch.arange(2000.0))
        with self.copying([]):
            got, _ = self.record([tensor, tensor, tensor.clone()], task="tensor")
        folder = os.path.join(self.tree().folder, "dump_tensor_data")
        links = [os.stat(os.path.join(folder, one["data_name"])).st_nlink for one in got]
        self.assertEqual(links, [2, 2, 1])

    def saved(self, records):
        """The files of these records, by name."""
        folder = os.path.join(self.tree().folder, "dump_tensor_data")
        names = [one["data_name"] for one in records if "data_name" in one]
        if os.path.isdir(folder):
            self.assertEqual(sorted(os.listdir(folder)), sorted(names))
        return {name: torch.load(os.path.join(folder, name)).tolist() for name in names}

    def test_copies_are_handed_over_as_they_come(self):
        """Finished copies are handed over when another one is added; copies of too many bytes are waited for."""
        class Event:
            def __init__(self, over):
                self.over = over

            def query(self):
                return self.over

            def synchronize(self):
                told.append("wait")

        told = []
        native = device._native
        device._native = types.SimpleNamespace(fill_tensor=lambda slot, copy: told.append(slot))
        event_now, empty = gpu.event_now, torch.empty
        gpu.event_now = lambda where: Event(False)
        torch.empty = lambda *args, pin_memory=False, **keys: empty(*args, **keys)
        try:
            copies = device._Copies()
            late, early = Event(False), Event(True)
            copies.add(1, torch.ones(3), late)
            copies.add(2, torch.ones(3), early)  # is over, but the one before is not
            self.assertEqual(told, [])
            late.over = True
            copies.add(3, torch.ones(3), Event(False))
            self.assertEqual(told, ["wait", 1, "wait", 2])
            copies._bytes += device._MOST_LOCKED - 16
            copies.begin(on_device(torch.ones(1)))
            self.assertEqual(told[4:], ["wait", 3])
        finally:
            device._native, gpu.event_now, torch.empty = native, event_now, empty

    def test_nothing_is_measured_while_a_graph_is_captured(self):
        originals = device.is_captured, gpu.is_capturing
        device.is_captured, gpu.is_capturing = lambda tensor: True, lambda: True
        try:
            for section in ({}, {"summary_mode": "md5"}):
                got, _ = self.record([on_device(torch.ones(3))], section)
                self.assertEqual((got[0]["dtype"], got[0]["shape"], got[0]["Max"]), ("torch.float32", [3], None))
        finally:
            device.is_captured, gpu.is_capturing = originals

    def test_kernels_to_launch(self):
        """Each operation of the framework is one on a device."""
        from torch.utils._python_dispatch import TorchDispatchMode

        class Count(TorchDispatchMode):
            operations = 0

            def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
                self.operations += 1
                return function(*arguments, **(keywords or {}))

        x = torch.randn(6, 4)
        for tensor, most in ((x, 3), (x.t(), 3), (x.double(), 3), (x.bfloat16(), 3), (x[0, 0], 3), (x.to(torch.int32), 4),
                             (x.to(torch.int64), 4), (torch.complex(x, x), 4), (x > 0, 5),
                             (x.half(), 5)):  # of which the host of PyTorch 1.13 has no extrema
            with Count() as count:
                device.measure(tensor)
            self.assertLessEqual(count.operations, most, tensor.dtype)

    def test_threads_that_record_at_the_same_time(self):
        told = {}
        original, interval = device._native, sys.getswitchinterval()
        device._native = types.SimpleNamespace(fill_statistics=lambda slot, high, *rest: told.setdefault(slot, high))
        sys.setswitchinterval(1e-6)
        try:
            results = device._Results(torch.device("cpu"), 16)
            values = [device.measure(torch.full((3,), float(number))) for number in range(300)]
            failures = []

            def work(first):
                try:
                    for number in range(first, 300, 3):
                        results.add(number, values[number], 3)
                except Exception as error:
                    failures.append(error)

            threads = [threading.Thread(target=work, args=(first,)) for first in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            results.fetch()
        finally:
            device._native = original
            sys.setswitchinterval(interval)
        self.assertEqual((told, failures), ({number: float(number) for number in range(300)}, []))

    def test_who_drains_waits_for_what_another_thread_fetches(self):
        told = []
        original = device._native
        begun, going_on = threading.Event(), threading.Event()

        def fill(slot, *rest):
            begun.set()
            going_on.wait(10)
            told.append(slot)

        device._native = types.SimpleNamespace(fill_statistics=fill)
        try:
            results = device._Results(torch.device("cpu"))
            results.add(1, device.measure(torch.ones(2)), 2)
            other = threading.Thread(target=results.fetch)
            other.start()
            begun.wait(10)
            threading.Timer(0.05, going_on.set).start()
            results.fetch()
            self.assertEqual(told, [1])
            other.join()
        finally:
            device._native = original

    def test_results_that_cannot_be_fetched_are_lost_whole(self):
        """None goes to a later tensor."""
        for fails_at in (1, 2):
            calls = []
            stack = torch.stack

            def fail(tensors):
                calls.append(tensors)
                if len(calls) == fails_at:
                    raise RuntimeError("out of memory")
                return stack(tensors)

            parts = device.Parts(torch.device("cpu"))
            parts.add([torch.tensor(1.0), torch.tensor(2)])
            torch.stack = fail
            try:
                self.assertRaises(RuntimeError, parts.fetch)
            finally:
                torch.stack = stack
            parts.add([torch.tensor(3.0), torch.tensor(4)])
            self.assertRaises(RuntimeError, parts.fetch)

    def test_a_copy_that_fails_does_not_keep_the_others(self):
        told = []

        class Event:
            def __init__(self, fails):
                self.fails = fails

            def query(self):
                return False

            def synchronize(self):
                if self.fails:
                    raise RuntimeError("lost")

        original = device._native
        device._native = types.SimpleNamespace(fill_tensor=lambda slot, copy: told.append(slot))
        try:
            copies = device._Copies()
            for slot in range(4):
                copies.add(slot, torch.ones(1), Event(slot == 1))
            self.assertRaisesRegex(RuntimeError, "lost", copies.finish)
            self.assertEqual((told, copies._bytes, copies._in_hand), ([0, 2, 3], 0, 0))
            copies.finish()
        finally:
            device._native = original

    def test_what_one_part_raises_does_not_keep_the_others(self):
        done = []
        natives, copies, results = device._native, device._copies, dict(device._results)
        device._native = types.SimpleNamespace(gpu_drain=lambda: done.append("gpu"))
        device._copies = types.SimpleNamespace(finish=lambda: 1 / 0)
        device._results.clear()
        device._results["there"] = types.SimpleNamespace(fetch=lambda: done.append("there"))
        try:
            self.assertRaises(ZeroDivisionError, device.drain)
        finally:
            device._native, device._copies = natives, copies
            device._results.clear()
            device._results.update(results)
        self.assertEqual(done, ["gpu", "there"])

    def test_what_the_device_has_no_kernels_for_is_measured_on_the_host(self):
        def fail(tensor):
            raise TypeError("no float64 there") if tensor.dtype == torch.int64 else RuntimeError("no kernel")

        original, device.measure = device.measure, fail
        tensors = [torch.tensor([1, 2 ** 60, -3]), torch.ones(2, 3)]
        try:
            expected, _ = self.record(tensors)
            got, _ = self.record([on_device(tensor) for tensor in tensors])
        finally:
            device.measure = original
        self.assertEqual(got, expected)

    def test_a_storage_that_was_given_back(self):
        """As sharded parameters give theirs: the address of a view is the offset into it then."""
        whole = torch.arange(10.0)
        view = whole[2:]
        storage = whole.untyped_storage() if hasattr(whole, "untyped_storage") else whole.storage()
        storage.resize_(0)
        self.assertEqual(view.data_ptr(), 8)
        there = []
        measure, begin, detach = device.measure, device._Copies.begin, framework.detach
        device.measure = lambda tensor: there.append(tensor.shape) or measure(tensor)
        device._Copies.begin = lambda copies, tensor: there.append(tensor.shape) or begin(copies, tensor)
        framework.detach = lambda tensor: on_device(detach(tensor)) if isinstance(tensor, OnDevice) else detach(tensor)
        try:
            for task, section in (("statistics", {}), ("statistics", {"summary_mode": "md5"}), ("tensor", {})):
                for one in (view, on_device(view)):
                    got, _ = self.record([one, torch.ones(2)], section, task)
                    self.assertEqual((got[0]["shape"], got[0]["Max"], got[1]["Max"]), ([8], None, 1.0))
        finally:
            device.measure, device._Copies.begin, framework.detach = measure, begin, detach
        self.assertEqual(there, [])

    def test_full_buffer_is_fetched(self):
        results = device._Results(torch.device("cpu"), 4)
        told = []
        original = device._native
        device._native = types.SimpleNamespace(fill_statistics=lambda *values: told.append(values))
        try:
            for number in range(9):
                tensor = torch.full((3,), float(number))
                results.add(number, device.measure(tensor), 3)
            self.assertEqual(len(told), 8)
            results.fetch()
        finally:
            device._native = original
        self.assertEqual([(values[0], values[1]) for values in told], [(n, float(n)) for n in range(9)])


if __name__ == "__main__":
    unittest.main()
