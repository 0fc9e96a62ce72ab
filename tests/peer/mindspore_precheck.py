#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: mindspore_precheck.py MSPROBE OUR_PACKAGE_FOLDER

A training step in MindSpore, recorded with our collector, is judged by `msprobe acc_check`: all of it passes, again and as
recorded, and a function that is made wrong is found. Then the references that are taken for functions of mindspore.ops and for
methods of tensors: PyTorch gives the same for the same arguments, in all forms that both take.
"""

import csv
import glob
import json
import os
import subprocess
import sys
import tempfile

try:
    import torch
except ImportError:
    print("skipped: this Python has no PyTorch, whose functions are the references")
    sys.exit(0)
import mindspore as ms
import numpy as np

TRAINING = """
import os, sys
import numpy as np
import mindspore as ms
from mindspore import Parameter, Tensor, mint, nn, ops
from msprobe.mindspore import PrecisionDebugger

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
random = np.random.RandomState(0)


def rand(*shape):
    return Tensor(random.randn(*shape).astype(np.float32))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last, self.bias = (Parameter(rand(*shape), name=name) for name, shape in (
            ("first", (8, 16)), ("last", (4, 16)), ("bias", (4,))))

    def construct(self, x, labels, noise):
        h = mint.nn.functional.relu(mint.matmul(x, self.first))
        h = mint.exp(mint.sin(mint.add(h, x.sum(-1, keepdim=True), alpha=2)))
        h = mint.nn.functional.softmax(h, dim=-1)
        values, places = mint.max(mint.cat((h, h * 2.0), 0), 1)
        v = mint.nn.functional.silu(mint.nn.functional.linear(h, self.last, self.bias))
        v = mint.where(v > 0, v, mint.div(v, 3.0))
        u = ops.softmax(ops.tanh(v.reshape(-1, 2)), -1)
        product = mint.matmul(v, mint.exp(ops.transpose(v, (1, 0))))
        largest, places = mint.max(mint.abs(product), 1)
        halves = mint.square(mint.sigmoid(v.astype(ms.float16)))
        shorts = mint.add(v.to(ms.bfloat16), noise.to(ms.bfloat16))
        masked = x.masked_fill(x > 0, 1.0)
        in_place = ops.stop_gradient(v) * 1.0
        in_place.add_(in_place)
        loss = ops.cross_entropy(v * self.bias, labels) + ops.mse_loss(v, noise)
        loss = loss + ops.leaky_relu(product - 3.0).mean() + ops.concat((product, product), axis=0).sum(axis=0).mean()
        loss = loss + mint.mean(u * u) + mint.sum(mint.sqrt(mint.abs(v))) + largest.sum() + masked.mean() + x.split(2, 0)[0].sum()
        return loss + mint.sum(halves.astype(ms.float32)) + shorts.astype(ms.float32).sum() + values.sum()


debugger = PrecisionDebugger(config_path=sys.argv[1])
net = Net()
debugger.start(net)
step = ms.value_and_grad(net, None, net.trainable_params())
print("loss", step(rand(4, 8), Tensor(np.array([0, 3, 1, 2], np.int32)), rand(4, 4))[0])
debugger.stop()
debugger.step()
"""


def record(folder, package, task):
    config = {"task": task, "dump_path": os.path.join(folder, task), "rank": [], "step": [], "level": "L1",
              task: {"scope": [], "list": [], "data_mode": ["all"]}}
    paths = [os.path.join(folder, f"training_{task}.{ending}") for ending in ("py", "json")]
    for path, text in zip(paths, (TRAINING, json.dumps(config))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    environment = dict(os.environ, PYTHONPATH=package, PYTHONDONTWRITEBYTECODE="1")
    result = subprocess.run([sys.executable, *paths], check=False, env=environment, capture_output=True, text=True, timeout=300)
    if result.returncode != 0:
        sys.exit(result.stdout + result.stderr)
    (dump,) = glob.glob(os.path.join(folder, task, "step0", "*", "dump.json"))
    return dump


def judge(msprobe, folder, dump, *options, hook=None):
    """name -> its row"""
    out = tempfile.mkdtemp(dir=folder)
    environment = dict(os.environ, **({"PYTHONPATH": hook} if hook else {}))
    result = subprocess.run([msprobe, "-f", "mindspore", "run_ut", "-api_info", dump, "-o", out, "-d", "cpu", "--python",
                             sys.executable, *options], check=False, capture_output=True, text=True, env=environment, timeout=600)
    if result.returncode != 0:
        sys.exit(result.stdout + result.stderr)
    (path,) = glob.glob(os.path.join(out, "accuracy_checking_result_*.csv"))
    with open(path, encoding="utf-8-sig", newline="") as file:
        return {row[0]: row for row in list(csv.reader(file))[1:]}


HOOK = """
import builtins
real = builtins.__import__
wrong = []


def load(name, globals=None, *rest, **more):
    module = real(name, globals, *rest, **more)
    if name == "mindspore" and not wrong and globals and globals.get("__name__") == "mindspore_runner":
        wrong.append(module.mint.exp)
        module.mint.exp = lambda x: wrong[0](x) * 1.001
    return module


