#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`msprobe acc_check` and `op_generate` on dumps of MindSpore. In its place is a double made of PyTorch, whose log and
sqrt are wrong; tests/peer/mindspore_precheck.py does the same with MindSpore itself.

usage: precheck_mindspore.py MSPROBE
"""

import csv
import json
import pathlib
import subprocess
import sys

import harness
import numpy as np
import torch

DOUBLE = '''
import sys
import types

import torch

__version__ = "2.99"
PYNATIVE_MODE = 1
ops = types.SimpleNamespace()
mint = types.SimpleNamespace(nn=types.SimpleNamespace(functional=types.SimpleNamespace()))


class Number:
    def __init__(self, of):
        self.of = of


class Float(Number):
    pass


float16, bfloat16, float32, float64 = (Float(getattr(torch, name)) for name in (
    "float16", "bfloat16", "float32", "float64"))
bool_, int32, int64 = (Number(getattr(torch, name)) for name in ("bool", "int32", "int64"))


class Tensor:
    def __init__(self, elements):
        self.torch = elements if isinstance(elements, torch.Tensor) else torch.as_tensor(elements)

    dtype = property(lambda self: next(one for one in vars(sys.modules[__name__]).values()
                                       if isinstance(one, Number) and one.of == self.torch.dtype))

    def astype(self, dtype):
        return Tensor(self.torch.to(dtype.of))

    def asnumpy(self):
        return self.torch.detach().numpy()

    def sum(self, axis=None, keepdims=False):
        return Tensor(self.torch.sum(axis, keepdims))

    def add_(self, other):
        return Tensor(self.torch.add_(other.torch))

    def to(self, dtype):
        return self.astype(dtype)

    def __mul__(self, other):
        return Tensor(self.torch * other)

    def std(self):
        return Tensor(self.torch.std(unbiased=False))


def plain(value):
    if isinstance(value, Tensor):
        return value.torch
    if isinstance(value, Number):
        return value.of
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


def made(value):
    return tuple(map(made, value)) if isinstance(value, tuple) else Tensor(value)


def of(function, wrong=1.0):
    def call(*args, **kwargs):
        if any(isinstance(one, list) for one in args):
            raise TypeError("no lists")
        result = function(*map(plain, args), **{key: plain(one) for key, one in kwargs.items()})
        return made(tuple(result) if isinstance(result, tuple) else result * wrong if wrong != 1 else result)
    return call


def grad_operation(get_all, sens_param):
    def of_function(function):
        def call(*args):
            leaves = [one.torch.clone().requires_grad_() for one in args[:-1]]
            found, seeds = function(*map(Tensor, leaves)), args[-1]
            found, seeds = (one if isinstance(one, tuple) else (one,) for one in (found, seeds))
            grads = torch.autograd.grad([one.torch for one in found], leaves, [one.torch for one in seeds],
                                        allow_unused=True)
            return tuple(Tensor(torch.zeros_like(leaf) if one is None else one) for leaf, one in zip(leaves, grads))
        return call
    return of_function


ops.GradOperation = grad_operation
ops.softmax = of(lambda x, axis=-1: torch.softmax(x, axis))
ops.conv2d = of(torch.conv2d)
mint.add, mint.cat, mint.exp, mint.mul = of(torch.add), of(torch.cat), of(torch.exp), of(torch.mul)
mint.log = of(torch.log, 1.001)
mint.max = of(torch.max)
mint.nn.functional.relu = of(torch.nn.functional.relu)


def set_context(**settings):
    pass


set_seed = set_device = lambda *settings: None


def get_context(name):
    return "CPU"
'''

rng = np.random.default_rng(5)


def rand(*shape):
    return rng.uniform(0.25, 1.75, shape).astype(np.float32)


def softmax(x, axis):
    share = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return (share / share.sum(axis, keepdims=True)).astype(np.float32)


def bfloat16(x):
    """The nearest elements of that type, as float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


