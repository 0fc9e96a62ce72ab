#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: msadapter_scenarios.py SCENARIO FOLDER [JSON]

The same as collector_scenarios.py, for programs of PyTorch that run on MindSpore through MSAdapter, on the CPU.
"""
import msadapter_torch  # noqa: F401

import mindspore as ms
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from collector_run import main


class Documented(nn.Module):
    """The model in the documentation of the Python tool."""

    def __init__(self):
        super().__init__()
        self.linear1 = nn.Linear(in_features=8, out_features=4)
        self.linear2 = nn.Linear(in_features=4, out_features=2)

    def forward(self, x):
        x1 = self.linear1(x)
        x2 = self.linear2(x1)
        logits = F.relu(x2)
        return logits


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = torch.split(self.qkv(x), width, dim=-1)
        q, k, v = [part.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in (q, k, v)]
        score = F.softmax(torch.matmul(q, k.transpose(-2, -1)) / (width // self.heads) ** 0.5, dim=-1)
        return self.proj(torch.matmul(score, v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads, residual):
        super().__init__()
        self.residual = residual
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up = nn.Linear(width, 2 * width)
        self.act = nn.GELU()
        self.drop = nn.Dropout(0.0)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        y = self.attention(self.norm(x))
        x = x + y if self.residual else y
        y = self.drop(self.down(self.act(self.up(x))))
        return x + y if self.residual else y


class Decoder(nn.Module):
    """Nested modules, whole numbers going in."""

    def __init__(self, words=50, width=8, heads=2, residual=False, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList([Layer(width, heads, residual) for _ in range(layers)])
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Scaled(nn.Module):
    def forward(self, x, scale=1.0, shift=None):
        return {"y": x * scale + shift}


class Keywords(nn.Module):
    """Arguments by keyword, a dictionary as a result, lists of tensors."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scaled = Scaled()

    def forward(self, x):
        h = self.layer(x)
        y = self.scaled(x=h, scale=0.5, shift=torch.add(input=h, other=1.0))["y"]
        return torch.cat([y, torch.stack([h[0], y[1]])], dim=0)


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        y = self.first(x) * 1.0
        y = y.mul_(2.0)
        y = y.add_(0.5)
        return self.last(F.relu(y))


class InPlaceUnused(nn.Module):
    """Unused results of operations in place; under the Python tool some of these operations do nothing."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.act = nn.ReLU(inplace=True)
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        y = self.first(x) * 1.0
        y.mul_(2.0)
        y.add_(0.5)
        z = self.first(y)
        F.relu(z, inplace=True)
        w = z * 2.0
        self.act(w)
        w += y
        w[0] = 1.0
        return self.last(w) + self.last(z) + self.last(F.dropout(w, 0.0))


class Residuals(nn.Module):
    """Convolution, buffers that change, views, one tensor in several places."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x))).mean(dim=(2, 3))
        hidden = []
        for layer in self.layers:
            x = torch.tanh(layer(x)) + x
            hidden.append(x)
        a, b = torch.chunk(torch.cat(hidden, -1), 2, dim=-1)
        return torch.stack([a * b, a - b]).sum(0) * torch.max(a, dim=-1)[0].unsqueeze(-1)


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        return F.dropout(self.drop(self.layer(x)), p=0.5, training=False)


def filled(model):
    """The same parameters in every run."""
    numbers = np.random.RandomState(7)
    for parameter in model.parameters():
        parameter.assign_value(ms.Tensor((numbers.randn(*parameter.shape) / 2).astype(np.float32)))
    return model


def floats(*shape, seed=3):
    return torch.tensor(np.random.RandomState(seed).randn(*shape).astype(np.float32))


def documented(debugger):
    """Without gradients of parameters, as the documentation has it."""
    net = filled(Documented())

    def train_step(inputs):
        return net(inputs)

    grad_fn = ms.value_and_grad(train_step, grad_position=0)
    losses = []
    for seed in range(3):
        debugger.start(model=net)
        out, grad = grad_fn(floats(10, 8, seed=seed))
        debugger.stop()
        debugger.step()
        losses += [float(out.asnumpy().sum()), float(np.abs(grad.asnumpy()).sum())]
    return losses