builtins.__import__ = load
"""


def judge_training(msprobe, package):
    with tempfile.TemporaryDirectory(prefix="msprobe-") as folder:
        tensors, statistics = (record(folder, package, task) for task in ("tensor", "statistics"))
        for what, dump, options in (("again", tensors, ()), ("as recorded", tensors, ("--recorded",)),
                                    ("random data", statistics, ("-n", "2"))):
            rows = judge(msprobe, folder, dump, *options)
            bad = {name: row for name, row in rows.items() if row[4] != "pass" or row[5] not in ("pass", "")}
            backward = sum(row[5] == "pass" for row in rows.values())
            print(f"pre-check of MindSpore, {what}: {len(rows)} operations, {backward} with backward")
            if bad or len(rows) < 50 or backward < 30:
                sys.exit(f"not passed: {bad}")
        hook = os.path.join(folder, "hook")
        os.makedirs(hook)
        with open(os.path.join(hook, "sitecustomize.py"), "w", encoding="utf-8") as file:
            file.write(HOOK)
        wrong = {name for name, row in judge(msprobe, folder, tensors, hook=hook).items() if "error" in row}
        if wrong != {"Mint.exp.0", "Mint.exp.1"}:
            sys.exit(f"wrong are said to be {wrong}")


# --------------------------------------------------------------------------- references

random = np.random.RandomState(1)
A, B = (random.randn(4, 4).astype(np.float32) for _ in range(2))
SHARE = (random.rand(4, 4) * 0.8 + 0.1).astype(np.float32)
C = random.randn(2, 4, 4).astype(np.float32)
WHOLE = random.randint(1, 7, (4, 4)).astype(np.int64)
LABELS = random.randint(0, 4, (4,)).astype(np.int32)
MASK = A > 0.5
FORMS = [
    (A,), (A, B), (A, 0), (A, 1), (A, 2), (A, -1), (A, B, A), (A, 0, True), (A, 1, 2), (A, (1, 0)), (A, (2, 8)), (A, 0.5),
    (A, 2.0), (C,), (C, 1), (C, C), (C, (0, 2, 1)), ((A, B),), ((A, B), 1), (A[0],), (A[0], A[0]), (A, A[0]), (WHOLE, WHOLE),
    (WHOLE,), (A, WHOLE % 4), (MASK, A, B), (A, MASK, 2.0), (A, 2, 1), (A, 0, 1), (A, 1, 0), (A, 0, WHOLE % 4),
    (A, 0, WHOLE % 4, B), (A, 0.2, 0.6), (MASK,), (MASK, MASK), (A, 3), (SHARE,), (SHARE, SHARE), (A, LABELS),
    (A, LABELS, None, -100, "sum"), (A, B, "sum"), (SHARE, SHARE, None, "sum"), (A, A[0], 0, 1), (A, (4,), A[0], B[0]),
]
EMBEDDING = [(LABELS, A), (WHOLE, C[0].repeat(2, 0))]
SHARES = [(A, SHARE), (A, SHARE, "sum")]


def changed(value, function):
    if isinstance(value, np.ndarray):
        return function(value.copy())
    return tuple(changed(one, function) for one in value) if isinstance(value, tuple) else value


def flat(value):
    if isinstance(value, (tuple, list)):
        return [one for inner in value for one in flat(inner)]
    return [value.asnumpy() if isinstance(value, ms.Tensor) else np.asarray(value)]


def forms_of(name, called, reference):
    """How many forms both take, and those with other results."""
    count, different = 0, []
    for form in EMBEDDING if name.endswith(".embedding") else SHARES if name.endswith(".kl_div") else FORMS:
        try:
            made = flat(called(*changed(form, ms.Tensor)))
            wanted = flat(reference(*changed(form, torch.from_numpy)))
        except Exception:  # not on this device, or not in this form
            continue
        if any(one.dtype.kind == "O" for one in made + wanted):
            continue
        count += 1
        if len(made) != len(wanted) or not all(
                one.shape == other.shape and np.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
                for one, other in zip(made, wanted)):
            different.append(f"{name}: {made} with MindSpore, {wanted} with PyTorch for {form}")
    return count, different


def judge_references(runner_folder):
    sys.path[:0] = [os.path.join(runner_folder, "pytorch"), os.path.join(runner_folder, "mindspore")]
    import mindspore_runner
    runner = mindspore_runner.MindSporeRunner("cpu", False)
    kinds = {"Functional": sorted(mindspore_runner.SAME_FUNCTIONS | set(mindspore_runner.ADAPTED)), "Tensor": [
        name for name in sorted(dir(ms.Tensor)) if runner.look_up("Tensor", name) and name not in (
            mindspore_runner.OTHER_METHODS | {"register_hook", "backward", "type", "new_empty", "uniform_", "random_",
                                               "normal_"})]}
    for kind, names in kinds.items():
        counts = {name: forms_of(f"{kind}.{name}", runner.function(kind, name) if kind == "Functional" else
                                 (lambda x, *rest, name=name: getattr(x, name)(*rest)), runner.reference(kind, name))
                  for name in names}
        taken = [count for count, _ in counts.values() if count]
        different = [text for _, texts in counts.values() for text in texts]
        print(f"references of {kind}: {len(taken)} of {len(names)} are called here, in {sum(taken)} forms")
        if different or len(taken) < 200:
            sys.exit("\n".join(different) or "too few of them")


def main():
    binary, package = (os.path.abspath(path) for path in sys.argv[1:])
    judge_training(binary, package)
    judge_references(os.path.join(package, "msprobe"))


main()
