#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: collector_scenarios.py SCENARIO FOLDER [JSON]

Trains something small under the msprobe that Python finds, so that the trees of two implementations can be laid side by
side. JSON: members that replace those of the scenario's configuration.
"""
import torch
import torch.nn.functional as F
from torch import nn

from collector_run import main


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.l1 = nn.Linear(width, width)
        self.act = nn.ReLU()

    def forward(self, x):
        return x + self.act(self.l1(x))


class Blocks(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.b1 = Block(width)
        self.b2 = Block(width)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        return self.out(self.b2(self.b1(x)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        score = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, dim=-1)
        return self.proj((score @ v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.act = nn.GELU()
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Decoder(nn.Module):
    """Tokens to logits; `layers` blocks of attention and feed-forward."""

    def __init__(self, vocabulary=50, width=16, heads=2, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Pictures(nn.Module):
    """Convolutions, batch norm, an in-place activation, pooling, dropout."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.act = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(4, 4, 3)
        self.drop = nn.Dropout(0.0)
        self.fc = nn.Linear(4 * 3 * 3, 5)

    def forward(self, x):
        x = F.max_pool2d(self.act(self.bn(self.conv1(x))), 2)
        x = F.leaky_relu(self.conv2(x), 0.1)
        return self.fc(self.drop(torch.flatten(x, 1)))


