# SPDX-License-Identifier: Apache-2.0
"""A vision transformer: the library's against one that cuts patches by views and has one projection for attention."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import ViTConfig, ViTForImageClassification

from ports.port import Port, Wrong, below, load


class VitPort(Port):
    name = "vit"
    layers = 3
    wrongs = (Wrong("patch_channels_last"), Wrong("query_and_key_swapped"), Wrong("heads_last", layer=1),
              Wrong("mean_pool"), Wrong("gelu_tanh"), Wrong("no_place_for_class"),
              Wrong("norm_after", layer=2), Wrong("half_gradient", layer=1, backward=True))

    def config(self):
        return ViTConfig(hidden_size=64, num_hidden_layers=self.layers, num_attention_heads=4, intermediate_size=160,
                         image_size=24, patch_size=6, num_labels=7, hidden_dropout_prob=0.0,
                         attention_probs_dropout_prob=0.0, attn_implementation="eager")

    def reference(self):
        return ViTForImageClassification(self.config())

    def batch(self, generator):
        return {"pixel_values": torch.randn(3, 3, 24, 24, generator=generator),
                "labels": torch.randint(0, 7, (3,), generator=generator)}

    def port(self, weights, wrong):
        return load(VisionTransformer(self.config(), wrong), converted(weights, self.layers, wrong))

    def port_loss(self, port, batch):
        return F.cross_entropy(port(batch["pixel_values"]), batch["labels"])


def converted(weights, layers, wrong):
    patches = below(weights, "vit.embeddings.patch_embeddings.projection.")
    ours = {"cls_token": weights["vit.embeddings.cls_token"],
            "pos_embed": weights["vit.embeddings.position_embeddings"],
            "patch_embed.weight": patches["weight"].flatten(1), "patch_embed.bias": patches["bias"]}
    names = ("key", "query", "value") if wrong("query_and_key_swapped") else ("query", "key", "value")
    for layer in range(layers):
        theirs = below(weights, f"vit.encoder.layer.{layer}.")
        for kind in ("weight", "bias"):
            ours |= {f"blocks.{layer}.{name}.{kind}": value for name, value in {
                "attn.qkv": torch.cat([theirs[f"attention.attention.{name}.{kind}"] for name in names]),
                "attn.proj": theirs[f"attention.output.dense.{kind}"],
                "norm1": theirs[f"layernorm_before.{kind}"], "norm2": theirs[f"layernorm_after.{kind}"],
                "mlp.0": theirs[f"intermediate.dense.{kind}"], "mlp.2": theirs[f"output.dense.{kind}"]}.items()}
    for kind in ("weight", "bias"):
        ours |= {f"norm.{kind}": weights[f"vit.layernorm.{kind}"], f"head.{kind}": weights[f"classifier.{kind}"]}
    return ours


class Attention(nn.Module):
    def __init__(self, dim, heads, layer, wrong):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.layer, self.wrong = layer, wrong

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x)  # fault: query_and_key_swapped, norm_after
        if self.wrong("heads_last", self.layer):
            qkv = qkv.view(B, N, 3, C // self.heads, self.heads).permute(2, 0, 4, 1, 3)
        else:
            qkv = qkv.view(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        x = F.scaled_dot_product_attention(q, k, v)  # fault: query_and_key_swapped, heads_last
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, dim, heads, hidden, layer, wrong):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-12)
        self.attn = Attention(dim, heads, layer, wrong)
        self.norm2 = nn.LayerNorm(dim, eps=1e-12)
        act = nn.GELU(approximate="tanh" if wrong("gelu_tanh") else "none")
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), act, nn.Linear(hidden, dim))
        self.layer, self.wrong = layer, wrong

    def forward(self, x):
        if self.wrong("norm_after", self.layer):
            x = x + self.norm1(self.attn(x))
        else:
            x = x + self.attn(self.norm1(x))
        h = self.mlp[0](self.norm2(x))
        h = self.mlp[1](h)  # fault: gelu_tanh
        h = self.mlp[2](h)  # fault: half_gradient
        if self.wrong("half_gradient", self.layer):
            h.register_hook(lambda gradient: gradient * 0.5)
        return x + h  # fault: half_gradient


class VisionTransformer(nn.Module):
    def __init__(self, config, wrong):
        super().__init__()
        dim = config.hidden_size
        self.patch = config.patch_size
        self.patch_embed = nn.Linear(3 * self.patch**2, dim)
        places = (config.image_size // self.patch) ** 2
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, places + 1, dim))
        self.blocks = nn.ModuleList([Block(dim, config.num_attention_heads, config.intermediate_size, layer, wrong)
                                     for layer in range(config.num_hidden_layers)])
        self.norm = nn.LayerNorm(dim, eps=1e-12)
        self.head = nn.Linear(dim, config.num_labels)
        self.wrong = wrong

    def patches(self, images):
        B, C, H, W = images.shape
        p = self.patch
        x = images.view(B, C, H // p, p, W // p, p)
        if self.wrong("patch_channels_last"):
            return x.permute(0, 2, 4, 3, 5, 1).reshape(B, -1, C * p * p)
        return x.permute(0, 2, 4, 1, 3, 5).reshape(B, -1, C * p * p)

    def forward(self, images):
        x = self.patch_embed(self.patches(images))  # fault, once: patch_channels_last
        if self.wrong("no_place_for_class"):
            x = x + self.pos_embed[:, :-1]  # fault, once: no_place_for_class
            x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)
        else:
            x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        x = x.mean(dim=1) if self.wrong("mean_pool") else x[:, 0]  # fault, once: mean_pool
        return self.head(x)  # fault, once: mean_pool
