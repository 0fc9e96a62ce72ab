# SPDX-License-Identifier: Apache-2.0
"""Phi-3: the library's fused projections against separate ones as Llama has them, rotated as complex numbers."""

import torch
from torch import nn
from transformers import Phi3Config, Phi3ForCausalLM

from ports.port import Port, Wrong, below, load, tokens


class Phi3Port(Port):
    name = "phi3"
    layers = 3
    held_out = True
    wrongs = (Wrong("up_before_gate"), Wrong("key_and_value_swapped", layer=1), Wrong("all_rotated"),
              Wrong("parallel", layer=2), Wrong("value_head_order"), Wrong("mask_transposed", layer=0),
              Wrong("norms_swapped", layer=1))

    def config(self):
        return Phi3Config(vocab_size=110, hidden_size=64, intermediate_size=128, num_hidden_layers=self.layers,
                          num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
                          original_max_position_embeddings=64, partial_rotary_factor=0.5, pad_token_id=0,
                          bos_token_id=1, eos_token_id=2, use_cache=False, attn_implementation="sdpa")

    def reference(self):
        return Phi3ForCausalLM(self.config())

    def batch(self, generator):
        return tokens(generator, self.config().vocab_size, 22)

    def port(self, weights, wrong):
        config = self.config()
        return load(Model(config, wrong), split(config, weights, wrong))

    def port_loss(self, port, batch):
        return port(batch["input_ids"], batch["labels"])


def split(config, weights, wrong):
    size = config.hidden_size // config.num_attention_heads
    keys = config.num_key_value_heads * size
    ours = {"embed.weight": weights["model.embed_tokens.weight"], "ln_out.weight": weights["model.norm.weight"],
            "unembed.weight": weights["lm_head.weight"]}
    for layer in range(config.num_hidden_layers):
        theirs = below(weights, f"model.layers.{layer}.")
        q, k, v = theirs["self_attn.qkv_proj.weight"].split([config.hidden_size, keys, keys])
        if wrong("key_and_value_swapped", layer):
            k, v = v, k
        gate, up = theirs["mlp.gate_up_proj.weight"].chunk(2)
        if wrong("up_before_gate"):
            gate, up = up, gate
        first, second = theirs["input_layernorm.weight"], theirs["post_attention_layernorm.weight"]
        if wrong("norms_swapped", layer):
            first, second = second, first
        ours |= {f"h.{layer}.{name}.weight": value for name, value in {
            "attn.q": q, "attn.k": k, "attn.v": v, "attn.o": theirs["self_attn.o_proj.weight"], "gate": gate, "up": up,
            "down": theirs["mlp.down_proj.weight"], "ln1": first, "ln2": second}.items()}
    return ours


class Rms(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return x * (x.norm(dim=-1, keepdim=True).square() / x.shape[-1] + self.eps).pow(-0.5) * self.weight


class Attention(nn.Module):
    def __init__(self, config, layer, wrong):
        super().__init__()
        self.size = config.hidden_size // config.num_attention_heads
        keys = config.num_key_value_heads * self.size
        self.q = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.k = nn.Linear(config.hidden_size, keys, bias=False)
        self.v = nn.Linear(config.hidden_size, keys, bias=False)
        self.o = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.turned = self.size if wrong("all_rotated") else int(self.size * config.partial_rotary_factor)
        self.theta, self.layer, self.wrong = config.rope_theta, layer, wrong

    def rotated(self, x):
        x, rest = x[..., :self.turned], x[..., self.turned:]
        half = self.turned // 2
        angle = torch.outer(torch.arange(x.shape[1]).float(), self.theta ** (-torch.arange(half).float() / half))
        turn = torch.polar(torch.ones_like(angle), angle)[None, :, None]
        y = torch.view_as_real(torch.complex(x[..., :half], x[..., half:]) * turn)
        return torch.cat([y[..., 0], y[..., 1], rest], dim=-1)

    def forward(self, x):
        b, t, _ = x.shape
        q = self.q(x).view(b, t, -1, self.size)
        k = self.k(x).view(b, t, -1, self.size)  # fault: key_and_value_swapped
        v = self.v(x).view(b, t, -1, self.size)  # fault: key_and_value_swapped
        q = self.rotated(q)  # fault: all_rotated
        k = self.rotated(k)  # fault: all_rotated
        times = q.shape[2] // k.shape[2]
        k = k.repeat_interleave(times, dim=2)
        v = v.repeat(1, 1, times, 1) if self.wrong("value_head_order") else v.repeat_interleave(times, dim=2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q * self.size**-0.5, k)
        hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
        if self.wrong("mask_transposed", self.layer):
            hidden = hidden.t()
        scores = scores.masked_fill(hidden, -1e30)  # fault: mask_transposed
        y = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(dim=-1), v)  # fault: value_head_order
        return self.o(y.reshape(b, t, -1))


class Block(nn.Module):
    def __init__(self, config, layer, wrong):
        super().__init__()
        self.ln1, self.ln2 = Rms(config.hidden_size, config.rms_norm_eps), Rms(config.hidden_size, config.rms_norm_eps)
        self.attn = Attention(config, layer, wrong)
        self.gate = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)
        self.layer, self.wrong = layer, wrong

    def feed(self, x):
        gate = self.gate(x)  # fault: up_before_gate
        up = self.up(x)  # fault: up_before_gate
        return self.down(gate * torch.sigmoid(gate) * up)

    def forward(self, x):
        normed = self.ln1(x)  # fault: norms_swapped
        y = x + self.attn(normed)
        if self.wrong("parallel", self.layer):
            normed = self.ln2(x)  # fault: parallel
        else:
            normed = self.ln2(y)
        return y + self.feed(normed)


class Model(nn.Module):
    def __init__(self, config, wrong):
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.h = nn.ModuleList([Block(config, layer, wrong) for layer in range(config.num_hidden_layers)])
        self.ln_out = Rms(config.hidden_size, config.rms_norm_eps)
        self.unembed = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, ids, labels):
        x = self.embed(ids)
        for block in self.h:
            x = block(x)
        logits = self.unembed(self.ln_out(x)[:, :-1])
        right = logits.gather(-1, labels[:, 1:, None]).squeeze(-1)
        return (torch.logsumexp(logits, dim=-1) - right).mean()
