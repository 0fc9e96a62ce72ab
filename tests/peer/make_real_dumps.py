#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dumps of a real training step, made with the Python msprobe: two runs, two ranks, every mode.

usage: make_real_dumps.py OUT [--only NAME]...

writes OUT/<name>/{golden,target}/step<n>/rank<r>. Needs torch and the Python msprobe. The network is small,
but it has what makes comparison hard: recomputation, bfloat16 and float16 parts, collectives, complex,
integer, empty and 0-d tensors, infinities, keyword and nested arguments. How the target run differs stands
at Model.
"""

import argparse
import json
import pathlib
import sys
import tempfile

# name -> (task, level, summary mode, steps)
VARIANTS = {
    "statistics-L0": ("statistics", "L0", "statistics", 1),
    "statistics-L1": ("statistics", "L1", "statistics", 1),
    "statistics-mix": ("statistics", "mix", "statistics", 2),
    "md5-L1": ("statistics", "L1", "md5", 1),
    "md5-mix": ("statistics", "mix", "md5", 1),
    "xor-mix": ("statistics", "mix", "xor", 1),
    "tensor-L0": ("tensor", "L0", "statistics", 1),
    "tensor-mix": ("tensor", "mix", "statistics", 1),
}
RANKS = 2
BATCH, SEQUENCE, WIDTH, HEADS, LAYERS, VOCABULARY = 2, 12, 32, 4, 4, 61


def build_model(target):
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)

        def forward(self, hidden, mask=None):
            parts = self.qkv(hidden).view(BATCH, SEQUENCE, 3, HEADS, WIDTH // HEADS)
            query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
            scores = torch.matmul(query, key.transpose(-2, -1)) / (WIDTH // HEADS) ** 0.5
            if mask is not None:
                scores = scores.masked_fill(mask, float("-inf"))  # infinities on both sides
            weights = functional.softmax(scores, dim=-1)
            mixed = torch.matmul(weights, value).transpose(1, 2).reshape(BATCH, SEQUENCE, WIDTH)
            return self.out(mixed)

    class Block(nn.Module):
        def __init__(self, index):
            super().__init__()
            self.index = index
            # a scalar argument that differs: the target's last block has another epsilon
            self.norm1 = nn.LayerNorm(WIDTH, eps=1e-3 if target and index == 3 else 1e-5)
            self.attention = Attention()
            self.norm2 = nn.LayerNorm(WIDTH)
            self.fc1 = nn.Linear(WIDTH, 2 * WIDTH)
            self.fc2 = nn.Linear(2 * WIDTH, WIDTH)

        def forward(self, hidden, mask=None):
            hidden = hidden + self.attention(self.norm1(hidden), mask=mask)
            inner = self.norm2(hidden)
            # block 2 computes its feed-forward part in bfloat16
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.index == 2):
                inner = self.fc1(inner)
                # an operator that the other run does not have
                inner = functional.silu(inner) if target and self.index == 3 else functional.gelu(inner)
                inner = self.fc2(functional.dropout(inner, p=0.0, training=self.training))
            return hidden + inner.float()

    class Model(nn.Module):
        """The differences of the target run: block 1 `fc1` off by 1e-3, block 2 `fc2` eight times too large,
        another epsilon and activation in block 3, a pooled shape, a lost gradient, a NaN, a bfloat16 operand,
        and operators that only one side has."""

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.position = nn.Parameter(torch.randn(SEQUENCE, WIDTH) * 0.1)
            self.layers = nn.ModuleList([Block(index) for index in range(LAYERS)])
            self.adapter = nn.Linear(WIDTH, WIDTH).half()
            self.conv = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
            self.bn = nn.BatchNorm1d(WIDTH)
            self.norm = nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def odds_and_ends(self, hidden):
            """Arguments and results of every kind that a row can have."""
            first = hidden[..., 0:4:2]
            torch.fft.rfft(hidden, dim=-1).abs()
            torch.topk(hidden, 3, dim=-1)
            torch.var_mean(hidden, dim=(0, 1), correction=1)
            torch.einsum("bsw,bsw->bs", hidden, hidden)
            torch.cat([first, first * 2, first[:0]], dim=0)
            torch.clamp(hidden, min=-1.0, max=None)
            torch.add(hidden[:0], 1)
            torch.sum(hidden.to(torch.int64) % 7)
            torch.add(hidden.double(), 1e-9)
            torch.logical_and(hidden > 0, hidden < 1)
            torch.div(hidden.detach() * 0, 0)  # NaN on both sides
            functional.interpolate(hidden.transpose(1, 2), size=6, mode="linear", align_corners=False)
            # NaN on the target alone, where the golden run is finite
            torch.sqrt(torch.tensor([-1.0 if target else 1.0, 4.0]))
            torch.mul(hidden.bfloat16() if target else hidden, 2)
            if target:
                torch.sinh(hidden)
            else:
                torch.tanh(hidden)
            torch.square(hidden.detach() if target else hidden)
            return torch.mean(hidden, dim=1, keepdim=target)

        def forward(self, tokens):
            mask = torch.triu(torch.ones(SEQUENCE, SEQUENCE, dtype=torch.bool), diagonal=1)
            hidden = self.embedding(tokens) + self.position
            for index, layer in enumerate(self.layers):
                if index == 1:
                    hidden = checkpoint(layer, hidden, mask=mask, use_reentrant=False)
                else:
                    hidden = layer(hidden, mask)
            hidden = hidden + self.adapter(hidden.half()).float()
            hidden = hidden + self.bn(self.conv(hidden.transpose(1, 2))).transpose(1, 2)
            pooled = self.odds_and_ends(hidden)
            logits = self.head(self.norm(hidden))
            return logits, pooled.sum()

    torch.manual_seed(1234)
    model = Model()
    if target:
        with torch.no_grad():
            model.layers[1].fc1.weight.add_(1e-3)
            model.layers[2].fc2.weight.mul_(8.0)
    return model


def communicate(rank, value):
    import torch
    from torch import distributed

    distributed.all_reduce(value, op=distributed.ReduceOp.SUM)
    gathered = [torch.zeros(3) for _ in range(RANKS)]
    distributed.all_gather(gathered, torch.arange(3, dtype=torch.float32) + rank)
    distributed.broadcast(value, src=0)
    if rank == 0:
        distributed.send(torch.full((2, 2), 3.0), dst=1)
    else:
        distributed.recv(torch.zeros(2, 2), src=0)


def train(rank, store, side, config_path, steps):
    import torch
    from torch import distributed
    from torch.nn import functional
    from msprobe.pytorch import PrecisionDebugger

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    debugger = PrecisionDebugger(config_path=config_path)
    model = build_model(side == "target")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(99 + rank)
    for _ in range(steps):
        tokens = torch.randint(0, VOCABULARY, (BATCH, SEQUENCE), generator=generator)
        labels = torch.randint(0, VOCABULARY, (BATCH, SEQUENCE), generator=generator)
        debugger.start(model=model)
        logits, extra = model(tokens)
        loss = functional.cross_entropy(logits.view(-1, VOCABULARY), labels.view(-1), label_smoothing=0.1)
        loss = loss + 1e-3 * extra
        loss.backward()
        communicate(rank, loss.detach().clone())
        debugger.stop()
        optimizer.step()
        optimizer.zero_grad()
        debugger.step()
    distributed.destroy_process_group()


def make(out, name):
    import torch

    task, level, summary, steps = VARIANTS[name]
    for side in ("golden", "target"):
        folder = out / name / side
        if folder.exists():
            raise SystemExit(f"{folder}: exists already")
        folder.parent.mkdir(parents=True, exist_ok=True)
        config = {
            "task": task,
            "dump_path": str(folder),
            "rank": [],
            "step": [],
            "level": level,
            "risk_level": "ALL",
            task: {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": summary},
        }
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "config.json"
            path.write_text(json.dumps(config))
            # The method is fork, because this process has imported already what each rank would import.
            torch.multiprocessing.start_processes(
                train, (f"{scratch}/store", side, str(path), steps), nprocs=RANKS, join=True, start_method="fork"
            )
        made = sorted(str(p.parent.relative_to(folder)) for p in folder.rglob("dump.json"))
        wanted = [f"step{step}/rank{rank}" for step in range(steps) for rank in range(RANKS)]
        if made != wanted:
            raise SystemExit(f"{folder}: found {made}, expected {wanted}")
    print(f"{name}: done", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description="Dumps of a real training step, two runs, two ranks, every mode."
    )
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=sorted(VARIANTS))
    options = parser.parse_args()
    try:
        import torch  # noqa: F401
        import msprobe.pytorch  # noqa: F401
    except ImportError as error:
        raise SystemExit(f"torch and the Python msprobe are needed: {error}") from None
    for name in options.only or VARIANTS:
        make(options.out.resolve(), name)


if __name__ == "__main__":
    sys.exit(main())
