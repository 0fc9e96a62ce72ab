#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mindspore_tasks.py OUR_PACKAGE_FOLDER

Tasks free_benchmark and grad_probe record a training of MindSpore, without a change of any bit of losses, gradients and parameters,
and without an error.
"""
import csv
import glob
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn, ops, mint

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(5)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)
        self.bn = nn.BatchNorm1d(3)

    def construct(self, x):
        h = ops.dropout(self.bn(ops.relu(self.fc(x))), p=0.5)
        h = ops.softmax(ops.matmul(h, ops.transpose(h, (1, 0))), axis=-1)
        a, b = ops.split(h, 2, axis=1)[:2]
        y = mint.add(a, b) - a.exp() + ops.cast(ops.cast(a, ms.float16) * ops.cast(b, ms.float16), ms.float32)
        y = y - (y + 1e-4)
        y.add_(1.0)
        return y.sum() + ops.concat([a, b], axis=1).mean()


net = Net()
numbers = np.random.RandomState(3)
for parameter in net.get_parameters():
    parameter.set_data(ms.Tensor(numbers.randn(*parameter.shape).astype(np.float32)))
net.set_train()
optimizer = nn.Adam(net.trainable_params(), 0.01)
debugger = None
if len(sys.argv) > 1:
    from msprobe.mindspore import PrecisionDebugger
    debugger = PrecisionDebugger(config_path=sys.argv[1])
    debugger.monitor(optimizer)
gradients_of = ms.value_and_grad(net, None, net.trainable_params())
for _ in range(3):
    if debugger:
        debugger.start()
    loss, gradients = gradients_of(ms.Tensor(numbers.randn(6, 4).astype(np.float32)))
    optimizer(gradients)
    if debugger:
        debugger.stop()
        debugger.step()
    print("BITS", [one.asnumpy().tobytes().hex() for one in (loss, *gradients, *net.get_parameters())])
"""
SECTIONS = [("free_benchmark", {"pert_mode": mode, "fuzz_stage": stage})
            for mode in ("no_change", "add_noise", "bit_noise", "change_value", "improve_precision")
            for stage in ("forward", "backward")] + [("grad_probe", {"grad_level": "L2"})]


def train(folder, package, *arguments):
    environment = {**os.environ, "PYTHONPATH": package}
    done = subprocess.run([sys.executable, "-W", "ignore", "program.py", *arguments], env=environment, cwd=folder,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("BITS")]


def tables(folder):
    for path in glob.glob(os.path.join(folder, "**", "*.csv"), recursive=True):
        with open(path, encoding="utf-8-sig") as file:
            yield list(csv.DictReader(file))


def main():
    with tempfile.TemporaryDirectory(prefix="msprobe_tasks_") as folder:
        with open(os.path.join(folder, "program.py"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        expected = train(folder, "")
        assert len(expected) == 3
        for number, (task, section) in enumerate(SECTIONS):
            out = os.path.join(folder, f"out{number}")
            config = os.path.join(folder, "config.json")
            with open(config, "w", encoding="utf-8") as file:
                json.dump({"task": task, "dump_path": out, "level": "L1", "rank": [], "step": [], task: section}, file)
            assert train(folder, sys.argv[1], config) == expected, (task, section)
            assert not glob.glob(os.path.join(out, "**", "dump_error_info.log"), recursive=True), (task, section)
            found = list(tables(out))
            assert len(found) == 3, (task, section)
            unstable = {row["api_name"] for table in found for row in table if task == "free_benchmark"}
            if section.get("pert_mode") == "no_change":
                assert not unstable, (section, unstable)
            if section == {"pert_mode": "bit_noise", "fuzz_stage": "forward"}:
                assert "Tensor.__sub__.1.forward" in unstable, unstable  # of two numbers that are nearly equal
    print(f"free_benchmark, grad_probe: {len(SECTIONS)} trainings, the same bit for bit")


main()
