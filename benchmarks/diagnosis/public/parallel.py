# SPDX-License-Identifier: Apache-2.0
"""Two ranks that share the tokens of a sequence: each has one half."""

import torch
from torch import nn
from torch.nn import functional as F

from catalogue import holder
from planting import Where
from public.bug import WIDTH, Bug, reported


class Halves(Bug):
    ranks = 2

    def build(self):
        return nn.Sequential(nn.Linear(8, WIDTH), nn.LayerNorm(WIDTH), nn.GELU(), nn.Linear(WIDTH, 5))

    def batch(self, generator):
        x, labels = torch.randn(12, 8, generator=generator), torch.randint(5, (12,), generator=generator)
        return {"x": x.chunk(2)[self.rank], "labels": labels.chunk(2)[self.rank]}

    def loss(self, model, batch):
        return F.cross_entropy(model(batch["x"]), batch["labels"], reduction="sum") / 12

    def finish(self, model):
        for parameter in model.parameters():
            if self.summed(model, parameter):
                torch.distributed.all_reduce(parameter.grad)

    def summed(self, model, parameter):
        return True

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.5)


@reported("NVIDIA/Megatron-LM#1446", "update", *holder("1", "layer_norm", step=1))
class NormNotSummed(Halves):
    """Gradients of a norm whose tokens are on several ranks are not summed over them."""

    def summed(self, model, parameter):
        return not self.wrong or all(parameter is not norm for norm in model[1].parameters())


@reported("NVIDIA/Megatron-LM#906", "code", Where("", "__mul__", side="target"), held_out=True)
class ScaledByRanks(Halves):
    """The loss is multiplied by the number of ranks, though gradients are not divided by it."""

    def loss(self, model, batch):
        loss = super().loss(model, batch)
        return loss * self.ranks if self.wrong else loss
