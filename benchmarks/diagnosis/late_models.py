# SPDX-License-Identifier: Apache-2.0
"""Models that came when the rules were set: of sounds and of graphs, with their faults."""

import torch
from torch import nn
from torch.nn import functional as F

from catalogue import backward, every_parameter, holder, one_element
from models import Bench
from planting import (Fault, Where, bench_setting, changed_batch, changed_parameter, elements, exchanged, kernel,
                      kernel_backward, kernel_gradient, method, noisy, not_updated, optimizer_setting, rounded_to,
                      scaled, setting, tile, update_spoiled)

LATE_FAULTS = []


def add(bench, name, kind, size, plant, *expect):
    LATE_FAULTS.append(Fault(bench, name, kind, size, plant, expect))


# ---------------------------------------------------------------------- listener: strided convolutions, LSTM, CTC


class ListenerModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(4, 16, 5, stride=2, padding=2)
        self.norm1 = nn.BatchNorm1d(16)
        self.conv2 = nn.Conv1d(16, 24, 3, padding=2, dilation=2, groups=2)
        self.norm2 = nn.InstanceNorm1d(24, affine=True)
        self.gate = nn.Conv1d(12, 20, 1)
        self.memory = nn.LSTM(20, 14, bidirectional=True, batch_first=True)
        self.norm = nn.LayerNorm(28)
        self.head = nn.Linear(28, 9)
        self.lowest = 0.0

    def forward(self, sound):
        x = F.hardswish(self.norm1(self.conv1(sound)))
        x = F.glu(self.norm2(self.conv2(x)), dim=1)
        x = torch.clamp(self.gate(x), min=self.lowest, max=6.0)
        x, _ = self.memory(x.transpose(1, 2))
        return F.log_softmax(self.head(self.norm(x)), dim=-1)


class Listener(Bench):
    name = "listener"
    held_out = True
    seeds = (41, 42)
    kernels = ("avx512", "plain", "avx2", "native")
    blank = 0

    def build(self):
        return ListenerModel()

    def batch(self, generator):
        return {"sound": torch.randn(4, 4, 24, generator=generator),
                "labels": torch.randint(1, 8, (4, 4), generator=generator)}

    def loss(self, model, batch):
        chances = model(batch["sound"]).transpose(0, 1)
        lengths = torch.full((4,), chances.shape[0])
        return F.ctc_loss(chances, batch["labels"], lengths, torch.full((4,), 4), blank=self.blank)

    def optimizer(self, model):
        return torch.optim.NAdam(model.parameters(), lr=2e-3)


def _swish(self, sound):
    x = F.silu(self.norm1(self.conv1(sound)))
    x = F.glu(self.norm2(self.conv2(x)), dim=1)
    x = torch.clamp(self.gate(x), min=self.lowest, max=6.0)
    x, _ = self.memory(x.transpose(1, 2))
    return F.log_softmax(self.head(self.norm(x)), dim=-1)


def _norm_missing(self, sound):
    x = F.hardswish(self.norm1(self.conv1(sound)))
    x = F.glu(self.norm2(self.conv2(x)), dim=1)
    x = torch.clamp(self.gate(x), min=self.lowest, max=6.0)
    x, _ = self.memory(x.transpose(1, 2))
    return F.log_softmax(self.head(x), dim=-1)


def _louder(batch):
    batch["sound"][2].mul_(1.03)


def _other_label(batch):
    batch["labels"][1, 2] = batch["labels"][1, 2] % 7 + 1


_B = "listener"
add(_B, "lowest", "argument", "1e-1", setting("", "lowest", -0.1), *holder("memory", "lstm"))
add(_B, "norm_eps", "argument", "1e-2", setting("norm2", "eps", 1e-2), Where("norm2", "instance_norm"))
add(_B, "blank", "argument", "3e-1", bench_setting("blank", 8), Where("", "ctc_loss"))
add(_B, "swish", "code", "1e-1", method("", _swish), Where("", "hardswish"), Where("", "silu"))
add(_B, "norm_missing", "code", "5e-1", method("", _norm_missing), *holder("norm", "layer_norm"),
    *holder("head", "linear"))
