# SPDX-License-Identifier: Apache-2.0
"""The small models of the diagnosis benchmark: what is trained, on which batches, by which optimizer.

Each differs from the others in what makes two runs hard to compare: the types it computes in, norms with and
without statistics of the batch, attention by hand and fused, recurrence, routing, gradients that cancel, optimizers
that divide. What a fault may change of a module is an attribute of it: the models know nothing of faults.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


class Bench:
    """One model with its task. `kernels`: the noise that it is recorded under, golden, target and third run taking
    turns; `held_out`: kept out while the tool is tuned."""

    name = ""
    set_name = "planted"
    dtype = "float32"
    held_out = False
    risk_level = "FOCUS"
    records_optimizer = False
    seeds = (11, 12, 13)
    recorded_steps = (0, 1)
    ranks = 1
    rank = 0
    device = "cpu"
    kernels = ("avx512", "plain", "avx2")

    def build(self):
        raise NotImplementedError

    def distribute(self, model):
        """The model that one of several ranks trains."""
        return model

    def batch(self, generator):
        raise NotImplementedError

    def loss(self, model, batch):
        raise NotImplementedError

    def gradients(self, model, batch):
        self.loss(model, batch).backward()

    def optimizer(self, model):
        raise NotImplementedError

    def finish(self, model):
        """Between backward and update."""


# ---------------------------------------------------------------------- decoder: float32, attention by hand, AdamW


class HandAttention(nn.Module):
    def __init__(self, width, heads, masked_value):
        super().__init__()
        self.heads = heads
        self.scale = 1.0 / math.sqrt(width // heads)
        self.masked_value = masked_value
        self.dim = -1
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(0.1)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x, mask):
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(query, key.transpose(-2, -1)) * self.scale
        scores = scores.masked_fill(mask, self.masked_value)
        weights = self.drop(F.softmax(scores, dim=self.dim))
        mixed = torch.matmul(weights, value)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class DecoderBlock(nn.Module):
    def __init__(self, width, heads, masked_value):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = HandAttention(width, heads, masked_value)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.down = nn.Linear(4 * width, width)
        self.residual_scale = None

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        inner = self.down(self.act(self.up(self.norm2(x))))
        if self.residual_scale is not None:
            return torch.add(x, inner, alpha=self.residual_scale)
        return x + inner


class DecoderModel(nn.Module):
    def __init__(self):
        super().__init__()
        width = 48
        self.tokens = nn.Embedding(64, width)
        self.places = nn.Embedding(16, width)
        self.blocks = nn.ModuleList([DecoderBlock(width, 4, -1e9), DecoderBlock(width, 4, float("-inf"))])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 64, bias=False)
        self.shift = 1

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.tokens(tokens) + self.places(torch.arange(length))
        mask = torch.ones(length, length, dtype=torch.bool).triu(self.shift)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


class Decoder(Bench):
    name = "decoder"
    smoothing = 0.0

    def build(self):
        return DecoderModel()

    def batch(self, generator):
        tokens = torch.randint(0, 64, (4, 13), generator=generator)
        return {"tokens": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous()}

    def loss(self, model, batch):
        logits = model(batch["tokens"])
        return F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), label_smoothing=self.smoothing)

    def optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=1e-3)


# ---------------------------------------------------------------------- gated: pure bfloat16, fused attention, rotary


class HandRMSNorm(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


class Rotary(nn.Module):
    def __init__(self, width, base=10000.0):
        super().__init__()
        self.width = width
        self.base = base
        self.offset = 0

    def forward(self, x):
        half = self.width // 2
        steps = torch.arange(x.shape[-2], dtype=torch.float32) + self.offset
        angles = torch.outer(steps, self.base ** (-torch.arange(half, dtype=torch.float32) / half))
        angles = torch.cat([angles, angles], -1)
        turned = torch.cat([-x[..., half:], x[..., :half]], -1)
        return x * angles.cos().to(x.dtype) + turned * angles.sin().to(x.dtype)


class FusedAttention(nn.Module):
    def __init__(self, width, heads, groups):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, self.size * groups, bias=False)
        self.value = nn.Linear(width, self.size * groups, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.rotary = Rotary(self.size)
        self.causal = True
        self.scale = None

    def forward(self, x):
        batch, length, _ = x.shape
        query = self.query(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        key = self.key(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        value = self.value(x).view(batch, length, self.groups, self.size).transpose(1, 2)
        query, key = self.rotary(query), self.rotary(key)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal, scale=self.scale,
                                               enable_gqa=True)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class GatedUnit(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def activation(self, x):
        return F.silu(x)

    def forward(self, x):
        return self.down(self.activation(self.gate(x)) * self.up(x))


class GatedBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1 = HandRMSNorm(width)
        self.attention = FusedAttention(width, 4, 2)
        self.norm2 = HandRMSNorm(width)
        self.feed = GatedUnit(width, 3 * width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class GatedModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(80, 64)
        self.blocks = nn.ModuleList([GatedBlock(64), GatedBlock(64)])
        self.norm = HandRMSNorm(64)
        self.head = nn.Linear(64, 80, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Gated(Bench):
    name = "gated"
    dtype = "bfloat16"
    kernels = ("avx512", "plain", "avx2", "math_attention")

    def build(self):
        return GatedModel().to(torch.bfloat16)

    def batch(self, generator):
        tokens = torch.randint(0, 80, (3, 17), generator=generator)
        return {"tokens": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous()}

    def loss(self, model, batch):
        logits = model(batch["tokens"]).float()
        return F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)


# ---------------------------------------------------------------------- convolutions: batch norm, biases that cancel


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(channels)
        self.act = nn.ReLU()

    def forward(self, x):
        inner = self.act(self.norm1(self.conv1(x)))
        return self.act(x + self.norm2(self.conv2(inner)))


class ConvolutionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 5, padding=2)
        self.norm = nn.BatchNorm2d(12)
        self.act = nn.ReLU()
        self.block1 = Residual(12)
        self.pool = nn.MaxPool2d(2)
        self.widen = nn.Conv2d(12, 20, 1)
        self.block2 = Residual(20)
        self.head = nn.Linear(20, 10)

    def forward(self, images):
        x = self.act(self.norm(self.stem(images)))
        x = self.widen(self.pool(self.block1(x)))
        x = self.block2(x)
        return self.head(x.mean((2, 3)))


class Convolution(Bench):
    name = "convolution"
    risk_level = "ALL"
    records_optimizer = True
    kernels = ("avx512", "plain", "native", "channels_last", "two_threads")

    def build(self):
        return ConvolutionModel()

    def batch(self, generator):
        return {"images": torch.randn(6, 3, 16, 16, generator=generator),
                "labels": torch.randint(0, 10, (6,), generator=generator)}

    def loss(self, model, batch):
        return F.cross_entropy(model(batch["images"]), batch["labels"])

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)


# ---------------------------------------------------------------------- mixture: autocast, routed experts


class Expert(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x):
        return self.down(F.relu(self.up(x)).square())


class Routed(nn.Module):
    def __init__(self, width, experts, chosen):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList([Expert(width, 2 * width) for _ in range(experts)])
        self.chosen = chosen
        self.renormalise = True
        self.temperature = 1.0
        self.balance = None

    def forward(self, x):
        flat = x.flatten(0, 1)
        chances = F.softmax(self.router(flat).float() / self.temperature, dim=-1)
        gates, picked = torch.topk(chances, self.chosen, dim=-1)
        if self.renormalise:
            gates = gates / gates.sum(-1, keepdim=True)
        result = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            rows, column = torch.where(picked == number)
            if not len(rows):
                continue
            out = expert(flat.index_select(0, rows)) * gates[rows, column].unsqueeze(-1)
            result = result.index_add(0, rows, out.to(result.dtype))
        self.balance = chances.mean(0).square().sum()
        return result.view(x.shape)


class MixtureBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.routed = Routed(width, 4, 2)
        self.heads = 4

    def forward(self, x, bias):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], attn_mask=bias.to(parts.dtype))
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.routed(self.norm2(x))


class MixtureModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.inlet = nn.Linear(24, 48)
        self.blocks = nn.ModuleList([MixtureBlock(48), MixtureBlock(48)])
        self.norm = nn.LayerNorm(48)
        self.head = nn.Linear(48, 12)
        self.slope = 0.25

    def forward(self, signal):
        places = torch.arange(signal.shape[1], dtype=torch.float32)
        bias = -self.slope * (places[:, None] - places[None, :]).abs()
        x = self.inlet(signal)
        for block in self.blocks:
            x = block(x, bias)
        return self.head(self.norm(x).mean(1))


class Mixture(Bench):
    name = "mixture"
    dtype = "autocast"
    kernels = ("avx512", "plain", "avx2", "math_attention")

    def build(self):
        return MixtureModel()

    def batch(self, generator):
        return {"signal": torch.randn(4, 10, 24, generator=generator),
                "labels": torch.randint(0, 12, (4,), generator=generator)}

    def loss(self, model, batch):
        with torch.autocast(self.device, torch.bfloat16):
            logits = model(batch["signal"])
        loss = F.cross_entropy(logits.float(), batch["labels"])
        return loss + 0.01 * sum(block.routed.balance for block in model.blocks)

    def optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)


# ---------------------------------------------------------------------- recurrent: by hand and fused, Adam, clipping


class HandCell(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.inner = nn.Linear(inputs, 3 * width)
        self.state = nn.Linear(width, 3 * width)

    def forward(self, x, state):
        reset_x, update_x, new_x = self.inner(x).chunk(3, -1)
        reset_h, update_h, new_h = self.state(state).chunk(3, -1)
        reset = torch.sigmoid(reset_x + reset_h)
        update = torch.sigmoid(update_x + update_h)
        new = torch.tanh(new_x + reset * new_h)
        return (1 - update) * new + update * state


class RecurrentModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(40, 20)
        self.cell = HandCell(20, 24)
        self.lstm = nn.LSTM(24, 28, num_layers=2, batch_first=True)
        self.norm = nn.LayerNorm(28)
        self.head = nn.Linear(28, 40)
        self.reverse = False

    def forward(self, tokens):
        x = self.tokens(tokens)
        state = torch.zeros(x.shape[0], 24)
        states = []
        for at in range(x.shape[1]):
            state = self.cell(x[:, at], state)
            states.append(state)
        out, _ = self.lstm(torch.stack(states, 1))
        return F.log_softmax(self.head(self.norm(out)), dim=-1)


class Recurrent(Bench):
    name = "recurrent"
    held_out = True
    records_optimizer = True
    kernels = ("avx512", "plain", "avx2")
    clip = 0.25

    def build(self):
        return RecurrentModel()

    def batch(self, generator):
        tokens = torch.randint(0, 40, (5, 6), generator=generator)
        return {"tokens": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous()}

    def loss(self, model, batch):
        return F.nll_loss(model(batch["tokens"]).flatten(0, 1), batch["labels"].flatten())

    def optimizer(self, model):
        return torch.optim.Adam(model.parameters(), lr=2e-3)

    def finish(self, model):
        torch.nn.utils.clip_grad_norm_(model.parameters(), self.clip)


# ---------------------------------------------------------------------- denoiser: autocast, group norm


class TimedBlock(nn.Module):
    def __init__(self, inputs, outputs, times):
        super().__init__()
        self.norm1 = nn.GroupNorm(4, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(times, outputs)
        self.norm2 = nn.GroupNorm(4, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.act = nn.SiLU()
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        inner = self.conv1(self.act(self.norm1(x)))
        inner = inner + self.time(self.act(time))[:, :, None, None]
        return self.skip(x) + self.conv2(self.act(self.norm2(inner)))


class DenoiserModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.time1 = nn.Linear(16, 32)
        self.time2 = nn.Linear(32, 32)
        self.inlet = nn.Conv2d(3, 8, 3, padding=1)
        self.down = TimedBlock(8, 16, 32)
        self.halve = nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.middle = TimedBlock(16, 16, 32)
        self.up = TimedBlock(32, 8, 32)
        self.outlet = nn.Conv2d(8, 3, 3, padding=1)
        self.mode = "nearest"
        self.period = 1000.0

    def forward(self, images, times):
        rates = torch.exp(-math.log(self.period) * torch.arange(8) / 8)
        angles = times[:, None] * rates[None, :]
        time = self.time2(F.silu(self.time1(torch.cat([angles.sin(), angles.cos()], -1))))
        fine = self.down(self.inlet(images), time)
        x = self.halve(fine)
        flat = self.norm(x).flatten(2).transpose(1, 2)
        mixed, _ = self.attention(flat, flat, flat, need_weights=False)
        x = self.middle(x + mixed.transpose(1, 2).reshape(x.shape), time)
        x = F.interpolate(x, scale_factor=2, mode=self.mode)
        return self.outlet(F.silu(self.up(torch.cat([x, fine], 1), time)))


class Denoiser(Bench):
    name = "denoiser"
    dtype = "autocast"
    held_out = True
    risk_level = "ALL"
    kernels = ("avx512", "plain", "channels_last", "native")

    def build(self):
        return DenoiserModel()

    def batch(self, generator):
        return {"images": torch.randn(3, 3, 12, 12, generator=generator),
                "times": torch.rand(3, generator=generator) * 50,
                "noise": torch.randn(3, 3, 12, 12, generator=generator)}

    def loss(self, model, batch):
        with torch.autocast(self.device, torch.bfloat16):
            guess = model(batch["images"] + 0.5 * batch["noise"], batch["times"])
        return F.mse_loss(guess.float(), batch["noise"])

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.5)


BENCHES = {bench.name: bench for bench in (Decoder, Gated, Convolution, Mixture, Recurrent, Denoiser)}
