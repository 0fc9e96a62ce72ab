# SPDX-License-Identifier: Apache-2.0
"""Gemma 2: scores and logits with a soft cap, norms before and after, windows; the port has the length first."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import Gemma2Config, Gemma2ForCausalLM

from ports.port import Port, Wrong, below, parameter, tokens


class Gemma2Port(Port):
    name = "gemma2"
    layers = 4
    wrongs = (Wrong("no_embedding_scale"), Wrong("no_cap", layer=1), Wrong("scale_of_heads"),
              Wrong("norm_without_one", layer=2), Wrong("no_norm_after", layer=1), Wrong("gelu_exact"),
              Wrong("window_longer", layers=2), Wrong("no_cap_of_logits"))

    def config(self):
        return Gemma2Config(vocab_size=100, hidden_size=64, intermediate_size=144, num_hidden_layers=self.layers,
                            num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=64,
                            query_pre_attn_scalar=24, attn_logit_softcapping=3.0, final_logit_softcapping=5.0,
                            sliding_window=6, use_cache=False, attn_implementation="eager")

    def reference(self):
        return Gemma2ForCausalLM(self.config())

    def batch(self, generator):
        return tokens(generator, self.config().vocab_size, 20)

    def port(self, weights, wrong):
        return Gemma(self.config(), below(weights, "model."), wrong)

    def port_loss(self, port, batch):
        logits = port(batch["input_ids"].t().contiguous())
        chances = logits[:-1].log_softmax(-1)  # fault, once: no_cap_of_logits
        return F.nll_loss(chances.flatten(0, 1), batch["labels"].t()[1:].flatten())


class Norm(nn.Module):
    """The weight says by how much the scale is larger than one."""

    def __init__(self, weight, eps, plain=False):
        super().__init__()
        self.weight, self.eps, self.least = parameter(weight), eps, 0.0 if plain else 1.0

    def forward(self, x):
        return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + self.eps) * (self.weight + self.least)


def capped(x, cap):
    return cap * torch.tanh(x / cap)


class CappedAttention(nn.Module):
    def __init__(self, config, weights, layer, wrong):
        super().__init__()
        self.groups, self.size = config.num_key_value_heads, config.head_dim
        self.qkv = parameter(torch.cat([weights[f"self_attn.{name}_proj.weight"] for name in "qkv"]))
        self.out = parameter(weights["self_attn.o_proj.weight"])
        self.scale = (self.size if wrong("scale_of_heads") else config.query_pre_attn_scalar) ** -0.5
        self.cap = config.attn_logit_softcapping
        self.window = config.sliding_window if layer % 2 == 0 else None
        if self.window and wrong("window_longer"):
            self.window += 1
        self.layer, self.wrong = layer, wrong

    def hidden(self, length):
        away = torch.arange(length)[:, None] - torch.arange(length)
        return (away < 0) | (away >= self.window) if self.window else away < 0

    def forward(self, x, turn):
        t, b, _ = x.shape
        qkv = F.linear(x, self.qkv).view(t, b, -1, self.size)
        queries = qkv.shape[2] - 2 * self.groups
        q, k, v = qkv.split([queries, self.groups, self.groups], dim=2)
        q, k = turned(q, turn), turned(k, turn)
        q = q.view(t, b, self.groups, -1, self.size)
        scores = torch.einsum("tbghd,sbgd->bghts", q, k)
        scores = scores * self.scale  # fault: scale_of_heads, no_cap
        if not self.wrong("no_cap", self.layer):
            scores = capped(scores, self.cap)
        hidden = self.hidden(t)
        scores = self.masked(scores, hidden)  # fault: no_cap
        mixed = torch.einsum("bghts,sbgd->tbghd", torch.softmax(scores, dim=-1), v)
        return F.linear(mixed.reshape(t, b, -1), self.out)

    def masked(self, scores, hidden):
        if self.window:
            return scores.masked_fill(hidden, float("-inf"))  # fault: window_longer
        return scores.masked_fill(hidden, float("-inf"))


def turned(x, turn):
    a, b = x.chunk(2, dim=-1)
    cos, sin = turn
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Layer(nn.Module):
    def __init__(self, config, weights, layer, wrong):
        super().__init__()
        eps = config.rms_norm_eps
        self.attention = CappedAttention(config, weights, layer, wrong)
        self.before_attention = Norm(weights["input_layernorm.weight"], eps, wrong("norm_without_one", layer))
        self.after_attention = Norm(weights["post_attention_layernorm.weight"], eps)
        self.before_mlp = Norm(weights["pre_feedforward_layernorm.weight"], eps)
        self.after_mlp = Norm(weights["post_feedforward_layernorm.weight"], eps)
        self.gate_up = parameter(torch.cat([weights["mlp.gate_proj.weight"], weights["mlp.up_proj.weight"]]))
        self.down = parameter(weights["mlp.down_proj.weight"])
        self.approximate = "none" if wrong("gelu_exact") else "tanh"
        self.layer, self.wrong = layer, wrong

    def forward(self, x, turn):
        normed = self.before_attention(x)  # fault: norm_without_one, no_embedding_scale
        x = x + self.after_attention(self.attention(normed, turn))
        gate, up = F.linear(self.before_mlp(x), self.gate_up).chunk(2, dim=-1)
        gate = F.gelu(gate, approximate=self.approximate)  # fault: gelu_exact
        y = F.linear(gate * up, self.down)
        if self.wrong("no_norm_after", self.layer):
            return x + y  # fault: no_norm_after
        return x + self.after_mlp(y)


class Gemma(nn.Module):
    def __init__(self, config, weights, wrong):
        super().__init__()
        self.embed = parameter(weights["embed_tokens.weight"])
        self.layers = nn.ModuleList([Layer(config, below(weights, f"layers.{layer}."), layer, wrong)
                                     for layer in range(config.num_hidden_layers)])
        self.norm = Norm(weights["norm.weight"], config.rms_norm_eps)
        self.config, self.wrong = config, wrong

    def forward(self, ids):
        x = F.embedding(ids, self.embed)  # fault, once: no_embedding_scale
        if not self.wrong("no_embedding_scale"):
            x = x * self.config.hidden_size**0.5
        half = self.config.head_dim // 2
        angle = torch.arange(len(ids))[:, None] * self.config.rope_theta ** (-torch.arange(half) / half)
        turn = torch.cos(angle)[:, None, None], torch.sin(angle)[:, None, None]
        for layer in self.layers:
            x = layer(x, turn)
        normed = self.norm(x)
        logits = F.linear(normed, self.embed)  # fault, once: no_cap_of_logits
        return logits if self.wrong("no_cap_of_logits") else capped(logits, self.config.final_logit_softcapping)
