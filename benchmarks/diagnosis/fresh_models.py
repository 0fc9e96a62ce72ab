# SPDX-License-Identifier: Apache-2.0
"""Models that no rule has seen when they came: patches that are mixed, a recommender, a state that is scanned, and
sequences that point into each other; with their faults."""

import torch
from torch import nn
from torch.nn import functional as F

from catalogue import backward, every_parameter, holder, one_element
from models import Bench
from planting import (Fault, Where, bench_setting, bits_lost, changed_batch, changed_parameter, elements,
                      kernel, kernel_backward, kernel_gradient, last_rows_lost, method, noisy, not_updated,
                      optimizer_setting, rounded_to, scaled, setting, tile, update_spoiled)

FRESH_FAULTS = []


def add(bench, name, kind, size, plant, *expect):
    FRESH_FAULTS.append(Fault(bench, name, kind, size, plant, expect))


# ---------------------------------------------------------------------- mixer: tokens and channels, GEGLU, GroupNorm


class Gated(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.enter = nn.Linear(width, 2 * inner)
        self.leave = nn.Linear(inner, width)

    def forward(self, x):
        value, gate = self.enter(x).chunk(2, -1)
        return self.leave(value * F.gelu(gate))


class MixerBlock(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.across = Gated(tokens, 24)
        self.norm2 = nn.LayerNorm(width)
        self.along = Gated(width, 40)
        self.keep = 1.0

    def forward(self, x):
        x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return self.keep * x + self.along(self.norm2(x))


class MixerModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, stride=4)
        self.norm = nn.GroupNorm(4, 32)
        self.blocks = nn.ModuleList([MixerBlock(16, 32) for _ in range(3)])
        self.last = nn.LayerNorm(32)
        self.head = nn.Linear(32, 7)

    def forward(self, images):
        x = self.norm(self.patches(images)).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x).mean(1))


class Mixer(Bench):
    name = "mixer"
    held_out = True
    seeds = (61, 62)
    kernels = ("avx512", "plain", "avx2", "native")
    smoothing = 0.1

    def build(self):
        return MixerModel()

    def batch(self, generator):
        return {"images": torch.randn(5, 3, 16, 16, generator=generator),
                "labels": torch.randint(0, 7, (5,), generator=generator)}

    def loss(self, model, batch):
        return F.cross_entropy(model(batch["images"]), batch["labels"], label_smoothing=self.smoothing)

    def optimizer(self, model):
        return torch.optim.RMSprop(model.parameters(), lr=1e-3)


def _order_of_norm(self, x):
    x = x + self.across(x.transpose(1, 2)).transpose(1, 2)
    return self.keep * x + self.along(self.norm2(x))


def _silu_gate(self, x):
    value, gate = self.enter(x).chunk(2, -1)
    return self.leave(value * F.silu(gate))


def _swapped_halves(self, x):
    gate, value = self.enter(x).chunk(2, -1)
    return self.leave(value * F.gelu(gate))


def _brighter(batch):
    batch["images"][3, 1].mul_(1.05)


_B = "mixer"
add(_B, "keep", "argument", "1e-1", setting("blocks.1", "keep", 0.9), Where("blocks.1", "__rmul__"))
add(_B, "smoothing", "argument", "1e-1", bench_setting("smoothing", 0.0), Where("", "cross_entropy"))
add(_B, "group_eps", "argument", "1e-2", setting("norm", "eps", 1e-2), Where("norm", "group_norm"))
add(_B, "norm_missing", "code", "5e-1", method("blocks.2", _order_of_norm), *holder("blocks.2.norm1", "layer_norm"),
    *holder("blocks.2.across.enter", "linear"))
add(_B, "silu_gate", "code", "1e-1", method("blocks.1.along", _silu_gate), Where("blocks.1.along", "gelu"),
    Where("blocks.1.along", "silu"))