add(_B, "forget_bias", "parameter", "2e-1", changed_parameter("memory", "bias_ih_l0", one_element(5.0)),
    *holder("memory", "lstm"))
add(_B, "conv_stale", "parameter", "2e-2", changed_parameter("conv2", "weight", noisy(0.02)),
    *holder("conv2", "conv1d"))
add(_B, "louder", "input", "3e-2", changed_batch(_louder), Where("conv1", "conv1d", around=True))
add(_B, "other_label", "input", "1e-1", changed_batch(_other_label), Where("", "ctc_loss"))
add(_B, "conv_tile", "kernel", "1e-1", kernel(F, "conv1d", "gate", tile(10, 6, 0.5)), Where("gate", "conv1d"))
add(_B, "lstm_scaled", "kernel", "1e-3", kernel(torch._VF, "lstm", "memory", scaled(1.001)), *holder("memory", "lstm"))
add(_B, "head_in_half", "precision", "2e-3", kernel(F, "linear", "head", rounded_to(torch.bfloat16)),
    Where("head", "linear"))
add(_B, "norm_backward", "backward", "1e-1", kernel_backward(F, "batch_norm", "norm1", scaled(0.9)),
    backward("norm1", "batch_norm"))
add(_B, "gate_gradient", "backward", "2e-1", kernel_gradient("gate", "weight", tile(8, 6, 0.5)),
    Where("gate", "*grad*"))
add(_B, "rate", "update", "2e-1", optimizer_setting("lr", 2.5e-3), every_parameter())
add(_B, "head_not_updated", "update", "1e-2", not_updated("head", "weight"), *holder("head", "linear", step=1))

# ---------------------------------------------------------------------- molecules: a graph, gather and scatter


class Passing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Linear(2 * width, width)
        self.score = nn.Linear(width, 1)
        self.change = nn.GRUCell(width, width)
        self.norm = nn.LayerNorm(width)
        self.sharpness = 1.0

    def forward(self, nodes, source, target):
        ends = torch.cat([nodes.index_select(0, source), nodes.index_select(0, target)], -1)
        sent = F.elu(self.message(ends))
        weight = torch.exp(self.sharpness * torch.tanh(self.score(sent)))
        total = torch.zeros(nodes.shape[0], 1).index_add(0, target, weight)
        sent = sent * (weight / total.index_select(0, target))
        taken = torch.zeros_like(nodes).index_add(0, target, sent)
        return self.norm(nodes + self.change(taken, nodes))


class MoleculesModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.kinds = nn.Embedding(7, 24)
        self.layers = nn.ModuleList([Passing(24) for _ in range(3)])
        self.out1 = nn.Linear(24, 32)
        self.out2 = nn.Linear(32, 3)

    def forward(self, kinds, source, target, graph):
        x = self.kinds(kinds)
        for layer in self.layers:
            x = layer(x, source, target)
        pooled = torch.zeros(4, 24).index_add(0, graph, x)
        return self.out2(F.mish(self.out1(pooled)))


class Molecules(Bench):
    name = "molecules"
    held_out = True
    seeds = (41, 42)
    kernels = ("avx512", "plain", "avx2", "two_threads")
    beta = 0.5

    def build(self):
        return MoleculesModel()

    def batch(self, generator):
        graph = torch.arange(4).repeat_interleave(7)
        source = torch.randint(0, 7, (80,), generator=generator) + 7 * (torch.arange(80) % 4)
        target = torch.randint(0, 7, (80,), generator=generator) + 7 * (torch.arange(80) % 4)
        return {"kinds": torch.randint(0, 7, (28,), generator=generator), "source": source, "target": target,
                "graph": graph, "wanted": torch.randn(4, 3, generator=generator)}

    def loss(self, model, batch):
        guess = model(batch["kinds"], batch["source"], batch["target"], batch["graph"])
        return F.smooth_l1_loss(guess, batch["wanted"], beta=self.beta)

    def optimizer(self, model):
        return torch.optim.Adamax(model.parameters(), lr=2e-3)


