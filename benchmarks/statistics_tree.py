# SPDX-License-Identifier: Apache-2.0
"""Two statistics dump trees of any size: what a transformer leaves behind at level mix, target and golden.

The text is the one Python's json.dump(..., indent=1) would give, but written from templates, so that a tree
of a million rows takes seconds. A block of twenty entries makes one hundred rows.
"""

import array
import json
import random

BATCH, SEQUENCE, HIDDEN, HEADS = 4, 512, 1024, 16
POOL_SIZES = (4093, 4091, 4079, 4073)  # primes, so the four statistics of a tensor do not repeat together


class Tensor:
    __slots__ = ("dtype", "shape", "grad")

    def __init__(self, dtype, shape, grad):
        self.dtype, self.shape, self.grad = dtype, shape, grad


def scalar(kind, value):
    return {"type": kind, "value": value}


GROUP = {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "77849d8c"}
REDUCE = {"type": "torch.distributed.ReduceOp", "value": "<RedOpType.SUM: 0>"}


def layer_entries(layer, floating):
    """One block: (name with {n} for the running call number or None, kind of stack, sections)."""

    def act(grad=True):
        return Tensor(floating, (BATCH, SEQUENCE, HIDDEN), grad)

    def wide():
        return Tensor(floating, (BATCH, SEQUENCE, 4 * HIDDEN), True)

    def head():
        return Tensor(floating, (BATCH, HEADS, SEQUENCE, HIDDEN // HEADS), True)

    def weight(*shape):
        return Tensor(floating, shape, True)

    vector, square = weight(HIDDEN), weight(HIDDEN, HIDDEN)
    no, yes = scalar("bool", False), scalar("bool", True)
    gradient, nothing = act(False), None
    linear = {"input_args": [act(), square, vector], "input_kwargs": {}, "output": [act()]}
    up = {
        "input_args": [act(), weight(4 * HIDDEN, HIDDEN), weight(4 * HIDDEN)],
        "input_kwargs": {},
        "output": [wide()],
    }
    down = {"input_args": [wide(), weight(HIDDEN, 4 * HIDDEN), vector], "input_kwargs": {}, "output": [act()]}
    norm = {
        "input_args": [act(), [scalar("int", HIDDEN)], vector, vector, scalar("float", 1e-05)],
        "input_kwargs": {},
        "output": [act()],
    }
    index = Tensor("torch.int64", (BATCH, SEQUENCE), False)
    cell = f"Module.decoder.layers.{layer}"
    return [
        ("Functional.layer_norm.{n}.forward", "norm1", norm),
        ("Functional.linear.{n}.forward", "qkv", linear),
        ("Functional.linear.{n}.forward", "qkv", linear),
        (
            "Functional.scaled_dot_product_attention.{n}.forward",
            "attention",
            {
                "input_args": [head(), head(), head()],
                "input_kwargs": {"attn_mask": nothing, "dropout_p": scalar("float", 0.0), "is_causal": yes},
                "output": [head()],
            },
        ),
        (
            "Functional.batch_norm.{n}.forward",
            "bn",
            {
                "input_args": [
                    act(),
                    Tensor("torch.float32", (HIDDEN,), False),
                    Tensor("torch.float32", (HIDDEN,), False),
                    vector,
                    vector,
                    yes,
                    scalar("float", 0.1),
                    scalar("float", 1e-05),
                ],
                "input_kwargs": {},
                "output": [act()],
            },
        ),
        (
            "Functional.dropout.{n}.forward",
            "dropout",
            {
                "input_args": [act()],
                "input_kwargs": {"p": scalar("float", 0.0), "training": yes, "inplace": no},
                "output": [act()],
            },
        ),
        (
            "Torch.baddbmm.{n}.forward",
            "bmm",
            {
                "input_args": [act(), act(), head()],
                "input_kwargs": {"beta": scalar("int", 1), "alpha": scalar("float", 0.125)},
                "output": [act()],
            },
        ),
        ("Functional.layer_norm.{n}.forward", "norm2", norm),
        ("Functional.linear.{n}.forward", "up", up),
        (
            "Functional.gelu.{n}.forward",
            "gelu",
            {
                "input_args": [wide()],
                "input_kwargs": {"approximate": scalar("str", "tanh")},
                "output": [wide()],
            },
        ),
        ("Functional.linear.{n}.forward", "down", down),
        (
            "Torch.cat.{n}.forward",
            "cat",
            {
                "input_args": [[act(), act(), act(), index]],
                "input_kwargs": {"dim": scalar("int", 0)},
                "output": [act()],
            },
        ),
        (
            cell + ".attention.SelfAttention.forward.0",
            None,
            {
                "input_args": [act(), nothing],
                "input_kwargs": {},
                "output": [act(), nothing],
                "parameters": {},
            },
        ),
        (
            cell + ".mlp.fc1.Linear.forward.0",
            None,
            {
                "input_args": [act()],
                "input_kwargs": {},
                "output": [act()],
                "parameters": {"weight": square, "bias": vector},
            },
        ),
        (
            "Functional.layer_norm.{n}.backward",
            None,
            {
                "input": [gradient],
                "output": [
                    gradient,
                    nothing,
                    Tensor(floating, (HIDDEN,), False),
                    Tensor(floating, (HIDDEN,), False),
                    nothing,
                ],
            },
        ),
        (
            "Functional.linear.{n}.backward",
            None,
            {
                "input": [gradient],
                "output": [
                    gradient,
                    Tensor(floating, (HIDDEN, HIDDEN), False),
                    Tensor(floating, (HIDDEN,), False),
                ],
            },
        ),
        (
            "Functional.scaled_dot_product_attention.{n}.backward",
            None,
            {"input": [gradient], "output": [gradient, gradient, gradient, nothing]},
        ),
        (
            cell + ".attention.SelfAttention.backward.0",
            None,
            {"input": [gradient], "output": [gradient, nothing]},
        ),
        (
            cell + ".mlp.fc1.Linear.parameters_grad.0",
            None,
            {
                "weight": [Tensor(floating, (HIDDEN, HIDDEN), False)],
                "bias": [Tensor(floating, (HIDDEN,), False)],
            },
        ),
        (
            "Distributed.all_reduce.{n}.forward",
            "reduce",
            {
                "input_args": [gradient],
                "input_kwargs": {"op": REDUCE, "group": GROUP, "async_op": no},
                "output": [gradient, REDUCE, GROUP, no],
            },
        ),
    ]


FRAMES = {
    kind: [
        f"File /srv/train/model/{kind}.py, line {40 + 7 * place}, in forward, \n x = self.{kind}(x)",
        "File /srv/train/model/decoder.py, line 118, in forward, \n hidden = layer(hidden, mask)",
        "File /srv/train/pretrain.py, line 212, in train_step, \n loss = model(tokens, labels)",
        "File /srv/train/pretrain.py, line 307, in <module>, \n main()",
    ]
    for place, kind in enumerate(
        ("norm1", "qkv", "attention", "bn", "dropout", "bmm", "norm2", "up", "gelu", "down", "cat", "reduce")
    )
}


def float32_texts(values):
    return [repr(value) for value in array.array("f", values)]


class Pools:
    """Texts of plausible statistics, golden beside target values off by little, by some, by much."""

    def __init__(self, seed):
        rng = random.Random(seed)
        draw = (
            lambda: rng.uniform(0.5, 9.0),
            lambda: -rng.uniform(0.5, 9.0),
            lambda: rng.gauss(0.0, 0.05),
            lambda: rng.uniform(20.0, 900.0),
        )
        self.columns = []
        for size, one in zip(POOL_SIZES, draw):
            golden = [one() for _ in range(size)]
            self.columns.append(
                {
                    "same": float32_texts(golden),
                    "near": float32_texts(v * (1.0 + rng.uniform(-2e-6, 2e-6)) for v in golden),
                    "drift": float32_texts(v * rng.uniform(1.15, 1.4) for v in golden),
                    "wrong": float32_texts(v * rng.uniform(1.6, 3.0) for v in golden),
                    "broken": ["NaN" if rng.random() < 0.5 else "Infinity" for _ in golden],
                }
            )


class Writer:
    """Templates are rendered once per kind of element; only numbers change from call to call."""

    def __init__(self, pools):
        self.pools = pools
        self.templates = {}

    def template(self, tensor, depth):
        key = (tensor.dtype, tensor.shape, tensor.grad, depth)
        found = self.templates.get(key)
        if found is None:
            whole = tensor.dtype == "torch.int64"
            shown = {
                "type": "torch.Tensor",
                "dtype": tensor.dtype,
                "shape": list(tensor.shape),
                "Max": 31999 if whole else "@",
                "Min": 0 if whole else "@",
                "Mean": None if whole else "@",
                "Norm": None if whole else "@",
                "requires_grad": tensor.grad,
            }
            text = json.dumps(shown, indent=1).replace("\n", "\n" + " " * depth)
            found = self.templates[key] = (text.replace('"@"', "%s"), whole)
        return found

    def constant(self, element, depth):
        key = (id(element), depth)
        found = self.templates.get(key)
        if found is None:  # the element is kept alive beside its text, so its id stays its own
            text = json.dumps(element, indent=1).replace("\n", "\n" + " " * depth)
            found = self.templates[key] = (text, element)
        return found[0]

    def element(self, element, depth, indices, error):
        if isinstance(element, Tensor):
            text, whole = self.template(element, depth)
            if whole:
                return text
            return text % tuple(column[error][index] for column, index in zip(self.pools.columns, indices))
        if isinstance(element, list):
            inner = [self.element(one, depth + 1, indices, error) for one in element]
            return bracketed("[", inner, "]", depth)
        return self.constant(element, depth)


def bracketed(opening, items, closing, depth):
    if not items:
        return opening + closing
    pad = "\n" + " " * (depth + 1)
    return opening + pad + ("," + pad).join(items) + "\n" + " " * depth + closing


def entry_text(writer, name, sections, tensors, error):
    """`tensors` yields the pool indices of one element after another; only outputs carry the error."""
    parts = []
    for section, content in sections.items():
        kind = error if section == "output" or error in ("same", "near") else "near"
        if isinstance(content, dict):
            items = [
                f'"{key}": ' + writer.element(one, 4, next(tensors), kind) for key, one in content.items()
            ]
            parts.append(f'"{section}": ' + bracketed("{", items, "}", 3))
        else:
            items = [writer.element(one, 4, next(tensors), kind) for one in content]
            parts.append(f'"{section}": ' + bracketed("[", items, "]", 3))
    return f'"{name}": ' + bracketed("{", parts, "}", 2)


def altered(sections, field):
    """The sections with one property of the first output tensor changed, as another framework might."""
    output = list(sections["output"])
    place = next(i for i, one in enumerate(output) if isinstance(one, Tensor))
    tensor = output[place]
    if field == "shape":
        output[place] = Tensor(tensor.dtype, tensor.shape[::-1] + (1,), tensor.grad)
    elif field == "dtype":
        output[place] = Tensor("torch.float16", tensor.shape, tensor.grad)
    else:
        output[place] = Tensor(tensor.dtype, tensor.shape, not tensor.grad)
    return dict(sections, output=output)


def count_rows(sections):
    def rows(element):
        if isinstance(element, list):
            return sum(map(rows, element))
        return 1

    total = 0
    for content in sections.values():
        total += sum(map(rows, content.values() if isinstance(content, dict) else content))
    return total


def write_rank(target_folder, golden_folder, apis, seed):
    """Writes dump.json and stack.json of one rank on both sides; returns the rows on the target side."""
    rng = random.Random(seed)
    writer = Writer(Pools(seed))
    for folder in (target_folder, golden_folder):
        folder.mkdir(parents=True, exist_ok=True)
    counters, stacks, rows, written, layer = {}, {kind: [] for kind in FRAMES}, 0, 0, 0
    blocks, variants = {}, {}
    head = (
        '{\n "task": "statistics",\n "level": "mix",\n "framework": "pytorch",\n "dump_data_dir": null,\n'
        ' "data": {'
    )
    with open(target_folder / "dump.json", "w", encoding="ascii") as target, open(
        golden_folder / "dump.json", "w", encoding="ascii"
    ) as golden:
        target.write(head)
        golden.write(head)
        comma = {target: "", golden: ""}

        def put(stream, text):
            stream.write(f"{comma[stream]}\n  {text}")
            comma[stream] = ","

        while written < apis:
            floating = "torch.bfloat16" if layer % 4 == 3 else "torch.float32"
            if floating not in blocks:
                blocks[floating] = layer_entries("{layer}", floating)
            for place, (name, kind, sections) in enumerate(blocks[floating][: apis - written]):
                if "{n}" in name:
                    number = counters.get(name, 0)
                    counters[name] = number + 1
                    name = name.replace("{n}", str(number))
                else:
                    name = name.replace("{layer}", str(layer))
                indices = [tuple(rng.randrange(size) for size in POOL_SIZES) for _ in range(12)]
                put(golden, entry_text(writer, name, sections, iter(indices), "same"))
                lot = rng.random()
                error = (
                    "same"
                    if lot < 0.2
                    else (
                        "near"
                        if lot < 0.94
                        else "drift" if lot < 0.98 else "wrong" if lot < 0.995 else "broken"
                    )
                )
                change = rng.random()
                ours, shown = sections, name
                # Backward calls pair by their order, so a missing one would shift all that follow.
                if change < 0.005 and kind is not None:
                    shown = name.replace(".", ".fused_", 1)  # an operator that only the target has
                elif change < 0.008 and "output" in sections:
                    field = ("shape", "dtype", "grad")[rng.randrange(3)]
                    key = (floating, place, field)
                    if key not in variants:
                        variants[key] = altered(sections, field)
                    ours = variants[key]
                put(target, entry_text(writer, shown, ours, iter(indices), error))
                rows += count_rows(sections)
                if kind is not None:
                    stacks[kind].append(name)
                written += 1
            layer += 1
        target.write("\n }\n}")
        golden.write("\n }\n}")
    groups = {
        str(i): [names, FRAMES[kind]]
        for i, (kind, names) in enumerate((kind, names) for kind, names in stacks.items() if names)
    }
    text = json.dumps(groups, indent=1)
    for folder in (target_folder, golden_folder):
        (folder / "stack.json").write_text(text, encoding="ascii")
    return rows
