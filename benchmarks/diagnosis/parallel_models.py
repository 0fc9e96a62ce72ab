# SPDX-License-Identifier: Apache-2.0
"""Two ranks: data parallel by PyTorch's DistributedDataParallel, tensor parallel by hand; the fault is on one rank."""

import torch
from torch import nn
from torch.nn import functional as F

from catalogue import holder
from models import Bench
from planting import Fault, Where, changed_parameter, elements, kernel, noisy, setting, tile


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.inlet = nn.Linear(20, 48)
        self.norm = nn.LayerNorm(48)
        self.middle = nn.Linear(48, 64)
        self.act = nn.GELU()
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.act(self.middle(self.norm(self.inlet(x)))))


class DataParallel(Bench):
    name = "data_parallel"
    ranks = 2
    seeds = (11,)
    kernels = ("avx512", "plain", "avx2")

    def build(self):
        return Tower()

    def distribute(self, model):
        return nn.parallel.DistributedDataParallel(model)

    def batch(self, generator):
        for _ in range(self.rank + 1):
            batch = {"features": torch.randn(8, 20, generator=generator),
                     "labels": torch.randint(0, 10, (8,), generator=generator)}
        return batch

    def loss(self, model, batch):
        return F.cross_entropy(model(batch["features"]), batch["labels"])

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


class _Copied(torch.autograd.Function):
    """The same on all ranks; gradients are summed."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        torch.distributed.all_reduce(gradient)
        return gradient


class _Summed(torch.autograd.Function):
    """The sum over all ranks; gradients are the same."""

    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        torch.distributed.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class ColumnLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)

    def forward(self, x):
        return F.linear(_Copied.apply(x), self.weight)


class RowLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return _Summed.apply(F.linear(x, self.weight)) + self.bias


class ParallelBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = ColumnLinear(width, 3 * width)
        self.down = RowLinear(3 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class ParallelModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.inlet = nn.Linear(20, 32)
        self.blocks = nn.ModuleList([ParallelBlock(32), ParallelBlock(32)])
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.inlet(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class TensorParallel(Bench):
    name = "tensor_parallel"
    ranks = 2
    seeds = (11,)
    kernels = ("avx512", "plain", "avx2")

    def build(self):
        return ParallelModel()

    def distribute(self, model):
        for block in model.blocks:
            block.up.weight = nn.Parameter(block.up.weight.data.chunk(2, 0)[self.rank].clone())
            block.down.weight = nn.Parameter(block.down.weight.data.chunk(2, 1)[self.rank].clone())
        return model

    def batch(self, generator):
        return {"features": torch.randn(8, 20, generator=generator),
                "labels": torch.randint(0, 10, (8,), generator=generator)}

    def loss(self, model, batch):
        return F.cross_entropy(model(batch["features"]), batch["labels"])

    def optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=1e-3)


PARALLEL_BENCHES = {bench.name: bench for bench in (DataParallel, TensorParallel)}

PARALLEL_FAULTS = [
    Fault("data_parallel", "linear_tile", "kernel", "1e-1",
          kernel(F, "linear", "module.middle", tile(2, 16, 0.5)), (Where("module.middle", "linear"),), rank=1),
    Fault("data_parallel", "norm_eps", "argument", "1e-1", setting("module.norm", "eps", 0.1),
          (Where("module.norm", "layer_norm"),), rank=1),
    Fault("tensor_parallel", "linear_elements", "kernel", "1e-2",
          kernel(F, "linear", "blocks.0.down", elements(3, 1.2)), (Where("blocks.0.down", "linear"),), rank=1),
    Fault("tensor_parallel", "stale_shard", "parameter", "5e-2",
          changed_parameter("blocks.1.up", "weight", noisy(0.05)), holder("blocks.1.up", "linear"), rank=1),
    Fault("tensor_parallel", "late_tile", "kernel", "1e-1",
          kernel(F, "gelu", "blocks.0", tile(4, 12, 0.0), from_step=1), (Where("blocks.0", "gelu", step=1),), rank=0),
]
