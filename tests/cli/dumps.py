# SPDX-License-Identifier: Apache-2.0
"""Small dumps made by hand: tensors, calls, the files of a rank."""

import json


def tensor(values, shape=(2,), dtype="torch.float32", **more):
    """`values`: one for all statistics, or the four of them."""
    values = values if isinstance(values, (list, tuple)) else (values,) * 4
    statistics = dict(zip(("Max", "Min", "Mean", "Norm"), values))
    return {"type": "torch.Tensor", "dtype": dtype, "shape": list(shape), **statistics, "requires_grad": False, **more}


def call(inputs, outputs, **more):
    return {"input_args": inputs, "input_kwargs": {}, "output": outputs, **more}


def write_rank(folder, data, construct=None, stack=None, **header):
    """Returns the path of its dump.json."""
    folder.mkdir(parents=True, exist_ok=True)
    header = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None, **header}
    for name, content in (("dump", {**header, "data": data}), ("construct", construct), ("stack", stack)):
        if content is not None:
            (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder / "dump.json"
