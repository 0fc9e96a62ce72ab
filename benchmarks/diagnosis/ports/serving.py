# SPDX-License-Identifier: Apache-2.0
"""Llama as servers run it: no gradients, all texts of a batch in one row, heads padded, sums made by the norms."""

import torch
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from ports.port import Port, Wrong, below, tokens
from recorders import quietly


class ServingPort(Port):
    name = "serving"
    layers = 3
    trains = False
    wrongs = (Wrong("rotary_base"), Wrong("texts_see_each_other", layer=1), Wrong("padding_in_front"),
              Wrong("sum_lost", layer=2), Wrong("up_before_gate"), Wrong("epsilon", layer=0), Wrong("output_padded"))

    def config(self):
        return LlamaConfig(vocab_size=128, hidden_size=96, intermediate_size=192, num_hidden_layers=self.layers,
                           num_attention_heads=6, num_key_value_heads=3, max_position_embeddings=64, rms_norm_eps=1e-5,
                           use_cache=False, attn_implementation="sdpa")

    def reference(self):
        return LlamaForCausalLM(self.config())

    def batch(self, generator):
        return tokens(generator, self.config().vocab_size, 15)

    def reference_loss(self, model, batch):
        return loss_of(model(batch["input_ids"]).logits, batch["labels"])

    def port(self, weights, wrong):
        return Engine(self.config(), weights, wrong)

    def port_loss(self, port, batch):
        lengths = [batch["input_ids"].shape[1]] * len(batch["input_ids"])
        logits = port.forward(batch["input_ids"].flatten(), lengths)
        return loss_of(logits.unflatten(0, batch["input_ids"].shape), batch["labels"])


def loss_of(logits, labels):
    """No part of what is served: only to see whether both sides compute the same."""
    return quietly(lambda: F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()))


def fused(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)


def padded(weight, heads, size, in_front):
    """Rows of zeros for heads that are there only to fill up."""
    missing = heads * size - weight.shape[0]
    return F.pad(weight, (0, 0, missing, 0) if in_front else (0, 0, 0, missing))


class Engine:
    """Plain tensors and functions. Each norm takes the sum of what the last two parts have given."""

    def __init__(self, config, weights, wrong):
        self.size = config.hidden_size // config.num_attention_heads
        self.heads, self.groups = 8, 4
        self.eps, self.theta, self.wrong = config.rms_norm_eps, config.rope_theta, wrong
        self.embed, self.head = weights["model.embed_tokens.weight"], weights["lm_head.weight"]
        self.last_norm = weights["model.norm.weight"]
        self.layers = [self.packed(below(weights, f"model.layers.{layer}."))
                       for layer in range(config.num_hidden_layers)]

    def packed(self, weights):
        q, k, v = (weights[f"self_attn.{name}_proj.weight"] for name in "qkv")
        in_front = self.wrong("padding_in_front")
        qkv = [padded(q, self.heads, self.size, False), padded(k, self.groups, self.size, in_front),
               padded(v, self.groups, self.size, in_front)]
        gate_up = [weights["mlp.gate_proj.weight"], weights["mlp.up_proj.weight"]]
        out = padded(weights["self_attn.o_proj.weight"].t(), self.heads, self.size, self.wrong("output_padded")).t()
        return {"qkv": torch.cat(qkv), "out": out.contiguous(), "gate_up": torch.cat(gate_up),
                "down": weights["mlp.down_proj.weight"], "norm1": weights["input_layernorm.weight"],
                "norm2": weights["post_attention_layernorm.weight"]}

    def table(self, length):
        theta = 500000.0 if self.wrong("rotary_base") else self.theta
        exponents = -torch.arange(0, self.size, 2).float() / self.size
        inverse = theta ** exponents  # fault, once: rotary_base
        angles = torch.arange(length).float()[:, None] * inverse
        return torch.cat([angles.cos(), angles.sin()], dim=-1)

    def rotate(self, x, rows):
        cos, sin = rows[:, None].chunk(2, dim=-1)
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    def sum_and_norm(self, x, residual, weight, eps):
        if residual is not None:
            x = x + residual
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight, x

    def attend(self, q, k, v, lengths, layer):
        if self.wrong("texts_see_each_other", layer):
            lengths = [sum(lengths)]
        out = []
        for query, key, value in zip(*(part.transpose(0, 1).split(lengths, dim=1) for part in (q, k, v))):
            out.append(self.causal(query, key, value, layer))
        return torch.cat(out, dim=1).transpose(0, 1).flatten(1)

    def causal(self, query, key, value, layer):
        if self.wrong("texts_see_each_other", layer):
            return fused(query, key, value)  # fault: texts_see_each_other
        return fused(query, key, value)

    def forward(self, ids, lengths):
        positions = torch.cat([torch.arange(length) for length in lengths])
        rows = self.table(64).index_select(0, positions)
        x, residual = F.embedding(ids, self.embed), None
        for layer, w in enumerate(self.layers):
            if self.wrong("epsilon", layer):
                x, residual = self.sum_and_norm(x, residual, w["norm1"], 1e-3)  # fault: epsilon
            else:
                x, residual = self.sum_and_norm(x, residual, w["norm1"], self.eps)
            qkv = F.linear(x, w["qkv"]).view(len(ids), -1, self.size)  # fault: padding_in_front
            q, k, v = qkv.split([self.heads, self.groups, self.groups], dim=1)
            y = self.attend(self.rotate(q, rows), self.rotate(k, rows), v, lengths, layer)
            x = F.linear(y, w["out"])  # fault: output_padded
            x, residual = self.sum_and_norm(x, residual, w["norm2"], self.eps)
            gate, up = F.linear(x, w["gate_up"]).chunk(2, dim=-1)
            if self.wrong("up_before_gate"):
                gate, up = up, gate
            h = F.silu(gate) * up  # fault: up_before_gate
            x = F.linear(h, w["down"])
            if self.wrong("sum_lost", layer):
                residual = torch.zeros_like(residual)
        x, _ = self.sum_and_norm(x, residual, self.last_norm, self.eps)  # fault, once: sum_lost
        return F.linear(x, self.head)
