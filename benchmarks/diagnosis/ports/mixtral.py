# SPDX-License-Identifier: Apache-2.0
"""Mixtral: the library's list of experts against weights stacked in one tensor, and every token through all of them."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import MixtralConfig, MixtralForCausalLM

from ports.port import Port, Wrong, below, parameter, tokens


class MixtralPort(Port):
    name = "mixtral"
    wrongs = (Wrong("not_renormalised"), Wrong("sigmoid_gate"), Wrong("w1_and_w3_swapped", layer=1),
              Wrong("experts_shifted", layer=0), Wrong("router_before_norm"), Wrong("one_expert", layer=1),
              Wrong("rotary_sign"), Wrong("scaled_gate_gradient", layer=1, backward=True))

    def config(self):
        return MixtralConfig(vocab_size=100, hidden_size=64, intermediate_size=96, num_hidden_layers=self.layers,
                             num_attention_heads=4, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
                             max_position_embeddings=64, rope_theta=10000.0, use_cache=False, tie_word_embeddings=False,
                             attn_implementation="sdpa")

    def reference(self):
        return MixtralForCausalLM(self.config())

    def batch(self, generator):
        return tokens(generator, self.config().vocab_size, 16)

    def port(self, weights, wrong):
        return MoeModel(self.config(), weights, wrong)

    def port_loss(self, port, batch):
        logits = port(batch["input_ids"])[:-1]  # length first
        return F.cross_entropy(logits.flatten(0, 1), batch["labels"].t()[1:].flatten())


class Rms(nn.Module):
    def __init__(self, scale, eps):
        super().__init__()
        self.scale, self.eps = parameter(scale), eps

    def forward(self, x):
        variance = torch.mean(torch.square(x), dim=-1, keepdim=True)
        return self.scale * (x / torch.sqrt(variance + self.eps))


class Mixer(nn.Module):
    """Attention with the length first and each product an einsum; angles are made anew in each layer."""

    def __init__(self, config, weights, wrong):
        super().__init__()
        self.size = config.hidden_size // config.num_attention_heads
        self.wq, self.wk, self.wv = (
            parameter(weights[f"self_attn.{name}_proj.weight"].unflatten(0, (-1, self.size))) for name in "qkv")
        self.wo = parameter(weights["self_attn.o_proj.weight"].unflatten(1, (-1, self.size)))
        self.theta, self.wrong = config.rope_theta, wrong

    def rotated(self, x):
        half = self.size // 2
        exponent = -torch.arange(half).float() / half
        angle = torch.arange(x.shape[0]).float()[:, None] * torch.pow(self.theta, exponent)
        if self.wrong("rotary_sign"):
            angle = -angle
        turn = torch.polar(torch.ones_like(angle), angle)  # fault: rotary_sign
        pairs = torch.complex(x[..., :half], x[..., half:]) * turn[:, None, None]  # fault: rotary_sign
        return torch.cat([pairs.real, pairs.imag], dim=-1)

    def forward(self, x):
        q = self.rotated(torch.einsum("tbc,hdc->tbhd", x, self.wq)) * self.size**-0.5
        k = self.rotated(torch.einsum("tbc,hdc->tbhd", x, self.wk))
        v = torch.einsum("tbc,hdc->tbhd", x, self.wv)
        q = q.unflatten(2, (k.shape[2], -1))
        scores = torch.einsum("tbhgd,sbhd->bhgts", q, k)
        mask = torch.full(scores.shape[-2:], float("-inf")).triu(1)
        probs = (scores + mask).softmax(-1)
        mixed = torch.einsum("bhgts,sbhd->tbhgd", probs, v).flatten(2, 3)
        return torch.einsum("tbhd,chd->tbc", mixed, self.wo)


class Experts(nn.Module):
    def __init__(self, config, weights, layer, wrong):
        super().__init__()
        order = list(range(config.num_local_experts))
        if wrong("experts_shifted", layer):
            order = order[1:] + order[:1]
        w1, w2, w3 = (torch.stack([weights[f"block_sparse_moe.experts.{expert}.{name}.weight"].t() for expert in order])
                      for name in ("w1", "w2", "w3"))
        if wrong("w1_and_w3_swapped", layer):
            w1, w3 = w3, w1
        self.router = parameter(weights["block_sparse_moe.gate.weight"])
        self.w1, self.w2, self.w3 = parameter(w1), parameter(w2), parameter(w3)
        self.top = 1 if wrong("one_expert", layer) else config.num_experts_per_tok
        self.layer, self.wrong = layer, wrong

    def gates(self, x):
        """For each token and expert its share: zero for all but the chosen ones."""
        logits = F.linear(x, self.router)  # fault: router_before_norm
        if self.wrong("sigmoid_gate"):
            probs = torch.sigmoid(logits)  # fault: sigmoid_gate
        else:
            probs = torch.softmax(logits, dim=-1)
        share, chosen = probs.topk(self.top, dim=-1)  # fault: one_expert, not_renormalised
        if not self.wrong("not_renormalised"):
            share = share / share.sum(dim=-1, keepdim=True)
        return torch.zeros_like(probs).scatter(-1, chosen, share)  # fault: not_renormalised

    def forward(self, x, seen):
        shape = x.shape
        x, gates = x.reshape(-1, shape[-1]), self.gates(seen.reshape(-1, shape[-1]))
        if self.wrong("scaled_gate_gradient", self.layer):
            gates = 0.5 * gates + 0.5 * gates.detach()  # fault: scaled_gate_gradient
        every = x.expand(self.w1.shape[0], -1, -1)
        gate = torch.bmm(every, self.w1)  # fault: w1_and_w3_swapped, experts_shifted
        up = torch.bmm(every, self.w3)  # fault: w1_and_w3_swapped, experts_shifted
        out = torch.bmm(F.silu(gate) * up, self.w2)
        return torch.einsum("enc,ne->nc", out, gates).view(shape)


class Layer(nn.Module):
    def __init__(self, config, weights, layer, wrong):
        super().__init__()
        self.norm1 = Rms(weights["input_layernorm.weight"], config.rms_norm_eps)
        self.mixer = Mixer(config, weights, wrong)
        self.norm2 = Rms(weights["post_attention_layernorm.weight"], config.rms_norm_eps)
        self.experts = Experts(config, weights, layer, wrong)
        self.wrong = wrong

    def forward(self, x):
        x = x + self.mixer(self.norm1(x))
        normed = self.norm2(x)
        return x + self.experts(normed, x if self.wrong("router_before_norm") else normed)


class MoeModel(nn.Module):
    def __init__(self, config, weights, wrong):
        super().__init__()
        self.embed = parameter(weights["model.embed_tokens.weight"])
        self.blocks = nn.ModuleList([
            Layer(config, below(weights, f"model.layers.{layer}."), layer, wrong)
            for layer in range(config.num_hidden_layers)])
        self.norm = Rms(weights["model.norm.weight"], config.rms_norm_eps)
        self.head = parameter(weights["lm_head.weight"])

    def forward(self, ids):
        x = F.embedding(ids.t(), self.embed)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.head.t()
