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


def _one_element(factor):
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
add(_B, "one_weight", "parameter", "1e-3", changed_parameter("blocks.1.down", "weight", _one_element(1.5)),
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


def _rolled(batch):
    batch["tokens"][0] = batch["tokens"][0].roll(1)


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
    changed_parameter("head", "weight", lambda data: data[:4].copy_(_anew(data[:4])) and None),
    *holder("head", "linear"))
add(_B, "rolled_tokens", "input", "5e-1", changed_batch(_rolled), Where("tokens", "embedding", around=True))
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
