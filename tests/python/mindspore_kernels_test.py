# SPDX-License-Identifier: Apache-2.0
"""Level L2 and task exception_dump with MindSpore, by a stand-in for it: the settings that its runtime finds, the calls of it, and
what is told in the end."""

import json
import os
import tempfile
import types
import unittest
from unittest import mock

import doubles  # noqa: F401 - the stand-in
import mindspore as ms

from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException
from msprobe.mindspore import MsprobeInitStep, PrecisionDebugger

VARIABLES = ("MINDSPORE_DUMP_CONFIG", "MS_ACL_DUMP_CFG_PATH")


class Runtime:
    """The functions of MindSpore that begin and end dumps, on an NPU."""

    def __init__(self):
        self.calls = []
        self.context = {"mode": ms.PYNATIVE_MODE, "device_target": "Ascend", "jit_level": ""}
        self.writes = ()  # names of files of a step
        self.failing = None

    def __getattr__(self, name):
        if not name.startswith(("_dump_", "_set_init_iter")):
            raise AttributeError(name)
        return lambda *args: self.call(name, *args)

    def call(self, name, *args):
        self.calls.append((name,) + args)
        if name == self.failing:
            raise RuntimeError("the device is lost")
        if name == "_dump_start":
            with open(os.environ["MINDSPORE_DUMP_CONFIG"], encoding="utf-8") as file:
                folder = os.path.join(json.load(file)["common_dump_settings"]["path"], "rank_0", "Net", "0", str(len(self.calls)))
            os.makedirs(folder)
            for one in self.writes:
                with open(os.path.join(folder, one), "w", encoding="utf-8"):
                    pass

    class MSContext:
        get_instance = staticmethod(lambda: types.SimpleNamespace(get_ascend_soc_version=lambda: "ascend910b"))