class Shared(nn.Module):
    """One layer called twice, keyword arguments, dicts and tuples going in and out."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.inner = Structured()

    def forward(self, x):
        y = self.layer(torch.tanh(self.layer(x)))
        result = self.inner(x=y, scale=0.5, options={"shift": torch.ones(4), "flags": (True, None, "text")})
        return result["sum"] + result["parts"][0]


class Structured(nn.Module):
    def forward(self, x, scale=1.0, options=None):
        shifted = x * scale + options["shift"]
        return {"sum": shifted.sum(dim=-1, keepdim=True), "parts": (shifted, [shifted.exp(), 3])}


def tokens():
    torch.manual_seed(5)
    return torch.randint(0, 50, (2, 6))


def train(debugger, model, inputs, loss_of, steps=2, start_model=None, micro=1):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        debugger.start(start_model) if start_model is not None else debugger.start()
        optimizer.zero_grad()
        for _ in range(micro):
            loss = loss_of(model(inputs))
            loss.backward()
        optimizer.step()
        debugger.stop()
        debugger.step()
        losses.append(loss.item())
    return losses


def blocks(debugger):
    torch.manual_seed(1)
    model = Blocks()
    return train(debugger, model, torch.randn(3, 4), lambda y: y.sum(), start_model=model)


def blocks_micro(debugger):
    torch.manual_seed(1)
    model = Blocks()
    return train(debugger, model, torch.randn(3, 4), lambda y: (y * y).mean(), start_model=model, micro=3)


def model_list(debugger):
    torch.manual_seed(1)
    model = Blocks()
    return train(debugger, model, torch.randn(3, 4), lambda y: y.sum(), start_model=[model])


def decoder(debugger):
    torch.manual_seed(2)
    model = Decoder()
    data = tokens()
    return train(debugger, model, data, lambda y: F.cross_entropy(y.flatten(0, 1), data.flatten()), start_model=model)


def pictures(debugger):
    torch.manual_seed(3)
    model = Pictures()
    target = torch.tensor([1, 3])
    return train(debugger, model, torch.randn(2, 3, 10, 10), lambda y: F.cross_entropy(y, target), start_model=model)


def shared(debugger):
    torch.manual_seed(4)
    model = Shared()
    return train(debugger, model, torch.randn(2, 4), lambda y: y.mean(), start_model=model)


def half(debugger):
    torch.manual_seed(6)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)).to(torch.bfloat16)
    inputs = torch.randn(4, 8).to(torch.bfloat16)
    return train(debugger, model, inputs, lambda y: y.float().pow(2).mean(), start_model=model)


def arguments(debugger):
    """One of each kind of argument and of element type."""
    torch.manual_seed(7)
    debugger.start(nn.Sequential(nn.Linear(2, 2)))
    base = torch.randn(4, 6)
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32,
                  torch.int64, torch.bool, torch.complex64):
        torch.add(base.mul(3).to(dtype) if dtype != torch.bool else base > 0, 1 if dtype != torch.bool else True)
    torch.sum(base, dim=(0, 1), keepdim=True, dtype=torch.float64)
    torch.add(base.t(), base.t(), alpha=2.5)
    torch.mul(base[:, ::2], base[0, 0])
    torch.add(base[:1].expand(3, 6), float("inf"))
    torch.sub(base, float("nan"))
    torch.abs(torch.empty(0, 3))
    torch.cat([base, base.neg()], dim=0)
    torch.relu(torch.tensor([float("nan"), 1.0]))
    torch.relu(torch.tensor([float("inf"), -1.0]))
    torch.full((2, 3), 7, dtype=torch.int32, device="cpu")
    base[1:3] = 5.0
    F.interpolate(base.view(1, 1, 4, 6), scale_factor=2.0, mode="nearest")
    F.pad(base, (1, 1), value=0.25)
    torch.max(base, dim=1)
    torch.split(base, [2, 2])
    debugger.stop()
    debugger.step()
    return []


def saved(debugger):
    """Level debug: single values and their gradients."""
    torch.manual_seed(8)
    losses = []
    for _ in range(2):
        x = torch.randn(3, 4, requires_grad=True)
        y = x * 2
        debugger.save(x, "x")
        debugger.save({"y": y, "list": [y + 1, 3, "text", 2.5]}, "nest")
        debugger.save(y.detach(), "plain", save_backward=False)
        debugger.save(y, "x")
        loss = (y * y).sum()
        loss.backward()
        debugger.step()
        losses.append(loss.item())
    return losses


SCENARIOS = {
    "blocks_L1": (blocks, {"level": "L1"}),
    "blocks_L0": (blocks, {"level": "L0"}),
    "blocks_mix": (blocks, {"level": "mix"}),
    "blocks_micro": (blocks_micro, {"level": "mix"}),
    "model_list": (model_list, {"level": "mix"}),
    "decoder_L1": (decoder, {"level": "L1"}),
    "decoder_L0": (decoder, {"level": "L0"}),
    "decoder_mix": (decoder, {"level": "mix", "risk_level": "ALL"}),
    "decoder_core": (decoder, {"level": "L1", "risk_level": "CORE"}),
    "decoder_list": (decoder, {"level": "mix", "statistics": {"list": ["layers.1.attention"]}}),
    "decoder_scope": (decoder, {"level": "L1", "statistics": {
        "scope": ["Functional.layer_norm.1.forward", "Functional.gelu.1.forward"]}}),
    "decoder_forward": (decoder, {"level": "mix", "statistics": {"data_mode": ["forward", "output"]}}),
    "decoder_output": (decoder, {"level": "mix", "statistics": {"data_mode": ["output"]}}),
    "decoder_md5": (decoder, {"level": "mix", "risk_level": "ALL", "statistics": {"summary_mode": "md5"}}),
    "decoder_xor": (decoder, {"level": "mix", "risk_level": "ALL", "statistics": {"summary_mode": "xor"}}),
    "decoder_tensor": (decoder, {"level": "mix", "task": "tensor", "tensor": {}}),
    "decoder_tensor_list": (decoder, {"level": "L1", "statistics": {"tensor_list": ["layer_norm"]}}),
    "decoder_structure": (decoder, {"level": "mix", "task": "structure", "structure": {}}),
    "decoder_steps": (decoder, {"level": "L1", "step": [1]}),
    "pictures_mix": (pictures, {"level": "mix", "risk_level": "ALL", "statistics": {"summary_mode": "md5"}}),
    "shared_mix": (shared, {"level": "mix", "risk_level": "ALL"}),
    "half_mix": (half, {"level": "mix", "risk_level": "ALL"}),
    "arguments_statistics": (arguments, {"level": "L1", "risk_level": "ALL"}),
    "pictures_L1": (pictures, {"level": "L1", "risk_level": "ALL"}),
    "arguments_md5": (arguments, {"level": "L1", "risk_level": "ALL", "statistics": {"summary_mode": "md5"}}),
    "arguments_tensor": (arguments, {"level": "L1", "risk_level": "ALL", "task": "tensor", "tensor": {}}),
    "saved": (saved, {"level": "debug"}),
    "saved_tensor": (saved, {"level": "debug", "task": "tensor", "tensor": {}}),
}


def _debugger_type():
    from msprobe.pytorch import PrecisionDebugger
    return PrecisionDebugger


def run():
    torch.set_num_threads(1)
    main(SCENARIOS, _debugger_type)


if __name__ == "__main__":
    run()
