# SPDX-License-Identifier: Apache-2.0
"""T5: encoder and decoder with relative positions and tied words, against a functional one that has no modules."""

import math

import torch
from torch.nn import functional as F
from transformers import T5Config, T5ForConditionalGeneration

from ports.port import Port, Wrong

PADDED = 3  # tokens at the end of the first source


class T5Port(Port):
    name = "t5"
    # Encoder and decoder run the same line where they attend to themselves: four layers.
    wrongs = (Wrong("scaled_scores", layers=4), Wrong("bias_both_ways"), Wrong("cross_before_norm"),
              Wrong("gelu", layer=1), Wrong("no_output_scale"), Wrong("bias_in_first_only", layers=4, layer=1),
              Wrong("padding_seen"), Wrong("decoder_not_shifted"))

    def config(self):
        return T5Config(vocab_size=90, d_model=64, d_kv=16, d_ff=128, num_layers=self.layers,
                        num_decoder_layers=self.layers, num_heads=4, dropout_rate=0.0, relative_attention_num_buckets=8,
                        relative_attention_max_distance=16, use_cache=False,
                        decoder_start_token_id=0, pad_token_id=0)

    def reference(self):
        return T5ForConditionalGeneration(self.config())

    def batch(self, generator):
        source = torch.randint(2, 90, (2, 16), generator=generator)
        mask = torch.ones_like(source)
        mask[0, -PADDED:] = 0
        return {"input_ids": source, "attention_mask": mask,
                "labels": torch.randint(2, 90, (2, 12), generator=generator)}

    def port(self, weights, wrong):
        return Functional(self.config(), weights, wrong)

    def port_loss(self, port, batch):
        logits = port(batch["input_ids"], batch["attention_mask"].bool(), batch["labels"])
        return F.cross_entropy(logits.transpose(1, 2), batch["labels"])


def buckets(queries, keys, number, farthest, both_ways):
    """The index into the table of biases for each query and key."""
    away = torch.arange(keys) - torch.arange(queries)[:, None]
    start = torch.zeros_like(away)
    if both_ways:
        number //= 2
        start = number * (away > 0)
        away = away.abs()
    else:
        away = (-away).clamp(min=0)
    exact = number // 2
    steps = torch.log(away.clamp(min=1) / exact) / math.log(farthest / exact) * (number - exact)
    return start + torch.where(away < exact, away, (exact + steps.long()).clamp(max=number - 1))


class Functional:
    def __init__(self, config, weights, wrong):
        self.config, self.wrong, self.layers = config, wrong, config.num_layers
        tied = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
        self.w = {name: value.clone().requires_grad_() for name, value in weights.items() if name not in tied}

    def parameters(self):
        return list(self.w.values())

    def norm(self, x, name):
        return F.rms_norm(x, x.shape[-1:], eps=self.config.layer_norm_epsilon) * self.w[name + ".weight"]

    def bias(self, side, queries, keys):
        both_ways = side == "encoder" or self.wrong("bias_both_ways")
        table = self.w[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        which = buckets(queries, keys, self.config.relative_attention_num_buckets,
                        self.config.relative_attention_max_distance, both_ways)
        return F.embedding(which, table).permute(2, 0, 1)

    def projected(self, x, name):
        return torch.einsum("btc,hdc->bhtd", x, self.w[name + ".weight"].view(self.config.num_heads, -1, x.shape[-1]))

    def self_attention(self, x, name, bias):
        q, k, v = (self.projected(x, f"{name}.{part}") for part in "qkv")
        # The kernel divides by the root of the size; this family does not.
        scale = self.config.d_kv**-0.5 if self.wrong("scaled_scores") else 1.0
        y = F.scaled_dot_product_attention(q, k, v, bias, scale=scale)  # fault: scaled_scores, bias_in_first_only
        return y.transpose(1, 2).flatten(2) @ self.w[name + ".o.weight"].t()

    def cross_attention(self, x, memory, name, bias):
        q = self.projected(x, name + ".q")
        k = self.projected(memory, name + ".k")  # fault: cross_before_norm
        v = self.projected(memory, name + ".v")  # fault: cross_before_norm
        y = F.scaled_dot_product_attention(q, k, v, bias, scale=1.0)  # fault: padding_seen
        return y.transpose(1, 2).flatten(2) @ self.w[name + ".o.weight"].t()

    def feed(self, x, name, layer):
        h = F.linear(x, self.w[name + ".wi.weight"])
        if self.wrong("gelu", layer):
            h = F.gelu(h)  # fault: gelu
        else:
            h = F.relu(h)
        return F.linear(h, self.w[name + ".wo.weight"])

    def encode(self, ids, seen):
        x = F.embedding(ids, self.w["shared.weight"])
        bias = self.bias("encoder", ids.shape[1], ids.shape[1])
        hidden = ~seen[:, None, None]
        for layer in range(self.config.num_layers):
            at = f"encoder.block.{layer}.layer"
            if layer and self.wrong("bias_in_first_only"):
                bias = torch.zeros_like(bias)
            masked = torch.where(hidden, -1e9, bias)
            normed = self.norm(x, at + ".0.layer_norm")
            x = x + self.self_attention(normed, at + ".0.SelfAttention", masked)
            x = x + self.feed(self.norm(x, at + ".1.layer_norm"), at + ".1.DenseReluDense", layer)
        return x

    def decode(self, ids, memory, seen):
        x = F.embedding(ids, self.w["shared.weight"])  # fault, once: decoder_not_shifted
        length = ids.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        bias = self.bias("decoder", length, length).masked_fill(later, -1e9)  # fault, once: bias_both_ways
        cross = torch.zeros(seen[:, None, None].shape).masked_fill(~seen[:, None, None], -1e9)
        if self.wrong("padding_seen"):
            cross = None
        for layer in range(self.config.num_decoder_layers):
            at = f"decoder.block.{layer}.layer"
            normed = self.norm(x, at + ".0.layer_norm")
            x = x + self.self_attention(normed, at + ".0.SelfAttention", bias)
            normed = self.norm(x, at + ".1.layer_norm")
            x = x + self.cross_attention(normed, memory, at + ".1.EncDecAttention", cross)
            x = x + self.feed(self.norm(x, at + ".2.layer_norm"), at + ".2.DenseReluDense", layer + self.layers)
        return self.norm(x, "decoder.final_layer_norm")

    def __call__(self, source, seen, labels):
        memory = self.encode(source, seen)
        if not self.wrong("cross_before_norm"):
            memory = self.norm(memory, "encoder.final_layer_norm")
        given = labels if self.wrong("decoder_not_shifted") else F.pad(labels[:, :-1], (1, 0))
        x = self.decode(given, memory, seen)
        if not self.wrong("no_output_scale"):
            x = x * self.config.d_model**-0.5
        return F.linear(x, self.w["shared.weight"])  # fault, once: no_output_scale
