# SPDX-License-Identifier: Apache-2.0
"""Norms, experts, a kernel, and parameters that are not what they should be."""

import torch
from torch import nn
from torch.nn import functional as F

from catalogue import holder
from planting import Where
from public.bug import WIDTH, Bug, padded_left, reported

_NORM = "blocks.0.norm1"


@reported("huggingface/transformers#29402", "precision", Where(_NORM, "__mul__", 1), Where(_NORM, "to"))
class NormInHalf(Bug):
    """The norm rounds before it multiplies by its weight."""

    dtype = "bfloat16"

    def norm(self):
        return RootNorm(self)

    def weighted(self, wide, weight, dtype):
        return wide.to(dtype) * weight if self.wrong else (wide * weight.float()).to(dtype)


@reported("linkedin/Liger-Kernel#74", "code", Where(_NORM, "__radd__", side="golden"), Where(_NORM, "__mul__", 1),
          held_out=True)
class NormOffset(Bug):
    """Weights that were trained as distances from one are taken for the factors themselves."""

    def norm(self):
        return RootNorm(self)

    def weighted(self, wide, weight, dtype):
        return wide * weight if self.wrong else wide * (1.0 + weight)


class RootNorm(nn.Module):
    def __init__(self, bug):
        super().__init__()
        self.bug = bug
        self.weight = nn.Parameter(0.5 + 0.1 * torch.randn(WIDTH))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.bug.weighted(wide, self.weight, x.dtype)


class Experts(nn.Module):
    def __init__(self, bug):
        super().__init__()
        self.bug = bug
        self.router = nn.Linear(WIDTH, 4, bias=False)
        self.experts = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(4)])

    def forward(self, x):
        self.chances = F.softmax(self.router(x), dim=-1)
        gates, chosen = torch.topk(self.chances, 2, dim=-1)
        gates = torch.zeros_like(self.chances).scatter(-1, chosen, self.bug.gated(gates))
        return sum(gate * expert(x) for gate, expert in zip(gates.split(1, dim=-1), self.experts))


@reported("pytorch/torchtitan#1448", "code", Where("blocks.0.feed", "sum", side="golden"),
          Where("blocks.0.feed", "__truediv__", side="golden"), Where("blocks.0.feed", "scatter"))
class GateSum(Bug):
    """The gates of the chosen experts are not divided by their sum."""

    def feed(self):
        return Experts(self)

    def gated(self, gates):
        return gates if self.wrong else gates / gates.sum(-1, keepdim=True)


@reported("huggingface/transformers#28505", "code", Where("", "__mul__", 0, side="golden"),
          Where("", "sum", 0, side="golden"), Where("", "mean"))
class BalanceOfPadding(Bug):
    """The loss that balances experts counts padding."""

    def batch(self, generator):
        return padded_left(super().batch(generator))

    def feed(self):
        return Experts(self)

    def gated(self, gates):
        return gates

    def loss(self, model, batch):
        loss = super().loss(model, batch)
        present = (batch["tokens"] != 0)[..., None].float()
        for block in model.blocks:
            chances = block.feed.chances
            if self.wrong:
                share = chances.mean((0, 1))
            else:
                share = (chances * present).sum((0, 1)) / present.sum()
            loss = loss + share.square().sum()
        return loss


@reported("huggingface/transformers#43429", "parameter", *holder("head", "linear"))
class NotTied(Bug):
    """Embedding and head are not tied: the head keeps what it was initialised with."""

    def build(self):
        model = super().build()
        if not self.wrong:
            model.head.weight = model.tokens.weight
        return model


@reported("huggingface/transformers#47478", "parameter",
          *holder("blocks.0.attention.out", "linear") + holder("blocks.0.feed.2", "linear"), held_out=True)
class InitialScale(Bug):
    """Projections into the residual are not scaled at the start: their full names do not match."""

    def build(self):
        model = super().build()
        for name, parameter in model.named_parameters():
            wanted = ("out.weight", "feed.2.weight")
            if name in wanted if self.wrong else name.endswith(wanted):
                parameter.data.div_(2)
        return model


@reported("pgniewko/gt-pyg#112", "argument", Where("1", "batch_norm"))
class FrozenNorm(Bug):
    """A frozen batch norm goes on with the batch's statistics after the next train()."""

    def build(self):
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5))

    def batch(self, generator):
        return {"images": torch.randn(4, 3, 8, 8, generator=generator), "labels": torch.arange(4)}

    def loss(self, model, batch):
        model[1].eval()
        if self.wrong:
            model.train()
        return F.cross_entropy(model(batch["images"]), batch["labels"])


@reported("pytorch/pytorch#192212", "kernel", Where("0", "conv2d", 0), held_out=True)
class StridedConvolution(Bug):
    """The kernel reads a weight that is a slice of another as if it were contiguous."""

    def build(self):
        if self.wrong:
            F.conv2d = _in_order_of_memory(F.conv2d)
        return nn.Sequential(Slices(), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 36, 5))

    def batch(self, generator):
        return {"clips": torch.randn(4, 3, 3, 8, 8, generator=generator), "labels": torch.arange(4)}

    def loss(self, model, batch):
        return F.cross_entropy(model(batch["clips"]), batch["labels"])


class Slices(nn.Module):
    """A convolution in three dimensions as one of two for each image."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(0.2 * torch.randn(6, 3, 3, 3, 3))

    def forward(self, clips):
        return sum(F.conv2d(clips[:, :, at].contiguous(), self.weight[:, :, at]) for at in range(3))


def _in_order_of_memory(function):
    def conv2d(images, weight):
        strides = torch.empty(weight.shape, device="meta").stride()
        return function(images, weight.as_strided(weight.shape, strides))
    return conv2d
