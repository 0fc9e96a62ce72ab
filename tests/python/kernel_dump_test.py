# SPDX-License-Identifier: Apache-2.0
"""Level L2 with PyTorch, by a stand-in for torch_npu: which kernels are dumped, by which calls of it, and that the training does
not change."""

import glob
import importlib.util
import sys

from helpers import *
from msprobe.core.common import log
from msprobe.core.common.exceptions import MsprobeException

DOUBLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "doubles", "torch_npu", "__init__.py")
WHOLE_DUMP = ["synchronize", "init_dump", "set_dump", "synchronize", "synchronize", "finalize_dump", "synchronize"]


class Kernels(Case):
    def setUp(self):
        super().setUp()
        self.folder = os.path.realpath(self.folder)
        self.told = []
        log._said.clear()
        self.addCleanup(setattr, log, "_write", log._write)
        log._write = lambda kind, text: self.told.append(kind + text)
        spec = importlib.util.spec_from_file_location("torch_npu", DOUBLE, submodule_search_locations=[os.path.dirname(DOUBLE)])
        sys.modules["torch_npu"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["torch_npu"])
        self.npu = sys.modules["torch_npu"].npu
        self.addCleanup(self.forget_double)

    @staticmethod
    def forget_double():
        for name in ("torch_npu", "torch_npu.npu"):
            sys.modules.pop(name, None)

    def open_for(self, name, level="L2", task="tensor", **keys):
        return self.open(level, task, {"list": [name], "scope": [], **keys})

    def train(self, name=None, steps=2, **keys):
        """All losses and gradients, and a random number after them."""
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        debugger = self.open_for(name, **keys) if name else None
        found = []
        for _ in range(steps):
            if debugger:
                debugger.start()
            loss = functional.dropout(model(torch.rand(3, 4)), 0.5, True).square().sum()
            if debugger:
                debugger.stop()
            loss.backward()
            if debugger:
                debugger.step()
            found += [loss.detach()] + [parameter.grad.clone() for parameter in model.parameters()]
        if debugger:
            debugger._end()
        return found + [torch.rand(1)]

    def kernels(self, step):
        return sorted(os.path.basename(path).split(".")[0]
                      for path in glob.glob(os.path.join(self.dump_path, "step%d" % step, "*", "0", "*")))

    def check_unchanged(self, name):
        plain, dumped = self.train(), self.train(name)
        self.assertTrue(all(torch.equal(one, other) for one, other in zip(plain, dumped)))

    def test_a_forward(self):
        self.check_unchanged("Functional.linear.1.forward")
        self.assertEqual(self.npu.calls, WHOLE_DUMP * 2)
        for step in range(2):
            self.assertIn("addmm", self.kernels(step))
            self.assertNotIn("pow", self.kernels(step))
            folder = os.path.join(self.dump_path, "step%d" % step)
            self.assertEqual(self.npu.settings[step], {"dump": {
                "dump_list": [], "dump_path": folder, "dump_mode": "all", "dump_op_switch": "on"}})
            self.assertEqual(sorted(os.listdir(folder)), ["20261124101010", "kernel_config_%d.json" % os.getpid()])
        count = sum(len(self.kernels(step)) for step in range(2))
        self.assertRegex(self.told[-1], r"^had the kernels of Functional\.linear\.1\.forward dumped in 2 of 2 steps: %d files of "
                         r"kernels \(%d without ending\) in %s in \d\.\d s$" % (count, count, self.dump_path))

    def test_a_backward(self):
        self.check_unchanged("Functional.dropout.0.backward")
        self.assertEqual(self.npu.calls, WHOLE_DUMP * 2)
        self.assertTrue(any("mul" in kind or "dropout" in kind for kind in self.kernels(0)), self.kernels(0))
        self.assertFalse(any("mm" in kind for kind in self.kernels(0)), self.kernels(0))
        self.check_unchanged("Functional.linear.1.backward")
        self.assertEqual(self.kernels(0).count("mm"), 2)  # the gradients of its input and its weight

    def test_steps_that_are_asked_for(self):
        self.train("Functional.linear.0.forward", steps=3)
        self.npu.calls.clear()
        self.write_config(dict(self.config, step=[1]))
        self.close()
        debugger = PrecisionDebugger(config_path=self.config_path)
        for _ in range(3):
            debugger.start()
            functional.linear(torch.ones(1, 2), torch.ones(2, 2))
            debugger.stop()
            debugger.step()
        self.assertEqual(self.npu.calls, WHOLE_DUMP)

    def test_a_level_that_changes(self):
        debugger = self.open("L1", "tensor", {"list": ["Functional.linear.0.forward"]}, dump_enable=True)
        for remark, level in (("a", "L2"), ("to see that the file has changed", "L1")):
            self.write_config(dict(self.config, level=level, _=remark))
            debugger.start()
            functional.linear(torch.ones(1, 2), torch.ones(2, 2))
            debugger.stop()
            debugger.step()
            self.assertEqual(self.npu.calls, WHOLE_DUMP)
        self.assertEqual(self.tree(1).names, ["Functional.linear.0.forward"])

    def test_a_runtime_that_fails_or_writes_nothing(self):
        plain = self.train()
        for failing, finalized in (("init_dump", 0), ("set_dump", 2)):
            self.npu.failing = failing
            self.npu.calls.clear()
            self.told.clear()
            log._said.clear()
            dumped = self.train("Functional.linear.0.forward")
            self.assertTrue(all(torch.equal(one, other) for one, other in zip(plain, dumped)))
            self.assertEqual(self.npu.calls.count("finalize_dump"), finalized)
            self.assertEqual([line for line in self.told if "error 107001" in line], [
                "warning: level L2: the kernels of Functional.linear.0.forward cannot be dumped: %s failed: error 107001" % failing])
        self.npu.failing = None
        self.npu.silent = True
        self.train("Functional.linear.0.forward")
        self.assertIn("warning: the runtime has written no file of kernels to " + self.dump_path, self.told)
        log._said.clear()
        self.train("Functional.relu.0.forward")
        self.assertTrue(any('no call has the name "Functional.relu.0.forward"' in line for line in self.told), self.told)

    def test_a_call_that_raises_or_has_no_backward(self):
        debugger = self.open_for("Functional.linear.0.forward")
        debugger.start()
        with self.assertRaisesRegex(RuntimeError, "shape"):
            functional.linear(torch.ones(1, 3), torch.ones(2, 2))
        self.assertEqual(self.npu.calls, WHOLE_DUMP)
        debugger = self.open_for("Functional.linear.0.backward")
        debugger.start()
        functional.linear(torch.ones(1, 2), torch.ones(2, 2))
        self.assertIn("its result requires no gradient", self.told[-1])

    def test_settings_that_are_wrong(self):
        for section, task, reason in (
                ({"list": []}, "tensor", "list: must hold one call at level L2"),
                ({"list": ["linear"]}, "tensor", "list: must hold one call at level L2"),
                ({"list": ["Module.fc.Linear.forward.0"]}, "tensor", "list: must hold one call at level L2"),
                ({"list": ["Torch.a.0.forward", "Torch.b.0.forward"]}, "tensor", "list: must hold one call at level L2"),
                ({"list": ["Torch.a.0.forward"], "scope": ["a", "b"]}, "tensor", "scope: is not for level L2"),
                ({"list": ["Torch.a.0.forward"]}, "statistics", 'task: must be "tensor" at level L2'),
                ({}, "exception_dump", "needs MindSpore on an NPU")):
            with self.assertRaisesRegex(MsprobeException, reason):
                self.open("L2", task, section)
        del self.npu.set_dump
        with self.assertRaisesRegex(MsprobeException, "this torch_npu has no npu.set_dump"):
            self.open_for("Torch.a.0.forward")

    def test_without_a_runtime(self):
        self.forget_double()
        for section in ({"list": ["Functional.linear.0.forward"]}, {"list": []}):
            with self.assertRaisesRegex(MsprobeException, '"L2" needs an NPU'):
                self.open("L2", "tensor", section)


if __name__ == "__main__":
    unittest.main()