class Dump:
    """A dump as recorders write them: `names` has MindSpore's names of NumPy's types."""

    names = {"float32": "Float32", "float16": "Float16", "int64": "Int64", "bool": "Bool"}

    def __init__(self, folder, tensors=True):
        self.folder, self.tensors, self.data = folder, tensors, {}
        (folder / "dump_tensor_data").mkdir(parents=True)

    def value(self, name, value, dtype=None):
        if isinstance(value, (list, tuple)):
            return [self.value(f"{name}.{at}", one, dtype) for at, one in enumerate(value)]
        if not isinstance(value, (np.ndarray, np.generic)):
            return value if value is None or isinstance(value, dict) else {"type": type(value).__name__, "value": value}
        told = {"type": "mindspore.Tensor", "dtype": dtype or self.names[value.dtype.name], "shape": list(value.shape),
                "Max": float(value.max()), "Min": float(value.min()), "Mean": float(value.mean()),
                "Norm": float(np.sqrt((value.astype(np.float64) ** 2).sum()))}
        if self.tensors:
            told["data_name"] = f"{name}.npy"
            np.save(self.folder / "dump_tensor_data" / told["data_name"], value)
        return told

    def add(self, name, args, output, dtype=None, backward=None, **kwargs):
        self.data[f"{name}.forward"] = {
            "input_args": self.value(f"{name}.forward.input", args, dtype),
            "input_kwargs": {key: self.value(f"{name}.forward.input.{key}", one) for key, one in kwargs.items()},
            "output": self.value(f"{name}.forward.output", [output] if not isinstance(output, tuple) else output, dtype)}
        if backward:
            self.data[f"{name}.backward"] = {
                "input": self.value(f"{name}.backward.input", backward[0], dtype),
                "output": self.value(f"{name}.backward.output", backward[1], dtype)}

    def write(self, framework="mindspore"):
        dump = {"task": "tensor" if self.tensors else "statistics", "level": "L1", "framework": framework,
                "dump_data_dir": str(self.folder) if self.tensors else None, "data": self.data}
        (self.folder / "dump.json").write_text(json.dumps(dump), encoding="utf-8")


def write_double(scratch):
    folder = scratch / "double"
    folder.mkdir()
    (folder / "mindspore.py").write_text(DOUBLE, encoding="utf-8")
    return {"PYTHONPATH": str(folder)}


def check(msprobe, scratch, *options, env=None):
    words = ["-f", "mindspore", "acc_check", "-api_info", "dump/dump.json", "-o", "out", "-d", "cpu", "--fail-on", "error",
             "--python", sys.executable, *options]
    result = harness.run(msprobe, words, scratch, env=env or {})
    files = sorted((scratch / "out").glob("accuracy_checking_result_*.csv"))
    if not files:
        return result, {}
    with files[-1].open(encoding="utf-8-sig", newline="") as file:
        return result, {row[0]: row for row in list(csv.reader(file))[1:]}


def verdicts(rows):
    return {name: (row[4], row[5]) for name, row in rows.items()}


def add_operations(dump):
    """Operations of all kinds, right as they are."""
    x, y, coming = rand(3, 4), rand(3, 4), rand(3, 4)
    dump.add("Mint.add.0", [x, y], x + 2 * y, alpha=2, backward=([coming], [coming, 2 * coming]))
    dump.add("Mint.cat.0", [[x, y], 0], np.concatenate((x, y)), backward=([rand(6, 4)], []))
    dump.add("Mint.log.0", [x], np.log(x), backward=([coming], [coming / x]))
    dump.add("Mint.max.0", [x, 1], (x.max(1), x.argmax(1)),
             backward=([rand(3), np.zeros(3, np.int64)], [np.zeros((3, 4), np.float32)]))
    dump.add("MintFunctional.relu.0", [x - 1], np.maximum(x - 1, 0), backward=([coming], [coming * (x > 1)]))
    dump.add("Functional.softmax.0", [np.stack((x, y))], softmax(np.stack((x, y)), -1))
    dump.add("Tensor.sum.0", [x], x.sum(1, keepdims=True), axis=1, keepdims=True, backward=([rand(3, 1)], [x * 0]))
    dump.add("Tensor.add_.0", [x, y], x + y, backward=([coming], [coming, coming]))
    dump.add("Tensor.to.0", [x, {"type": "mindspore.dtype", "value": "Float16"}], x.astype(np.float16),
             backward=([coming.astype(np.float16)], [coming.astype(np.float16).astype(np.float32)]))
    halves = bfloat16(x), bfloat16(y)
    dump.add("Mint.mul.0", halves, bfloat16(halves[0] * halves[1]), "BFloat16")
    # Gradients as MindSpore computes them: they are of what came.
    for name in ("Mint.max.0", "Tensor.sum.0"):
        entry = dump.data[f"{name}.backward"]
        came = np.load(dump.folder / "dump_tensor_data" / entry["input"][0]["data_name"])
        grad = np.zeros((3, 4), np.float32)
        if name == "Mint.max.0":
            grad[np.arange(3), x.argmax(1)] = came
        else:
            grad += came
        np.save(dump.folder / "dump_tensor_data" / entry["output"][0]["data_name"], grad)
    return x


