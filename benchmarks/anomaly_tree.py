# SPDX-License-Identifier: Apache-2.0
"""A step of statistics dumps in which one rank makes NaN and all_reduce hands it to the others."""

import json
import pathlib
import random

OPERATIONS = ("Functional.linear", "Tensor.__add__", "Torch.rsqrt", "Tensor.__mul__", "Functional.gelu")
CALLS_TO_A_REDUCTION = 80


def tensor(draw, bad):
    low, high = sorted(draw.uniform(-4, 4) for _ in range(2))
    nan = float("nan")
    return {
        "type": "torch.Tensor",
        "dtype": "torch.bfloat16",
        "shape": [4096, 1, 5120],
        "Max": nan if bad else high,
        "Min": nan if bad else low,
        "Mean": nan if bad else (low + high) / 2,
        "Norm": nan if bad else draw.uniform(1, 4000),
        "requires_grad": True,
    }


def entries(rank, ranks, length, draw):
    """(name, entry) in the order of execution. The middle rank breaks in the middle of its run."""
    culprit, breaks_at = ranks // 2, length // 2
    reduction_behind = (breaks_at // CALLS_TO_A_REDUCTION + 1) * CALLS_TO_A_REDUCTION - 1
    group = {"type": "torch.ProcessGroup", "group_ranks": list(range(ranks)), "group_id": "all"}
    calls = {}
    for index in range(length):
        reduces = index % CALLS_TO_A_REDUCTION == CALLS_TO_A_REDUCTION - 1
        kind = "Distributed.all_reduce" if reduces else OPERATIONS[index % len(OPERATIONS)]
        number = calls[kind] = calls.get(kind, -1) + 1
        first_bad_output = breaks_at if rank == culprit else reduction_behind
        bad_in, bad_out = index > first_bad_output, index >= first_bad_output
        yield f"{kind}.{number}.forward", {
            "input_args": [tensor(draw, bad_in)] + ([] if reduces else [tensor(draw, bad_in)]),
            "input_kwargs": {"group": group} if reduces else {},
            "output": [tensor(draw, bad_out)],
        }


def write(out, ranks, length, seed):
    for rank in range(ranks):
        draw = random.Random(f"{seed} {rank}")
        data = dict(entries(rank, ranks, length, draw))
        folder = pathlib.Path(out) / "step0" / f"rank{rank}"
        folder.mkdir(parents=True)
        head = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
        (folder / "dump.json").write_text(json.dumps({**head, "data": data}, indent=1))
        (folder / "construct.json").write_text(json.dumps(dict.fromkeys(data), indent=1))
        frames = ["File train.py, line 1, in step, \n loss = model(batch)"]
        (folder / "stack.json").write_text(json.dumps({"0": [list(data), frames]}, indent=1))
