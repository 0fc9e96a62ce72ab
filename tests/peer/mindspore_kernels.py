#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mindspore_kernels.py OUR_PACKAGE_FOLDER

Level L2 with MindSpore's own dump of kernels, which it also has for graphs on a CPU: it reads the settings that we write, and dumps the
kernels and the step that they name. An NPU is not needed, but a CPU has tensors only, no statistics, overflows or exceptions.
"""
import glob
import os
import subprocess
import sys
import tempfile

TRAINING = """
import json, os, sys
import numpy as np
import mindspore as ms
from msprobe.mindspore import PrecisionDebugger, kernel_dump

kernel_dump.is_there = lambda: True                # as on an NPU
kernel_dump._execution = lambda: kernel_dump._ONE_BY_ONE
ms.runtime.synchronize = lambda: None              # a CPU has none
ms.set_context(mode=ms.GRAPH_MODE)
with open("config.json", "w") as file:
    json.dump({"level": "L2", "task": "tensor", "dump_path": "dump", "step": [1],
               "tensor": {"list": ["name-regex(Default/relu.*)"]}}, file)
debugger = PrecisionDebugger(config_path="config.json")
debugger.start()


class Net(ms.nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = ms.nn.Dense(4, 3)
        self.relu = ms.nn.ReLU()

    def construct(self, x):
        return self.relu(self.fc(x))


net = Net()
for step in range(3):
    debugger.start()
    result = net(ms.Tensor(np.full((2, 4), step, np.float32))).asnumpy()
    if step == 1:
        np.save("result.npy", result)
    debugger.stop()
    debugger.step()
"""


def main():
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "train.py"), "w", encoding="utf-8") as file:
            file.write(TRAINING)  # MindSpore compiles what is in a file
        done = subprocess.run([sys.executable, "-W", "ignore", "train.py"], cwd=folder, capture_output=True, text=True, check=False,
                              env=dict(os.environ, PYTHONPATH=sys.argv[1]))
        if done.returncode != 0:
            sys.exit(done.stderr)
        place = os.path.join(folder, "dump", "rank_0", "Net", "0")
        assert os.listdir(place) == ["1"], os.listdir(place)
        files = sorted(glob.glob(os.path.join(place, "1", "*.npy")))
        kinds = [tuple(os.path.basename(path).split(".")[index] for index in (0, 5)) for path in files]
        assert kinds == [("ReLU", "input"), ("ReLU", "output")], files
        assert np.array_equal(np.load(files[1]), np.load(os.path.join(folder, "result.npy")))
        [line] = [line for line in done.stderr.splitlines() if "the runtime has dumped" in line]
        assert "2 .npy" in line, line
    print("level L2: MindSpore dumped the kernel and the step that the settings name")


main()
