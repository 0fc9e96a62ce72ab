# SPDX-License-Identifier: Apache-2.0
"""Writes random dump trees of several ranks, for checks that merge or compare results."""

import json
import math
import random

COMPUTE = ["Torch.mul", "Torch.empty", "Tensor.add", "Torch.fill", "Functional.linear", "NPU.npu_fusion_attention"]
VALUES = [1.0, 1.0, 1.0, 1.0, 2, 0.0, -3.5, math.nan, math.inf, -math.inf]


def tensor(generator, value=1.0):
    described = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3]}
    described |= dict.fromkeys(("Max", "Min", "Mean", "Norm"), value)
    if generator.random() < 0.2:
        described["requires_grad"] = generator.random() < 0.5
    return described


def communication(generator, ranks, own):
    """Name and arguments of a call that all ranks make; the numbers of calls are given later."""
    group = {"type": "torch.ProcessGroup", "group_ranks": generator.choice([list(range(ranks)), [0, 1]]), "group_id": "7"}
    api = generator.choice(["all_reduce", "broadcast", "all_gather", "send", "recv", "batch_isend_irecv", "gather"])
    inputs = [tensor(generator)]
    keywords = {}
    if api == "broadcast":
        keywords = {"src": {"type": "int", "value": generator.randrange(ranks)}, "group": group}
    elif api in ("send", "recv"):
        api, side = ("send", "dst") if own % 2 == 0 else ("recv", "src")
        keywords = {side: {"type": "int", "value": own ^ 1}}
    elif api == "gather":
        keywords = {"dst": {"type": "int", "value": 0}}
    elif api == "batch_isend_irecv":
        operation = {"class_type": "torch.distributed.P2POp", "op": "isend", "peer": own ^ 1, "tag": 0, "group_id": "7"}
        inputs = [[operation | {"tensor": tensor(generator)}]]
    elif generator.random() < 0.8:
        keywords = {"group": group}
    return f"Distributed.{api}", inputs, keywords


def make_rank(seed, ranks, own):
    """(target, golden): both the same but for the values of some outputs."""
    shared, mine = random.Random(seed), random.Random(f"{seed}/{own}")
    target, golden, calls = {}, {}, {}
    trouble = mine.choice([0, 0, 0.05, 0.3])
    for _ in range(shared.randrange(3, 30)):
        is_communication = shared.random() < 0.3
        if is_communication:
            state = shared.getstate()
            name, inputs, keywords = communication(shared, ranks, own)
            shared.setstate(state)
            shared.random()
        else:
            name, inputs, keywords = mine.choice(COMPUTE), [tensor(mine)], {}
        number = calls[name] = calls.get(name, -1) + 1
        entry = f"{name}.{number}.forward"
        outputs, expected = [], []
        for _ in range(mine.choice([1, 1, 2])):
            value = mine.choice(VALUES)
            other = mine.choice(VALUES) if mine.random() < trouble else value
            outputs.append(tensor(mine, other))
            expected.append(tensor(mine, value))
        target[entry] = {"input_args": inputs, "input_kwargs": keywords, "output": outputs}
        if mine.random() > 0.02:
            golden[entry] = {"input_args": inputs, "input_kwargs": keywords, "output": expected}
    return target, golden


def write_rank(folder, entries, stacks):
    folder.mkdir(parents=True)
    header = {"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps(header | {"data": entries}))
    if stacks:
        frames = ["File /opt/lib/site-packages/torch/a.py, line 1, in a, \n a", "File /home/me/b.py, line 2, in b, \n b"]
        (folder / "stack.json").write_text(json.dumps({"0": [list(entries), frames]}))


def make_tree(folder, seed):
    generator = random.Random(seed)
    stacks, ranks = generator.random() < 0.7, generator.choice([2, 2, 4])
    for own in range(ranks):
        target, golden = make_rank(seed, ranks, own)
        write_rank(folder / "target" / "step0" / f"rank{own}", target, stacks)
        write_rank(folder / "golden" / "step0" / f"rank{own}", golden, stacks)
