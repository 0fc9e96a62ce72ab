# SPDX-License-Identifier: Apache-2.0
"""Tensors on a GPU, measured by the collector's own kernel: all that device_test.py asks for, and what only the kernel
does."""

import ctypes
import dataclasses
import os
import threading
import types
import warnings
from unittest import mock

import device_test
from device_test import OnDevice, on_device
from helpers import *
from msprobe.pytorch import debugger as debugger_module
from msprobe.pytorch import framework, gpu

FAKE_GPU = os.environ.get("MSPROBE_FAKE_GPU")  # a driver and a compiler that are test doubles


@unittest.skipUnless(FAKE_GPU, "MSPROBE_FAKE_GPU is not set")
class OwnKernel(device_test.Device):
    """The same with the collector's own kernel, which runs by emulation: of plain tensors, which the extension sees to."""

    PLAIN = True
    COPIED = ("tensor",)

    ORDINAL = [0]
    STUBS = {"is_gpu": lambda device: True, "ordinal_of": lambda device: OwnKernel.ORDINAL[0],
             "current_stream": lambda ordinal: 7,
             "is_capturing": lambda: False, "libraries": lambda ordinal: (FAKE_GPU, FAKE_GPU, None)}

    def setUp(self):
        super().setUp()
        asked = mock.patch.dict(os.environ, {"MSPROBE_GPU_KERNEL": "1"})
        asked.start()
        self.addCleanup(asked.stop)
        self.originals = {name: getattr(gpu, name) for name in self.STUBS}
        for name, stub in self.STUBS.items():
            setattr(gpu, name, stub)
        gpu._opened.clear()
        self.binding = debugger_module.binding
        debugger_module.binding = self.bind

    def bind(self):
        found = self.binding()
        found.get_device = lambda tensor: self.ORDINAL[0]
        if self.PLAIN:
            found.parameter_type = OnDevice
        return found

    def tearDown(self):
        for name, original in self.originals.items():
            setattr(gpu, name, original)
        gpu._opened.clear()
        debugger_module.binding = self.binding
        super().tearDown()

    def counts(self):
        numbers = (ctypes.c_int * 7)()
        ctypes.CDLL(FAKE_GPU).fake_gpu_counts(numbers)
        return list(numbers[:2])  # launches and fetches

    def check_equal(self, expected, got):
        self.assertEqual(len(expected), len(got))
        for one, other in zip(expected, got):
            self.assertEqual(list(one), list(other))
            for key in one:
                if one[key] != one[key]:
                    self.assertNotEqual(other[key], other[key])
                elif key in ("Mean", "Norm") and isinstance(one[key], float):
                    self.assertAlmostEqual(one[key], other[key], delta=abs(one[key]) * 1e-6, msg=str((one, other)))
                else:
                    self.assertEqual(one[key], other[key], msg=str((one, other)))

    def test_one_launch_for_a_call_and_one_fetch(self):
        float8 = [torch.ones(5).to(getattr(torch, name)) for name in ("float8_e4m3fn", "float8_e5m2")
                  if hasattr(torch, name)]
        tensors = self.TENSORS + [torch.arange(60.0).reshape(3, 4, 5).permute(2, 0, 1)[::2], torch.ones(3).double(),
                                  torch.arange(-3, 900, dtype=torch.int16)] + float8
        expected, _ = self.record(tensors)
        self.assertTrue(gpu.use(tensors[0].device))  # its test is over
        before = self.counts()
        got, fetched = self.record([on_device(tensor) for tensor in tensors])
        self.assertEqual(sum(fetched), 0)  # by the framework's kernels
        self.assertEqual([after - one for after, one in zip(self.counts(), before)], [1, 1])
        self.check_equal(expected, got)

    def test_checksums_need_the_elements(self):
        """The kernel makes them, with the statistics if there are some: one launch, one fetch."""
        tensors = [one for one in self.TENSORS if one.numel()] + [
            torch.arange(60.0).reshape(3, 4, 5).permute(2, 0, 1)[::2], torch.arange(7.0)[1:],
            torch.tensor([1 + 2j, 3 - 4j, 0j]).conj(), torch._neg_view(torch.arange(5.0)),
            torch.tensor([1 + 2j, 3 - 4j, 0j]).conj().imag, torch.ones(5, dtype=torch.bfloat16)]
        self.assertTrue(gpu.use(tensors[0].device))
        for mode in ("md5", "xor"):
            expected, _ = self.record(tensors, {"summary_mode": mode})
            before = self.counts()
            got, fetched = self.record([on_device(tensor) for tensor in tensors], {"summary_mode": mode})
            self.assertEqual(sum(fetched), 0)
            self.assertEqual([after - one for after, one in zip(self.counts(), before)], [1, 1])
            self.check_equal(expected, got)
            self.assertTrue(all(one["md5"] for one in got), got)

    def test_a_part_that_is_cut_out(self):
        tensors = [torch.arange(60.0).reshape(3, 4, 5), torch.arange(60).reshape(5, 12), torch.arange(60.0)[:0]]
        for mode in ("statistics", "md5"):
            section = {"summary_mode": mode, "slice": [{"dim": 0, "begin": 1, "end": 3}, {"dim": 1, "begin": 2}]}
            expected, _ = self.record(tensors, section)
            got, _ = self.record([on_device(tensor) for tensor in tensors], section)
            self.check_equal(expected, got)
            self.assertEqual((got[1]["shape"], got[1]["Min"], got[1]["Max"]), ([2, 10], 14, 35))

    def test_tensors_come_to_the_host_for_files(self):
        got, fetched = self.record([on_device(torch.ones(3))], task="tensor")
        self.assertEqual((got[0]["Max"], sum(fetched)), (1.0, 0))
        self.assertTrue(os.path.exists(os.path.join(self.tree().folder, "dump_tensor_data", got[0]["data_name"])))

    def test_values_are_those_before_the_call(self):
        library = types.ModuleType("library")
        library.function = lambda tensor: tensor.mul_(3)
        debugger = self.open("L1")
        debugger.register_custom_api(library, "function")
        debugger.start()
        library.function(on_device(torch.ones(4)))
        debugger.stop()
        entry = self.tree().data["library.function.0.forward"]
        self.assertEqual((entry["input_args"][0]["Max"], entry["output"][0]["Max"]), (1.0, 3.0))

    def test_same_values_as_on_the_host(self):
        expected, _ = self.record(self.TENSORS)
        got, _ = self.record([on_device(tensor) for tensor in self.TENSORS])
        self.check_equal(expected, got)

    def test_what_the_kernel_does_not_measure(self):
        wide = torch.tensor([3 + 4j, 1j], dtype=torch.complex128)
        expected, _ = self.record([wide, torch.ones(3)])
        got, fetched = self.record([on_device(wide), on_device(torch.ones(3))])
        self.assertEqual(fetched, [1])
        self.check_equal(expected, got)

    def test_without_the_kernel(self):
        """If anything is missing or wrong: the framework's kernels, and one line."""
        expected, _ = self.record(self.TENSORS)
        self.ORDINAL[0] = 1  # never used with success
        self.addCleanup(self.ORDINAL.__setitem__, 0, 0)
        for fault in ("init", "compile", "load", "memory", "launch", "sum", "crc"):
            os.environ["MSPROBE_FAKE_GPU_FAULT"] = fault
            gpu._opened.clear()
            try:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    got, fetched = self.record([on_device(tensor) for tensor in self.TENSORS])
            finally:
                del os.environ["MSPROBE_FAKE_GPU_FAULT"]
            self.assertEqual(fetched, [len(self.TENSORS) - 1], fault)
            lines = [str(one.message) for one in told if str(one.message).startswith("msprobe: ")]
            self.assertEqual(len(lines), 1, lines)
            self.assertIn(", which takes longer: the GPU", lines[0])
            self.assertEqual([one["Max"] for one in expected[:3]], [one["Max"] for one in got[:3]])

    def test_a_launch_that_fails_later(self):
        """No numbers rather than wrong ones, then the framework's kernels."""
        self.assertTrue(gpu.use(torch.device("cpu")))
        os.environ["MSPROBE_FAKE_GPU_FAULT"] = "launch"
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                got, _ = self.record([on_device(torch.ones(3))])
                self.assertIsNone(got[0]["Max"])
                got, _ = self.record([on_device(torch.ones(3))])
                self.assertEqual(got[0]["Max"], 1.0)
        finally:
            del os.environ["MSPROBE_FAKE_GPU_FAULT"]
        self.assertEqual(len([one for one in told if str(one.message).startswith("msprobe: ")]), 1)

    def test_each_thread_starts_what_it_recorded(self):
        """Another one could be late: the training of this one would have gone on."""
        self.assertTrue(gpu.use(torch.device("cpu")))
        seen = []

        def drain():
            other = threading.Thread(target=debugger_module._native.gpu_drain)
            other.start()
            other.join()
            seen.append(self.counts()[0])

        @dataclasses.dataclass
        class Value:
            """A value whose field is read after the first tensor, before the call goes on."""

            field: int = 1

            def __getattribute__(self, name):
                if name == "field":
                    drain()
                return super().__getattribute__(name)

        library = types.ModuleType("library")
        library.function = lambda tensor, value: seen.append(self.counts()[0])
        debugger = self.open("L1")
        debugger.register_custom_api(library, "function")
        value = Value()
        seen.clear()
        debugger.start()
        before = self.counts()[0]
        library.function(on_device(torch.ones(3)), value)
        debugger.stop()
        self.assertEqual(seen, [before, before + 1])

    def test_a_process_that_tries_the_kernel_may_end_as_it_likes(self):
        original = gpu._TRIAL
        for trial, why in (("import os; os.abort()", "ended with status -6"),
                           ("import time; time.sleep(60)", "timed out after 1 seconds"),
                           ("import sys; print('x'); sys.exit('a reason')", ": a reason")):
            gpu._opened.clear()
            gpu._TRIAL, gpu._LONGEST_TRIAL = trial, 1 if "sleep" in trial else 120
            try:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    self.assertFalse(gpu.use(torch.device("cpu")))
            finally:
                gpu._TRIAL, gpu._LONGEST_TRIAL = original, 120
            self.assertEqual(len(told), 1)
            self.assertIn(why, str(told[0].message))
        gpu._opened.clear()
        gpu._TRIAL = "raise SystemExit('a reason')"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertRaises(UserWarning, gpu.use, torch.device("cpu"))
            self.assertFalse(gpu.use(torch.device("cpu")))  # without another trial
        finally:
            gpu._TRIAL = original

    def test_what_is_a_gpu(self):
        self.assertFalse(self.originals["is_gpu"](torch.device("cpu")))
        with mock.patch.object(torch.version, "cuda", "12.8"):
            self.assertTrue(self.originals["is_gpu"](types.SimpleNamespace(type="cuda")))

    def test_it_is_not_the_default(self):
        """The framework's kernels measure, without a word, unless the kernel is asked for."""
        self.ORDINAL[0] = 2  # never used
        self.addCleanup(self.ORDINAL.__setitem__, 0, 0)
        expected, _ = self.record(self.TENSORS)
        for value in (None, "", "0", "yes"):
            with mock.patch.dict(os.environ):
                os.environ.pop("MSPROBE_GPU_KERNEL")
                if value is not None:
                    os.environ["MSPROBE_GPU_KERNEL"] = value
                gpu._opened.clear()
                before = self.counts()
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    got, fetched = self.record([on_device(tensor) for tensor in self.TENSORS])
            self.assertEqual([str(one.message) for one in told if str(one.message).startswith("msprobe: ")], [])
            self.assertEqual((self.counts(), fetched), (before, [len(self.TENSORS) - 1]), value)
            self.assertEqual([one["Max"] for one in expected[:3]], [one["Max"] for one in got[:3]])
        self.ORDINAL[0] = 0
        gpu._opened.clear()
        before = self.counts()
        got, fetched = self.record([on_device(tensor) for tensor in self.TENSORS])
        self.assertEqual(sum(fetched), 0)
        self.assertGreater(self.counts()[0], before[0])
        self.check_equal(expected, got)


@unittest.skipUnless(FAKE_GPU, "MSPROBE_FAKE_GPU is not set")
class OwnKernelByDescription(OwnKernel):
    """The same of tensors that are not plain, which our Python part sees to."""

    PLAIN = False

    def setUp(self):
        super().setUp()
        self.detach = framework.detach
        framework.detach = lambda tensor: on_device(self.detach(tensor))

    def tearDown(self):
        framework.detach = self.detach
        super().tearDown()


if __name__ == "__main__":
    unittest.main()
