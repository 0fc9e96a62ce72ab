# SPDX-License-Identifier: Apache-2.0
"""The extension by itself, with stand-ins for the framework: it needs no PyTorch, and any CPython from 3.8."""

import json
import os
import resource
import shutil
import sys
import tempfile
import traceback
import types
import unittest

from msprobe import _native


class StandIn:
    """A type that nothing is an instance of."""


def format_stack(frame):
    codes, texts = [], []
    while frame is not None:
        codes.append(frame.f_code)
        texts.append("File %s, line %d, in %s, \n " % (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return codes, texts


def format_exception(error):
    return type(error).__name__, "".join(traceback.format_exception(type(error), error, error.__traceback__))


def describe(value):
    if isinstance(value, set):
        return '{"type": "set"}'
    if isinstance(value, bytes):
        return "no JSON"
    if isinstance(value, type):
        raise TypeError("no classes here")
    if isinstance(value, slice):
        return value
    return None


BINDING = types.SimpleNamespace(
    dtypes=[(object(), 1, 4)], tensor_type=StandIn, parameter_type=StandIn, data_ptr=len, stride=len, is_neg=len,
    is_conj=len, strided=object(), is_grad_enabled=lambda: False, tracing_state=lambda: None, compile_context=None,
    record_type=StandIn, describe=describe, describe_named=lambda key, value: json.dumps({"type": key, "value": str(value)}),
    format_stack=format_stack, format_exception=format_exception, asynchronous=lambda *args: False)


class Native(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="msprobe-test-")
        _native.bind(BINDING)
        _native.open(None, json.dumps({"dump_path": self.folder, "level": "mix", "risk_level": "ALL"}), None, None, None,
                     None, "pytorch")
        self.number = _native.add_api("Library.f", False, False, 0, 0, None)

    def tearDown(self):
        _native.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def data(self):
        step, = os.listdir(self.folder)
        process, = os.listdir(os.path.join(self.folder, step))
        self.place = os.path.join(self.folder, step, process)
        with open(os.path.join(self.place, "dump.json"), encoding="utf-8") as file:
            return json.load(file)["data"]

    def call(self, function, *args, **kwargs):
        return _native.call_api(self.number, function, args, kwargs)

    def test_values(self):
        self.assertEqual(_native.start(), (0, 0))
        self.assertTrue(_native.running())
        value = {"a": [1, 2.5, None, True, "t\udc80\0", {1}, 2 ** 80, -2 ** 80, b"", (), {}], 3: float("inf")}
        result = self.call(lambda x, dtype: [x, dtype], value, dtype=int)
        self.assertEqual(result, [value, int])
        _native.stop()
        entry = self.data()["Library.f.0.forward"]
        number = lambda value: {"type": "int", "value": value}
        self.assertEqual(entry["input_args"], [{
            "a": [number(1), {"type": "float", "value": 2.5}, None, {"type": "bool", "value": True},
                  {"type": "str", "value": "t?\0"}, {"type": "set"}, number(2 ** 80), number(-2 ** 80), None, [], {}],
            "3": {"type": "float", "value": float("inf")}}])
        self.assertEqual(entry["input_kwargs"], {"dtype": {"type": "dtype", "value": "<class 'int'>"}})

    def test_values_that_fail(self):
        _native.start()
        cyclic = []
        cyclic.append(cyclic)
        for odd in (cyclic, int, slice(1)):
            self.assertIs(self.call(lambda x: x, odd), odd)
        self.assertEqual(self.call(lambda: 1), 1)
        _native.stop()
        self.assertEqual(self.data()["Library.f.3.forward"]["output"], [{"type": "int", "value": 1}])
        with open(os.path.join(self.place, "dump_error_info.log"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn("no classes here", text)
        self.assertIn("deeper than 400", text)

    def test_functions_that_raise_and_nest(self):
        _native.start()

        def fails():
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            self.call(fails)
        self.assertEqual(self.call(lambda: self.call(lambda: 5)), 5)
        with self.assertRaises(TypeError):
            _native.call_api(1)
        _native.stop()
        data = self.data()
        self.assertEqual(list(data), ["Library.f.0.forward", "Library.f.1.forward"])
        self.assertNotIn("output", data["Library.f.0.forward"])

    def test_modules(self):
        _native.start()
        outer = _native.enter_module(_native.intern("Module.a.A"), (1,), {}, None)
        inner = _native.enter_module(_native.intern("Module.a.b.B"), (), {"k": 2}, None)
        inner.leave(3, {"weight": 4}, False)
        outer.leave((5, 6), {}, False)
        inner.begin_backward()
        inner.end_backward((None,), (7,))
        outer.begin_backward()
        del inner, outer  # one of them in the middle of its backward
        _native.stop()
        data = self.data()
        self.assertEqual(list(data)[:3], ["Module.a.b.B.forward.0", "Module.a.A.forward.0", "Module.a.b.B.backward.0"])
        self.assertEqual(data["Module.a.b.B.forward.0"]["parameters"], {"weight": {"type": "int", "value": 4}})
        self.assertEqual(data["Module.a.b.B.backward.0"],
                         {"input": [{"type": "int", "value": 7}], "output": [None]})

    def test_wrong_use(self):
        with self.assertRaises(RuntimeError):
            _native.open(None, "{}", None, None, None, None, None)
        _native.close()
        for function in (_native.start, _native.stop, _native.info):
            with self.assertRaises(RuntimeError):
                function()
        self.assertEqual(self.call(lambda: 1), 1)
        with self.assertRaises(RuntimeError):
            _native.open(None, '{"level": "no"}', None, None, None, None, None)

    def test_no_memory_is_lost(self):
        _native.start()
        value = {"a": [1, 2.5, "text"]}

        def work():
            for _ in range(5000):
                self.call(lambda x, **k: [x], value, k={1})

        work()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        counts = [sys.getrefcount(part) for part in (value, value["a"], describe, None)]
        work()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.assertLess(after - before, 8 * 1024)  # KiB
        for part, count in zip((value, value["a"], describe), counts):
            self.assertLessEqual(sys.getrefcount(part), count + 1)


if __name__ == "__main__":
    unittest.main()
