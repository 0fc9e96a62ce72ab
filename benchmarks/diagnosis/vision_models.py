# SPDX-License-Identifier: Apache-2.0
"""Models of images: convolutions with skip connections, and patches under autocast; with their faults."""

import torch
from torch import nn
from torch.nn import functional as F

from catalogue import backward, every_parameter, holder, one_element
from models import Bench
from planting import (Fault, Where, bench_setting, bits_lost, changed_batch, changed_parameter, elements, exchanged,
                      kernel, kernel_backward, kernel_gradient, method, noisy, not_updated, optimizer_setting,
                      rounded_to, scaled, setting, tile, update_spoiled)

VISION_FAULTS = []


def add(bench, name, kind, size, plant, *expect):
    VISION_FAULTS.append(Fault(bench, name, kind, size, plant, expect))


# ---------------------------------------------------------------------- segmenter: skips, group norm, RMSprop


class DoubleConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm1 = nn.GroupNorm(4, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.norm2 = nn.GroupNorm(4, outputs)
        self.act = nn.LeakyReLU(0.1)

    def forward(self, x):
        x = self.act(self.norm1(self.conv1(x)))
        return self.act(self.norm2(self.conv2(x)))


class SegmenterModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = DoubleConvolution(2, 8)
        self.down = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.middle = DoubleConvolution(8, 16)
        self.pool = nn.AvgPool2d(2)
        self.bottom = DoubleConvolution(16, 24)
        self.up2 = nn.ConvTranspose2d(24, 16, 2, stride=2)
        self.leave2 = DoubleConvolution(32, 16)
        self.up1 = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.leave1 = DoubleConvolution(16, 8)
        self.outlet = nn.Conv2d(8, 1, 1)

    def forward(self, images):
        fine = self.enter(images)
        coarse = self.middle(self.down(fine))
        x = self.bottom(self.pool(coarse))
        x = self.leave2(torch.cat([self.up2(x), coarse], 1))
        x = self.leave1(torch.cat([self.up1(x), fine], 1))
        return self.outlet(x)


class Segmenter(Bench):
    name = "segmenter"
    seeds = (31, 32)
    kernels = ("avx512", "plain", "native", "channels_last")
    smooth = 1.0
    weight = 2.0

    def build(self):
        return SegmenterModel()

    def batch(self, generator):
        images = torch.randn(3, 2, 16, 16, generator=generator)
        return {"images": images, "labels": (images.mean(1, keepdim=True) > 0.3).float()}

    def loss(self, model, batch):
        logits, labels = model(batch["images"]), batch["labels"]
        cross = F.binary_cross_entropy_with_logits(logits, labels, pos_weight=torch.tensor(self.weight))
        found = torch.sigmoid(logits)
        overlap = 2 * (found * labels).sum() + self.smooth
        return cross + 1 - overlap / (found.sum() + labels.sum() + self.smooth)

    def optimizer(self, model):
        return torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9)


def _skip_first(self, images):
    fine = self.enter(images)
    coarse = self.middle(self.down(fine))
    x = self.bottom(self.pool(coarse))
    x = self.leave2(torch.cat([coarse, self.up2(x)], 1))
    x = self.leave1(torch.cat([self.up1(x), fine], 1))
    return self.outlet(x)


def _before_norm(self, x):
    x = self.act(self.norm1(self.conv1(x)))
    return self.norm2(self.act(self.conv2(x)))


def _channels_swapped(batch):
    batch["images"].copy_(batch["images"].flip(1).clone())


def _labels_shifted(batch):
    batch["labels"].copy_(batch["labels"].roll(1, -1).clone())


_B = "segmenter"
add(_B, "slope", "argument", "2e-2", setting("middle.act", "negative_slope", 0.12),
    Where("middle.act", "leaky_relu"))
add(_B, "groups", "argument", "3e-1", setting("leave2.norm1", "num_groups", 2), Where("leave2.norm1", "group_norm"))
add(_B, "norm_eps", "argument", "1e-3", setting("bottom.norm2", "eps", 1e-3), Where("bottom.norm2", "group_norm"))
add(_B, "smooth", "argument", "1e-2", bench_setting("smooth", 2.0), Where("", "__add__", 0), Where("", "__add__", 1))
add(_B, "weight", "input", "1e-1", bench_setting("weight", 2.5), Where("", "binary_cross_entropy_with_logits"))
add(_B, "skip_first", "code", "5e-1", method("", _skip_first), Where("", "cat", 0), *holder("leave2.conv1", "conv2d"))
add(_B, "norm_last", "code", "3e-1", method("leave1", _before_norm), Where("leave1.norm2", "group_norm"),
    Where("leave1.act", "leaky_relu", 1))
