# SPDX-License-Identifier: Apache-2.0
"""Models of sequences: a state space, an encoder with a decoder, routed experts in parts; with their faults."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from catalogue import backward, every_parameter, holder, one_element
from models import Bench
from planting import (Fault, Where, bench_setting, bits_lost, changed_batch, changed_parameter, elements, kernel,
                      kernel_backward, kernel_gradient, last_rows_lost, method, noisy, not_updated, optimizer_setting,
                      rounded_to, scaled, setting, tile, together, update_spoiled)

SEQUENCE_FAULTS = []


def add(bench, name, kind, size, plant, *expect):
    SEQUENCE_FAULTS.append(Fault(bench, name, kind, size, plant, expect))


# ---------------------------------------------------------------------- statespace: bfloat16, a scan by hand


class ScanBlock(nn.Module):
    def __init__(self, width, inner, states):
        super().__init__()
        self.inner, self.states = inner, states
        self.norm = nn.RMSNorm(width, eps=1e-5)
        self.enter = nn.Linear(width, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, 4, groups=inner, padding=3)
        self.select = nn.Linear(inner, 4 + 2 * states, bias=False)
        self.rate = nn.Linear(4, inner)
        self.decay = nn.Parameter(torch.log(torch.arange(1, states + 1).float()).repeat(inner, 1))
        self.direct = nn.Parameter(1 + 0.1 * torch.randn(inner))
        self.leave = nn.Linear(inner, width, bias=False)

    def scan(self, x, rate, taken, given):
        decay = -torch.exp(self.decay.float())
        state = torch.zeros(x.shape[0], self.inner, self.states)
        out = []
        for at in range(x.shape[1]):
            kept = torch.exp(rate[:, at, :, None] * decay)
            state = kept * state + (rate[:, at] * x[:, at])[..., None] * taken[:, at, None, :]
            out.append((state * given[:, at, None, :]).sum(-1))
        return torch.stack(out, 1) + x * self.direct.float()

    def forward(self, x):
        signal, gate = self.enter(self.norm(x)).chunk(2, -1)
        signal = self.conv(signal.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2)
        signal = F.silu(signal)
        rate, taken, given = self.select(signal).float().split([4, self.states, self.states], -1)
        rate = F.softplus(self.rate(rate.to(x.dtype)).float())
        mixed = self.scan(signal.float(), rate, taken, given).to(x.dtype)
        return x + self.leave(mixed * F.silu(gate))


class StateSpaceModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(48, 32)
        self.blocks = nn.ModuleList([ScanBlock(32, 48, 6), ScanBlock(32, 48, 6)])
        self.norm = nn.RMSNorm(32, eps=1e-5)
        self.head = nn.Linear(32, 48, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class StateSpace(Bench):
    name = "statespace"
    dtype = "bfloat16"
    seeds = (31, 32)
    kernels = ("avx512", "plain", "avx2", "two_threads")

    def build(self):
        return StateSpaceModel().to(torch.bfloat16)

    def batch(self, generator):
        tokens = torch.randint(0, 48, (4, 8), generator=generator)
        return {"tokens": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous()}

    def loss(self, model, batch):
        return F.cross_entropy(model(batch["tokens"]).float().flatten(0, 1), batch["labels"].flatten())

    def optimizer(self, model):
        return torch.optim.Adagrad(model.parameters(), lr=0.01)


def _scan_late(self, x, rate, taken, given):
    """The state before it was moved on."""
    decay = -torch.exp(self.decay.float())
    state = torch.zeros(x.shape[0], self.inner, self.states)
    out = []
    for at in range(x.shape[1]):
        kept = torch.exp(rate[:, at, :, None] * decay)
        out.append((state * given[:, at, None, :]).sum(-1))
        state = kept * state + (rate[:, at] * x[:, at])[..., None] * taken[:, at, None, :]
    return torch.stack(out, 1) + x * self.direct.float()


def _ungated(self, x):
    signal, _ = self.enter(self.norm(x)).chunk(2, -1)
    signal = self.conv(signal.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2)
    signal = F.silu(signal)
    rate, taken, given = self.select(signal).float().split([4, self.states, self.states], -1)
    rate = F.softplus(self.rate(rate.to(x.dtype)).float())
    return x + self.leave(self.scan(signal.float(), rate, taken, given).to(x.dtype))


def _exp_rate(self, x):
    signal, gate = self.enter(self.norm(x)).chunk(2, -1)
    signal = self.conv(signal.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2)
    signal = F.silu(signal)
    rate, taken, given = self.select(signal).float().split([4, self.states, self.states], -1)
    rate = F.relu(self.rate(rate.to(x.dtype)).float())
    mixed = self.scan(signal.float(), rate, taken, given).to(x.dtype)
    return x + self.leave(mixed * F.silu(gate))


def _one_token(batch):
    batch["tokens"][2, 1] = (batch["tokens"][2, 1] + 9) % 48


_B = "statespace"
add(_B, "norm_eps", "argument", "1e-1", setting("blocks.1.norm", "eps", 0.1), Where("blocks.1.norm"))
add(_B, "scan_late", "code", "5e-1", method("blocks.0", _scan_late, "scan"), Where("blocks.0", "__mul__"),
    Where("blocks.0", "__add__"), Where("blocks.0", "sum"))
add(_B, "ungated", "code", "5e-1", method("blocks.1", _ungated), Where("blocks.1", "silu", 1),
    Where("blocks.1", "__mul__"),    *holder("blocks.1.leave", "linear"))
add(_B, "relu_rate", "code", "5e-1", method("blocks.0", _exp_rate), Where("blocks.0", "softplus"),
    Where("blocks.0", "relu"))
add(_B, "decay_shifted", "parameter", "1e-1",
    changed_parameter("blocks.1", "decay", lambda data: data.roll(1, 1)), Where("blocks.1", "exp", 0),
    Where("blocks.1", "float", 0), Where("blocks.1", "float", 1), Where("blocks.1", "float", 2),
    Where("blocks.1", "float", 3))
add(_B, "conv_flipped", "parameter", "5e-1", changed_parameter("blocks.0.conv", "weight", lambda data: data.flip(-1)),
    *holder("blocks.0.conv", "conv1d"))
add(_B, "one_token", "input", "2e-1", changed_batch(_one_token), Where("tokens", "embedding", around=True))
add(_B, "conv_tile", "kernel", "2e-1", kernel(F, "conv1d", "blocks.1.conv", tile(12, 5, 0.5)),
    Where("blocks.1.conv", "conv1d"))
add(_B, "softplus_scaled", "kernel", "1e-3", kernel(F, "softplus", "blocks.0", scaled(1.001)),
    Where("blocks.0", "softplus"))
add(_B, "exp_late", "kernel", "5e-2", kernel(torch, "exp", "blocks.0", elements(9, 0.8), nth=5, from_step=1),
    Where("blocks.0", "exp", 5, step=1))
add(_B, "norm_bits_lost", "precision", "3e-2", kernel(F, "rms_norm", "blocks.1.norm", bits_lost(4)),
    Where("blocks.1.norm"))
add(_B, "silu_backward", "backward", "2e-1", kernel_backward(F, "silu", "blocks.1", scaled(0.8), nth=0),
    backward("blocks.1", "silu", 0))
add(_B, "rate_gradient", "backward", "2e-1", kernel_gradient("blocks.0.rate", "weight", scaled(1.2)),
    Where("blocks.0.rate", "*grad*"))
add(_B, "rate", "update", "3e-1", optimizer_setting("lr", 0.013), every_parameter())
add(_B, "leave_not_updated", "update", "2e-1", not_updated("blocks.0.leave", "weight"),
    *holder("blocks.0.leave", "linear", step=1))

# ---------------------------------------------------------------------- translator: encoder and decoder, tied weights


class CrossAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.both = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.scale = None

    def forward(self, x, seen, mask=None, causal=False):
        def split(y):
            return y.view(y.shape[0], y.shape[1], self.heads, -1).transpose(1, 2)

        key, value = self.both(seen).chunk(2, -1)
        mixed = F.scaled_dot_product_attention(split(self.query(x)), split(key), split(value), attn_mask=mask,
                                               is_causal=causal, scale=self.scale)
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Feed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 3 * width)
        self.drop = nn.Dropout(0.1)
        self.down = nn.Linear(3 * width, width)

    def forward(self, x):
        return self.down(self.drop(F.relu(self.up(x))))


class EncoderBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = CrossAttention(width, 4)
        self.norm1 = nn.LayerNorm(width)
        self.feed = Feed(width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, x, mask))
        return self.norm2(x + self.feed(x))


class DecoderBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own = CrossAttention(width, 4)
        self.norm1 = nn.LayerNorm(width)
        self.cross = CrossAttention(width, 4)
        self.norm2 = nn.LayerNorm(width)
        self.feed = Feed(width)
        self.norm3 = nn.LayerNorm(width)

    def forward(self, x, memory, mask):
        x = self.norm1(x + self.own(x, x, causal=True))
        x = self.norm2(x + self.cross(x, memory, mask))
        return self.norm3(x + self.feed(x))


class TranslatorModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.width = 40
        self.tokens = nn.Embedding(56, self.width)
        nn.init.normal_(self.tokens.weight, std=0.15)
        self.encoder = nn.ModuleList([EncoderBlock(self.width), EncoderBlock(self.width)])
        self.decoder = nn.ModuleList([DecoderBlock(self.width), DecoderBlock(self.width)])
        self.period = 10000.0

    def places(self, length):
        angles = torch.arange(length)[:, None] * torch.exp(
            torch.arange(0, self.width, 2) * (-math.log(self.period) / self.width))
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)

    def enter(self, tokens):
        return self.tokens(tokens) * math.sqrt(self.width) + self.places(tokens.shape[1])

    def forward(self, source, target):
        mask = (source != 0)[:, None, None, :]
        memory = self.enter(source)
        for block in self.encoder:
            memory = block(memory, mask)
        x = self.enter(target)
        for block in self.decoder:
            x = block(x, memory, mask)
        return F.linear(x, self.tokens.weight)


class Translator(Bench):
    """The rate grows from step to step; gradients are clipped and the optimizer is recorded."""

    name = "translator"
    seeds = (31, 32)
    records_optimizer = True
    kernels = ("avx512", "plain", "avx2", "math_attention")
    smoothing = 0.1
    ignored = 0
    clip = 0.5
    warm = 4
    steps = 0

    def build(self):
        return TranslatorModel()

    def batch(self, generator):
        source = torch.randint(1, 56, (3, 9), generator=generator)
        source[1, 7:] = 0
        target = torch.randint(1, 56, (3, 8), generator=generator)
        target[2, 6:] = 0
        return {"source": source, "target": target[:, :-1].contiguous(), "labels": target[:, 1:].contiguous()}

    def loss(self, model, batch):
        logits = model(batch["source"], batch["target"])
        return F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=self.ignored,
                               label_smoothing=self.smoothing)

    def optimizer(self, model):
        self.trainer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01)
        return self.trainer

    def finish(self, model):
        torch.nn.utils.clip_grad_norm_(model.parameters(), self.clip)
        self.steps += 1
        for group in self.trainer.param_groups:
            group["lr"] = 1e-3 * min(1.0, self.steps / self.warm)


def _own_memory(self, x, memory, mask):
    x = self.norm1(x + self.own(x, x, causal=True))
    x = self.norm2(x + self.cross(x, x))
    return self.norm3(x + self.feed(x))


def _unscaled(self, tokens):
    return self.tokens(tokens) + self.places(tokens.shape[1])


def _gelu_feed(self, x):
    return self.down(self.drop(F.gelu(self.up(x))))


def _norm_first(self, x, mask):
    x = x + self.attention(self.norm1(x), self.norm1(x), mask)
    return x + self.feed(self.norm2(x))


def _both_swapped(data):
    return data.roll(data.shape[0] // 2, 0)


def _padded(batch):
    batch["source"][0, 8] = 0


_B = "translator"
add(_B, "not_ignored", "argument", "1e-1", bench_setting("ignored", -100), Where("", "cross_entropy"))
add(_B, "cross_scale", "argument", "5e-2", setting("decoder.1.cross", "scale", 0.25),
    Where("decoder.1.cross", "scaled_dot_product_attention"))
add(_B, "norm_eps", "argument", "1e-3", setting("encoder.1.norm2", "eps", 1e-3), Where("encoder.1.norm2", "layer_norm"))
add(_B, "period", "argument", "2e-1", setting("", "period", 8000.0), Where("", "__mul__", 1))
add(_B, "drop_rate", "argument", "5e-2", setting("decoder.0.feed.drop", "p", 0.2),
    Where("decoder.0.feed.drop", "dropout"))
add(_B, "own_memory", "code", "5e-1", method("decoder.1", _own_memory), *holder("decoder.1.cross.both", "linear"),
    Where("decoder.1.cross"), Where("decoder.1.cross", "scaled_dot_product_attention"))
add(_B, "unscaled", "code", "5e-1", method("", _unscaled, "enter"), Where("", "__mul__"), Where("", "__add__"))
add(_B, "gelu_feed", "code", "1e-1", method("encoder.0.feed", _gelu_feed), Where("encoder.0.feed", "relu"),
    Where("encoder.0.feed", "gelu"))
add(_B, "norm_first", "code", "5e-1", method("encoder.1", _norm_first), *holder("encoder.1.norm1", "layer_norm"),
    *holder("encoder.1.attention.query", "linear"), *holder("encoder.1.attention.both", "linear"),
    Where("encoder.1.attention"))
add(_B, "key_value_swapped", "parameter", "5e-1",
    together(changed_parameter("decoder.0.cross.both", "weight", _both_swapped),
             changed_parameter("decoder.0.cross.both", "bias", _both_swapped)),
    *holder("decoder.0.cross.both", "linear"))
add(_B, "one_down_weight", "parameter", "1e-3", changed_parameter("decoder.1.feed.down", "weight", one_element(2.0)),
    *holder("decoder.1.feed.down", "linear"))
add(_B, "padded", "input", "1e-1", changed_batch(_padded), Where("", "__ne__"),
    Where("tokens", "embedding", around=True))
add(_B, "cross_tile", "kernel", "1e-1",
    kernel(F, "scaled_dot_product_attention", "decoder.0.cross", tile(5, 4, 0.5)),
    Where("decoder.0.cross", "scaled_dot_product_attention"))
add(_B, "embedding_row", "kernel", "1e-1", kernel(F, "embedding", "tokens", last_rows_lost(1), nth=1),
    Where("tokens", "embedding", 1))
add(_B, "norm_scaled", "kernel", "1e-4", kernel(F, "layer_norm", "decoder.1.norm2", scaled(1.0001)),
    Where("decoder.1.norm2", "layer_norm"))
add(_B, "query_in_half", "precision", "2e-3", kernel(F, "linear", "encoder.0.attention.query",
                                                     rounded_to(torch.bfloat16)),
    Where("encoder.0.attention.query", "linear"))
add(_B, "relu_backward", "backward", "1e-1", kernel_backward(F, "relu", "decoder.1.feed", elements(30, 0.0)),
    backward("decoder.1.feed", "relu"))
add(_B, "cross_gradient", "backward", "1e-2", kernel_gradient("decoder.0.cross.both", "weight", scaled(1.01)),
    Where("decoder.0.cross.both", "*grad*"))
add(_B, "clip", "update", "5e-1", bench_setting("clip", 0.25), Where("clip_grad", "*parent*"),
    Where("optimizer", "*parent*"))
add(_B, "warm", "update", "5e-1", bench_setting("warm", 2), Where("optimizer", "*parent*", step=0), every_parameter())
add(_B, "query_not_updated", "update", "1e-3", not_updated("decoder.0.own.query", "weight"),
    *holder("decoder.0.own.query", "linear", step=1))

# ---------------------------------------------------------------------- routed: experts with room for few, in parts


class SwitchedFeed(nn.Module):
    def __init__(self, width, experts, room):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) / (2 * width)**0.5)
        self.experts, self.room = experts, room
        self.weight = 1e-2
        self.penalty = None

    def forward(self, x):
        flat = x.flatten(0, 1)
        scores = self.router(flat)
        chances = torch.softmax(scores, -1)
        gate, picked = chances.max(-1)
        chosen = F.one_hot(picked, self.experts).to(x.dtype)
        place = (torch.cumsum(chosen, 0) - 1) * chosen
        fits = (place < self.room).to(x.dtype) * chosen
        slots = F.one_hot(place.sum(-1).long().clamp(max=self.room - 1), self.room).to(x.dtype)
        dispatch = fits[:, :, None] * slots[:, None, :]
        packed = torch.einsum("tec,tw->ecw", dispatch, flat)
        inner = F.gelu(torch.bmm(packed, self.up))
        out = torch.einsum("tec,ecw->tw", dispatch * gate[:, None, None], torch.bmm(inner, self.down))
        self.penalty = self.weight * torch.logsumexp(scores, -1).square().mean()
        return out.view(x.shape)


class RoutedBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.feed = SwitchedFeed(width, 4, 12)

    def forward(self, x):
        x = x + self.mix(self.norm1(x))[0]
        return x + self.feed(self.norm2(x))


class RoutedModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(16, 32)
        self.blocks = nn.ModuleList([RoutedBlock(32), RoutedBlock(32)])
        self.head = nn.Linear(32, 8)

    def forward(self, signal):
        x = torch.tanh(self.enter(signal))
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, -1])


class Routed(Bench):
    """Gradients of three parts are added up."""

    name = "routed"
    seeds = (31, 32)
    kernels = ("avx512", "plain", "avx2", "native")
    delta = 1.0
    parts = 3

    def build(self):
        return RoutedModel()

    def batch(self, generator):
        return {"signal": torch.randn(9, 8, 16, generator=generator), "wanted": torch.randn(9, 8, generator=generator)}

    def loss(self, model, batch):
        loss = F.huber_loss(model(batch["signal"]), batch["wanted"], delta=self.delta)
        return loss + sum(block.feed.penalty for block in model.blocks)

    def gradients(self, model, batch):
        for signal, wanted in zip(batch["signal"].chunk(3), batch["wanted"].chunk(3)):
            (self.loss(model, {"signal": signal, "wanted": wanted}) / self.parts).backward()

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)


def _ungated_feed(self, x):
    x = x + self.mix(self.norm1(x))[0]
    return self.norm2(x) + self.feed(x)


def _third_noisy(batch):
    batch["signal"][7] += 0.02 * torch.randn(batch["signal"][7].shape, generator=torch.Generator().manual_seed(4))


_B = "routed"
add(_B, "delta", "argument", "1e-1", bench_setting("delta", 0.5), Where("", "huber_loss"))
add(_B, "room", "argument", "3e-1", setting("blocks.1.feed", "room", 4), Where("blocks.1.feed", "lt"),
    Where("blocks.1.feed", "__lt__"), Where("blocks.1.feed", "one_hot"), Where("blocks.1.feed", "clamp"))
add(_B, "penalty", "argument", "1e-1", setting("blocks.0.feed", "weight", 2e-2), Where("blocks.0.feed", "__rmul__"),
    Where("blocks.0.feed", "__mul__"))
add(_B, "norm_eps", "argument", "1e-3", setting("blocks.0.norm2", "eps", 1e-3), Where("blocks.0.norm2", "layer_norm"))
add(_B, "residual_behind_norm", "code", "5e-1", method("blocks.1", _ungated_feed),
    *holder("blocks.1.feed.router", "linear"), Where("blocks.1.feed"), Where("blocks.1", "__add__", 1))
add(_B, "experts_swapped", "parameter", "5e-1",
    changed_parameter("blocks.1.feed", "up", lambda data: data[[1, 0, 2, 3]]), Where("blocks.1.feed", "bmm", 0))
add(_B, "recurrent_weight", "parameter", "1e-2", changed_parameter("blocks.0.mix", "weight_hh_l0", noisy(0.01)),
    Where("blocks.0.mix"))
add(_B, "third_noisy", "input", "1e-2", changed_batch(_third_noisy), Where("enter", "linear", around=True))
add(_B, "bmm_tile", "kernel", "1e-1", kernel(torch, "bmm", "blocks.0.feed", tile(6, 16, 0.9), nth=3),
    Where("blocks.0.feed", "bmm", 3))
add(_B, "gru_scaled", "kernel", "1e-4", kernel(torch._VF, "gru", "blocks.1.mix", scaled(1.0001)),
    Where("blocks.1.mix"))
add(_B, "tanh_elements", "kernel", "1e-2", kernel(torch, "tanh", "", elements(5, 1.02), nth=2), Where("", "tanh", 2))
add(_B, "head_in_half", "precision", "2e-3", kernel(F, "linear", "head", rounded_to(torch.bfloat16), nth=1),
    Where("head", "linear", 1))
add(_B, "gelu_backward", "backward", "1e-1", kernel_backward(F, "gelu", "blocks.1.feed", tile(12, 24, 0.5), nth=2),
    backward("blocks.1.feed", "gelu", 2))
add(_B, "enter_gradient", "backward", "3e-1", kernel_gradient("enter", "weight", tile(16, 8, 0.0)),
    Where("enter", "*grad*"))
add(_B, "not_divided", "argument", "5e-1", bench_setting("parts", 1), Where("", "__truediv__"))
add(_B, "no_nesterov", "update", "5e-1", optimizer_setting("nesterov", False), every_parameter())
add(_B, "router_updated_twice", "update", "1e-2", update_spoiled("blocks.0.feed.router", "weight", scaled(2)),
    *holder("blocks.0.feed.router", "linear", step=1))

SEQUENCE_BENCHES = {bench.name: bench for bench in (StateSpace, Translator, Routed)}
