# SPDX-License-Identifier: Apache-2.0
"""usage: mindspore_monitor.py OUR_PACKAGE_FOLDER

A small training in MindSpore with the training monitor of the Python tool and with ours: the figures are the same.
Left out is what the Python tool cannot do on a CPU, or without torch: norms, shares of zeros, gradients of parameters.
"""

import csv
import glob
import json
import os
import subprocess
import sys
import tempfile

TRAINING = """
import os, sys
import numpy as np
import mindspore as ms
from mindspore import Tensor, mint, nn
from msprobe.mindspore import TrainerMon

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")


def weight(*shape):
    return Tensor((np.arange(np.prod(shape)).reshape(shape) / np.prod(shape) - 0.45).astype(np.float32))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(4, 8, weight_init=weight(8, 4), bias_init=weight(8))
        self.act = nn.ReLU()
        self.last = nn.Dense(8, 2, weight_init=weight(2, 8), bias_init=weight(2))

    def construct(self, x):
        return self.last(self.act(self.first(x)))


net = Net()
net.set_train(True)
optimizer = mint.optim.Adam(net.trainable_params(), lr=0.01)
monitor = TrainerMon(sys.argv[1])
monitor.set_monitor(net, optimizer)
step = ms.value_and_grad(lambda x: (net(x) ** 2).sum(), None, optimizer.parameters)
for number in range(4):
    loss, gradients = step(Tensor(np.random.RandomState(number).randn(3, 4).astype(np.float32)))
    optimizer(gradients)
    print("loss", repr(float(loss)))
"""
OPS = ("min", "max", "mean", "nans")
CONFIG = {"targets": {}, "ops": list(OPS), "all_xy": True, "xy_distribution": True, "mv_distribution": True,
          "param_distribution": True, "step_count_per_record": 100}


def train(folder, package):
    """The losses, and file -> (stage and name, step, micro step) -> figures."""
    os.makedirs(folder)
    script, config = os.path.join(folder, "train.py"), os.path.join(folder, "config.json")
    with open(script, "w", encoding="utf-8") as file:
        file.write(TRAINING)
    with open(config, "w", encoding="utf-8") as file:
        json.dump(CONFIG, file)
    environment = dict(os.environ, MONITOR_OUTPUT_DIR=os.path.join(folder, "out"), PYTHONDONTWRITEBYTECODE="1")
    environment.pop("PYTHONPATH", None)
    if package is not None:
        environment["PYTHONPATH"] = package
    result = subprocess.run([sys.executable, script, config], check=False, env=environment, capture_output=True, text=True, timeout=300)
    if result.returncode != 0:
        sys.exit(result.stdout + result.stderr)
    losses = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("loss ")]
    return losses, {os.path.basename(path): rows_of(path)
                                   for path in glob.glob(os.path.join(folder, "out", "*-rank0-*", "*.csv"))}


def rows_of(path):
    rows = {}
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        header = next(reader)
        for row in reader:
            if not row[0].isdigit():  # moments without a stage: a column is missing, and the name has their word
                row = ["0", row[0].split(".", 1)[1], row[2], row[1]] + row[3:]
            cells = dict(zip(header, row))
            rows[cells["name"], cells["step"], cells.get("micro_step")] = [float(cells[op]) for op in OPS]
    return rows


def main():
    with tempfile.TemporaryDirectory(prefix="msprobe-") as folder:
        theirs, their_files = train(os.path.join(folder, "theirs"), None)
        ours, our_files = train(os.path.join(folder, "ours"), os.path.abspath(sys.argv[1]))
    if ours != theirs or not ours:
        sys.exit(f"losses differ: {theirs} with the Python tool, {ours} with ours")
    if set(our_files) != set(their_files):
        sys.exit(f"files: {sorted(their_files)} and ours: {sorted(our_files)}")
    count = 0
    for name, rows in their_files.items():
        if set(rows) - set(our_files[name]):
            sys.exit(f"{name}: ours lacks {sorted(set(rows) - set(our_files[name]))}")
        for key, figures in rows.items():
            count += 1
            for op, one, other in zip(OPS, figures, our_files[name][key]):
                if abs(one - other) > 2e-6 * max(1, abs(one)):
                    sys.exit(f"{name}: {key}: {op} is {one}, ours {other}")
    if count < 100:
        sys.exit(f"only {count} rows were compared")
    print(f"monitor of MindSpore: {count} rows are the same")


main()