add(_B, "largest_pool", "code", "5e-1", exchanged("pool", lambda old: nn.MaxPool2d(2)), Where("pool", "avg_pool2d"),
    Where("pool", "max_pool2d"))
add(_B, "up_mirrored", "parameter", "3e-1", changed_parameter("up1", "weight", lambda data: data.flip(-1)),
    *holder("up1", "conv_transpose2d"))
add(_B, "norm_weight_stale", "parameter", "3e-2", changed_parameter("leave2.norm2", "weight", noisy(0.03)),
    *holder("leave2.norm2", "group_norm"))
add(_B, "channels_swapped", "input", "5e-1", changed_batch(_channels_swapped),
    Where("enter.conv1", "conv2d", around=True))
add(_B, "labels_shifted", "input", "3e-1", changed_batch(_labels_shifted),
    Where("", "binary_cross_entropy_with_logits"))
add(_B, "up_tile", "kernel", "3e-2", kernel(F, "conv_transpose2d", "up2", tile(4, 2, 0.5)),
    Where("up2", "conv_transpose2d"))
add(_B, "pool_elements", "kernel", "1e-2", kernel(F, "avg_pool2d", "pool", elements(4, 1.1)),
    Where("pool", "avg_pool2d"))
add(_B, "outlet_in_half", "precision", "2e-3", kernel(F, "conv2d", "outlet", rounded_to(torch.bfloat16)),
    Where("outlet", "conv2d"))
add(_B, "norm_backward", "backward", "1e-2", kernel_backward(F, "group_norm", "leave1.norm1", scaled(0.99)),
    backward("leave1.norm1", "group_norm"))
add(_B, "up_backward", "backward", "2e-1", kernel_backward(F, "conv_transpose2d", "up2", tile(4, 4, 0.0), position=0),
    backward("up2", "conv_transpose2d"))
add(_B, "down_gradient", "backward", "5e-2", kernel_gradient("down", "weight", tile(6, 3, 0.5)),
    Where("down", "*grad*"))
add(_B, "alpha", "update", "2e-1", optimizer_setting("alpha", 0.95), every_parameter())
add(_B, "bottom_not_updated", "update", "1e-2", not_updated("bottom.conv2", "weight"),
    *holder("bottom.conv2", "conv2d", step=1))

# ---------------------------------------------------------------------- patches: autocast, clipping, a schedule


class PatchBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.scale1 = nn.Parameter(torch.full((width,), 0.3) + 0.05 * torch.randn(width))
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.up = nn.Linear(width, 2 * width)
        self.act = nn.GELU(approximate="tanh")
        self.down = nn.Linear(2 * width, width)
        self.scale2 = nn.Parameter(torch.full((width,), 0.3) + 0.05 * torch.randn(width))

    def attend(self, x):
        batch, length, width = x.shape
        query, key, value = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.scale1 * self.attend(self.norm1(x))
        return x + self.scale2 * self.down(self.act(self.up(self.norm2(x))))


class PatchesModel(nn.Module):
    def __init__(self):
        super().__init__()
        width = 48
        self.patch = nn.Conv2d(3, width, 4, stride=4)
        self.mark = nn.Parameter(0.1 * torch.randn(1, 1, width))
        self.places = nn.Parameter(0.1 * torch.randn(1, 17, width))
        self.blocks = nn.ModuleList([PatchBlock(width, 4) for _ in range(3)])
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, 10)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.mark.expand(x.shape[0], -1, -1), x], 1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Patches(Bench):
    """Gradients of two half batches are added up."""

    name = "patches"
    dtype = "autocast"
    seeds = (31, 32)
    kernels = ("avx512", "plain", "avx2", "math_attention")
    smoothing = 0.1
    clip = 1.0
    parts = 2

    def build(self):
        return PatchesModel()

    def batch(self, generator):
        return {"images": torch.randn(4, 3, 16, 16, generator=generator),
                "labels": torch.softmax(3 * torch.randn(4, 10, generator=generator), -1)}

    def loss(self, model, batch):
        with torch.autocast(self.device, torch.bfloat16):
            logits = model(batch["images"])
        return F.cross_entropy(logits.float(), batch["labels"], label_smoothing=self.smoothing)

    def gradients(self, model, batch):
        for images, labels in zip(batch["images"].chunk(2), batch["labels"].chunk(2)):
            (self.loss(model, {"images": images, "labels": labels}) / self.parts).backward()

    def optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)

    def finish(self, model):
        torch.nn.utils.clip_grad_norm_(model.parameters(), self.clip)