add(_B, "swapped_halves", "code", "5e-1", method("blocks.0.along", _swapped_halves), Where("blocks.0.along", "gelu"),
    Where("blocks.0.along", "__mul__"))
add(_B, "patches_stale", "parameter", "2e-2", changed_parameter("patches", "weight", noisy(0.02)),
    *holder("patches", "conv2d"))
add(_B, "one_bias", "parameter", "1e-1", changed_parameter("blocks.1.across.leave", "bias", one_element(30.0)),
    *holder("blocks.1.across.leave", "linear"))
add(_B, "brighter", "input", "2e-2", changed_batch(_brighter), Where("patches", "conv2d", around=True))
add(_B, "enter_tile", "kernel", "1e-1", kernel(F, "linear", "blocks.0.along.enter", tile(16, 16, 0.8)),
    Where("blocks.0.along.enter", "linear"))
add(_B, "gelu_scaled", "kernel", "1e-3", kernel(F, "gelu", "blocks.2.across", scaled(1.001)),
    Where("blocks.2.across", "gelu"))
add(_B, "norm_elements", "kernel", "1e-1", kernel(F, "layer_norm", "last", elements(4, 1.2)),
    Where("last", "layer_norm"))
add(_B, "leave_in_half", "precision", "2e-3",
    kernel(F, "linear", "blocks.1.along.leave", rounded_to(torch.bfloat16)), Where("blocks.1.along.leave", "linear"))
add(_B, "gelu_backward", "backward", "1e-1", kernel_backward(F, "gelu", "blocks.1.along", scaled(0.9)),
    backward("blocks.1.along", "gelu"))
add(_B, "enter_gradient", "backward", "1e-1", kernel_gradient("blocks.0.across.enter", "weight", tile(20, 16, 0.5)),
    Where("blocks.0.across.enter", "*grad*"))
add(_B, "smoothing_constant", "update", "1e-1", optimizer_setting("alpha", 0.9), every_parameter())
add(_B, "head_not_updated", "update", "1e-2", not_updated("head", "weight"), *holder("head", "linear", step=1))

# ---------------------------------------------------------------------- recommender: bags of things, pairs, two tasks


class RecommenderModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(40, 16)
        self.things = nn.EmbeddingBag(60, 16, mode="mean")
        self.dense = nn.Sequential(nn.Linear(6, 24), nn.LeakyReLU(0.1), nn.Linear(24, 16), nn.LeakyReLU(0.1))
        self.deep = nn.Sequential(nn.Linear(48 + 3, 40), nn.Tanh(), nn.Linear(40, 20))
        self.click = nn.Linear(20, 1)
        self.stay = nn.Linear(20, 1)

    def forward(self, user, things, numbers):
        fields = torch.stack([self.users(user), self.things(things), self.dense(numbers)], 1)
        pairs = torch.einsum("bid,bjd->bij", fields, fields)
        upper = torch.stack([pairs[:, 0, 1], pairs[:, 0, 2], pairs[:, 1, 2]], 1)
        x = F.selu(self.deep(torch.cat([fields.flatten(1), upper], 1)))
        return self.click(x).squeeze(-1), F.softplus(self.stay(x)).squeeze(-1)


class Recommender(Bench):
    name = "recommender"
    held_out = True
    seeds = (61, 62)
    kernels = ("avx512", "plain", "avx2", "two_threads")
    share = 0.3

    def build(self):
        return RecommenderModel()

    def batch(self, generator):
        return {"user": torch.randint(0, 40, (12,), generator=generator),
                "things": torch.randint(0, 60, (12, 5), generator=generator),
                "numbers": torch.randn(12, 6, generator=generator),
                "clicked": torch.randint(0, 2, (12,), generator=generator).float(),
                "stayed": torch.rand(12, generator=generator) * 3}

    def loss(self, model, batch):
        click, stay = model(batch["user"], batch["things"], batch["numbers"])
        first = F.binary_cross_entropy_with_logits(click, batch["clicked"])
        return first + self.share * F.mse_loss(stay, batch["stayed"])

    def optimizer(self, model):
        return torch.optim.Adagrad(model.parameters(), lr=1e-2)


