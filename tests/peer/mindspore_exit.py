#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mindspore_exit.py OUR_PACKAGE_FOLDER

A training of MindSpore that ends inside a gradient, because an operation has no kernel on the CPU: the process ends with the same
status whether it is recorded or not.
"""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = """
import sys
import numpy as np
import mindspore as ms
from mindspore import mint, nn

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Dense(4, 3), nn.Dense(3, 3)
        self.fails = False

    def construct(self, x):
        x = self.one(x)
        return self.two(mint.nn.functional.mish(x) if self.fails else x)


net = Net()
debugger = None
if len(sys.argv) > 2:
    from msprobe.mindspore import PrecisionDebugger
    debugger = PrecisionDebugger(config_path=sys.argv[2])
gradients_of = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
for step in range(2):
    net.fails = step == 1
    if debugger:
        debugger.start(net)
    try:
        gradients_of(ms.Tensor(np.ones((2, 4), np.float32)))
    except RuntimeError:
        if sys.argv[1] == "raises":
            raise
        sys.exit(5)
    if debugger:
        debugger.stop()
        debugger.step()
"""


def status(folder, package, *arguments):
    environment = {**os.environ, "PYTHONPATH": package, "GLOG_v": "3"}
    return subprocess.run([sys.executable, "-W", "ignore", "program.py", *arguments], env=environment, cwd=folder, timeout=120,
                          capture_output=True, check=False).returncode


def main():
    with tempfile.TemporaryDirectory(prefix="msprobe_exit_") as folder:
        with open(os.path.join(folder, "program.py"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        for way in ("raises", "exits"):
            expected = status(folder, "", way)
            if expected == 0:
                print("skipped: this MindSpore has a kernel for the operation")
                return
            for level in ("L0", "L1", "mix"):
                config = os.path.join(folder, "config.json")
                with open(config, "w", encoding="utf-8") as file:
                    json.dump({"task": "statistics", "dump_path": os.path.join(folder, way + level), "level": level, "rank": [],
                               "step": [], "statistics": {}}, file)
                assert status(folder, sys.argv[1], way, config) == expected, (way, level)
    print("a training that ends inside a gradient: the same status, recorded or not")


main()
