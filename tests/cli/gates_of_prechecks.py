#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every gate (--fail-on) of `acc_check`, over dumps of which no operation, or not each, can be called and judged: without
arguments, of kinds that no rule calls, with arguments that raise or are missing. None of them passes, and one line says what
was not judged. Beside them stands what can be judged, which passes.

usage: gates_of_prechecks.py MSPROBE GOLDEN_FOLDER PYTHON_WITH_PYTORCH
"""

import copy
import json
import shutil
import subprocess

import harness
from gate_checks import never_passes, one_line, something, tests_of

LINEAR, GELU = "Functional.linear.0.forward", "Functional.gelu.0.forward"
LEVELS = ("error", "warning", "skip")


def has_pytorch(python):
    return python != "-" and subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def no_pytorch(_scratch):
    raise harness.Skip("no PyTorch")


def dump(golden, change):
    """The recorded tensors of two operations that pass, with `change` done to their entries."""
    def write(scratch):
        place = scratch / "dump"
        shutil.copytree(golden / "prechecks/acc_check/dump_tensor", place)
        whole = json.loads((place / "dump.json").read_text(encoding="utf-8"))
        data = {name: whole["data"][name] for name in (LINEAR, GELU)}
        changed = change(copy.deepcopy(data))
        if isinstance(changed, bytes):
            (place / "dump.json").write_bytes(changed)
            return
        whole["data"] = changed
        (place / "dump.json").write_text(json.dumps(whole), encoding="utf-8")
    return write


def both(function):
    return lambda data: {name: function(name, entry) for name, entry in data.items()}


def second(function):
    return lambda data: {**data, GELU: function(GELU, data[GELU])}


def without(*keys):
    return lambda _name, entry: {key: value for key, value in entry.items() if key not in keys}


def each_tensor(function):
    def walk(value):
        if isinstance(value, dict) and "data_name" in value:
            return function(value)
        if isinstance(value, dict):
            return {key: walk(each) for key, each in value.items()}
        return [walk(each) for each in value] if isinstance(value, list) else value
    return lambda _name, entry: walk(entry)


def renamed(data, name):
    return {name: data[LINEAR]}


ENTRIES = {
    "no arguments": without("input_args", "input_kwargs"),
    "no entries": lambda _name, _entry: {},
    "null": lambda _name, _entry: None,
    "a word": lambda _name, _entry: "x",
    "arguments that are null": lambda _name, entry: {**entry, "input_args": None, "input_kwargs": None},
    "arguments that are words": lambda _name, entry: {**entry, "input_args": "x"},
    "an argument less": lambda _name, entry: {**entry, "input_args": []},
    "an argument of another kind": lambda _name, entry: {**entry, "input_args": [{"type": "set", "value": "x"}]},
    "tensors of an unknown type": each_tensor(lambda tensor: {**tensor, "dtype": "torch.float3"}),
    "tensors without their files": each_tensor(lambda tensor: {**tensor, "data_name": "nothing.pt"}),
    "outputs that are null": lambda _name, entry: {**entry, "output": None},
    "no outputs": without("output"),
}
NAMES = ("Other.linear.0.forward", "Functional.no_such_function.0.forward", "Functional.linear", "x", "", "Distributed.all_reduce.0.forward",
         "Functional.dropout.0.forward", "Torch.empty.0.forward", "Module.layer.Linear.forward.0")


def cases(golden, python):
    for level in LEVELS:
        # At the level `skip` an operation that was skipped is a finding.
        whole = never_passes if level == "skip" else one_line
        for recorded in ([], ["--recorded"]):
            words = ["acc_check", "-api_info", "dump/dump.json", "-o", "out", "-n", "1", "--python", python, *recorded, "--fail-on", level]
            name = " ".join(["acc_check", *recorded, level])
            for what, change in ENTRIES.items():
                if not recorded and "output" in what:
                    continue  # the call makes them anew
                yield f"{name}: {what}", dump(golden, both(change)), words, whole
                yield f"{name}: {what}, beside one that passes", dump(golden, second(change)), words, never_passes
            for other in NAMES:
                yield f"{name}: operations named {other!r}", dump(golden, lambda data, other=other: renamed(data, other)), words, whole
            for what, text in (("an empty file", b""), ("a list", b"[]"), ("cut off", b'{"data": {'), ("no data", b"{}"), ("UTF-16", "{}".encode("utf-16"))):
                yield f"{name}: {what}", dump(golden, lambda _data, text=text: text), words, never_passes
            yield f"{name}: the same", dump(golden, lambda data: data), words, something
        folder = ["acc_check", "-api_info", "calls", "-o", "out", "--python", python, "--fail-on", level]
        for what, names in (("an empty folder", ()), ("a folder of others", ("rank0", "step0/rank0"))):
            def write(scratch, names=names):
                (scratch / "calls").mkdir()
                for each in names:
                    (scratch / "calls" / each).mkdir(parents=True)
            yield f"acc_check {level}: {what}", write, folder, never_passes
        yield f"acc_check {level}: standard input", lambda scratch: None, ["acc_check", "-api_info", "-", "--fail-on", level], never_passes
        against = ["acc_check", "-api_info", "dump/dump.json", "--against", "other/dump.json", "-o", "out", "-n", "1", "--python", python, "--fail-on", level]
        for what, change in (("the same", lambda data: data), ("no arguments", both(ENTRIES["no arguments"])),
                             ("no arguments of one", second(ENTRIES["no arguments"]))):
            def write(scratch, change=change):
                dump(golden, change)(scratch)
                (scratch / "dump").rename(scratch / "other")
                dump(golden, lambda data: data)(scratch)
            yield f"acc_check --against {level}: {what}", write, against, something if what == "the same" else never_passes


def make_tests(msprobe, golden_folder, python):
    if not has_pytorch(python):
        return [("acc_check", no_pytorch)]
    return tests_of(msprobe, list(cases(harness.data(golden_folder, "prechecks"), harness.prepared_interpreter(python))))


harness.main(make_tests)
