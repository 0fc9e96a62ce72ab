# SPDX-License-Identifier: Apache-2.0
"""Messages of TrainerMon about keys that have no effect with MindSpore, by a stand-in for it;
tests/peer/mindspore_monitor.py has the real one."""

import contextlib
import io
import json
import os
import tempfile
import unittest

import doubles  # noqa: F401 - the stand-in
import mindspore as ms

from msprobe.mindspore import TrainerMon


class Handle:
    def remove(self):
        pass


class Hooked(ms.nn.Cell):
    """A network or an optimizer without parameters, which runs the hooks that it was given."""

    parameters = ()

    def __init__(self):
        self.before, self.after = [], []

    def register_forward_pre_hook(self, hook):
        self.before.append(hook)
        return Handle()

    def register_forward_hook(self, hook):
        self.after.append(hook)
        return Handle()

    def parameters_and_names(self):
        return []

    def cells_and_names(self):
        return [("", self)]

    def __call__(self):
        for hook in self.before:
            hook(self, ())
        for hook in self.after:
            hook(self, (), None)


class Monitor(unittest.TestCase):
    def test_keys_without_effect_are_told(self):
        with tempfile.TemporaryDirectory(prefix="msprobe-test-") as folder:
            config = os.path.join(folder, "config.json")
            with open(config, "w", encoding="utf-8") as file:
                json.dump({"targets": {}, "format": "csv", "cc_distribution": {"enable": True}, "print_struct": True,
                           "recording_l2_features": True, "l2_targets": {"linear_hook": []}, "stack_info": True}, file)
            os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(folder, "out")
            optimizer = Hooked()
            told = io.StringIO()
            with contextlib.redirect_stderr(told):
                monitor = TrainerMon(config, params_have_main_grad=False)
                monitor.set_monitor(Hooked(), grad_acc_steps=1, optimizer=optimizer)
                optimizer()
                optimizer()
        for key in ("cc_distribution", "print_struct", "recording_l2_features", "stack_info"):
            line = "monitor: %s has no effect with MindSpore" % key
            self.assertEqual(told.getvalue().count(line), 1, told.getvalue())


if __name__ == "__main__":
    unittest.main()
