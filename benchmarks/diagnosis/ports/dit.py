# SPDX-License-Identifier: Apache-2.0
"""A diffusion transformer: plain modules with a convolution for patches against functions with products of matrices."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from ports.port import Port, Wrong

WIDTH, HEADS, PATCH, CHANNELS, SIDE, KINDS = 64, 4, 2, 4, 8, 5


class Modulated(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-6, elementwise_affine=False)
        self.attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-6, elementwise_affine=False)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(3 * WIDTH, WIDTH))
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 6 * WIDTH))

    def forward(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(c)[:, None].chunk(6, dim=-1)
        y = self.norm1(x) * (1 + scale1) + shift1
        x = x + gate1 * self.attn(y, y, y, need_weights=False)[0]
        y = self.norm2(x) * (1 + scale2) + shift2
        return x + gate2 * self.mlp(y)


class Diffusion(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.patches = nn.Conv2d(CHANNELS, WIDTH, PATCH, PATCH)
        self.place_emb = nn.Parameter(torch.zeros((SIDE // PATCH) ** 2, WIDTH))
        self.kind_emb = nn.Embedding(KINDS, WIDTH)
        self.time = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.blocks = nn.ModuleList([Modulated() for _ in range(layers)])
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6, elementwise_affine=False)
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(WIDTH, 2 * WIDTH))
        self.out = nn.Linear(WIDTH, PATCH * PATCH * CHANNELS)

    def forward(self, images, times, kinds):
        x = self.patches(images).flatten(2).transpose(1, 2) + self.place_emb
        half = WIDTH // 2
        angle = times[:, None] * torch.exp(-math.log(10000.0) * torch.arange(half) / half)
        c = self.time(torch.cat([angle.cos(), angle.sin()], dim=-1)) + self.kind_emb(kinds)
        for block in self.blocks:
            x = block(x, c)
        shift, scale = self.modulation(c)[:, None].chunk(2, dim=-1)
        x = self.out(self.norm(x) * (1 + scale) + shift)
        x = x.unflatten(1, (SIDE // PATCH, -1)).unflatten(-1, (PATCH, PATCH, CHANNELS))
        return torch.einsum("bhwpqc->bchpwq", x).reshape(images.shape)


class DitPort(Port):
    name = "dit"
    layers = 3
    held_out = True
    wrongs = (Wrong("sine_first"), Wrong("scale_without_one", layer=1), Wrong("shift_and_scale_swapped"),
              Wrong("no_gate", layer=2), Wrong("pixels_transposed"), Wrong("modulation_not_activated", layer=0),
              Wrong("scale_of_model"))

    def reference(self):
        return Diffusion(self.layers)

    def batch(self, generator):
        return {"images": torch.randn(2, CHANNELS, SIDE, SIDE, generator=generator),
                "noise": torch.randn(2, CHANNELS, SIDE, SIDE, generator=generator),
                "times": torch.tensor([37.0, 410.0]), "kinds": torch.tensor([1, 4])}

    def reference_loss(self, model, batch):
        return F.mse_loss(model(batch["images"], batch["times"], batch["kinds"]), batch["noise"])

    def port(self, weights, wrong):
        return Functions(weights, self.layers, wrong)

    def port_loss(self, port, batch):
        guess = port(batch["images"], batch["times"], batch["kinds"])
        error = guess - batch["noise"]  # fault, once: pixels_transposed
        return error.square().mean()


class Functions:
    def __init__(self, weights, layers, wrong):
        self.w = {name: value.clone().requires_grad_() for name, value in weights.items()}
        self.layers, self.wrong = layers, wrong

    def parameters(self):
        return list(self.w.values())

    def linear(self, x, name):
        return F.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def standard(self, x):
        return F.layer_norm(x, (WIDTH,), eps=1e-6)

    def attend(self, x, name):
        qkv = F.linear(x, self.w[name + ".in_proj_weight"], self.w[name + ".in_proj_bias"])
        q, k, v = qkv.unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        size = WIDTH if self.wrong("scale_of_model") else WIDTH // HEADS
        q = q / math.sqrt(size)  # fault: scale_of_model
        y = torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-1, -2)), dim=-1), v)
        return self.linear(y.transpose(1, 2).flatten(2), name + ".out_proj")

    def block(self, x, c, layer):
        at, wrong = f"blocks.{layer}.", self.wrong
        if not wrong("modulation_not_activated", layer):
            c = F.silu(c)
        parts = self.linear(c, at + "modulation.1")  # fault: modulation_not_activated
        shift1, scale1, gate1, shift2, scale2, gate2 = parts.unflatten(-1, (6, 1, WIDTH)).unbind(1)
        if wrong("shift_and_scale_swapped"):
            shift1, scale1 = scale1, shift1
        least = 0.0 if wrong("scale_without_one", layer) else 1.0
        y = self.standard(x)
        y = torch.addcmul(shift1, y, scale1 + 1.0)  # fault: shift_and_scale_swapped
        y = self.attend(y, at + "attn")
        if wrong("no_gate", layer):
            x = x + y  # fault: no_gate
        else:
            x = torch.addcmul(x, gate1, y)
        y = self.standard(x)
        y = torch.addcmul(shift2, y, scale2 + least)  # fault: scale_without_one
        y = self.linear(F.gelu(self.linear(y, at + "mlp.0"), approximate="tanh"), at + "mlp.2")
        return torch.addcmul(x, gate2, y)

    def timed(self, times):
        half = WIDTH // 2
        angle = torch.outer(times, 10000.0 ** (-torch.arange(half) / half))
        waves = [angle.sin(), angle.cos()] if self.wrong("sine_first") else [angle.cos(), angle.sin()]
        y = torch.cat(waves, dim=-1)  # fault, once: sine_first
        y = self.linear(y, "time.0")  # fault, once: sine_first
        return self.linear(F.silu(y), "time.2")

    def __call__(self, images, times, kinds):
        weight = self.w["patches.weight"].flatten(1)
        cut = F.unfold(images, PATCH, stride=PATCH)
        x = torch.einsum("bip,oi->bpo", cut, weight) + self.w["patches.bias"] + self.w["place_emb"]
        c = self.timed(times) + F.embedding(kinds, self.w["kind_emb.weight"])
        for layer in range(self.layers):
            x = self.block(x, c, layer)
        shift, scale = self.linear(F.silu(c), "modulation.1").unflatten(-1, (2, 1, WIDTH)).unbind(1)
        x = self.linear(torch.addcmul(shift, self.standard(x), scale + 1.0), "out")
        rows = x.view(len(x), SIDE // PATCH, SIDE // PATCH, PATCH, PATCH, CHANNELS)
        order = (0, 5, 1, 4, 2, 3) if self.wrong("pixels_transposed") else (0, 5, 1, 3, 2, 4)
        return rows.permute(*order).reshape(images.shape)
