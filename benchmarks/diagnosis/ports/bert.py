# SPDX-License-Identifier: Apache-2.0
"""BERT: the library's against one with einsums for attention, one table of embeddings and masks that are added."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM

from ports.port import Port, Wrong, below, parameter

PADDED = 4  # tokens at the end of the first text


class BertPort(Port):
    name = "bert"
    layers = 3
    held_out = True
    wrongs = (Wrong("no_types"), Wrong("positions_from_two"), Wrong("mask_of_queries"), Wrong("gelu_tanh", layer=2),
              Wrong("norm_before_sum", layer=1), Wrong("transposed_weight", layer=0), Wrong("no_value_bias"),
              Wrong("head_without_norm"))

    def config(self):
        return BertConfig(vocab_size=100, hidden_size=64, intermediate_size=160, num_hidden_layers=self.layers,
                          num_attention_heads=4, max_position_embeddings=32, hidden_dropout_prob=0.0,
                          attention_probs_dropout_prob=0.0, attn_implementation="sdpa")

    def reference(self):
        return BertForMaskedLM(self.config())

    def batch(self, generator):
        text = torch.randint(4, 100, (2, 18), generator=generator)
        hidden = torch.rand(text.shape, generator=generator) < 0.3
        hidden[:, 1] = True
        mask = torch.ones_like(text)
        mask[0, -PADDED:] = 0
        return {"input_ids": text.masked_fill(hidden, 3), "attention_mask": mask,
                "token_type_ids": (torch.arange(18) >= 9).long().expand(2, 18).contiguous(),
                "labels": text.masked_fill(~hidden | (mask == 0), -100)}

    def port(self, weights, wrong):
        return Bert(self.config(), weights, wrong)

    def port_loss(self, port, batch):
        logits = port(batch["input_ids"], batch["token_type_ids"], batch["attention_mask"])
        told = batch["labels"] >= 0
        return F.cross_entropy(logits[told], batch["labels"][told])


class Affine(nn.Module):
    """A product with weights that lie as the input comes."""

    def __init__(self, weights, name):
        super().__init__()
        self.matrix, self.offset = parameter(weights[name + ".weight"].t()), parameter(weights[name + ".bias"])

    def forward(self, x):
        return torch.einsum("bti,io->bto", x, self.matrix) + self.offset


class Standard(nn.Module):
    def __init__(self, weights, name, eps):
        super().__init__()
        self.scale, self.shift = parameter(weights[name + ".weight"]), parameter(weights[name + ".bias"])
        self.eps = eps

    def forward(self, x):
        x = x - x.mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.eps) * self.scale + self.shift


class Encoder(nn.Module):
    def __init__(self, config, weights, layer, wrong):
        super().__init__()
        self.heads = config.num_attention_heads
        if wrong("transposed_weight", layer):
            weights = {**weights, "attention.output.dense.weight": weights["attention.output.dense.weight"].t()}
        if wrong("no_value_bias"):
            bias = weights["attention.self.value.bias"]
            weights = {**weights, "attention.self.value.bias": torch.zeros_like(bias)}
        self.query, self.key, self.value = (
            Affine(weights, f"attention.self.{name}") for name in ("query", "key", "value"))
        self.out = Affine(weights, "attention.output.dense")
        self.norm1 = Standard(weights, "attention.output.LayerNorm", config.layer_norm_eps)
        self.up, self.down = Affine(weights, "intermediate.dense"), Affine(weights, "output.dense")
        self.norm2 = Standard(weights, "output.LayerNorm", config.layer_norm_eps)
        self.layer, self.wrong = layer, wrong

    def attend(self, x, mask):
        q = self.query(x).unflatten(-1, (self.heads, -1))
        k = self.key(x).unflatten(-1, (self.heads, -1))
        v = self.value(x).unflatten(-1, (self.heads, -1))  # fault: no_value_bias
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        scores = scores + mask  # fault: mask_of_queries
        y = torch.einsum("bhqk,bkhd->bqhd", torch.exp(F.log_softmax(scores, dim=-1)), v)
        return self.out(y.flatten(2))  # fault: transposed_weight

    def forward(self, x, mask):
        y = self.attend(x, mask)
        if self.wrong("norm_before_sum", self.layer):
            x = x + self.norm1(y)  # fault: norm_before_sum
        else:
            x = self.norm1(x + y)
        y = self.up(x)
        y = F.gelu(y, approximate="tanh" if self.wrong("gelu_tanh", self.layer) else "none")  # fault: gelu_tanh
        return self.norm2(x + self.down(y))


class Bert(nn.Module):
    def __init__(self, config, weights, wrong):
        super().__init__()
        inner, head = below(weights, "bert."), below(weights, "cls.predictions.")
        self.words, self.places, self.types = (
            parameter(inner[f"embeddings.{name}_embeddings.weight"]) for name in ("word", "position", "token_type"))
        self.norm = Standard(inner, "embeddings.LayerNorm", config.layer_norm_eps)
        self.encoders = nn.ModuleList([Encoder(config, below(inner, f"encoder.layer.{layer}."), layer, wrong)
                                       for layer in range(config.num_hidden_layers)])
        self.transform = Affine(head, "transform.dense")
        self.last_norm = Standard(head, "transform.LayerNorm", config.layer_norm_eps)
        self.bias = parameter(head["bias"])
        self.wrong = wrong

    def embedded(self, ids, types):
        first = 2 if self.wrong("positions_from_two") else 0
        x = self.words[ids]
        place = self.places[first:first + ids.shape[1]]
        if self.wrong("no_types"):
            return x + place  # fault, once: no_types
        y = F.embedding(types, self.types)
        return x + place + y  # fault, once: positions_from_two

    def forward(self, ids, types, seen):
        mask = (1.0 - seen.float()) * -1e9
        mask = mask[:, None, :, None] if self.wrong("mask_of_queries") else mask[:, None, None, :]
        x = self.norm(self.embedded(ids, types))
        for encoder in self.encoders:
            x = encoder(x, mask)
        x = F.gelu(self.transform(x))
        if not self.wrong("head_without_norm"):
            x = self.last_norm(x)
        return F.linear(x, self.words, self.bias)  # fault, once: head_without_norm
