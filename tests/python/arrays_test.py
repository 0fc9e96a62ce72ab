# SPDX-License-Identifier: Apache-2.0
"""A framework whose tensors are read as arrays of NumPy and whose backwards are hooked by borders: as MindSpore's."""

import json
import os
import shutil
import sys
import tempfile
import types
import unittest
import zlib

try:
    import numpy
except ImportError:
    print("SKIPPED: NumPy is not installed (python3-numpy)")
    sys.exit(77)

from msprobe import _native
from msprobe.core import describe, stacks


class Tensor:
    """A stand-in: elements, and how its type is called."""

    def __init__(self, array, dtype):
        self.array = array
        self.dtype = dtype


def describe_value(value):
    if isinstance(value, Tensor):
        number = describe.NUMPY_DTYPES.get(str(value.array.dtype), describe.DTYPE_OTHER)
        elements = None if number == describe.DTYPE_OTHER else value.array
        return describe.Record((elements, None, value.dtype, number, value.array.shape, None, None, None, None))
    if isinstance(value, numpy.ndarray):
        return describe.numpy_array(value)
    return None


class Backward:
    """Wraps arguments and results, as borders do; the test sends gradients."""

    made = []

    def __init__(self, call, by_argument):
        self.call = call
        self.by_argument = by_argument
        Backward.made.append(self)

    def hook_arguments(self, args, kwargs):
        if args and isinstance(args[0], str):
            raise ValueError("no border for this")
        return tuple(("border", value) for value in args), {key: ("border", value) for key, value in (kwargs or {}).items()}

    def hook_outputs(self, output):
        return "border", output


def nothing(*unused):
    return None