class Kernels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="msprobe-test-")
        self.addCleanup(folder.cleanup)
        self.dump_path = os.path.join(os.path.realpath(folder.name), "out")
        self.path = os.path.join(folder.name, "config.json")
        self.runtime = Runtime()
        self.told = []
        log._said.clear()
        for patch in (mock.patch.object(ms, "_c_expression", self.runtime),
                      mock.patch.object(ms, "get_context", self.runtime.context.__getitem__),
                      mock.patch.object(ms, "context", types.SimpleNamespace(get_jit_config=dict), create=True),
                      mock.patch.object(ms, "runtime", types.SimpleNamespace(
                          synchronize=lambda: self.runtime.calls.append(("synchronize",))), create=True),
                      mock.patch.object(ms, "__version__", "2.7.0", create=True),
                      mock.patch.object(log, "_write", lambda kind, text: self.told.append(kind + text)),
                      mock.patch.dict(os.environ)):
            patch.start()
            self.addCleanup(patch.stop)
        for name in VARIABLES:
            os.environ.pop(name, None)
        self.addCleanup(PrecisionDebugger.close)

    def open(self, task="statistics", section=None, level="L2", **keys):
        PrecisionDebugger.close()
        self.told.clear()
        self.runtime.calls.clear()
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"task": task, "dump_path": self.dump_path, "level": level, task: section or {}, **keys}, file)
        return PrecisionDebugger(config_path=self.path)

    def settings(self, *args, steps=1, **keys):
        """The settings in the file that the runtime finds."""
        debugger = self.open(*args, **keys)
        for _ in range(steps):
            debugger.start()
            debugger.stop()
            debugger.step()
        path = os.environ["MINDSPORE_DUMP_CONFIG"]
        self.assertEqual(os.path.dirname(path), self.dump_path)
        with open(path, encoding="utf-8") as file:
            return os.path.basename(path), json.load(file)

    def graph(self, jit_level):
        self.runtime.context.update(mode=ms.GRAPH_MODE, jit_level=jit_level)

    COMMON = {"op_debug_mode": 0, "dump_mode": 0, "net_name": "Net", "iteration": "all", "saved_data": "statistic",
              "input_output": 0, "kernels": [], "support_device": list(range(8))}

    def common(self, **keys):
        return {**self.COMMON, "path": self.dump_path, **keys}

    def test_statistics_of_the_dynamic_graph(self):
        self.runtime.writes = ("statistic.csv", "Add.Default_Add-op1.0.0.1.output.0.DefaultFormat.npy")
        name, settings = self.settings(steps=3, step=[0, 2])
        self.assertEqual(name, "kernel_kbyk_dump.json")
        self.assertEqual(settings, {
            "common_dump_settings": self.common(iteration="0|2", statistic_category=["max", "min", "avg", "l2norm"]),
            "e2e_dump_settings": {"enable": True, "trans_flag": True, "stat_calc_mode": "host", "device_stat_precision_mode": "high"}})
        stop = [("synchronize",), ("_dump_stop",), ("_dump_step", 1)]
        self.assertEqual(self.runtime.calls, [("_dump_set_dynamic",), ("_set_init_iter", 0), ("_dump_start",), *stop, *stop,
                                              ("_dump_start",), *stop])
        self.assertNotIn("MS_ACL_DUMP_CFG_PATH", os.environ)
        PrecisionDebugger.close()
        self.assertEqual(self.told[-1], "the runtime has dumped 4 files of kernels (2 .npy, 2 statistic.csv) in %s/rank_0/Net/0"
                         % self.dump_path)

    def test_settings_of_operators_one_by_one(self):
        self.graph("O1")
        kernels = ["name-regex(Default/.+)", "Add", "Default/Conv-op12"]
        name, settings = self.settings("tensor", {"list": kernels, "data_mode": ["output"], "file_format": "npy"}, rank=[1, "3-4"],
                                       async_dump=True)
        self.assertEqual((name, settings), ("kernel_kbyk_dump.json", {
            "common_dump_settings": self.common(dump_mode=1, kernels=kernels, saved_data="tensor", input_output=2,
                                                support_device=[1, 3, 4]),
            "e2e_dump_settings": {"enable": False, "trans_flag": True}}))
        name, settings = self.settings("statistics", {
            "device": "device", "precision": "low", "summary_mode": ["mean", "nan count", "hash"], "data_mode": ["input"]})
        self.assertEqual(settings["common_dump_settings"]["statistic_category"], ["avg", "nan count", "md5"])
        self.assertEqual(settings["common_dump_settings"]["input_output"], 1)
        self.assertEqual(settings["e2e_dump_settings"]["stat_calc_mode"], "device")
        self.assertEqual(settings["e2e_dump_settings"]["device_stat_precision_mode"], "low")
        ms.__version__ = "2.7.1"
        for mode, words in (("md5", ["hash:md5"]), (["hash", "max"], ["hash", "max"])):
            _, settings = self.settings("statistics", {"summary_mode": mode})
            self.assertEqual(settings["common_dump_settings"]["statistic_category"], words)

    def test_settings_of_whole_graphs(self):
        self.graph("O2")
        name, settings = self.settings("tensor", {"file_format": "bin"})
        self.assertEqual((name, settings), ("kernel_graph_dump.json", {
            "common_dump_settings": self.common(saved_data="tensor", file_format="bin")}))
        self.assertEqual(os.environ["MS_ACL_DUMP_CFG_PATH"], os.environ["MINDSPORE_DUMP_CONFIG"])
        _, settings = self.settings("tensor", {"list": ["name-regex(.*Add.*)"]})
        self.assertEqual(settings["common_dump_settings"]["file_format"], "npy")
        self.assertNotIn("MS_ACL_DUMP_CFG_PATH", os.environ)
        _, settings = self.settings("statistics", {"summary_mode": ["max", "l2norm"]})
        self.assertEqual(settings["common_dump_settings"]["statistic_category"], ["max", "l2norm"])
        self.open("statistics", {"summary_mode": ["nan count"]}).start()
        self.assertIn("with jit_level O2 the runtime has only", self.told[-1])

    def test_overflows_and_exceptions(self):
        self.graph("O2")
        for mode, number in (("aicore", 1), ("atomic", 2), ("all", 3)):
            name, settings = self.settings("overflow_check", {"check_mode": mode}, step=[5])
            self.assertEqual((name, settings), ("kernel_graph_overflow_check.json", {
                "common_dump_settings": self.common(op_debug_mode=number, saved_data="full", file_format="npy")}))
            self.assertTrue(any("step has no effect" in line for line in self.told), self.told)
        self.open("exception_dump").start()
        self.assertEqual(self.told, ["warning: level L2: no kernels are dumped: task exception_dump is for the dynamic graph, and "
                                     "graphs with jit_level O0 or O1, not O2"])
        self.runtime.context["mode"] = ms.PYNATIVE_MODE
        name, settings = self.settings("exception_dump")
        self.assertEqual((name, settings), ("kernel_graph_exception_dump.json", {
            "common_dump_settings": self.common(op_debug_mode=4, saved_data="tensor", file_format="npy"),
            "e2e_dump_settings": {"enable": True, "trans_flag": True}}))
        PrecisionDebugger.close()
        self.assertEqual(self.told[-1], "the runtime has written no file of kernels to " + self.dump_path)  # no warning
        self.open("overflow_check").start()
        self.assertIn("task overflow_check is for graphs with jit_level O2", self.told[-1])

    def test_steps_of_a_training_that_goes_on(self):
        debugger = self.open("tensor", step=[7])
        MsprobeInitStep().on_train_begin(types.SimpleNamespace(original_args=lambda: types.SimpleNamespace(cur_step_num=7)))
        for _ in range(2):
            debugger.start()
            debugger.stop()
            debugger.service.reset_status()  # the step stays
            debugger.step()
        counted = [call for call in self.runtime.calls if call[0] not in ("synchronize", "_dump_stop")]
        self.assertEqual(counted, [("_dump_set_dynamic",), ("_set_init_iter", 7), ("_set_init_iter", 7), ("_dump_start",),
                                   ("_dump_step", 1), ("_dump_step", 1)])

    def test_a_level_that_changes(self):
        debugger = self.open("statistics", level="L1", dump_enable=True)
        for remark, level in (("a", "L2"), ("to see that the file has changed", "L1")):
            with open(self.path, "w", encoding="utf-8") as file:
                json.dump({"_": remark, "task": "statistics", "dump_path": self.dump_path, "level": level, "dump_enable": True}, file)
            debugger.start()
            self.assertEqual(self.runtime.calls, [])
        self.assertEqual([line for line in self.told if "level L2 has no effect" in line], [
            "warning: level L2 has no effect: it must be in the configuration from the beginning, since MindSpore's runtime reads "
            "its settings then"])

    def test_a_runtime_that_fails_writes_nothing_or_is_old(self):
        self.runtime.failing = "_dump_start"
        debugger = self.open("tensor")
        debugger.start()
        debugger.stop()
        debugger.step()
        self.assertIn("warning: level L2: no kernels are dumped: the device is lost", self.told)
        self.runtime.failing = None
        self.settings("tensor")
        PrecisionDebugger.close()
        self.assertEqual(self.told[-1], "warning: the runtime has written no file of kernels to " + self.dump_path)
        with mock.patch.object(ms, "_c_expression", types.SimpleNamespace()):
            self.assertEqual(self.settings("tensor")[0], "kernel_kbyk_dump.json")

    def test_settings_that_are_wrong(self):
        for task, section, level, reason in (
                ("structure", {}, "L2", "task: must be one of statistics, tensor, overflow_check, exception_dump at level L2"),
                ("exception_dump", {}, "L1", 'level: must be "L2" for task exception_dump'),
                ("tensor", {"file_format": "pt"}, "L2", 'file_format: "pt" must be one of npy, bin'),
                ("statistics", {"device": "npu"}, "L2", 'device: "npu" must be one of host, device'),
                ("statistics", {"summary_mode": ["max", "median"]}, "L2", 'summary_mode: "median" is not one of max, min'),
                ("statistics", {"summary_mode": "xor"}, "L2", 'summary_mode: "xor" must be one of statistics, md5'),
                ("overflow_check", {"check_mode": "cube"}, "L2", 'check_mode: "cube" must be one of all, aicore, atomic'),
                ("tensor", {"data_mode": ["forward"]}, "L2", 'data_mode: "forward" must be one of all, input, output'),
                ("tensor", {"data_mode": ["input", "output"]}, "L2", "data_mode: must hold one of"),
                ("tensor", {"list": ["name-regex(Default/(+)"]}, "L2", "holds no regular expression")):
            with self.assertRaises(MsprobeException) as raised:
                self.open(task, section, level)
            self.assertIn(reason, str(raised.exception))
        self.open("tensor", {"tensor_list": [], "scope": ["a"], "file_fromat": "npy"})
        self.assertEqual([line.split(": ", 3)[3] for line in self.told], [
            '"scope" has no effect at level L2 of MindSpore',
            '"file_fromat" is not a key and has no effect: did you mean "file_format"?'])

    def test_without_a_runtime(self):
        self.runtime.context["device_target"] = "CPU"
        for task, reason in (("tensor", '"L2" needs an NPU'), ("exception_dump", "needs MindSpore on an NPU")):
            with self.assertRaises(MsprobeException) as raised:
                self.open(task, {"data_mode": ["forward"]})
            self.assertIn(reason, str(raised.exception))
        self.assertEqual(self.runtime.calls, [])


if __name__ == "__main__":
    unittest.main()
