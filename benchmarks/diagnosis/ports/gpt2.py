# SPDX-License-Identifier: Apache-2.0
"""GPT-2: the library's, whose weights lie transposed, against one of a few lines with attention written out."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel

from ports.port import Port, Wrong, load, tokens


class Gpt2Port(Port):
    name = "gpt2"
    layers = 3
    wrongs = (Wrong("gelu_exact"), Wrong("transposed_weight", layer=1), Wrong("positions_from_one"),
              Wrong("post_norm"), Wrong("dropped_bias", layer=0), Wrong("scale_of_model"),
              Wrong("detached_skip", layer=1, backward=True))

    def config(self):
        return GPT2Config(vocab_size=110, n_positions=40, n_embd=64, n_layer=self.layers, n_head=4, use_cache=False,
                          resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="sdpa")

    def reference(self):
        return GPT2LMHeadModel(self.config())

    def batch(self, generator):
        return tokens(generator, self.config().vocab_size, 20)

    def port(self, weights, wrong):
        model = load(GPT(self.config(), wrong), converted(weights, wrong))
        model.lm_head.weight = model.wte.weight
        return model

    def port_loss(self, port, batch):
        targets = F.pad(batch["labels"][:, 1:], (0, 1), value=-1)
        return port(batch["input_ids"], targets)[1]


_TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def converted(weights, wrong):
    ours = {}
    for name, value in weights.items():
        name = name.removeprefix("transformer.")
        if name.endswith(_TRANSPOSED) and not (wrong("transposed_weight") and name == "h.1.attn.c_proj.weight"):
            value = value.t()
        if not (wrong("dropped_bias") and name == "h.0.mlp.c_fc.bias"):
            ours[name] = value
    return ours


class SelfAttention(nn.Module):
    def __init__(self, config, layer, wrong):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.n_head = config.n_head
        self.register_buffer("bias", torch.ones(config.n_positions, config.n_positions).tril()[None, None],
                             persistent=False)
        self.layer, self.wrong = layer, wrong

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)  # fault: post_norm
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        size = C if self.wrong("scale_of_model") else k.size(-1)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(size))  # fault: scale_of_model
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)  # fault: transposed_weight


class MLP(nn.Module):
    def __init__(self, config, layer, wrong):
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=not wrong("dropped_bias", layer))
        self.act = nn.GELU() if wrong("gelu_exact") else nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd)

    def forward(self, x):
        x = self.c_fc(x)  # fault: dropped_bias
        x = self.act(x)  # fault: gelu_exact
        return self.c_proj(x)


class Block(nn.Module):
    def __init__(self, config, layer, wrong):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)
        self.attn = SelfAttention(config, layer, wrong)
        self.ln_2 = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)
        self.mlp = MLP(config, layer, wrong)
        self.layer, self.wrong = layer, wrong

    def forward(self, x):
        if self.wrong("post_norm"):
            x = self.ln_1(x + self.attn(x))
            return self.ln_2(x + self.mlp(x))
        y = self.attn(self.ln_1(x))
        x = x + y  # fault: detached_skip
        y = self.mlp(self.ln_2(x))
        if self.wrong("detached_skip", self.layer):
            x = x.detach()
        return x + y  # fault: detached_skip


class GPT(nn.Module):
    def __init__(self, config, wrong):
        super().__init__()
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.h = nn.ModuleList([Block(config, layer, wrong) for layer in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd, config.layer_norm_epsilon)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.first = 1 if wrong("positions_from_one") else 0

    def forward(self, idx, targets):
        tok_emb = self.wte(idx)
        pos = torch.arange(self.first, self.first + idx.size(1))  # fault, once: positions_from_one
        x = tok_emb + self.wpe(pos)  # fault, once: positions_from_one
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-1)
