# SPDX-License-Identifier: Apache-2.0
"""The faults of the benchmark: what is changed in which model, and the entries that have to be named for it."""

import torch
from torch import nn
from torch.nn import functional as F

from planting import (Fault, Where, bench_setting, bits_lost, changed_batch, changed_parameter, elements, exchanged,
                      kernel, kernel_backward, kernel_gradient, last_rows_lost, method, noisy, not_updated,
                      optimizer_setting, rounded_to, scaled, setting, tile, together, update_spoiled)

FAULTS = []


def add(bench, name, kind, size, plant, *expect):
    FAULTS.append(Fault(bench, name, kind, size, plant, expect))


def holder(path, op, step=0):
    """A parameter shows where its module uses it."""
    return Where(path, op, step=step), Where(path, step=step)


def backward(path, op, nth=0, step=0):
    return Where(path, op, nth, way="backward", step=step)


def every_parameter(step=1):
    return Where(None, "*parameters*", step=step)


# ---------------------------------------------------------------------- decoder

_B = "decoder"


def _silu_block(self, x, mask):
    x = x + self.attention(self.norm1(x), mask)
    return x + self.down(self.up(self.act(self.norm2(x))))


def _one_token(batch):
    batch["tokens"][1, 4] = (batch["tokens"][1, 4] + 7) % 64


def _one_label(batch):
    batch["labels"][2, 3] = (batch["labels"][2, 3] + 11) % 64


def _anew(data):
    return torch.randn(data.shape, generator=torch.Generator().manual_seed(99)).to(data.dtype) * data.std()


