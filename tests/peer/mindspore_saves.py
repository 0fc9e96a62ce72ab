#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mindspore_saves.py OUR_PACKAGE_FOLDER

save() and save_grad() write the files that those of the Python tool write, with the same values; a compiled network that
saves gets as far as MindSpore's compiler gets on a CPU, which has no kernel for it.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np

NETWORK = """
import os, sys
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn
from msprobe.mindspore import save, save_grad, step

ms.set_device("CPU")
if sys.argv[2] == "graph":
    ms.set_context(mode=ms.GRAPH_MODE)
OUT = sys.argv[1]


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        weight = Tensor(np.arange(6).reshape(2, 3).astype(np.float32))
        self.fc = nn.Dense(3, 2, weight_init=weight, bias_init=Tensor(np.ones(2, np.float32)))

    def construct(self, x):
        y = self.fc(x)
        save(OUT, "nested", {"a": y, "b": [y, (y * 2, None)]})
        save(OUT + os.sep, "half", y.astype(ms.bfloat16))
        y = save_grad(OUT, "y", y)
        return (y * y).sum()


net = Net()
for _ in range(2):
    ms.value_and_grad(net, None, net.trainable_params())(Tensor(np.ones((2, 3), np.float32)))
"""


def run(folder, mode, package):
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)
    if package:
        environment["PYTHONPATH"] = package
    script = folder + ".py"  # MindSpore compiles only code from files
    with open(script, "w", encoding="utf-8") as file:
        file.write(NETWORK)
    return subprocess.run([sys.executable, "-W", "ignore", script, folder, mode], env=environment,
                          cwd=os.path.dirname(folder), capture_output=True, text=True, check=False)


def files(folder):
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            found[os.path.relpath(path, folder)] = np.load(path)
    return found


def main():
    with tempfile.TemporaryDirectory(prefix="msprobe_saves_") as folder:
        trees = []
        for tool, package in (("theirs", ""), ("ours", sys.argv[1])):
            result = run(os.path.join(folder, tool), "dynamic", package)
            assert result.returncode == 0, result.stderr
            trees.append(files(os.path.join(folder, tool)))
        theirs, ours = trees
        assert theirs and sorted(theirs) == sorted(ours), (sorted(theirs), sorted(ours))
        for name, value in theirs.items():
            assert value.dtype == ours[name].dtype and np.array_equal(value, ours[name]), name
        compiled = run(os.path.join(folder, "compiled"), "graph", sys.argv[1])
        assert compiled.returncode == 0 or "Unsupported op [TensorDump] on CPU" in compiled.stderr, compiled.stderr
    print(f"save, save_grad: {len(ours)} files, the same as the Python tool's")


main()