def _first_scale_missing(self, x):
    x = x + self.attend(self.norm1(x))
    return x + self.scale2 * self.down(self.act(self.up(self.norm2(x))))


def _wide_attention(self, x):
    batch, length, width = x.shape
    query, key, value = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
    mixed = F.scaled_dot_product_attention(query.float(), key.float(), value.float())
    return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


def _mean_of_all(self, images):
    x = self.patch(images).flatten(2).transpose(1, 2)
    x = torch.cat([self.mark.expand(x.shape[0], -1, -1), x], 1) + self.places
    for block in self.blocks:
        x = block(x)
    return self.head(self.norm(x).mean(1))


def _one_darker(batch):
    batch["images"][3] -= 0.1


_B = "patches"
add(_B, "norm_eps", "argument", "5e-2", setting("blocks.1.norm2", "eps", 0.05), Where("blocks.1.norm2", "layer_norm"))
add(_B, "gelu_exact", "argument", "1e-3", setting("blocks.0.act", "approximate", "none"),
    Where("blocks.0.act", "gelu"))
add(_B, "smoothing", "argument", "1e-2", bench_setting("smoothing", 0.2), Where("", "cross_entropy"))
add(_B, "adam_eps", "update", "3e-1", optimizer_setting("eps", 1e-2), every_parameter())
add(_B, "not_divided", "argument", "5e-1", bench_setting("parts", 1), Where("", "__truediv__"))
add(_B, "scale_missing", "code", "5e-1", method("blocks.1", _first_scale_missing), Where("blocks.1", "__rmul__", 0),
    Where("blocks.1", "__mul__", 0), Where("blocks.1", "__add__", 0))
add(_B, "wide_attention", "precision", "3e-3", method("blocks.2", _wide_attention, "attend"),
    Where("blocks.2", "scaled_dot_product_attention"), Where("blocks.2", "float"))
add(_B, "mean_of_all", "code", "5e-1", method("", _mean_of_all), Where("", "mean"), *holder("head", "linear"))
add(_B, "places_stale", "parameter", "1e-1", changed_parameter("", "places", noisy(0.1)), Where("", "__add__"))
add(_B, "scale2_one", "parameter", "5e-2", changed_parameter("blocks.0", "scale2", one_element(2.0)),
    Where("blocks.0", "__mul__", 1), Where("blocks.0", "__rmul__", 1))
add(_B, "qkv_bias", "parameter", "5e-1", changed_parameter("blocks.1.qkv", "bias", lambda data: torch.zeros_like(data)),
    *holder("blocks.1.qkv", "linear"))
add(_B, "one_darker", "input", "5e-2", changed_batch(_one_darker), Where("patch", "conv2d", around=True))
add(_B, "second_part_tile", "kernel", "2e-1",
    kernel(F, "linear", "blocks.0.down", tile(8, 16, 0.5), nth=1), Where("blocks.0.down", "linear", 1))
add(_B, "attention_scaled", "kernel", "1e-2",
    kernel(F, "scaled_dot_product_attention", "blocks.1", scaled(1.01)),
    Where("blocks.1", "scaled_dot_product_attention"))
add(_B, "norm_elements", "kernel", "5e-2", kernel(F, "layer_norm", "norm", elements(6, 0.7)),
    Where("norm", "layer_norm"))
add(_B, "up_bits_lost", "precision", "3e-2", kernel(F, "linear", "blocks.2.up", bits_lost(4)),
    Where("blocks.2.up", "linear"))
add(_B, "attention_backward", "backward", "2e-1",
    kernel_backward(F, "scaled_dot_product_attention", "blocks.1", scaled(0.8), nth=1),
    backward("blocks.1", "scaled_dot_product_attention", 1))
add(_B, "head_gradient", "backward", "1e-1", kernel_gradient("head", "weight", scaled(1.1)), Where("head", "*grad*"))
add(_B, "rate", "update", "1e-1", optimizer_setting("lr", 1.2e-3), every_parameter())
add(_B, "qkv_part_not_updated", "update", "1e-2", update_spoiled("blocks.0.qkv", "weight", tile(48, 48, 0.0)),
    *holder("blocks.0.qkv", "linear", step=1))

VISION_BENCHES = {bench.name: bench for bench in (Segmenter, Patches)}
