# SPDX-License-Identifier: Apache-2.0
"""Qwen3 with experts: the library's loop over them against tokens that are sorted by expert."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from ports.port import Port, Wrong, below, parameter, tokens


class Qwen3MoePort(Port):
    name = "qwen3_moe"
    held_out = True
    wrongs = (Wrong("norm_after_rotary"), Wrong("no_norm_of_keys", layer=1), Wrong("softmax_of_chosen"),
              Wrong("share_before_expert"), Wrong("top_three", layer=1), Wrong("shares_reversed", layer=0),
              Wrong("router_detached", layer=0, backward=True))

    def config(self):
        return Qwen3MoeConfig(vocab_size=100, hidden_size=64, intermediate_size=96, moe_intermediate_size=48,
                              num_hidden_layers=self.layers, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                              num_experts=6, num_experts_per_tok=2, norm_topk_prob=False, max_position_embeddings=64,
                              use_cache=False, tie_word_embeddings=False, attn_implementation="eager")

    def reference(self):
        return Qwen3MoeForCausalLM(self.config())

    def batch(self, generator):
        return tokens(generator, self.config().vocab_size, 17)

    def port(self, weights, wrong):
        return Model(self.config(), weights, wrong)

    def port_loss(self, port, batch):
        logits = port(batch["input_ids"])
        return F.cross_entropy(logits[:, :-1].permute(0, 2, 1), batch["labels"][:, 1:])


def normed(x, weight, eps=1e-6):
    return weight * (x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps))


class Attention(nn.Module):
    def __init__(self, config, weights, layer, wrong):
        super().__init__()
        w = below(weights, "self_attn.")
        self.size, self.groups, self.theta = config.head_dim, config.num_key_value_heads, config.rope_theta
        self.w_q, self.w_out = parameter(w["q_proj.weight"]), parameter(w["o_proj.weight"])
        self.w_kv = parameter(torch.cat([w["k_proj.weight"], w["v_proj.weight"]]))
        self.q_scale, self.k_scale = parameter(w["q_norm.weight"]), parameter(w["k_norm.weight"])
        self.layer, self.wrong = layer, wrong

    def rotated(self, x):
        angle = torch.arange(x.shape[-2])[:, None] / self.theta ** (torch.arange(0, self.size, 2) / self.size)
        cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-b, a], dim=-1) * sin

    def forward(self, x):
        q = F.linear(x, self.w_q).unflatten(-1, (-1, self.size)).transpose(1, 2)
        k, v = F.linear(x, self.w_kv).unflatten(-1, (2, self.groups, self.size)).permute(2, 0, 3, 1, 4)
        if self.wrong("norm_after_rotary"):
            q = normed(self.rotated(q), self.q_scale)  # fault: norm_after_rotary
            k = normed(self.rotated(k), self.k_scale)  # fault: norm_after_rotary
        else:
            q = self.rotated(normed(q, self.q_scale))
            if not self.wrong("no_norm_of_keys", self.layer):
                k = normed(k, self.k_scale)
            k = self.rotated(k)  # fault: no_norm_of_keys
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return F.linear(y.transpose(1, 2).flatten(2), self.w_out)


class Experts(nn.Module):
    def __init__(self, config, weights, layer, wrong):
        super().__init__()
        self.router = parameter(weights["mlp.gate.weight"])
        self.number, self.top = config.num_experts, 3 if wrong("top_three", layer) else config.num_experts_per_tok
        parts = [below(weights, f"mlp.experts.{expert}.") for expert in range(self.number)]
        self.gate_up = parameter(torch.stack([torch.cat([p["gate_proj.weight"], p["up_proj.weight"]]) for p in parts]))
        self.down = parameter(torch.stack([p["down_proj.weight"] for p in parts]))
        self.layer, self.wrong = layer, wrong

    def routed(self, x):
        logits = F.linear(x, self.router)
        if self.wrong("softmax_of_chosen"):
            best, chosen = logits.topk(self.top, dim=-1)  # fault: softmax_of_chosen
            return best.softmax(dim=-1), chosen  # fault: softmax_of_chosen
        shares = logits.softmax(dim=-1)
        share, chosen = shares.topk(self.top, dim=-1)  # fault: top_three
        if self.wrong("shares_reversed", self.layer):
            share = share.flip(-1)
        return share, chosen

    def forward(self, x):
        tokens_of = x.flatten(0, 1)
        share, chosen = self.routed(tokens_of)
        if self.wrong("router_detached", self.layer):
            share = share.detach()
        order = chosen.flatten().argsort(stable=True)
        counts = chosen.flatten().bincount(minlength=self.number).tolist()
        rows, share = order // self.top, share.flatten()[order]
        taken = tokens_of[rows]
        if self.wrong("share_before_expert"):
            taken = taken * share[:, None]  # fault: share_before_expert
        outs = []
        for expert, part in enumerate(taken.split(counts)):
            gate, up = torch.mm(part, self.gate_up[expert].t()).chunk(2, dim=-1)
            outs.append(torch.mm(F.silu(gate) * up, self.down[expert].t()))
        out = torch.cat(outs)
        if not self.wrong("share_before_expert"):
            out = out * share[:, None]  # fault: shares_reversed, router_detached
        return torch.zeros_like(tokens_of).index_add(0, rows, out).view_as(x)


class Block(nn.Module):
    def __init__(self, config, weights, layer, wrong):
        super().__init__()
        self.attention = Attention(config, weights, layer, wrong)
        self.experts = Experts(config, weights, layer, wrong)
        self.scale1 = parameter(weights["input_layernorm.weight"])
        self.scale2 = parameter(weights["post_attention_layernorm.weight"])

    def forward(self, x):
        x = x + self.attention(normed(x, self.scale1))
        return x + self.experts(normed(x, self.scale2))


class Model(nn.Module):
    def __init__(self, config, weights, wrong):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(weights["model.embed_tokens.weight"].clone(), freeze=False)
        self.head = parameter(weights["lm_head.weight"])
        self.blocks = nn.Sequential(*(Block(config, below(weights, f"model.layers.{layer}."), layer, wrong)
                                      for layer in range(config.num_hidden_layers)))
        self.scale = parameter(weights["model.norm.weight"])

    def forward(self, ids):
        return F.linear(normed(self.blocks(self.words(ids)), self.scale), self.head)