def _summed_pairs(self, user, things, numbers):
    fields = torch.stack([self.users(user), self.things(things), self.dense(numbers)], 1)
    pairs = torch.einsum("bid,bjd->bij", fields, F.normalize(fields, dim=-1))
    upper = torch.stack([pairs[:, 0, 1], pairs[:, 0, 2], pairs[:, 1, 2]], 1)
    x = F.selu(self.deep(torch.cat([fields.flatten(1), upper], 1)))
    return self.click(x).squeeze(-1), F.softplus(self.stay(x)).squeeze(-1)


def _elu_deep(self, user, things, numbers):
    fields = torch.stack([self.users(user), self.things(things), self.dense(numbers)], 1)
    pairs = torch.einsum("bid,bjd->bij", fields, fields)
    upper = torch.stack([pairs[:, 0, 1], pairs[:, 0, 2], pairs[:, 1, 2]], 1)
    x = F.elu(self.deep(torch.cat([fields.flatten(1), upper], 1)))
    return self.click(x).squeeze(-1), F.softplus(self.stay(x)).squeeze(-1)


def _other_thing(batch):
    batch["things"][7, 2] = (batch["things"][7, 2] + 9) % 60


def _one_number(batch):
    batch["numbers"][4, 1] += 0.3


def _one_click(batch):
    batch["clicked"][5] = 1 - batch["clicked"][5]


_B = "recommender"
add(_B, "share", "argument", "5e-2", bench_setting("share", 0.35), Where("", "__rmul__"))
add(_B, "slope", "argument", "5e-2", setting("dense.1", "negative_slope", 0.2), Where("dense.1", "leaky_relu"))
add(_B, "bag_sum", "argument", "5e-1", setting("things", "mode", "sum"), Where("things", "embedding_bag"))
add(_B, "summed_pairs", "code", "5e-1", method("", _summed_pairs), Where("", "normalize"), Where("", "einsum"))
add(_B, "elu_deep", "code", "1e-1", method("", _elu_deep), Where("", "selu"), Where("", "elu"))
add(_B, "users_stale", "parameter", "1e-1", changed_parameter("users", "weight", noisy(0.1)),
    *holder("users", "embedding"))
add(_B, "deep_stale", "parameter", "1e-2", changed_parameter("deep.2", "weight", noisy(0.01)),
    *holder("deep.2", "linear"))
add(_B, "other_thing", "input", "1e-1", changed_batch(_other_thing), Where("things", "embedding_bag", around=True))
add(_B, "one_number", "input", "5e-2", changed_batch(_one_number), Where("dense.0", "linear", around=True))
add(_B, "one_click", "input", "1e-1", changed_batch(_one_click), Where("", "binary_cross_entropy_with_logits"))
add(_B, "bag_rows_lost", "kernel", "2e-1", kernel(F, "embedding_bag", "things", last_rows_lost(1)),
    Where("things", "embedding_bag"))
add(_B, "einsum_tile", "kernel", "1e-1", kernel(torch, "einsum", "", scaled(1.01)), Where("", "einsum"))
add(_B, "softplus_elements", "kernel", "3e-2", kernel(F, "softplus", "", elements(2, 1.1)), Where("", "softplus"))
add(_B, "click_in_few_bits", "precision", "1e-3", kernel(F, "linear", "deep.0", bits_lost(9)),
    Where("deep.0", "linear"))
add(_B, "leaky_backward", "backward", "2e-1", kernel_backward(F, "leaky_relu", "dense.3", scaled(1.2)),
    backward("dense.3", "leaky_relu"))
add(_B, "users_gradient", "backward", "2e-1", kernel_gradient("users", "weight", scaled(1.2)),
    Where("users", "*grad*"))
