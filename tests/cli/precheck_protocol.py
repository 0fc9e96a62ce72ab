#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The messages between `msprobe acc_check` and a runner are those of data/precheck/PROTOCOL.md, tag by tag; without PyTorch.
tests/unit/precheck/answer_test.cpp reads the answers.

usage: precheck_protocol.py MSPROBE SOURCE_ROOT
"""

import importlib.util
import json
import pathlib
import re
import sys
import types

import harness

ROW = re.compile(r"^\| `(\w+)` \| .+ \| `(.+)` \| `(.+)` \|$", re.MULTILINE)


class Named:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"


class DType(Named):
    pass


class MemoryFormat(Named):
    pass


class Size(tuple):
    def __repr__(self):
        return f"torch.Size({list(self)})"


class Tensor:
    """The part of PyTorch's tensor that a runner asks of one without elements."""

    layout = "strided"
    is_quantized = False

    def __init__(self, dtype, shape, *more):
        self.dtype, self.shape, self.more = dtype, shape, more

    def __repr__(self):
        return f"tensor({', '.join(map(str, (self.dtype, self.shape, *self.more)))})"

    def to(self, device, dtype=None, copy=False):
        return Tensor(self.dtype, self.shape, *self.more, dtype.name) if dtype else self

    def requires_grad_(self, wanted):
        self.more += (wanted,)

    def is_floating_point(self):
        return True

    def clone(self):
        return self

    detach = resolve_conj = resolve_neg = contiguous = clone

    def numel(self):
        return 0

    def element_size(self):
        return 4


class Float32(float):
    def __repr__(self):
        return f"numpy.float32({float(self)})"


def load_runner(root):
    sys.modules["numpy"] = types.SimpleNamespace(float32=Float32)
    path = root / "python/msprobe/pytorch/op_runner.py"
    spec = importlib.util.spec_from_file_location("op_runner", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    runner = module.Runner.__new__(module.Runner)
    runner.torch = types.SimpleNamespace(
        Tensor=Tensor, Size=Size, dtype=DType, memory_format=MemoryFormat, strided="strided", float16=DType("float16"),
        float32=DType("float32"), float64=DType("float64"), channels_last=MemoryFormat("channels_last"))
    runner.device, runner.end = "cpu", 0
    runner.stored = Tensor
    return module, runner


def tags_in(value):
    """The tags of a value of a request, and of the values in it."""
    if value is None:
        return set()
    ((tag, content),) = value.items()
    inner = {"list": list, "tuple": list, "mapping": lambda of: list(of.values())}.get(tag, lambda _: [])(content)
    return {tag}.union(*map(tags_in, inner))


def make_tests(msprobe, root):
    root = pathlib.Path(root)
    requests, answers = (ROW.findall(part) for part in (root / "data/precheck/PROTOCOL.md").read_text(
        encoding="utf-8").split("\nIn requests:\n")[1].split("\nIn answers:\n"))
    in_requests, in_answers = ({tag for tag, _, _ in rows} for rows in (requests, answers))
    module, runner = load_runner(root)

    def arguments(request):
        return module.Arguments(runner, request, "device", True)

    def one_table(_scratch):
        table = {value for name, value in vars(module.Tag).items() if name.isupper()}
        harness.check_equal("tags of the page", in_requests | in_answers, table)
        harness.check_equal("tags that arguments are made of", set(module.Arguments.MAKERS), in_requests)
        runner_text = pathlib.Path(module.__file__).read_text(encoding="utf-8").split("\nclass Runner:")[1]
        told = {word.lower() for word in re.findall(r"Tag\.(\w+)", runner_text)}
        harness.check_equal("tags of the runner's answers", told, in_answers)
        for name, tags in (("calls/request.cpp", in_requests), ("runner/answer.cpp", in_answers)):
            used = set(re.findall(r"\bTag::(\w+)", (root / "src/precheck" / name).read_text(encoding="utf-8")))
            harness.check_equal(f"tags of {name}", used, tags)

    def requests_of_the_page(_scratch):
        for tag, example, meaning in requests:
            value = arguments({"raise": {}, "narrow": None, "raise_dtype": False}).value(json.loads(example))
            harness.check_equal(tag, (set(json.loads(example)), repr(value)), ({tag}, meaning))

    def answers_of_the_page(_scratch):
        names = {"tensor": Tensor, "float32": "float32", "nan": float("nan")}
        for tag, example, meaning in answers:
            harness.check_equal(tag, json.loads(json.dumps(runner.told(eval(meaning, names)))), json.loads(example))
            harness.check_equal(tag, set(json.loads(example)), {tag})

    def requests_of_the_command(scratch):
        tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0, "Mean": 0.5,
                  "Norm": 1.0, "requires_grad": True}
        one = {"type": "int", "value": 1}
        call = {
            "input_args": [tensor, [{"type": "slice", "value": [None, 1, None]}, {"type": "ellipsis", "value": "..."}]],
            "input_kwargs": {
                "size": {"type": "torch.Size", "value": [2, 3]}, "list": [one], "map": {"a": one},
                "dtype": {"type": "torch.dtype", "value": "torch.float64"},
                "device": {"type": "torch.device", "value": "npu:0"},
                "format": {"type": "torch.memory_format", "format": "channels_last"},
                "number": {"type": "numpy.float32", "value": 1.5}},
            "output": [tensor]}
        (scratch / "dump.json").write_text(json.dumps({
            "task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
            "data": {"Tensor.__getitem__.0.forward": call}}), encoding="utf-8")
        result = harness.run(msprobe, ["op_generate", "-api_info", "dump.json", "--api", "Tensor.__getitem__.0", "-o", "out"],
                             scratch)
        harness.check_equal("exit status", (result.returncode, result.stderr if result.returncode else ""), (0, ""))
        request = json.loads((scratch / "out/Tensor.__getitem__.0/case.json").read_text(encoding="utf-8"))["request"]
        told = [*request["args"], *request["kwargs"].values()]
        harness.check_equal("tags", set().union(*map(tags_in, told)), in_requests)
        made = arguments(request)
        harness.check_equal("positional arguments", repr([made.value(value) for value in request["args"]]),
                            "[tensor(float32, [2], 0, float32, True), (slice(None, 1, None), Ellipsis)]")
        harness.check_equal("keywords", repr({key: made.value(value) for key, value in request["kwargs"].items()}),
                            "{'size': torch.Size([2, 3]), 'list': [1], 'map': {'a': 1}, 'dtype': torch.float64, "
                            "'device': 'cpu', 'format': torch.channels_last, 'number': numpy.float32(1.5)}")

    return [
        ("one table of tags, each of them in use", one_table),
        ("the runner makes arguments of each tag", requests_of_the_page),
        ("the runner answers with each tag", answers_of_the_page),
        ("requests have each tag, and the runner makes arguments of them", requests_of_the_command),
    ]


if __name__ == "__main__":
    harness.main(make_tests)
