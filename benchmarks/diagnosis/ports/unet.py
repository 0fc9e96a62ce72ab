# SPDX-License-Identifier: Apache-2.0
"""A small U-Net for denoising: channels first with PyTorch's norms against channels last with norms by hand."""

import torch
from torch import nn
from torch.nn import functional as F

from ports.port import Port, Wrong, below, parameter

WIDTH, WIDER, GROUPS, TIME, SIDE = 32, 64, 4, 48, 12


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(GROUPS, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(TIME, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(GROUPS, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.short = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(t))[:, :, None, None]
        return self.short(x) + self.conv2(F.silu(self.norm2(h)))


class Spatial(nn.Module):
    """Every pixel attends to all."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, width)
        self.qkv, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, 3, c, h * w).unbind(1)
        weights = torch.softmax(torch.bmm(q.transpose(1, 2), k) * c**-0.5, dim=-1)
        return x + self.out(torch.bmm(v, weights.transpose(1, 2)).view(b, c, h, w))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, TIME), nn.SiLU(), nn.Linear(TIME, TIME))
        self.first = nn.Conv2d(3, WIDTH, 3, padding=1)
        self.blocks = nn.ModuleList([Residual(WIDTH, WIDTH), Residual(WIDER, WIDER), Residual(WIDTH + WIDER, WIDTH)])
        self.down = nn.Conv2d(WIDTH, WIDER, 3, 2, padding=1)
        self.middle = Spatial(WIDER)
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.last = nn.Sequential(nn.GroupNorm(GROUPS, WIDTH), nn.SiLU(), nn.Conv2d(WIDTH, 3, 3, padding=1))

    def forward(self, x, times):
        t = self.time(waves(times))
        kept = self.blocks[0](self.first(x), t)
        x = self.middle(self.blocks[1](self.down(kept), t))
        return self.last(self.blocks[2](torch.cat([self.up(x), kept], dim=1), t))


def waves(times):
    angle = times[:, None] * 0.5 ** torch.arange(8)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


class UNetPort(Port):
    name = "unet"
    layers = 3
    wrongs = (Wrong("groups_of_four", layer=1), Wrong("skip_first", layer=2), Wrong("bilinear"),
              Wrong("time_after_norm"), Wrong("time_not_activated"), Wrong("keys_over_queries"))

    def reference(self):
        return UNet()

    def batch(self, generator):
        return {"images": torch.randn(2, 3, SIDE, SIDE, generator=generator),
                "noise": torch.randn(2, 3, SIDE, SIDE, generator=generator), "times": torch.tensor([0.3, 2.1])}

    def reference_loss(self, model, batch):
        return F.mse_loss(model(batch["images"], batch["times"]), batch["noise"])

    def port(self, weights, wrong):
        return ChannelsLast(weights, wrong)

    def port_loss(self, port, batch):
        images, noise = (batch[name].permute(0, 2, 3, 1).contiguous() for name in ("images", "noise"))
        return torch.mean(torch.square(noise - port(images, batch["times"])))


def grouped(x, scale, shift, size):
    """Standardised over all pixels and the channels of a group."""
    parts = x.unflatten(-1, (-1, size))
    var, mean = torch.var_mean(parts, dim=(1, 2, 4), correction=0, keepdim=True)
    return ((parts - mean) * torch.rsqrt(var + 1e-5)).flatten(3) * scale + shift


class Norm(nn.Module):
    def __init__(self, weights, size=None):
        super().__init__()
        self.scale, self.shift = parameter(weights["weight"]), parameter(weights["bias"])
        self.size = size or len(self.scale) // GROUPS

    def forward(self, x):
        return grouped(x, self.scale, self.shift, self.size)


class Conv(nn.Module):
    """The pixels around each one side by side, then one product."""

    def __init__(self, weights, stride=1):
        super().__init__()
        weight = weights["weight"]
        self.width, self.stride = weight.shape[-1], stride
        self.matrix, self.offset = parameter(weight.flatten(1).t()), parameter(weights["bias"])

    def forward(self, x):
        b, h, w, _ = x.shape
        if self.width == 1:
            return torch.matmul(x, self.matrix) + self.offset
        cut = F.unfold(x.permute(0, 3, 1, 2), self.width, padding=self.width // 2, stride=self.stride)
        y = torch.baddbmm(self.offset, cut.transpose(1, 2), self.matrix.expand(b, -1, -1))
        return y.view(b, h // self.stride, w // self.stride, -1)


class Block(nn.Module):
    def __init__(self, weights, layer, wrong):
        super().__init__()
        self.norm1 = Norm(below(weights, "norm1."), 4 if wrong("groups_of_four", layer) else None)
        self.conv1, self.norm2 = Conv(below(weights, "conv1.")), Norm(below(weights, "norm2."))
        self.conv2, self.short = Conv(below(weights, "conv2.")), Conv(below(weights, "short."))
        self.w_time, self.b_time = parameter(weights["time.weight"]), parameter(weights["time.bias"])
        self.wrong = wrong

    def forward(self, x, t):
        h = self.norm1(x)  # fault: groups_of_four, skip_first
        h = self.conv1(F.silu(h))
        t = t if self.wrong("time_not_activated") else F.silu(t)
        t = F.linear(t, self.w_time, self.b_time)  # fault: time_not_activated
        t = t[:, None, None]
        if self.wrong("time_after_norm"):
            h = self.norm2(h)  # fault: time_after_norm
            h = h + t
        else:
            h = self.norm2(h + t)
        return self.conv2(F.silu(h)) + self.short(x)


class ChannelsLast(nn.Module):
    def __init__(self, weights, wrong):
        super().__init__()
        self.times = nn.ParameterList(
            [weights[f"time.{at}.{kind}"].clone() for at in (0, 2) for kind in ("weight", "bias")])
        self.entry, self.down = Conv(below(weights, "first.")), Conv(below(weights, "down."), 2)
        self.blocks = nn.ModuleList([Block(below(weights, f"blocks.{at}."), at, wrong) for at in range(3)])
        self.norm, self.qkv = Norm(below(weights, "middle.norm.")), Conv(below(weights, "middle.qkv."))
        self.out = Conv(below(weights, "middle.out."))
        self.last_norm, self.last = Norm(below(weights, "last.0.")), Conv(below(weights, "last.2."))
        self.wrong = wrong

    def attend(self, x):
        q, k, v = self.qkv(self.norm(x)).flatten(1, 2).chunk(3, dim=-1)
        if self.wrong("keys_over_queries"):
            q, k = k, q
        y = F.scaled_dot_product_attention(q, k, v)  # fault, once: keys_over_queries
        return x + self.out(y.view(x.shape))

    def grown(self, x):
        if self.wrong("bilinear"):
            x = x.permute(0, 3, 1, 2)
            x = F.interpolate(x, scale_factor=2, mode="bilinear")  # fault, once: bilinear
            return x.permute(0, 2, 3, 1)
        return x.repeat_interleave(2, dim=1).repeat_interleave(2, dim=2)

    def forward(self, images, times):
        w1, b1, w2, b2 = self.times
        t = F.linear(F.silu(F.linear(waves(times), w1, b1)), w2, b2)
        x = self.entry(images)
        kept = self.blocks[0](x, t)
        x = self.attend(self.blocks[1](self.down(kept), t))
        parts = [kept, self.grown(x)] if self.wrong("skip_first") else [self.grown(x), kept]
        x = self.blocks[2](torch.cat(parts, dim=-1), t)
        return self.last(F.silu(self.last_norm(x)))
