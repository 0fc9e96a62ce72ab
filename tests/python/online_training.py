# SPDX-License-Identifier: Apache-2.0
"""A short training, judged while it runs, with or without three wrong kernels from step 5 on. For online_check_test.py.

usage: online_training.py llama|vit float32|amp healthy|faulty STEPS [CONFIG]

The wrong kernels lie below the recorder, in PyTorch's dispatcher. Prints a digest of all losses and gradients, the state
of the random numbers, and the memory of the process in the middle and at the end.

JUDGE_PYTHON=FILE in the environment names the interpreter that the judge calls operations with, if not this one.

With RANK_OF_TWO=0 or 1 and STORE=FILE in the environment it is one of two ranks under DistributedDataParallel (gloo), each
with data of its own; the kernels of rank 1 are the wrong ones.
"""

import atexit
import hashlib
import os
import signal
import sys
import traceback

import torch
import torch.nn as nn
import torch.nn.functional as functional

FIRST_WRONG = 5


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, hidden):
        wide = hidden.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(hidden.dtype) * self.weight


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(size, size, bias=False) for _ in range(4))

    def forward(self, hidden):
        batch, length, size = hidden.shape
        query, key, value = (project(hidden).view(batch, length, self.heads, -1).transpose(1, 2)
                             for project in (self.query, self.key, self.value))
        scores = query @ key.transpose(-1, -2) / (size // self.heads) ** 0.5
        scores += torch.full((length, length), float("-inf")).triu(1)
        shares = functional.softmax(scores, dim=-1).to(value.dtype)
        return self.output((shares @ value).transpose(1, 2).reshape(batch, length, size))


class Mlp(nn.Module):
    def __init__(self, size, inner):
        super().__init__()
        self.gate, self.up = (nn.Linear(size, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, size, bias=False)

    def forward(self, hidden):
        return self.down(functional.silu(self.gate(hidden)) * self.up(hidden))


class Layer(nn.Module):
    def __init__(self, size, inner, heads):
        super().__init__()
        self.norm1, self.attention = Norm(size), Attention(size, heads)
        self.norm2, self.mlp = Norm(size), Mlp(size, inner)

    def forward(self, hidden):
        hidden = hidden + self.attention(self.norm1(hidden))
        return hidden + self.mlp(self.norm2(hidden))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(96, 48)
        self.layers = nn.ModuleList(Layer(48, 128, 4) for _ in range(2))
        self.norm, self.head = Norm(48), nn.Linear(48, 96, bias=False)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(self.norm(hidden))

    def loss(self, generator):
        tokens = torch.randint(0, 96, (2, 16), generator=generator)
        return functional.cross_entropy(self(tokens)[:, :-1].reshape(-1, 96).float(), tokens[:, 1:].reshape(-1))


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 48, 4, 4)
        self.place = nn.Parameter(torch.randn(1, 16, 48) * 0.02)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(48, 4, 96, activation="gelu", batch_first=True,
                                                               norm_first=True) for _ in range(2))
        self.norm, self.act, self.head = nn.BatchNorm1d(48), nn.ReLU(inplace=True), nn.Linear(48, 10)

    def forward(self, images):
        hidden = self.patch(images).flatten(2).transpose(1, 2) + self.place
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.act(self.norm(hidden.mean(1))))

    def loss(self, generator):
        images = torch.randn(4, 3, 16, 16, generator=generator)
        return functional.cross_entropy(self(images).float(), torch.randint(0, 10, (4,), generator=generator))