def operations_are_called_again(msprobe, scratch):
    """With MindSpore: a wrong function is found, forward and backward, in place or not, of one result or more."""
    dump = Dump(scratch / "dump")
    add_operations(dump)
    dump.write()
    result, rows = check(msprobe, scratch, env=write_double(scratch))
    harness.check_equal("status", result.returncode, 1)
    harness.check("on cpu, MindSpore 2.99, by PyTorch" in result.stderr, result.stderr)
    harness.check_equal("verdicts", verdicts(rows), {
        "Mint.add.0": ("pass", "pass"), "Mint.cat.0": ("pass", "pass"), "Mint.log.0": ("error", "error"),
        "Mint.max.0": ("pass", "pass"), "MintFunctional.relu.0": ("pass", "pass"),
        "Functional.softmax.0": ("pass", ""), "Tensor.to.0": ("pass", "pass"), "Tensor.sum.0": ("pass", "pass"), "Tensor.add_.0": ("pass", "pass"),
        "Mint.mul.0": ("pass", "")})


def what_was_recorded_without_mindspore(msprobe, scratch):
    """Without MindSpore: what a run recorded is right where the function of PyTorch gives the same."""
    dump = Dump(scratch / "dump")
    x = add_operations(dump)
    dump.add("Mint.exp.0", [x], np.exp(x) * np.float32(1.001))
    dump.add("Functional.log_softmax.0", [np.stack((x, x))], np.log(softmax(np.stack((x, x)), 0)))
    dump.write()
    result, rows = check(msprobe, scratch, "--recorded")
    found = verdicts(rows)
    # This dump has none of its gradients.
    harness.check_equal("cat", (found.pop("Mint.cat.0"), rows["Mint.cat.0"][6]), (
        ("pass", "skip"), "0 gradients were recorded, but 2 are computed"))
    harness.check_equal("wrong", {name for name, words in found.items() if "error" in words},
                        {"Mint.exp.0", "Functional.log_softmax.0"})
    harness.check_equal("others", {word for words in found.values() for word in words}, {"pass", "error", ""})
    harness.check_equal("status", (result.returncode, "as recorded, by PyTorch" in result.stderr), (1, True))


def random_data(msprobe, scratch):
    """Statistics alone: the same calls with random numbers of the recorded range."""
    dump = Dump(scratch / "dump", tensors=False)
    x = rand(3, 4)
    dump.add("Mint.exp.0", [x], np.exp(x), backward=([x], [x]))
    dump.add("Mint.log.0", [x], np.log(x))
    dump.write()
    result, rows = check(msprobe, scratch, "-n", "2", env=write_double(scratch))
    harness.check_equal("verdicts", verdicts(rows), {"Mint.exp.0": ("pass", "pass"), "Mint.log.0": ("error", "")})
    harness.check("2 with random data" in result.stderr, result.stderr)


