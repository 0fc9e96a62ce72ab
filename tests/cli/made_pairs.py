# SPDX-License-Identifier: Apache-2.0
"""Small pairs of dumps around one operation, for tests of how compare judges it: three products, a factor, the operation and
what follows it."""

import json

# Prefix, name and other arguments of operations that recorded pairs lack.
OPERATIONS = [
    ("Functional", "rms_norm", ["shape", "weight", 1e-6]),
    ("Functional", "group_norm", [4, "weight", "weight", 1e-5]),
    ("NPU", "npu_rms_norm", ["weight", 1e-6]),
    ("Functional", "log_softmax", [1]),
    ("Functional", "elu", [1.0]),
    ("Torch", "bmm", ["matrix"]),
]
FAULTS = ("factor", "argument", "kernel", "added")


def _tensor(size, error=0.0, shape=(64, 64)):
    size *= 1 + error
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": list(shape), "Max": 2.137 * size, "Min": -1.913 * size,
            "Mean": 0.0123 * size, "Norm": 64.11 * size, "requires_grad": True}


def _value(argument):
    if argument in ("weight", "matrix"):
        return _tensor(0.77, shape=(64,) if argument == "weight" else (64, 64))
    return {"type": "int", "value": 64} if argument == "shape" else {"type": type(argument).__name__, "value": argument}


def _entry(inputs, output):
    return {"input_args": inputs, "input_kwargs": {}, "output": [output]}


def _run(operation, fault, is_target):
    prefix, name, arguments = operation
    wrong = fault if is_target else None
    normalises = "norm" in name
    entries = {f"Functional.linear.{number}.forward": _entry([_tensor(1 + 0.37 * number), _tensor(0.1 + number / 7)],
                                                             _tensor(1.37 + 0.37 * number)) for number in range(3)}
    size = 1.37 + 2 * 0.37
    factor = 3.0 if wrong in ("factor", "added") else 1.0
    if fault != "added" or is_target:
        entries["Torch.mul.0.forward"] = _entry([_tensor(size), _value(factor)], _tensor(size * factor))
    given = [_value(argument) for argument in arguments]
    if wrong == "argument":
        numbers = [value for value in given if isinstance(value.get("value"), (int, float))]
        numbers[-1]["value"] = 0.25 if isinstance(numbers[-1]["value"], float) else 3
    error = 0.2 if wrong in ("argument", "kernel") else 0.0
    result = 1.0 if normalises else factor
    entries[f"{prefix}.{name}.0.forward"] = _entry([_tensor(size * factor), *given], _tensor(result, error))
    entries["Functional.linear.3.forward"] = _entry([_tensor(result, error), _tensor(0.77)], _tensor(2.2 * result, error))
    return {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": entries}


def make(folder):
    """Yields (name, target, golden, culprit): folders with dumps, and the entry with the fault. That is a factor in front of the
    operation, an argument of it, its result, or a factor that golden lacks."""
    for operation in OPERATIONS:
        for fault in FAULTS:
            if fault == "argument" and all(isinstance(argument, str) for argument in operation[2]):
                continue
            name = f"{operation[1]}-{fault}"
            places = (folder / name / "target", folder / name / "golden")
            for place, is_target in zip(places, (True, False), strict=True):
                rank = place / "step0" / "rank0"
                rank.mkdir(parents=True)
                (rank / "dump.json").write_text(json.dumps(_run(operation, fault, is_target)), encoding="utf-8")
            before = fault in ("factor", "added")
            yield name, *places, "Torch.mul.0.forward" if before else f"{operation[0]}.{operation[1]}.0.forward"