def train(debugger, model, loss_of, inputs, steps=2, start_model=None, gradients_count=True):
    weights = list(model.parameters())
    gradients_of = ms.value_and_grad(lambda x: loss_of(model(x)), None, weights)
    losses = []
    for _ in range(steps):
        debugger.start(start_model) if start_model is not None else debugger.start()
        loss, gradients = gradients_of(inputs)
        debugger.stop()
        debugger.step()
        for weight, gradient in zip(weights, gradients):
            weight.assign_value(ms.Tensor(weight.asnumpy() - 0.01 * gradient.asnumpy()))
        losses.append(float(loss.asnumpy()))
        if gradients_count:
            losses += [float(np.abs(gradient.asnumpy()).sum()) for gradient in gradients]
    return losses


def square(y):
    return (y * y).mean()


def of_model(kind, *shape, given=lambda model: model):
    def run(debugger):
        model = filled(kind())
        return train(debugger, model, square, floats(*shape), start_model=given(model))
    return run


def words(*shape):
    return torch.tensor(np.random.RandomState(5).randint(0, 50, shape))


def decoder(debugger):
    """One step: what the Python tool lets pass falsifies the gradient of the first normalization, and all that follows it."""
    model = filled(Decoder())
    tokens = words(2, 6)
    return train(debugger, model, lambda y: F.cross_entropy(y.reshape(-1, 50), tokens.reshape(-1)), tokens, steps=1,
                 start_model=model, gradients_count=False)


@ms.jit
def scaled(x, weight, shift=0.5):
    return ms.ops.tanh(x) * weight + shift


class Compiled:
    @ms.jit
    def double(self, x):
        return x * 2.0, x.sum()


def compiled(debugger):
    """Functions and a method that jit compiles, among others."""
    x, weight = floats(3, 4), floats(4, seed=5)
    debugger.start()
    scaled(torch.exp(x), weight)
    y = scaled(x, shift=1.0, weight=weight)
    y, total = Compiled().double(y)
    debugger.stop()
    debugger.step()
    return [float(y.asnumpy().sum() + total.asnumpy())]


def without_dropout(debugger):
    from msprobe.mindspore import seed_all
    seed_all(rm_dropout=True)
    return dropping(debugger)


def alone(debugger):
    return train(debugger, filled(Keywords()), square, floats(3, 4))


keywords = of_model(Keywords, 3, 4)
in_place = of_model(InPlace, 3, 4)
dropping = of_model(Dropping, 3, 4)
SCENARIOS = {
    "documented_L0": (documented, {"level": "L0", "step": [0, 1]}),
    "documented_L1": (documented, {"level": "L1", "step": [0, 1]}),
    "documented_mix": (documented, {"level": "mix", "step": [0, 1]}),
    "documented_tensor": (documented, {"level": "mix", "task": "tensor", "tensor": {}}),
    "model_list": (of_model(Keywords, 3, 4, given=lambda model: [model]), {"level": "mix"}),
    "keywords_L0": (keywords, {"level": "L0"}),
    "keywords_mix": (keywords, {"level": "mix"}),
    "keywords_alone": (alone, {"level": "L1"}),
    "in_place_L0": (in_place, {"level": "L0"}),
    "in_place_mix": (in_place, {"level": "mix"}),
    "dropping_mix": (dropping, {"level": "mix"}),
    "without_dropout": (without_dropout, {"level": "L1"}),
    "compiled": (compiled, {"level": "L1"}),
    "compiled_tensor": (compiled, {"level": "L1", "task": "tensor", "tensor": {}}),
    "decoder_L0": (decoder, {"level": "L0"}),
    "decoder_L1": (decoder, {"level": "L1"}),
    "decoder_mix": (decoder, {"level": "mix"}),
    "decoder_list": (decoder, {"level": "mix", "statistics": {"list": ["layers.1.attention"]}}),
    "decoder_forward": (decoder, {"level": "mix", "statistics": {"data_mode": ["forward", "output"]}}),
    "decoder_md5": (decoder, {"level": "mix", "statistics": {"summary_mode": "md5"}}),
    "decoder_tensor": (decoder, {"level": "mix", "task": "tensor", "tensor": {}}),
    "decoder_structure": (decoder, {"level": "mix", "task": "structure", "structure": {}}),
}


def _debugger_type():
    from msprobe.mindspore import PrecisionDebugger
    return PrecisionDebugger


def run():
    main(SCENARIOS, _debugger_type)


if __name__ == "__main__":
    run()
