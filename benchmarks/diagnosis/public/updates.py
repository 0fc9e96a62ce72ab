# SPDX-License-Identifier: Apache-2.0
"""Optimizers, schedules, clipping and the types that parameters are kept in: wrong from the second step on."""

import torch
from torch import nn

from catalogue import every_parameter, holder
from planting import Where
from public.bug import WIDTH, WORDS, Bug, reported

_ALL = (every_parameter(),)


@reported("ServiceNow/Fast-LLM#542", "update", *holder("blocks.0.norm1", "layer_norm", step=1))
class DecayedNorms(Bug):
    """Weights and biases of norms decay, though only matrices should."""

    def optimizer(self, model):
        matrices = [p for p in model.parameters() if p.dim() > 1]
        others = [p for p in model.parameters() if p.dim() == 1]
        return torch.optim.AdamW([{"params": matrices}, {"params": others, "weight_decay": 0.1 if self.wrong else 0.0}],
                                 lr=3e-3, weight_decay=0.1)


class WithAdam(Bug):
    def optimizer(self, model):
        return Adam(self, model.parameters())

    def counted(self, count, number, parameters):
        return count

    def write(self, parameter, step):
        parameter.add_(step)


class Adam(torch.optim.Optimizer):
    """Written out here: the bug decides how it counts steps and how it writes an update."""

    def __init__(self, bug, parameters):
        super().__init__(parameters, {"lr": 1e-3})
        self.bug, self.count = bug, 0

    @torch.no_grad()
    def step(self):
        parameters = [p for p in self.param_groups[0]["params"] if p.grad is not None]
        self.count += 1
        for number, parameter in enumerate(parameters):
            state = self.state[parameter]
            first = state.setdefault("first", torch.zeros_like(parameter)).lerp_(parameter.grad, 0.1)
            second = state.setdefault("second", torch.zeros_like(parameter)).lerp_(parameter.grad.square(), 0.001)
            count = self.bug.counted(self.count, number, len(parameters))
            step = first / (1 - 0.9**count) / ((second / (1 - 0.999**count)).sqrt() + 1e-8)
            self.bug.write(parameter, step * -1e-3)


@reported("flashlight/flashlight#143", "update", *_ALL, held_out=True)
class StepCount(WithAdam):
    """Each parameter counts as a step of Adam, whose bias correction fades within the first."""

    def counted(self, count, number, parameters):
        return (count - 1) * parameters + number + 1 if self.wrong else count


@reported("pytorch/pytorch#118115", "update", *holder("head", "linear", step=1))
class StridedUpdate(WithAdam):
    """The kernel of the update writes a transposed parameter in the order of its memory."""

    def build(self):
        model = super().build()
        model.head.weight = nn.Parameter(0.2 * torch.randn(WIDTH, WORDS).t())
        return model

    def write(self, parameter, step):
        if self.wrong and not parameter.is_contiguous():
            parameter, step = parameter.t(), step.contiguous().view(parameter.t().shape)
        parameter.add_(step)


@reported("Lightning-AI/pytorch-lightning#9599", "update", *_ALL)
class ClippedScaled(Bug):
    """Gradients are clipped while they still have the factor of the loss scaler."""

    scale = 1024.0

    def gradients(self, model, batch):
        (self.loss(model, batch) * self.scale).backward()

    def finish(self, model):
        for clips in (self.wrong, not self.wrong):
            if clips:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            else:
                for parameter in model.parameters():
                    parameter.grad.div_(self.scale)

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


@reported("huggingface/accelerate#963", "update", *_ALL)
class ScheduleTooFast(Bug):
    """The schedule of the learning rate steps with every part of a batch."""

    def optimizer(self, model):
        self.rates, self.count = super().optimizer(model), 0
        return self.rates

    def gradients(self, model, batch):
        for tokens, labels in zip(batch["tokens"].split(1), batch["labels"].split(1)):
            (self.loss(model, {"tokens": tokens, "labels": labels}) / 3).backward()
        self.count += 3 if self.wrong else 1
        self.rates.param_groups[0]["lr"] = 1e-4 * self.count


@reported("tenstorrent/tt-blacksmith#711", "backward", Where(None, "*grad*", step=1), Where("head", "*grad*", step=1),
          held_out=True)
class NotZeroed(Bug):
    """Nothing zeroes the gradients of the step before."""

    def optimizer(self, model):
        optimizer = super().optimizer(model)
        if self.wrong:
            optimizer.zero_grad = lambda: None
        return optimizer


@reported("NVIDIA/apex#1728", "update", every_parameter(step=0), *_ALL)
class LostUpdates(Bug):
    """Parameters in bfloat16 without a copy in float32: steps are rounded away."""

    dtype = "bfloat16"
    recorded_steps = (20, 21)

    def optimizer(self, model):
        if self.wrong:
            return torch.optim.AdamW(model.parameters(), lr=2e-4)
        return MasterCopies(model.parameters(), lr=2e-4)


class MasterCopies(torch.optim.AdamW):
    def __init__(self, parameters, lr):
        self.short = list(parameters)
        super().__init__([p.detach().float() for p in self.short], lr=lr)

    def zero_grad(self):
        for parameter in self.short:
            parameter.grad = None

    @torch.no_grad()
    def step(self):
        masters = self.param_groups[0]["params"]
        for parameter, master in zip(self.short, masters):
            master.grad = parameter.grad.float()
        super().step()
        for parameter, master in zip(self.short, masters):
            parameter.copy_(master)
