#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mindspore_packs.py OUR_PACKAGE_FOLDER

A training under ConfigChecker(fmk="mindspore"), ours and the Python tool's: the same members with the same cells, and losses and
gradients as without it.
"""
import json
import os
import subprocess
import sys
import tempfile
import zipfile

PROGRAM = """
import random, sys
import numpy as np
import mindspore as ms
from mindspore import nn, ops

pack = sys.argv[1]
if pack != "none":
    from msprobe.core.config_check import ConfigChecker
    ConfigChecker.apply_patches("mindspore")
ms.set_seed(1)
ms.manual_seed(2)
random.uniform(0, 1)
for _ in range(2):
    np.random.normal(0, 1, 3)
    ops.randint(0, 5, (3,))
    ops.rand(3)
    ops.randn(3)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)
        self.out = nn.Dense(3, 2, has_bias=False)

    def construct(self, x, scale=1.0, extra=None):
        return self.out(ops.relu(self.fc(x)) * scale).sum()


net = Net()
numbers = np.random.RandomState(3)
for parameter in net.get_parameters():
    parameter.set_data(ms.Tensor(numbers.randn(*parameter.shape).astype(np.float32)))
if pack != "none":
    ConfigChecker(net, None, pack, "mindspore")
x = ms.Tensor(numbers.randn(5, 4).astype(np.float32))
gradients_of = ms.value_and_grad(net, None, net.trainable_params())
given = [{}, {"scale": 2.0}, {"scale": ms.Tensor(2.0), "extra": {"a": [ms.Tensor([1.5, 2.5]), "t", 3], 5: (x, None)}}]
given += [{"extra": ms.Tensor(np.array([1, 2, 4]), kind)} for kind in (ms.int32, ms.float16, ms.float64)]
for kwargs in given:
    loss, gradients = gradients_of(x, **kwargs)
    print("LOSS", [part.asnumpy().tobytes().hex() for part in (loss, *gradients)])
"""


def train(folder, pack, package):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if package:
        environment["PYTHONPATH"] = package
    result = subprocess.run([sys.executable, "-W", "ignore", "program.py", pack], env=environment, cwd=folder,
                            capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [line for line in result.stdout.splitlines() if line.startswith("LOSS")]


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def of_program(calls):
    """The calls of each operation, with stacks that lack the tool's own frames."""
    return {operation: [(call["count"], [frame for frame in call["stack"] if "/msprobe/" not in frame]) for call in found]
            for operation, found in calls.items()}


def main():
    with tempfile.TemporaryDirectory(prefix="msprobe_packs_") as folder:
        with open(os.path.join(folder, "program.py"), "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        losses = [train(folder, pack, package) for pack, package in (("none", ""), ("theirs.zip", ""), ("ours.zip", sys.argv[1]))]
        theirs, ours = (members(os.path.join(folder, name)) for name in ("theirs.zip", "ours.zip"))
    assert losses[0] and losses[2] == losses[0], "ConfigChecker changes the training"
    assert sorted(ours) == sorted(theirs), (sorted(ours), sorted(theirs))
    assert sorted(ours["pip"].splitlines()) == sorted(theirs["pip"].splitlines())
    environments = [{name: value for name, value in json.loads(pack["env"]).items() if name != "PYTHONPATH"} for pack in (theirs, ours)]
    assert environments[0] == environments[1]
    for name in ours:
        if name.startswith(("dataset/", "weights/")):
            assert json.loads(ours[name]) == json.loads(theirs[name]), (name, ours[name], theirs[name])
    mine, other = (of_program(json.loads(pack["random/rank0.json"])) for pack in (ours, theirs))
    assert [count for count, _ in mine.pop("mindspore.set_seed")] == [1]  # which the Python tool does not see
    assert mine == other, (mine, other)
    print(f"ConfigChecker: {len(ours)} members, their cells the same as the Python tool's")


main()