def one_element(factor):
    def change(data):
        data.view(-1)[data.numel() // 3] *= factor
    return change


add(_B, "norm_eps", "argument", "1e-2", setting("blocks.1.norm1", "eps", 1e-3), Where("blocks.1.norm1", "layer_norm"))
add(_B, "gelu_tanh", "argument", "1e-4", setting("blocks.0.act", "approximate", "tanh"), Where("blocks.0.act", "gelu"))
add(_B, "attention_scale", "argument", "1e-1", setting("blocks.1.attention", "scale", 0.25),
    Where("blocks.1.attention", "__mul__", 0))
add(_B, "softmax_dim", "argument", "5e-1", setting("blocks.1.attention", "dim", -2),
    Where("blocks.1.attention", "softmax"))
add(_B, "mask_shifted", "input", "5e-1", setting("", "shift", 2),
    Where("blocks.0.attention", "masked_fill", around=True))
add(_B, "masked_value", "argument", "1e-3", setting("blocks.1.attention", "masked_value", -4.0),
    Where("blocks.1.attention", "masked_fill"))
add(_B, "label_smoothing", "argument", "5e-2", bench_setting("smoothing", 0.02), Where("", "cross_entropy"))
add(_B, "silu_for_gelu", "code", "1e-1", exchanged("blocks.1.act", lambda old: nn.SiLU()),
    Where("blocks.1.act", "gelu"), Where("blocks.1.act", "silu"))
add(_B, "residual_alpha", "code", "1e-3", setting("blocks.1", "residual_scale", 0.999),
    Where("blocks.1", "add"), Where("blocks.1", "__add__", 1))
add(_B, "act_before_up", "code", "5e-1", method("blocks.1", _silu_block), Where("blocks.1.act", "gelu"),
    Where("blocks.1.up", "linear"), Where("blocks.1.down", "linear"))
add(_B, "norm_missing", "code", "5e-1", exchanged("blocks.0.norm2", lambda old: nn.Identity()),
    Where("blocks.0.norm2", "layer_norm"), Where("blocks.0.norm2"), *holder("blocks.0.up", "linear"))
add(_B, "value_transposed", "parameter", "5e-1",
    changed_parameter("blocks.0.attention.value", "weight", lambda data: data.t().clone()),
    *holder("blocks.0.attention.value", "linear"))
add(_B, "one_weight", "parameter", "1e-3", changed_parameter("blocks.1.down", "weight", one_element(1.5)),
    *holder("blocks.1.down", "linear"))
add(_B, "places_anew", "parameter", "5e-1", changed_parameter("places", "weight", _anew),
    *holder("places", "embedding"))
add(_B, "head_half", "parameter", "2e-3", changed_parameter("head", "weight", rounded_to(torch.bfloat16)),
    *holder("head", "linear"))
add(_B, "one_token", "input", "1e-1", changed_batch(_one_token), Where("tokens", "embedding", around=True))
add(_B, "one_label", "input", "1e-2", changed_batch(_one_label), Where("", "cross_entropy"))
add(_B, "softmax_tile", "kernel", "1e-1", kernel(F, "softmax", "blocks.0.attention", tile(8, 4, 0.5)),
    Where("blocks.0.attention", "softmax"))
add(_B, "linear_elements", "kernel", "1e-3", kernel(F, "linear", "blocks.1.down", elements(3, 1.01)),
    Where("blocks.1.down", "linear"))
add(_B, "norm_scaled", "kernel", "3e-5", kernel(F, "layer_norm", "norm", scaled(1 + 3e-5)), Where("norm", "layer_norm"))
add(_B, "matmul_tile_late", "kernel", "5e-2", kernel(torch, "matmul", "blocks.1.attention", tile(4, 4, 0.9), nth=1,
                                                     from_step=1), Where("blocks.1.attention", "matmul", 1, step=1))
add(_B, "head_in_half", "precision", "2e-3", kernel(F, "linear", "head", rounded_to(torch.bfloat16)),
    Where("head", "linear"))
add(_B, "norm_backward", "backward", "1e-3", kernel_backward(F, "layer_norm", "blocks.0.norm2", scaled(1.001)),
    backward("blocks.0.norm2", "layer_norm"))
add(_B, "gelu_backward", "backward", "1e-1", kernel_backward(F, "gelu", "blocks.1.act", tile(12, 16, 0.0)),
    backward("blocks.1.act", "gelu"))
add(_B, "up_not_updated", "update", "1e-2", not_updated("blocks.0.up", "weight"),
    *holder("blocks.0.up", "linear", step=1))
add(_B, "rate", "update", "1e-1", optimizer_setting("lr", 1.1e-3), every_parameter())

# ---------------------------------------------------------------------- gated

_B = "gated"


def _bare_norm(self, x):
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
    return wide.to(x.dtype)


def _narrow_norm(self, x):
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
    return self.weight * x


def _other_text(batch):
    batch["tokens"][0] = (batch["tokens"][0] * 3 + 1) % 80


add(_B, "norm_eps", "argument", "5e-2", setting("blocks.1.norm2", "eps", 1e-1), Where("blocks.1.norm2", "__add__"))
add(_B, "rotary_base", "argument", "1e-1", setting("blocks.0.attention.rotary", "base", 500.0),
    Where("blocks.0.attention.rotary", "__rpow__"))
add(_B, "rotary_offset", "argument", "1e-1", setting("blocks.1.attention.rotary", "offset", 1),
    Where("blocks.1.attention.rotary", "__add__", 0))
add(_B, "not_causal", "argument", "5e-1", setting("blocks.1.attention", "causal", False),
    Where("blocks.1.attention", "scaled_dot_product_attention"))
add(_B, "attention_scale", "argument", "2e-2", setting("blocks.0.attention", "scale", 0.3),
    Where("blocks.0.attention", "scaled_dot_product_attention"))
add(_B, "gelu_for_silu", "code", "1e-1", method("blocks.0.feed", lambda self, x: F.gelu(x), "activation"),
    Where("blocks.0.feed", "silu"), Where("blocks.0.feed", "gelu"))
add(_B, "norm_weight_missing", "code", "1e-1", method("norm", _bare_norm), Where("norm", "__mul__", 1), Where("norm"))
add(_B, "norm_in_half", "precision", "1e-2", method("blocks.1.norm1", _narrow_norm), Where("blocks.1.norm1", "pow"),
    Where("blocks.1.norm1", "float"))
add(_B, "up_scaled", "parameter", "2e-2", changed_parameter("blocks.0.feed.up", "weight", scaled(1.02)),
    *holder("blocks.0.feed.up", "linear"))
add(_B, "head_rows_stale", "parameter", "2e-1",
    changed_parameter("head", "weight", lambda data: torch.cat([_anew(data[:4]), data[4:]])),
    *holder("head", "linear"))
add(_B, "other_text", "input", "5e-1", changed_batch(_other_text), Where("tokens", "embedding", around=True))
add(_B, "silu_tile", "kernel", "2e-1", kernel(F, "silu", "blocks.1.feed", tile(12, 24, 0.5)),
    Where("blocks.1.feed", "silu"))
add(_B, "out_scaled", "kernel", "1e-2", kernel(F, "linear", "blocks.0.attention.out", scaled(1.01)),
    Where("blocks.0.attention.out", "linear"))
add(_B, "attention_scaled", "kernel", "2e-2",
    kernel(F, "scaled_dot_product_attention", "blocks.1.attention", scaled(1.02)),
    Where("blocks.1.attention", "scaled_dot_product_attention"))
add(_B, "down_bits_lost", "precision", "3e-2", kernel(F, "linear", "blocks.1.feed.down", bits_lost(4)),
    Where("blocks.1.feed.down", "linear"))
add(_B, "silu_backward", "backward", "2e-1", kernel_backward(F, "silu", "blocks.0.feed", tile(16, 48, 0.25)),
    backward("blocks.0.feed", "silu"))
add(_B, "gate_gradient", "backward", "1e-1", kernel_gradient("blocks.1.feed.gate", "weight", scaled(1.1)),
    Where("blocks.1.feed.gate", "*grad*"))
add(_B, "key_not_updated", "update", "5e-1", not_updated("blocks.1.attention.key", "weight"),
    *holder("blocks.1.attention.key", "linear", step=1))

# ---------------------------------------------------------------------- convolution

_B = "convolution"
_UPDATE = Where("optimizer", "*parent*", step=0)


def _no_inner_act(self, x):
    return self.act(x + self.norm2(self.conv2(self.norm1(self.conv1(x)))))


def _reflecting(old):
    new = nn.Conv2d(3, 12, 5, padding=2, padding_mode="reflect")
    new.load_state_dict(old.state_dict())
    return new


def _brighter(batch):
    batch["images"].mul_(1.01)


def _mirrored(batch):
    batch["images"][2] = batch["images"][2].flip(-1).clone()


add(_B, "norm_eps", "argument", "5e-3", setting("block1.norm1", "eps", 1e-3), Where("block1.norm1", "batch_norm"))
add(_B, "norm_momentum", "argument", "1e-1", setting("block2.norm2", "momentum", 0.2),
    Where("block2.norm2", "batch_norm"), *holder("block2.norm2", "batch_norm", step=1))
add(_B, "padding_mode", "code", "2e-1", exchanged("stem", _reflecting), Where("stem", "pad"), Where("stem", "conv2d"))
add(_B, "dilation", "argument", "5e-1", together(setting("block2.conv1", "dilation", (2, 2)),
                                                 setting("block2.conv1", "padding", (2, 2))),
    Where("block2.conv1", "conv2d"))
add(_B, "average_for_max", "code", "5e-1", exchanged("pool", lambda old: nn.AvgPool2d(2)),
    Where("pool", "max_pool2d"), Where("pool", "avg_pool2d"))
add(_B, "act_missing", "code", "5e-1", method("block2", _no_inner_act), Where("block2.act", "relu", 0),
    Where("block2.conv2", "conv2d"))
add(_B, "channels_swapped", "parameter", "5e-1", changed_parameter("stem", "weight", lambda data: data.flip(1)),
    *holder("stem", "conv2d"))
add(_B, "one_scale", "parameter", "3e-3", changed_parameter("block1.norm2", "weight", one_element(1.01)),
    *holder("block1.norm2", "batch_norm"))
add(_B, "brighter", "input", "1e-2", changed_batch(_brighter), Where("stem", "conv2d", around=True))
add(_B, "mirrored", "input", "5e-1", changed_batch(_mirrored), Where("stem", "conv2d", around=True))
add(_B, "conv_tile", "kernel", "5e-2", kernel(F, "conv2d", "block1.conv2", tile(4, 4, 0.9)),
    Where("block1.conv2", "conv2d"))
add(_B, "norm_scaled", "kernel", "1e-4", kernel(F, "batch_norm", "block2.norm1", scaled(1.0001)),
    Where("block2.norm1", "batch_norm"))
add(_B, "conv_in_half", "precision", "2e-3", kernel(F, "conv2d", "block2.conv2", rounded_to(torch.bfloat16)),
    Where("block2.conv2", "conv2d"))
add(_B, "conv_gradient", "backward", "1e-2", kernel_gradient("widen", "weight", scaled(1.01)), Where("widen", "*grad*"))
add(_B, "relu_backward", "backward", "1e-1", kernel_backward(F, "relu", "block2.act", elements(24, 0.0), nth=0),
    backward("block2.act", "relu", 0))
add(_B, "no_decay", "update", "1e-3", optimizer_setting("weight_decay", 0.0), _UPDATE)
add(_B, "rate", "update", "5e-2", optimizer_setting("lr", 0.021), _UPDATE)
add(_B, "update_tile", "update", "1e-1", update_spoiled("block1.conv1", "weight", tile(4, 3, 0.0)),
    *holder("block1.conv1", "conv2d", step=1))
add(_B, "linear_scaled", "kernel", "1e-5", kernel(F, "linear", "head", scaled(1 + 2e-5)), Where("head", "linear"))

# ---------------------------------------------------------------------- mixture

_B = "mixture"


def _bare_expert(self, x):
    return self.down(F.relu(self.up(x)))


def _wide_linear(self, x):
    with torch.autocast("cpu", enabled=False):
        return F.linear(x.float(), self.weight, self.bias)


def _experts_swapped(run):
    one, other = run.parameter("blocks.0.routed.experts.1.up", "weight"), run.parameter("blocks.0.routed.experts.2.up",
                                                                                         "weight")
    one.data, other.data = other.data.clone(), one.data.clone()


def _late_norm(self, x, bias):
    batch, length, width = x.shape
    parts = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], attn_mask=bias.to(parts.dtype))
    x = x + self.norm1(self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
    return x + self.routed(self.norm2(x))


def _disturbed(batch):
    batch["signal"][1] += 0.05 * torch.randn(batch["signal"][1].shape, generator=torch.Generator().manual_seed(3))


add(_B, "gates_as_they_are", "code", "3e-1", setting("blocks.0.routed", "renormalise", False),
    Where("blocks.0.routed", "sum", 0, side="golden"), Where("blocks.0.routed", "__truediv__", 1, side="golden"),
    Where("blocks.0.routed", "__mul__", 0))
add(_B, "temperature", "argument", "1e-1", setting("blocks.1.routed", "temperature", 1.3),
    Where("blocks.1.routed", "__truediv__", 0))
add(_B, "one_expert", "argument", "5e-1", setting("blocks.0.routed", "chosen", 1), Where("blocks.0.routed", "topk"))
add(_B, "bias_slope", "argument", "5e-2", setting("", "slope", 0.3), Where("", "__rmul__", 0))
add(_B, "square_missing", "code", "5e-1", method("blocks.1.routed.experts.2", _bare_expert),
    Where("blocks.1.routed.experts.2", "square"), Where("blocks.1.routed.experts.2.down", "linear"))
add(_B, "out_in_single", "precision", "3e-3", method("blocks.1.out", _wide_linear), Where("blocks.1.out", "linear"))
add(_B, "late_norm", "code", "5e-1", method("blocks.1", _late_norm), Where("blocks.1.norm1", "layer_norm"),
    Where("blocks.1.qkv", "linear"))
add(_B, "experts_swapped", "parameter", "5e-1", _experts_swapped,
    *holder("blocks.0.routed.experts.1.up", "linear"), *holder("blocks.0.routed.experts.2.up", "linear"))
add(_B, "router_stale", "parameter", "2e-2", changed_parameter("blocks.1.routed.router", "weight", noisy(0.02)),
    *holder("blocks.1.routed.router", "linear"))
add(_B, "disturbed", "input", "5e-2", changed_batch(_disturbed), Where("inlet", "linear", around=True))
add(_B, "rows_lost", "kernel", "2e-1", kernel(torch.Tensor, "index_add", "blocks.0.routed", last_rows_lost(2), nth=3),
    Where("blocks.0.routed", "index_add", 3))
add(_B, "norm_scaled", "kernel", "3e-3", kernel(F, "layer_norm", "blocks.1.norm2", scaled(1.003)),
    Where("blocks.1.norm2", "layer_norm"))
add(_B, "attention_elements", "kernel", "5e-2",
    kernel(F, "scaled_dot_product_attention", "blocks.0", elements(4, 1.5)),
    Where("blocks.0", "scaled_dot_product_attention"))
add(_B, "attention_backward", "backward", "1e-1",
    kernel_backward(F, "scaled_dot_product_attention", "blocks.1", scaled(0.9)),
    backward("blocks.1", "scaled_dot_product_attention"))
add(_B, "inlet_gradient", "backward", "3e-1", kernel_gradient("inlet", "weight", tile(12, 12, 0.0)),
    Where("inlet", "*grad*"))
add(_B, "adam_eps", "update", "3e-1", optimizer_setting("eps", 1e-3), every_parameter())
add(_B, "expert_not_updated", "update", "1e-2", not_updated("blocks.1.routed.experts.0.down", "weight", "bias"),
    *holder("blocks.1.routed.experts.0.down", "linear", step=1))
add(_B, "qkv_updated_twice", "update", "1e-2", update_spoiled("blocks.0.qkv", "weight", scaled(2)),
    *holder("blocks.0.qkv", "linear", step=1))

# ---------------------------------------------------------------------- recurrent

_B = "recurrent"


def _other_mix(self, x, state):
    reset_x, update_x, new_x = self.inner(x).chunk(3, -1)
    reset_h, update_h, new_h = self.state(state).chunk(3, -1)
    reset = torch.sigmoid(reset_x + reset_h)
    update = torch.sigmoid(update_x + update_h)
    new = torch.tanh(new_x + reset * new_h)
    return update * new + (1 - update) * state


def _hard_cell(self, x, state):
    reset_x, update_x, new_x = self.inner(x).chunk(3, -1)
    reset_h, update_h, new_h = self.state(state).chunk(3, -1)
    reset = torch.sigmoid(reset_x + reset_h)
    update = torch.sigmoid(update_x + update_h)
    new = F.hardtanh(new_x + reset * new_h)
    return (1 - update) * new + update * state


def _gates_in_other_order(data):
    first, second, third, fourth = data.chunk(4)
    return torch.cat([second, first, third, fourth])


def _last_token(batch):
    batch["tokens"][3, 3] = (batch["tokens"][3, 3] + 5) % 40


add(_B, "norm_eps", "argument", "2e-1", setting("norm", "eps", 1e-3), Where("norm", "layer_norm"))
add(_B, "clip", "argument", "5e-1", bench_setting("clip", 0.5), Where("clip_grad", "*parent*"))
add(_B, "hard_tanh", "code", "1e-2", method("cell", _hard_cell), Where("cell", "tanh", 0), Where("cell", "hardtanh", 0))
add(_B, "mix_swapped", "code", "5e-1", method("cell", _other_mix), Where("cell", "__rsub__", 0),
    Where("cell", "__mul__", 1), Where("cell", "__mul__", 2), Where("cell", "__add__", 3))
add(_B, "gate_order", "parameter", "5e-1", changed_parameter("lstm", "weight_hh_l0", _gates_in_other_order),
    *holder("lstm", "lstm"))
add(_B, "one_bias", "parameter", "1e-3", changed_parameter("lstm", "bias_ih_l1", one_element(1.5)),
    *holder("lstm", "lstm"))
add(_B, "state_stale", "parameter", "1e-1", changed_parameter("cell.state", "weight", noisy(0.1)),
    *holder("cell.state", "linear"))
add(_B, "last_token", "input", "1e-1", changed_batch(_last_token), Where("tokens", "embedding", around=True))
add(_B, "sigmoid_elements", "kernel", "5e-2", kernel(torch, "sigmoid", "cell", elements(5, 0.5), nth=7),
    Where("cell", "sigmoid", 7))
add(_B, "lstm_scaled", "kernel", "1e-3", kernel(torch._VF, "lstm", "lstm", scaled(1.001)), Where("lstm", "lstm"))
add(_B, "inner_tile_late", "kernel", "1e-1", kernel(F, "linear", "cell.inner", tile(2, 8, 0.5), nth=2, from_step=1),
    Where("cell.inner", "linear", 2, step=1))
add(_B, "head_in_half", "precision", "2e-3", kernel(F, "linear", "head", rounded_to(torch.bfloat16)),
    Where("head", "linear"))
add(_B, "tanh_backward", "backward", "2e-1", kernel_backward(torch, "tanh", "cell", scaled(0.8), nth=3),
    backward("cell", "tanh", 3))
add(_B, "loss_backward", "backward", "1e-2", kernel_backward(F, "log_softmax", "", scaled(1.01)),
    backward("", "log_softmax"))
add(_B, "adam_eps", "update", "1e-1", optimizer_setting("eps", 1e-4), _UPDATE)
add(_B, "head_not_updated", "update", "1e-2", not_updated("head", "weight"), *holder("head", "linear", step=1))

# ---------------------------------------------------------------------- denoiser

_B = "denoiser"


def _with_tanh(self, x, time):
    inner = self.conv1(self.act(self.norm1(x)))
    inner = torch.tanh(inner + self.time(self.act(time))[:, :, None, None])
    return self.skip(x) + self.conv2(self.act(self.norm2(inner)))


def _without_skip(self, x, time):
    inner = self.conv1(self.act(self.norm1(x)))
    inner = inner + self.time(self.act(time))[:, :, None, None]
    return self.conv2(self.act(self.norm2(inner)))


def _query_key_swapped(data):
    query, key, value = data.chunk(3)
    return torch.cat([key, query, value])


def _later(batch):
    batch["times"] += 1


add(_B, "bilinear", "argument", "3e-1", setting("", "mode", "bilinear"), Where("", "interpolate"))
add(_B, "groups", "argument", "2e-1", setting("up.norm2", "num_groups", 2), Where("up.norm2", "group_norm"))
add(_B, "period", "argument", "3e-1", setting("", "period", 100.0), Where("", "__rmul__", 1))
add(_B, "extra_tanh", "code", "1e-1", method("middle", _with_tanh), Where("middle", "tanh"))
add(_B, "no_skip", "code", "5e-1", method("down", _without_skip), Where("down.skip", "conv2d"), Where("down.skip"),
    Where("down", "__add__", 1))
add(_B, "query_key_swapped", "parameter", "5e-1", changed_parameter("attention", "in_proj_weight", _query_key_swapped),
    *holder("attention", "multi_head_attention_forward"))
add(_B, "outlet_bias", "parameter", "2e-1", changed_parameter("outlet", "bias", scaled(1.5)),
    *holder("outlet", "conv2d"))
add(_B, "one_skip_weight", "parameter", "2e-2", changed_parameter("up.skip", "weight", one_element(1.5)),
    *holder("up.skip", "conv2d"))
add(_B, "later", "input", "5e-2", changed_batch(_later), Where("", "__mul__", 0))
add(_B, "silu_tile", "kernel", "1e-1", kernel(F, "silu", "middle.act", tile(6, 6, 0.5)), Where("middle.act", "silu", 0))
add(_B, "norm_scaled", "kernel", "3e-3", kernel(F, "group_norm", "down.norm2", scaled(1.003)),
    Where("down.norm2", "group_norm"))
add(_B, "conv_bits_lost", "precision", "3e-2", kernel(F, "conv2d", "middle.conv1", bits_lost(4)),
    Where("middle.conv1", "conv2d"))
add(_B, "interpolate_backward", "backward", "2e-1", kernel_backward(F, "interpolate", "", scaled(0.8)),
    backward("", "interpolate"))
add(_B, "halve_gradient", "backward", "1e-1", kernel_gradient("halve", "weight", tile(8, 3, 0.0)),
    Where("halve", "*grad*"))
add(_B, "rate", "update", "2e-1", optimizer_setting("lr", 0.6), every_parameter())
add(_B, "outlet_not_updated", "update", "1e-2", not_updated("outlet", "weight"), *holder("outlet", "conv2d", step=1))
