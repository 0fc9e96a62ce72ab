# SPDX-License-Identifier: Apache-2.0
"""Two tiny models for the frozen set of the test suite."""

import torch
from torch import nn
from torch.nn import functional as F

from catalogue import backward, holder
from models import Bench
from planting import (Fault, Where, changed_batch, changed_parameter, elements, exchanged, kernel, kernel_backward,
                      not_updated, optimizer_setting, rounded_to, scaled, setting, tile)


class TinyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.inlet = nn.Linear(10, 12)
        self.norm = nn.LayerNorm(12)
        self.up = nn.Linear(12, 20)
        self.act = nn.GELU()
        self.down = nn.Linear(20, 12, bias=False)
        self.head = nn.Linear(12, 6)

    def forward(self, x):
        x = self.inlet(x)
        x = x + self.down(self.act(self.up(self.norm(x))))
        weights = F.softmax(torch.matmul(x, x.transpose(-2, -1)) * 0.25, dim=-1)
        return self.head(torch.matmul(weights, x))


class Tiny(Bench):
    name = "tiny"
    seeds = (21,)
    kernels = ("avx512", "plain", "avx2")
    type = torch.float32

    def build(self):
        return TinyModel().to(self.type)

    def batch(self, generator):
        return {"x": torch.randn(2, 5, 10, generator=generator).to(self.type),
                "labels": torch.randint(0, 6, (10,), generator=generator)}

    def loss(self, model, batch):
        return F.cross_entropy(model(batch["x"]).float().flatten(0, 1), batch["labels"])

    def optimizer(self, model):
        return torch.optim.Adam(model.parameters(), lr=1e-3)


class TinyHalf(Tiny):
    name = "tiny_half"
    dtype = "bfloat16"
    type = torch.bfloat16

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.1)


def _brighter(batch):
    batch["x"][1].mul_(1.05)


TINY_BENCHES = {bench.name: bench for bench in (Tiny, TinyHalf)}

TINY_FAULTS = [
    Fault("tiny", "silu_for_gelu", "code", "1e-1", exchanged("act", lambda old: nn.SiLU()),
          (Where("act", "gelu"), Where("act", "silu"))),
    Fault("tiny", "norm_eps", "argument", "1e-2", setting("norm", "eps", 1e-2), (Where("norm", "layer_norm"),)),
    Fault("tiny", "stale_weight", "parameter", "5e-1",
          changed_parameter("down", "weight", lambda data: data.flip(1)), holder("down", "linear")),
    Fault("tiny", "matmul_tile", "kernel", "5e-2", kernel(torch, "matmul", "", tile(2, 8, 0.9), nth=1),
          (Where("", "matmul", 1),)),
    Fault("tiny", "up_not_updated", "update", "1e-2", not_updated("up", "weight"), holder("up", "linear", step=1)),
    Fault("tiny", "head_in_half", "precision", "2e-3", kernel(F, "linear", "head", rounded_to(torch.bfloat16)),
          (Where("head", "linear"),)),
    Fault("tiny_half", "softmax_elements", "kernel", "1e-1", kernel(F, "softmax", "", elements(3, 1.5)),
          (Where("", "softmax"),)),
    Fault("tiny_half", "gelu_backward", "backward", "2e-1", kernel_backward(F, "gelu", "act", scaled(0.8)),
          (backward("act", "gelu"),)),
    Fault("tiny_half", "brighter", "input", "5e-2", changed_batch(_brighter),
          (Where("inlet", "linear", around=True),)),
    Fault("tiny_half", "rate", "update", "1e-1", optimizer_setting("lr", 0.2), (Where(None, "*parameters*", step=1),)),
]

# Pairs that are kept with their tensors; of the others there are statistics only.
WITH_TENSORS = ("tiny-stale_weight", "tiny-matmul_tile", "tiny-benign-21-plain-avx512", "tiny_half-softmax_elements")
