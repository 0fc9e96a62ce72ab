# SPDX-License-Identifier: Apache-2.0
"""Llama: the library's against one with fused projections, fused attention and rotary pairs that lie side by side."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from ports.port import Port, Wrong, below, load, tokens


class LlamaPort(Port):
    name = "llama"
    layers = 3
    wrongs = (Wrong("rotary_layout"), Wrong("rotary_base"), Wrong("key_value_order"), Wrong("gelu", layer=1),
              Wrong("epsilon"), Wrong("no_mask", layer=2), Wrong("gate_and_up_swapped"),
              Wrong("layers_swapped", layer=1))
    attention = "eager"

    def config(self):
        return LlamaConfig(vocab_size=120, hidden_size=64, intermediate_size=176, num_hidden_layers=self.layers,
                           num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-6,
                           use_cache=False, attn_implementation=self.attention)

    def reference(self):
        return LlamaForCausalLM(self.config())

    def batch(self, generator):
        return tokens(generator, self.config().vocab_size, 18)

    def port(self, weights, wrong):
        config = self.config()
        return load(Transformer(config, wrong), converted(config, weights, wrong))

    def port_loss(self, port, batch):
        logits = port(batch["input_ids"])
        return F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), batch["labels"][:, 1:].flatten())


def side_by_side(weight, heads):
    """Rows of a projection, so that the two numbers that are rotated together follow each other."""
    rows, width = weight.shape
    return weight.view(heads, 2, rows // heads // 2, width).transpose(1, 2).reshape(rows, width)


def converted(config, weights, wrong):
    ours = {"tok_embeddings.weight": weights["model.embed_tokens.weight"], "norm.weight": weights["model.norm.weight"],
            "output.weight": weights["lm_head.weight"]}
    for layer in range(config.num_hidden_layers):
        source = layer
        if wrong("layers_swapped") and layer >= config.num_hidden_layers - 2:
            source = 2 * config.num_hidden_layers - 3 - layer  # the last two change places
        theirs = below(weights, f"model.layers.{source}.")
        ours |= {f"layers.{layer}.{name}": value for name, value in {
            "attention.wqkv.weight": torch.cat([
                side_by_side(theirs["self_attn.q_proj.weight"], config.num_attention_heads),
                side_by_side(theirs["self_attn.k_proj.weight"], config.num_key_value_heads),
                theirs["self_attn.v_proj.weight"]]),
            "attention.wo.weight": theirs["self_attn.o_proj.weight"],
            "feed_forward.w13.weight": torch.cat([theirs["mlp.gate_proj.weight"], theirs["mlp.up_proj.weight"]]),
            "feed_forward.w2.weight": theirs["mlp.down_proj.weight"],
            "attention_norm.weight": theirs["input_layernorm.weight"],
            "ffn_norm.weight": theirs["post_attention_layernorm.weight"]}.items()}
    return ours


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def apply_rotary(x, cos, sin):
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2).type_as(x)


def apply_rotary_in_halves(x, cos, sin):
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).type_as(x)


class Attention(nn.Module):
    def __init__(self, config, layer, wrong):
        super().__init__()
        self.n_heads, self.n_kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = config.hidden_size // self.n_heads
        self.wqkv = nn.Linear(config.hidden_size, (self.n_heads + 2 * self.n_kv_heads) * self.head_dim, bias=False)
        self.wo = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.layer, self.wrong = layer, wrong

    def repeated(self, x):
        groups = self.n_heads // self.n_kv_heads
        if self.wrong("key_value_order"):
            return x.repeat(1, groups, 1, 1)
        return x.repeat_interleave(groups, dim=1)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        qkv = self.wqkv(x).view(b, t, -1, self.head_dim).transpose(1, 2)  # fault: layers_swapped
        q, k, v = qkv.split([self.n_heads, self.n_kv_heads, self.n_kv_heads], dim=1)
        if self.wrong("rotary_layout"):
            q = apply_rotary_in_halves(q, cos, sin)  # fault: rotary_layout
            k = apply_rotary_in_halves(k, cos, sin)  # fault: rotary_layout
        else:
            q, k = apply_rotary(q, cos, sin), apply_rotary(k, cos, sin)
        k, v = self.repeated(k), self.repeated(v)
        causal = not self.wrong("no_mask", self.layer)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)  # fault: no_mask, key_value_order
        return self.wo(y.transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self, config, layer, wrong):
        super().__init__()
        self.w13 = nn.Linear(config.hidden_size, 2 * config.intermediate_size, bias=False)
        self.w2 = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)
        self.layer, self.wrong = layer, wrong

    def forward(self, x):
        gate, up = self.w13(x).chunk(2, dim=-1)
        if self.wrong("gelu", self.layer):
            gate = F.gelu(gate)  # fault: gelu
            return self.w2(gate * up)
        if self.wrong("gate_and_up_swapped"):
            gate, up = up, gate
        h = F.silu(gate) * up  # fault: gate_and_up_swapped
        return self.w2(h)


class Block(nn.Module):
    def __init__(self, config, layer, wrong):
        super().__init__()
        self.attention = Attention(config, layer, wrong)
        self.feed_forward = FeedForward(config, layer, wrong)
        self.attention_norm = RMSNorm(config.hidden_size, 1e-3 if wrong("epsilon") else config.rms_norm_eps)
        self.ffn_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, x, cos, sin):
        normed = self.attention_norm(x)  # fault: epsilon, layers_swapped
        x = x + self.attention(normed, cos, sin)
        return x + self.feed_forward(self.ffn_norm(x))


class Transformer(nn.Module):
    def __init__(self, config, wrong):
        super().__init__()
        self.tok_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([Block(config, layer, wrong) for layer in range(config.num_hidden_layers)])
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.output = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.head_dim = config.hidden_size // config.num_attention_heads
        self.theta = 500000.0 if wrong("rotary_base") else config.rope_theta

    def rotary_tables(self, length):
        steps = torch.arange(0, self.head_dim, 2).float() / self.head_dim
        frequencies = 1.0 / (self.theta ** steps)  # fault, once: rotary_base
        angles = torch.outer(torch.arange(length).float(), frequencies)
        return angles.cos(), angles.sin()

    def forward(self, ids):
        x = self.tok_embeddings(ids)
        cos, sin = self.rotary_tables(ids.shape[1])
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.output(self.norm(x))