class Arrays(unittest.TestCase):
    def open(self, task="tensor", **section):
        self.folder = tempfile.mkdtemp(prefix="msprobe-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        Backward.made = []
        _native.bind(types.SimpleNamespace(
            dtypes=[], tensor_type=Tensor, parameter_type=Tensor, data_ptr=nothing, stride=nothing, is_neg=nothing,
            is_conj=nothing, strided=object(), is_grad_enabled=nothing, tracing_state=None, compile_context=None,
            record_type=describe.Record, describe=describe_value, describe_named=nothing, make_backward=Backward,
            format_stack=stacks.format_stack, format_exception=stacks.format_exception, asynchronous=nothing))
        config = {"dump_path": self.folder, "task": task, "level": "L1", task: section}
        _native.open(None, json.dumps(config), None, None, None, None, "mindspore", "npy")
        self.addCleanup(_native.close)
        self.number = _native.add_api("Mint.f", False, False, 0, 0, None)
        self.assertEqual(_native.start(), (0, 0))

    def finish(self):
        _native.stop()
        _native.step()  # also the files of tensors are written
        step, = os.listdir(self.folder)
        process, = os.listdir(os.path.join(self.folder, step))
        self.place = os.path.join(self.folder, step, process)
        errors = os.path.join(self.place, "dump_error_info.log")
        self.errors = ""
        if os.path.exists(errors):
            with open(errors, encoding="utf-8") as file:
                self.errors = file.read()
        with open(os.path.join(self.place, "dump.json"), encoding="utf-8") as file:
            return json.load(file)

    def record(self, array, dtype):
        """The record of one tensor."""
        self.open(summary_mode="md5")
        _native.call_api(self.number, lambda *args: None, (Tensor(array, dtype),), {})
        dump = self.finish()
        self.assertEqual(self.errors, "")
        self.assertEqual(dump["framework"], "mindspore")
        self.assertRegex(dump["recorder"], r"^msprobe \d+\.\d+")
        _native.close()
        return dump["data"]["Mint.f.0.forward"]["input_args"][0]

    def check(self, array, dtype, **expected):
        record = self.record(array, dtype)
        self.assertEqual(record["type"], "mindspore.Tensor")
        self.assertEqual(record["dtype"], dtype)
        self.assertEqual(record["shape"], list(array.shape))
        self.assertNotIn("requires_grad", record)
        self.assertEqual(record["md5"], "%08x" % zlib.crc32(numpy.ascontiguousarray(array).tobytes()))
        saved = numpy.load(os.path.join(self.place, "dump_tensor_data", record["data_name"]))
        self.assertEqual(saved.dtype, array.dtype)
        numpy.testing.assert_array_equal(saved, array)
        for name, value in expected.items():
            self.assertAlmostEqual(record[name], value, places=5)
        return record

    def test_types(self):
        for name in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16",
                     "uint8"):
            with self.subTest(name):
                self.check(numpy.array([[1, 2, 3], [4, 5, 7]], name), name.capitalize(), Max=7, Min=1, Mean=22 / 6,
                           Norm=104 ** 0.5)
        record = self.check(numpy.array([True, False]), "Bool")
        self.assertEqual([record[key] for key in ("Max", "Min", "Mean", "Norm")], [True, False, None, None])
        # The modulus, with a norm: PyTorch's have none.
        self.check(numpy.array([3 + 4j, 0], "complex64"), "Complex64", Max=5, Min=0, Mean=2.5, Norm=5)

    def test_a_wider_type_stands_for_one_that_numpy_lacks(self):
        record = self.check(numpy.array([1.5, -2.0], "float32"), "BFloat16", Max=1.5, Min=-2, Mean=-0.25, Norm=2.5)
        self.assertTrue(record["data_name"].endswith(".input.0.npy"))

    def test_strides(self):
        base = numpy.arange(24, dtype="float32").reshape(2, 3, 4)
        shown = numpy.lib.stride_tricks.as_strided(base, (3, 5), (4, 0))
        for array in (base.transpose(2, 0, 1), base[:, ::-1, ::2], base[1:, 1:], shown, numpy.asfortranarray(base[0])):
            with self.subTest(strides=array.strides):
                self.check(array, "Float32", Max=array.max(), Min=array.min(), Mean=array.mean(),
                           Norm=numpy.linalg.norm(array))
        self.check(numpy.float32(2.5).reshape(()), "Float32", Max=2.5, Min=2.5, Mean=2.5, Norm=2.5)

    def test_empty(self):
        record = self.record(numpy.zeros((0, 3), "float32"), "Float32")
        self.assertEqual([record[key] for key in ("Max", "Min", "Mean", "Norm")], [None] * 4)
        self.assertEqual((record["shape"], record["md5"]), ([0, 3], "00000000"))

    def test_what_cannot_be_read_keeps_type_and_shape(self):
        for array in (numpy.array(["a", "b"]), numpy.array([1, 2], "float32").view([("x", "f4")]),
                      numpy.array([1, 2], "M8[D]")):
            record = self.record(array, "Strange")
            self.assertEqual((record["dtype"], record["shape"], record["Max"]), ("Strange", [2], None))

    def test_odd_layouts_of_arrays(self):
        self.open(task="statistics")
        odd = numpy.zeros(4, "i1,f4")["f1"]  # strides that are no multiple of the size
        odd[:] = [1, 2, 3, 4]
        other_order = numpy.array([1.0, 2.0], ">f8")
        _native.call_api(self.number, lambda *args: None, (odd, other_order, Tensor(odd, "Float32")), {})
        data = self.finish()["data"]["Mint.f.0.forward"]["input_args"]
        self.assertEqual((data[1]["type"], data[1]["Max"]), ("numpy.ndarray", 2.0))
        for record in (data[0], data[2]):
            self.assertEqual(record["shape"], [4])
        self.assertEqual(self.errors, "")

    def test_lying_interfaces_are_told_and_harm_nobody(self):
        self.open(task="statistics")

        class Liar:
            def __init__(self, **interface):
                self.__array_interface__ = interface

        good = numpy.zeros(2, "float32").__array_interface__
        lies = [dict(good, shape=(2 ** 62, 2 ** 62)), dict(good, shape=None), dict(good, typestr=5),
                dict(good, data=None), dict(good, data=("x", False)), dict(good, strides=(1,)), {},
                dict(good, typestr="<q7"), dict(good, shape=(-1,)), dict(good, strides=(4, 4))]
        for lie in lies:
            record = describe.Record((Liar(**lie), None, "Float32", 1, (2,), None, None, None, None))
            sent = []

            class Sender:
                pass

            _native.bind(types.SimpleNamespace(
                dtypes=[], tensor_type=Tensor, parameter_type=Tensor, data_ptr=nothing, stride=nothing, is_neg=nothing,
                is_conj=nothing, strided=object(), is_grad_enabled=nothing, tracing_state=None, compile_context=None,
                record_type=describe.Record, describe=lambda value, record=record: record, describe_named=nothing,
                format_stack=stacks.format_stack, format_exception=stacks.format_exception, asynchronous=nothing))
            result = _native.call_api(self.number, lambda *args: sent.append(args) or 5, (Sender(),), {})
            self.assertEqual((result, len(sent)), (5, 1))
        self.assertEqual(len(self.finish()["data"]), len(lies))

    # ------------------------------------------------------------------ backwards

    def test_borders(self):
        self.open(task="statistics")
        seen = []

        def function(*args, **kwargs):
            seen.append((args, kwargs))
            return 7

        self.assertEqual(_native.call_api(self.number, function, (1, 2), {"k": 3}), ("border", 7))
        self.assertEqual(seen, [((("border", 1), ("border", 2)), {"k": ("border", 3)})])
        backward, = Backward.made
        self.assertFalse(backward.by_argument)
        backward.call.begin_backward()
        backward.call.end_backward((Tensor(numpy.ones(2, "float32"), "Float32"), None), (8,))
        dump = self.finish()
        self.assertEqual(dump["data"]["Mint.f.0.forward"]["output"], [{"type": "int", "value": 7}])
        entry = dump["data"]["Mint.f.0.backward"]
        self.assertEqual(entry["input"], [{"type": "int", "value": 8}])
        self.assertAlmostEqual(entry["output"][0]["Norm"], 2 ** 0.5, places=6)
        self.assertIsNone(entry["output"][1])
        self.assertEqual(self.errors, "")

    def test_gradients_that_come_one_by_one(self):
        self.open(task="statistics")
        number = _native.add_api("Primitive.p.P", False, False, 0, 0, None, True)
        _native.call_api(number, lambda *args: 7, (1, 2), {})
        backward, = Backward.made
        self.assertTrue(backward.by_argument)
        backward.call.begin_backward()
        backward.call.end_backward(None, (8,), True)
        other = _native.call_api(self.number, lambda: 1, (), {})
        self.assertEqual(other, ("border", 1))
        backward.call.end_backward((9,), None, True)
        backward.call.end_backward((9, 10), None, False)
        data = self.finish()["data"]
        values = {key: [leaf["value"] for leaf in part] for key, part in data["Primitive.p.P.0.backward"].items()}
        self.assertEqual(values, {"input": [8], "output": [9, 10]})
        # Its place is where it began.
        self.assertEqual(list(data), ["Primitive.p.P.0.forward", "Primitive.p.P.0.backward", "Mint.f.0.forward"])

    def test_one_that_does_not_come_leaves_the_rest(self):
        self.open(task="statistics")
        number = _native.add_api("Primitive.p.P", False, False, 0, 0, None, True)
        _native.call_api(number, lambda *args: 7, (1, 2), {})
        backward = Backward.made.pop()
        backward.call.begin_backward()
        backward.call.end_backward((9,), (8,), True)
        del backward
        entry = self.finish()["data"]["Primitive.p.P.0.backward"]
        self.assertEqual((len(entry["input"]), len(entry["output"])), (1, 1))

    def test_a_border_that_fails_is_left_out(self):
        self.open(task="statistics")
        self.assertEqual(_native.call_api(self.number, lambda *args: args, ("refuse",), {}), ("refuse",))
        self.assertIn("Mint.f.0.forward", self.finish()["data"])
        self.assertIn("no border for this", self.errors)

    def test_gradient_of_a_saved_tensor(self):
        self.open(task="statistics")
        _native.close()
        _native.open(None, json.dumps({"dump_path": self.folder, "level": "debug"}), None, None, None, None, "mindspore",
                     "npy")
        tensor = Tensor(numpy.array([1.0, 2.0], "float32"), "Float32")
        entry = _native.save({"a": [tensor]}, "x", True)
        _native.fill_gradient(entry, "a.0", Tensor(numpy.array([3.0, -4.0], "float32"), "Float32"))
        _native.step()
        debug = [os.path.join(place, "debug.json") for place, _, files in os.walk(self.folder) if "debug.json" in files]
        with open(debug[0], encoding="utf-8") as file:
            data = json.load(file)["data"]
        self.assertEqual(data["x.0.debug"]["a"][0]["Max"], 2.0)
        self.assertEqual((data["x_grad.0.debug"]["a"][0]["Min"], data["x_grad.0.debug"]["a"][0]["Norm"]), (-4.0, 5.0))


if __name__ == "__main__":
    unittest.main()