def _relu_message(self, nodes, source, target):
    ends = torch.cat([nodes.index_select(0, source), nodes.index_select(0, target)], -1)
    sent = F.relu(self.message(ends))
    weight = torch.exp(self.sharpness * torch.tanh(self.score(sent)))
    total = torch.zeros(nodes.shape[0], 1).index_add(0, target, weight)
    sent = sent * (weight / total.index_select(0, target))
    taken = torch.zeros_like(nodes).index_add(0, target, sent)
    return self.norm(nodes + self.change(taken, nodes))


def _without_residue(self, nodes, source, target):
    ends = torch.cat([nodes.index_select(0, source), nodes.index_select(0, target)], -1)
    sent = F.elu(self.message(ends))
    weight = torch.exp(self.sharpness * torch.tanh(self.score(sent)))
    total = torch.zeros(nodes.shape[0], 1).index_add(0, target, weight)
    sent = sent * (weight / total.index_select(0, target))
    taken = torch.zeros_like(nodes).index_add(0, target, sent)
    return self.norm(self.change(taken, nodes))


def _one_edge(batch):
    batch["source"][11] = batch["source"][11] // 7 * 7 + (batch["source"][11] + 3) % 7


def _one_kind(batch):
    batch["kinds"][9] = (batch["kinds"][9] + 2) % 7


_B = "molecules"
add(_B, "sharpness", "argument", "1e-1", setting("layers.1", "sharpness", 1.3), Where("layers.1", "__rmul__"))
add(_B, "beta", "argument", "1e-1", bench_setting("beta", 1.0), Where("", "smooth_l1_loss"))
add(_B, "norm_eps", "argument", "1e-3", setting("layers.2.norm", "eps", 1e-3), Where("layers.2.norm", "layer_norm"))
add(_B, "relu_message", "code", "1e-1", method("layers.0", _relu_message), Where("layers.0", "elu"),
    Where("layers.0", "relu"))
add(_B, "without_residue", "code", "5e-1", method("layers.2", _without_residue), Where("layers.2", "__add__"),
    *holder("layers.2.norm", "layer_norm"))
add(_B, "score_sign", "parameter", "2e-1", changed_parameter("layers.1.score", "weight", scaled(-1.0)),
    *holder("layers.1.score", "linear"))
add(_B, "kinds_stale", "parameter", "1e-1", changed_parameter("kinds", "weight", noisy(0.1)),
    *holder("kinds", "embedding"))
add(_B, "one_edge", "input", "1e-1", changed_batch(_one_edge), Where("layers.0", "index_select", 0, around=True))
add(_B, "one_kind", "input", "1e-1", changed_batch(_one_kind), Where("kinds", "embedding", around=True))
add(_B, "index_add_elements", "kernel", "3e-2", kernel(torch.Tensor, "index_add", "layers.1", elements(4, 1.1), nth=1),
    Where("layers.1", "index_add", 1))
add(_B, "mish_scaled", "kernel", "1e-3", kernel(F, "mish", "", scaled(1.001)), Where("", "mish"))
add(_B, "message_in_half", "precision", "2e-3", kernel(F, "linear", "layers.2.message", rounded_to(torch.bfloat16)),
    Where("layers.2.message", "linear"))
add(_B, "elu_backward", "backward", "1e-1", kernel_backward(F, "elu", "layers.1", tile(30, 8, 0.5)),
    backward("layers.1", "elu"))
add(_B, "out_gradient", "backward", "5e-2", kernel_gradient("out1", "weight", scaled(1.05)), Where("out1", "*grad*"))
add(_B, "rate", "update", "1e-1", optimizer_setting("lr", 2.2e-3), every_parameter())
add(_B, "score_updated_twice", "update", "1e-2", update_spoiled("layers.0.message", "weight", scaled(2)),
    *holder("layers.0.message", "linear", step=1))

# ---------------------------------------------------------------------- critic: autocast, spectral shapes, pooling


class CriticModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Conv2d(3, 12, 4, stride=2, padding=1)
        self.act = nn.PReLU(12)
        self.split = nn.Conv2d(12, 32, 3, padding=1)
        self.shuffle = nn.PixelShuffle(2)
        self.deep = nn.Conv2d(8, 20, 3, padding=1, stride=2)
        self.norm = nn.BatchNorm2d(20, momentum=0.1)
        self.squeeze = nn.Linear(20, 6)
        self.excite = nn.Linear(6, 20)
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.head = nn.Linear(80, 5)

    def forward(self, images):
        x = self.act(self.enter(images))
        x = self.shuffle(self.split(x))
        x = F.softplus(self.norm(self.deep(x)))
        weight = torch.sigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3))))))
        x = self.pool(x * weight[:, :, None, None])
        return self.head(x.flatten(1))


class Critic(Bench):
    name = "critic"
    dtype = "autocast"
    held_out = True
    seeds = (41, 42)
    kernels = ("avx512", "plain", "channels_last", "native")
    margin = 1.0

    def build(self):
        return CriticModel()

    def batch(self, generator):
        return {"images": torch.randn(6, 3, 12, 12, generator=generator),
                "labels": torch.randint(0, 5, (6,), generator=generator)}

    def loss(self, model, batch):
        with torch.autocast(self.device, torch.bfloat16):
            logits = model(batch["images"])
        return F.multi_margin_loss(logits.float(), batch["labels"], margin=self.margin)

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)


def _without_weight(self, images):
    x = self.act(self.enter(images))
    x = self.shuffle(self.split(x))
    x = F.softplus(self.norm(self.deep(x)))
    return self.head(self.pool(x).flatten(1))


def _tanh_weight(self, images):
    x = self.act(self.enter(images))
    x = self.shuffle(self.split(x))
    x = F.softplus(self.norm(self.deep(x)))
    weight = torch.tanh(self.excite(F.relu(self.squeeze(x.mean((2, 3))))))
    x = self.pool(x * weight[:, :, None, None])
    return self.head(x.flatten(1))


def _shifted(batch):
    batch["images"][4] = batch["images"][4].roll(1, -1) * 1.1


_B = "critic"
add(_B, "norm_eps", "argument", "3e-1", setting("norm", "eps", 0.1), Where("norm", "batch_norm"))
add(_B, "margin", "argument", "2e-1", bench_setting("margin", 1.5), Where("", "multi_margin_loss"))
add(_B, "without_weight", "code", "5e-1", method("", _without_weight), Where("", "mean"), Where("", "sigmoid"),
    Where("", "__mul__"), *holder("squeeze", "linear"), *holder("pool", "adaptive_avg_pool2d"))
add(_B, "tanh_weight", "code", "5e-1", method("", _tanh_weight), Where("", "sigmoid"), Where("", "tanh"))
add(_B, "largest_pool", "code", "5e-1", exchanged("pool", lambda old: nn.AdaptiveMaxPool2d(2)),
    *holder("pool", "adaptive_avg_pool2d"), *holder("pool", "adaptive_max_pool2d"))
add(_B, "slope_stale", "parameter", "2e-1", changed_parameter("act", "weight", scaled(2.0)), *holder("act", "prelu"))
add(_B, "split_stale", "parameter", "5e-2", changed_parameter("split", "weight", noisy(0.05)),
    *holder("split", "conv2d"))
add(_B, "shifted", "input", "1e-1", changed_batch(_shifted), Where("enter", "conv2d", around=True))
add(_B, "deep_tile", "kernel", "3e-1", kernel(F, "conv2d", "deep", tile(5, 5, 0.2)), Where("deep", "conv2d"))
add(_B, "softplus_scaled", "kernel", "2e-2", kernel(F, "softplus", "", scaled(1.02)), Where("", "softplus"))
add(_B, "prelu_backward", "backward", "3e-1", kernel_backward(F, "prelu", "act", scaled(0.7), position=0),
    backward("act", "prelu"))
add(_B, "excite_gradient", "backward", "3e-1", kernel_gradient("excite", "weight", scaled(1.3)),
    Where("excite", "*grad*"))
add(_B, "rate", "update", "2e-1", optimizer_setting("lr", 0.13), every_parameter())
add(_B, "deep_not_updated", "update", "1e-2", not_updated("deep", "weight"), *holder("deep", "conv2d", step=1))

LATE_BENCHES = {bench.name: bench for bench in (Listener, Molecules, Critic)}