def what_has_no_reference_says_so(msprobe, scratch):
    dump = Dump(scratch / "dump")
    x = rand(3, 4)
    image, kernel = rand(1, 2, 4, 4), rand(2, 2, 2, 2)
    dump.add("Tensor.std.0", [x], x.std())
    dump.add("Functional.conv2d.0", [image, kernel], image)
    dump.add("Functional.tensordump.0", [{"type": "str", "value": "name"}, x], x)
    dump.add("Mint.nothing.0", [x], x)
    dump.add("Mint.sin.0", [x], np.sin(x))
    dump.add("MintDistributed.all_reduce.0", [x], x)
    dump.add("Primitive.add.Add.0", [x], x)
    dump.write()
    _, rows = check(msprobe, scratch, env=write_double(scratch))
    version = torch.__version__
    harness.check_equal("reasons", {name: row[6] for name, row in rows.items()}, {
        "Tensor.std.0": "Tensor.std has no reference; --references may name one",
        "Functional.conv2d.0": "Functional.conv2d has no reference; --references may name one",
        "Functional.tensordump.0": "Functional.tensordump has no reference; --references may name one",
        "Mint.nothing.0": f"Mint.nothing has no reference: PyTorch {version} has no Torch.nothing",
        "Mint.sin.0": "MindSpore 2.99 has no Mint.sin",
        "MintDistributed.all_reduce.0": "communication is not called again",
        "Primitive.add.Add.0": "operations of the kind Primitive are not called again"})
    harness.check_equal("verdicts", set(verdicts(rows).values()), {("skip", "")})
    (scratch / "own.yaml").write_text("operators: {conv2d: {forward: convolution}, std: {forward: deviation}}",
                                      encoding="utf-8")
    (scratch / "own.py").write_text("def convolution(x, kernel):\n    return x\n\n\ndef deviation(x):\n"
                                    "    return x.std(unbiased=False)\n", encoding="utf-8")
    _, rows = check(msprobe, scratch, "--recorded", "--references", "own.yaml")
    own = {name: words for name, words in verdicts(rows).items() if words != ("skip", "")}
    harness.check_equal("by own references", own, {
        "Tensor.std.0": ("pass", ""), "Functional.conv2d.0": ("pass", ""), "Mint.sin.0": ("pass", "")})


def dumps_and_options_that_are_refused(msprobe, scratch):
    """In one line each."""
    dump = Dump(scratch / "dump")
    dump.add("Mint.exp.0", [rand(2)], rand(2))
    dump.write()
    result, _ = check(msprobe, scratch)
    harness.check_equal("status", result.returncode, 2)
    harness.check("No module named 'mindspore'" in result.stderr and "for --recorded PyTorch is enough" in result.stderr,
                  result.stderr)
    for words in (["-f", "pytorch", "acc_check"], ["run_overflow_check"], ["-f", "pytorch", "op_generate", "--api",
                                                                           "Mint.exp.0"]):
        result = harness.run(msprobe, [*words, "-api_info", "dump/dump.json"], scratch)
        harness.check_equal("status", (result.returncode, result.stderr.strip()), (
            2, "msprobe: error: dump/dump.json: only operations of pytorch are called again, not those of mindspore"))
    dump.write(framework="pytorch")
    result, _ = check(msprobe, scratch)
    harness.check_equal("status", (result.returncode, result.stderr.strip()), (
        2, "msprobe: error: dump/dump.json: only operations of mindspore are called again, not those of pytorch"))


def cases(msprobe, scratch):
    dump = Dump(scratch / "dump")
    add_operations(dump)
    dump.write()
    environment = {**harness.environment(msprobe, scratch), **write_double(scratch)}
    found = {}
    for api in ("Mint.max.0", "Mint.log.0"):
        result = harness.run(msprobe, ["-f", "mindspore", "op_generate", "-api_info", "dump/dump.json", "--api", api], scratch)
        harness.check_equal("status", result.returncode, 0)
        told = subprocess.run([sys.executable, pathlib.Path(api, "run.py"), "--device", "cpu"], check=False,
                              cwd=scratch, env=environment, capture_output=True, text=True, timeout=harness.TIME_LIMIT_S)
        harness.check("with MindSpore 2.99, judged by PyTorch" in told.stdout, told.stdout + told.stderr)
        found[api] = told.returncode, [line.split()[-1] for line in told.stdout.splitlines()
                                       if line.startswith(("forward", "backward"))]
    harness.check_equal("verdicts", found, {"Mint.max.0": (0, ["pass", "pass", "pass"]),
                                            "Mint.log.0": (1, ["error", "error"])})


if __name__ == "__main__":
    harness.main_of_script()