class Kernels:
    """Kernels of which one call in each step is wrong, from a step on."""

    def __init__(self):
        self.wrong = False
        self.seen = {}
        self._library = torch.library.Library("aten", "IMPL")

    def begin_step(self, step):
        self.wrong = step >= FIRST_WRONG
        self.seen.clear()

    def is_wrong(self, name, number):
        self.seen[name] = self.seen.get(name, 0) + 1
        return self.wrong and self.seen[name] == number + 1

    def plant(self, names):
        for name in names:
            self._library.impl(name, getattr(self, name.lstrip("_")), "CPU")

    def softmax(self, values, axis, half_to_float):
        """The wrong argument: over the queries."""
        if self.is_wrong("softmax", 0):
            axis -= 1
        aten = torch.ops.aten
        wide = aten._to_copy(values, dtype=torch.float64)
        powers = aten.exp(aten.sub(wide, aten.amax(wide, [axis], True)))
        return aten._to_copy(aten.div(powers, aten.sum(powers, [axis], True)), dtype=values.dtype)

    @staticmethod
    def _coarse(values):
        """Lower precision: three bits behind the point."""
        aten = torch.ops.aten
        wide = aten._to_copy(values, dtype=torch.float32)
        return aten._to_copy(aten.div(aten.round(aten.mul(wide, 8.0)), 8.0), dtype=values.dtype)

    def silu(self, values):
        aten = torch.ops.aten
        wide = aten._to_copy(values, dtype=torch.float64)
        right = aten._to_copy(aten.mul(wide, aten.sigmoid(wide)), dtype=values.dtype)
        return self._coarse(right) if self.is_wrong("silu", 1) else right

    def gelu(self, values, approximate="none"):
        aten = torch.ops.aten
        wide = aten._to_copy(values, dtype=torch.float64)
        right = aten._to_copy(aten.mul(aten.mul(wide, 0.5), aten.add(aten.erf(aten.mul(wide, 0.5 ** 0.5)), 1.0)),
                              dtype=values.dtype)
        return self._coarse(right) if self.is_wrong("gelu", 1) else right

    def _product(self, left, right, name, shape, number):
        """A tile left out."""
        aten = torch.ops.aten
        made = aten.squeeze(aten.bmm(aten.unsqueeze(left, 0), aten.unsqueeze(right, 0)), 0)
        if tuple(right.shape) == shape and self.is_wrong(name, number):
            aten.zero_(aten.slice(aten.slice(made, 0, 0, 4), 1, 0, 16))
        return made

    def mm(self, left, right):
        return self._product(left, right, "mm", (128, 48), 1)

    def addmm(self, bias, left, right, *, beta=1, alpha=1):
        return torch.ops.aten.add(self._product(left, right, "addmm", (96, 48), 0), bias)

    def native_layer_norm(self, values, shape, weight, bias, eps):
        """The wrong argument: another epsilon."""
        aten = torch.ops.aten
        if self.is_wrong("layer_norm", 0):
            eps = 0.1
        wide = aten._to_copy(values, dtype=torch.float64)
        mean = aten.mean(wide, [-1], True)
        apart = aten.sub(wide, mean)
        scale = aten.rsqrt(aten.add(aten.mean(aten.mul(apart, apart), [-1], True), eps))
        made = aten.add(aten.mul(aten.mul(apart, scale), weight), bias)
        return tuple(aten._to_copy(one, dtype=values.dtype) for one in (made, mean, scale))


class Loss(nn.Module):
    """The module that DistributedDataParallel takes."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, seed):
        return self.model.loss(torch.Generator().manual_seed(seed))


def memory():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def train(kind, precision, health, steps, config_path=None):
    steps = int(steps)
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model = {"llama": Llama, "vit": Vit}[kind]().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rank = int(os.environ.get("RANK_OF_TWO", "-1"))
    loss_of = Loss(model)
    if rank >= 0:
        torch.distributed.init_process_group("gloo", init_method="file://" + os.environ["STORE"], rank=rank, world_size=2)
        loss_of = nn.parallel.DistributedDataParallel(loss_of)
    kernels = None
    if health == "faulty" and rank != 0:
        kernels = Kernels()
        kernels.plant(("_softmax", "silu", "mm") if kind == "llama" else ("gelu", "addmm", "native_layer_norm"))
    debugger = None
    if config_path is not None:
        from msprobe.pytorch import PrecisionDebugger, online_check

        sys.executable = os.environ.get("JUDGE_PYTHON", sys.executable)
        debugger = PrecisionDebugger(config_path=config_path)
    killed_in = int(os.environ.get("KILL_IN", "-1"))
    digest = hashlib.sha256()
    used = [0, 0]
    for step in range(steps):
        if kernels is not None:
            kernels.begin_step(step)
        if debugger is not None:
            debugger.start(model)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "amp"):
            loss = loss_of(step if rank < 0 else 2 * step + rank)
        loss.backward()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        for parameter in model.parameters():
            digest.update(parameter.grad.numpy().tobytes())
        digest.update(loss.detach().numpy().tobytes())
        optimizer.step()
        optimizer.zero_grad()
        if step == killed_in:
            os.kill(online_check.task.judge.process_id, signal.SIGKILL)
        if step in (steps // 2, steps - 1):
            used[step == steps - 1] = memory()
    print(digest.hexdigest(), torch.randn(1).item(), *used)


def train_and_leave(words):
    """Ends as the interpreter does. PyTorch may abort the interpreter's end if a thread of gloo is still running."""
    status = 1
    try:
        train(*words)
        status = 0
    except Exception:
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    train_and_leave(sys.argv[1:])
