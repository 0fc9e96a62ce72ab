# SPDX-License-Identifier: Apache-2.0
"""A step of statistics dumps at level mix with the structure of its model: layers of modules with operations inside,
forward and backward, and a reduction over all ranks behind each layer. The target's last layers drift from golden's."""

import json
import pathlib
import random

# The modules of one layer; each has a forward and a backward call.
MODULES = (
    "input_norm.LayerNorm", "self_attn.Attention", "self_attn.q_proj.Linear", "self_attn.k_proj.Linear",
    "self_attn.v_proj.Linear", "self_attn.o_proj.Linear", "mlp.MLP", "mlp.up_proj.Linear", "mlp.down_proj.Linear",
)
OPERATIONS = ("Functional.linear", "Torch.add", "Torch.rsqrt", "Tensor.mul", "Functional.gelu")
FRAMES = ["File model.py, line 42, in forward, \n x = self.proj(x)", "File train.py, line 7, in step, \n loss = model(batch)"]


def tensor(draw, drift):
    low, high = sorted(draw.uniform(-4, 4) for _ in range(2))
    return {"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [4, 512, 1024], "Max": high * drift,
            "Min": low * drift, "Mean": (low + high) / 2 * drift, "Norm": draw.uniform(1, 4000) * drift,
            "requires_grad": True}


class Rank:
    """One rank of one side, put together in the order of execution."""

    def __init__(self, draw, ranks, drifts_from):
        self.draw, self.drifts_from = draw, drifts_from
        self.group = {"type": "torch.ProcessGroup", "group_ranks": list(range(ranks)), "group_id": "all"}
        self.construct, self.data, self.calls = {}, {}, {}

    def add(self, name, parent, layer, inputs, keywords=None):
        drift = 1.5 if layer >= self.drifts_from else 1.0
        self.construct[name] = parent
        self.data[name] = {
            "input_args" if name.endswith("forward") or ".forward." in name else "input":
                [tensor(self.draw, drift) for _ in range(inputs)],
            **({"input_kwargs": keywords or {}} if "forward" in name else {}),
            "output": [tensor(self.draw, drift)],
        }

    def operation(self, kind, way, parent, layer, keywords=None):
        number = self.calls[kind, way] = self.calls.get((kind, way), -1) + 1
        self.add(f"{kind}.{number}.{way}", parent, layer, 2, keywords)

    def run(self, layers, operations):
        for way in ("forward", "backward"):
            for layer in range(layers) if way == "forward" else reversed(range(layers)):
                self.layer(layer, way, operations)

    def layer(self, layer, way, operations):
        of_layer = f"Module.model.layers.{layer}"
        top = f"{of_layer}.Layer.{way}.0"
        self.add("Module.model.Model." + way + ".0", None, -1, 1)
        self.add(top, "Module.model.Model." + way + ".0", layer, 1)
        for module in MODULES:
            parts = module.split(".")
            inside = {"self_attn": "self_attn.Attention", "mlp": "mlp.MLP"}.get(parts[0])
            parent = top if len(parts) == 2 else f"{of_layer}.{inside}.{way}.0"
            name = f"{of_layer}.{module}.{way}.0"
            self.add(name, parent, layer, 1)
            for index in range(operations):
                self.operation(OPERATIONS[index % len(OPERATIONS)], way, name, layer)
        if way == "forward":
            self.operation("Distributed.all_reduce", way, top, layer, {"group": self.group})

    def write(self, folder):
        folder.mkdir(parents=True)
        head = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None}
        (folder / "dump.json").write_text(json.dumps({**head, "data": self.data}, indent=1))
        (folder / "construct.json").write_text(json.dumps(self.construct, indent=1))
        (folder / "stack.json").write_text(json.dumps({"0": [list(self.data), FRAMES]}, indent=1))


def write(out, modules, apis, ranks, seed):
    """Both sides; at least so many modules and operations a rank."""
    of_layer = len(MODULES) + 1
    layers = -(-modules // (2 * of_layer))
    operations = -(-apis // (2 * layers * len(MODULES)))
    for side in ("target", "golden"):
        for number in range(ranks):
            rank = Rank(random.Random(f"{seed} {number}"), ranks, layers - layers // 10 if side == "target" else layers)
            rank.run(layers, operations)
            rank.write(pathlib.Path(out) / side / "step0" / f"rank{number}")