add(_B, "rate", "update", "2e-1", optimizer_setting("lr", 1.2e-2), every_parameter())

# ---------------------------------------------------------------------- scan: a state-space layer, bfloat16


class Scan(nn.Module):
    def __init__(self, width, state):
        super().__init__()
        self.enter = nn.Linear(width, 2 * width, bias=False)
        self.conv = nn.Conv1d(width, width, 3, padding=2, groups=width)
        self.to_step = nn.Linear(width, width)
        self.to_state = nn.Linear(width, 2 * state, bias=False)
        self.decay = nn.Parameter(torch.log(torch.arange(1.0, state + 1).repeat(width, 1)))
        self.skip = nn.Parameter(torch.ones(width))
        self.leave = nn.Linear(width, width, bias=False)
        self.threshold = 20.0

    def forward(self, x):
        value, gate = self.enter(x).chunk(2, -1)
        value = F.silu(self.conv(value.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
        step = F.softplus(self.to_step(value), beta=1.0, threshold=self.threshold)
        b, c = self.to_state(value).chunk(2, -1)
        keep = torch.exp(-step.unsqueeze(-1) * torch.exp(self.decay))
        add = (step * value).unsqueeze(-1) * b.unsqueeze(2)
        state, seen = torch.zeros_like(add[:, 0]), []
        for t in range(x.shape[1]):
            state = keep[:, t] * state + add[:, t]
            seen.append(torch.einsum("bws,bs->bw", state, c[:, t]))
        out = torch.stack(seen, 1) + value * self.skip
        return self.leave(out * F.silu(gate))


class RootNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = 1e-5

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class ScanModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(50, 24)
        self.norms = nn.ModuleList([RootNorm(24) for _ in range(2)])
        self.scans = nn.ModuleList([Scan(24, 4) for _ in range(2)])
        self.last = RootNorm(24)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for norm, scan in zip(self.norms, self.scans):
            x = x + scan(norm(x))
        return F.linear(self.last(x), self.tokens.weight)


class StateSpace(Bench):
    name = "scan"
    dtype = "bfloat16"
    held_out = True
    seeds = (61, 62)
    kernels = ("avx512", "plain", "avx2", "native")

    def build(self):
        return ScanModel().to(torch.bfloat16)

    def batch(self, generator):
        return {"tokens": torch.randint(0, 50, (3, 9), generator=generator)}

    def loss(self, model, batch):
        logits = model(batch["tokens"])[:, :-1].float()
        return F.cross_entropy(logits.flatten(0, 1), batch["tokens"][:, 1:].flatten())

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)


def _no_skip(self, x):
    value, gate = self.enter(x).chunk(2, -1)
    value = F.silu(self.conv(value.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
    step = F.softplus(self.to_step(value), beta=1.0, threshold=self.threshold)
    b, c = self.to_state(value).chunk(2, -1)
    keep = torch.exp(-step.unsqueeze(-1) * torch.exp(self.decay))
    add = (step * value).unsqueeze(-1) * b.unsqueeze(2)
    state, seen = torch.zeros_like(add[:, 0]), []
    for t in range(x.shape[1]):
        state = keep[:, t] * state + add[:, t]
        seen.append(torch.einsum("bws,bs->bw", state, c[:, t]))
    return self.leave(torch.stack(seen, 1) * F.silu(gate))


def _mean_norm(self, x):
    return F.layer_norm(x, (x.shape[-1],), self.weight, None, self.eps)


def _one_token(batch):
    batch["tokens"][1, 2] = (batch["tokens"][1, 2] + 5) % 50


_B = "scan"
add(_B, "norm_eps", "argument", "2e-1", setting("norms.1", "eps", 0.5), Where("norms.1", "__add__"))
add(_B, "no_skip", "code", "5e-1", method("scans.1", _no_skip), Where("scans.1", "__add__"), Where("scans.1", "__mul__"))
add(_B, "mean_norm", "code", "5e-1", method("norms.0", _mean_norm), Where("norms.0", "layer_norm"),
    Where("norms.0", "pow"))
add(_B, "decay_stale", "parameter", "2e-1", changed_parameter("scans.0", "decay", scaled(1.3)), Where("scans.0", "exp"))
add(_B, "leave_stale", "parameter", "2e-1", changed_parameter("scans.1.leave", "weight", noisy(0.2)),
    *holder("scans.1.leave", "linear"))
add(_B, "one_token", "input", "2e-1", changed_batch(_one_token), Where("tokens", "embedding", around=True))
add(_B, "conv_tile", "kernel", "3e-1", kernel(F, "conv1d", "scans.0.conv", tile(20, 8, 0.3)),
    Where("scans.0.conv", "conv1d"))
add(_B, "state_scaled", "kernel", "1e-1", kernel(torch, "einsum", "scans.1", scaled(1.2), nth=4),
    Where("scans.1", "einsum", 4))
add(_B, "softplus_scaled", "kernel", "1e-1", kernel(F, "softplus", "scans.0", scaled(1.1)), Where("scans.0", "softplus"))
add(_B, "silu_backward", "backward", "3e-1", kernel_backward(F, "silu", "scans.1", scaled(0.7), nth=0),
    backward("scans.1", "silu", 0))
add(_B, "step_gradient", "backward", "3e-1", kernel_gradient("scans.0.to_step", "weight", scaled(1.3)),
    Where("scans.0.to_step", "*grad*"))
add(_B, "momentum_rate", "update", "5e-1", optimizer_setting("lr", 0.3), every_parameter())

# ---------------------------------------------------------------------- pointer: two sequences, attention by additions


class PointerModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.kinds = nn.Embedding(30, 20)
        self.places = nn.Embedding(12, 20)
        self.reader = nn.GRU(20, 20, batch_first=True)
        self.writer = nn.GRU(20, 20, batch_first=True)
        self.query = nn.Linear(20, 20)
        self.key = nn.Linear(20, 20, bias=False)
        self.energy = nn.Linear(20, 1, bias=False)
        self.mix = nn.Bilinear(20, 20, 16)
        self.norm = nn.LayerNorm(16)
        self.out = nn.Linear(16, 30)
        self.blocked = -1e4

    def forward(self, source, target, missing):
        places = self.places(torch.arange(source.shape[1]))
        read, last = self.reader(self.kinds(source) + places)
        written, _ = self.writer(self.kinds(target), last)
        energy = self.energy(torch.tanh(self.query(written).unsqueeze(2) + self.key(read).unsqueeze(1))).squeeze(-1)
        weight = F.softmax(energy.masked_fill(missing.unsqueeze(1), self.blocked), -1)
        found = torch.bmm(weight, read)
        x = F.relu6(self.norm(self.mix(written, found)))
        return F.log_softmax(self.out(x), -1), weight


class Pointer(Bench):
    name = "pointer"
    held_out = True
    seeds = (61, 62)
    kernels = ("avx512", "plain", "avx2", "two_threads")
    guidance = 0.2

    def build(self):
        return PointerModel()

    def batch(self, generator):
        missing = torch.zeros(4, 10, dtype=torch.bool)
        missing[1, 7:] = True
        return {"source": torch.randint(0, 30, (4, 10), generator=generator),
                "target": torch.randint(0, 30, (4, 6), generator=generator), "missing": missing}

    def loss(self, model, batch):
        chances, weight = model(batch["source"], batch["target"], batch["missing"])
        wanted = F.nll_loss(chances.flatten(0, 1), batch["target"].roll(-1, 1).flatten())
        even = torch.full_like(weight, 0.1)
        return wanted + self.guidance * F.kl_div(torch.log(weight + 1e-6), even, reduction="batchmean")

    def optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)


def _products(self, source, target, missing):
    places = self.places(torch.arange(source.shape[1]))
    read, last = self.reader(self.kinds(source) + places)
    written, _ = self.writer(self.kinds(target), last)
    energy = self.energy(torch.tanh(self.query(written).unsqueeze(2) * self.key(read).unsqueeze(1))).squeeze(-1)
    weight = F.softmax(energy.masked_fill(missing.unsqueeze(1), self.blocked), -1)
    found = torch.bmm(weight, read)
    x = F.relu6(self.norm(self.mix(written, found)))
    return F.log_softmax(self.out(x), -1), weight


def _without_places(self, source, target, missing):
    read, last = self.reader(self.kinds(source))
    written, _ = self.writer(self.kinds(target), last)
    energy = self.energy(torch.tanh(self.query(written).unsqueeze(2) + self.key(read).unsqueeze(1))).squeeze(-1)
    weight = F.softmax(energy.masked_fill(missing.unsqueeze(1), self.blocked), -1)
    found = torch.bmm(weight, read)
    x = F.relu6(self.norm(self.mix(written, found)))
    return F.log_softmax(self.out(x), -1), weight


def _more_missing(batch):
    batch["missing"][2, 8:] = True


def _one_kind(batch):
    batch["source"][0, 3] = (batch["source"][0, 3] + 4) % 30


_B = "pointer"
add(_B, "blocked", "argument", "1e-2", setting("", "blocked", -3.0), Where("", "masked_fill"))
add(_B, "guidance", "argument", "1e-1", bench_setting("guidance", 0.25), Where("", "__rmul__"))
add(_B, "norm_eps", "argument", "1e-2", setting("norm", "eps", 1e-2), Where("norm", "layer_norm"))
add(_B, "products", "code", "5e-1", method("", _products), Where("", "__mul__"), Where("", "__add__"))
add(_B, "without_places", "code", "5e-1", method("", _without_places), Where("", "__add__"), Where("places", "embedding"),
    *holder("reader", "gru"))
add(_B, "energy_sign", "parameter", "2e-1", changed_parameter("energy", "weight", scaled(-1.0)),
    *holder("energy", "linear"))
add(_B, "mix_stale", "parameter", "2e-2", changed_parameter("mix", "weight", noisy(0.02)), *holder("mix", "bilinear"))
add(_B, "more_missing", "input", "1e-1", changed_batch(_more_missing), Where("", "masked_fill"), Where("", "unsqueeze"))
add(_B, "one_kind", "input", "1e-1", changed_batch(_one_kind), Where("kinds", "embedding", around=True))
add(_B, "weights_tile", "kernel", "1e-1", kernel(F, "softmax", "", tile(6, 5, 0.7)), Where("", "softmax"))
add(_B, "found_elements", "kernel", "1e-1", kernel(torch, "bmm", "", elements(5, 1.3)), Where("", "bmm"))
add(_B, "reader_scaled", "kernel", "3e-3", kernel(torch._VF, "gru", "reader", scaled(1.003)), *holder("reader", "gru"))
add(_B, "tanh_in_half", "precision", "2e-3", kernel(torch, "tanh", "", rounded_to(torch.bfloat16)), Where("", "tanh"))
add(_B, "softmax_backward", "backward", "2e-1", kernel_backward(F, "softmax", "", scaled(0.8)),
    backward("", "softmax"))
add(_B, "key_gradient", "backward", "1e-1", kernel_gradient("key", "weight", tile(10, 10, 0.5)),
    Where("key", "*grad*"))
add(_B, "decay", "update", "5e-3", optimizer_setting("weight_decay", 1.0), every_parameter())
add(_B, "query_doubled", "update", "1e-2", update_spoiled("query", "weight", scaled(2)),
    *holder("query", "linear", step=1))

FRESH_BENCHES = {bench.name: bench for bench in (Mixer, Recommender, StateSpace, Pointer)}
