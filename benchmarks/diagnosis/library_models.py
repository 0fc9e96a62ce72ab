# SPDX-License-Identifier: Apache-2.0
"""Tiny models of the library `transformers` with random weights, and one changed line each."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

from catalogue import holder, one_element
from models import Bench
from planting import Fault, Where, changed_batch, changed_parameter, exchanged, kernel, scaled, setting


class Llama(Bench):
    name = "llama"
    seeds = (11,)
    kernels = ("avx512", "plain", "avx2", "math_attention")
    held_out = True
    type = torch.float32

    def build(self):
        return LlamaForCausalLM(LlamaConfig(
            vocab_size=96, hidden_size=48, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=64, use_cache=False,
            attn_implementation="sdpa")).to(self.type).train()

    def batch(self, generator):
        tokens = torch.randint(0, 96, (2, 14), generator=generator)
        return {"input_ids": tokens, "labels": tokens, "attention_mask": torch.ones_like(tokens)}

    def loss(self, model, batch):
        return model(**batch).loss

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.1)


class LlamaHalf(Llama):
    name = "llama_half"
    dtype = "bfloat16"
    type = torch.bfloat16


class Bert(Bench):
    name = "bert"
    seeds = (11,)
    kernels = ("avx512", "plain", "avx2", "native")
    held_out = True
    type = torch.float32

    def build(self):
        return BertForMaskedLM(BertConfig(
            vocab_size=96, hidden_size=48, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            attn_implementation="eager")).to(self.type).train()

    def batch(self, generator):
        tokens = torch.randint(4, 96, (3, 12), generator=generator)
        mask = torch.ones_like(tokens)
        mask[1, 9:] = 0
        return {"input_ids": tokens, "labels": tokens.roll(1, 0), "attention_mask": mask}

    def loss(self, model, batch):
        return model(**batch).loss

    def optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=1e-3)


class BertHalf(Bert):
    name = "bert_half"
    dtype = "bfloat16"
    type = torch.bfloat16


LIBRARY_BENCHES = {bench.name: bench for bench in (Llama, LlamaHalf, Bert, BertHalf)}
LIBRARY_FAULTS = []


class _Activation(nn.Module):
    def forward(self, x):
        return F.gelu(x)


class _TanhActivation(nn.Module):
    def forward(self, x):
        return F.gelu(x, approximate="tanh")


def _other_base(run):
    frequencies = run.module("model.rotary_emb").inv_freq
    count = frequencies.numel()
    frequencies.copy_(500.0 ** (-torch.arange(count, dtype=torch.float32) / count))


def _one_masked(batch):
    batch["attention_mask"][1, 2] = 0


for _name, _dtype_size in (("llama", "1e-3"), ("llama_half", "5e-2")):
    _factor = 1.5 if _name == "llama" else 20.0
    for _fault in (
        Fault(_name, "activation", "code", "1e-1", exchanged("model.layers.1.mlp.act_fn", lambda old: _Activation()),
              (Where("model.layers.1.mlp.act_fn", "silu"), Where("model.layers.1.mlp.act_fn", "gelu"))),
        Fault(_name, "epsilon", "argument", "1e-1",
              setting("model.layers.1.post_attention_layernorm", "variance_epsilon", 1e-3),
              (Where("model.layers.1.post_attention_layernorm", "__add__"),)),
        Fault(_name, "mask", "input", "1e-1", changed_batch(_one_masked),
              (Where("model", "sum", 0), Where("model", "__eq__", 0), Where("model"),
               Where("model.layers.0.self_attn", "scaled_dot_product_attention", around=True))),
        Fault(_name, "rotary_base", "input", "3e-1", _other_base,
              (Where("model.rotary_emb", "__mul__", 0), Where("model.rotary_emb", "cos"))),
        Fault(_name, "one_weight", "parameter", _dtype_size,
              changed_parameter("model.layers.1.self_attn.o_proj", "weight", one_element(_factor)),
              holder("model.layers.1.self_attn.o_proj", "linear")),
        Fault(_name, "attention_scaled", "kernel", "2e-2",
              kernel(F, "scaled_dot_product_attention", "model.layers.1.self_attn", scaled(1.02)),
              (Where("model.layers.1.self_attn", "scaled_dot_product_attention"),)),
    ):
        LIBRARY_FAULTS.append(_fault)

for _name, _dtype_size in (("bert", "1e-3"), ("bert_half", "5e-2")):
    _layer = "bert.encoder.layer.1"
    _factor = 1.5 if _name == "bert" else 20.0
    for _fault in (
        Fault(_name, "activation", "argument" if _name == "bert" else "code", "1e-3" if _name == "bert" else "1e-1",
              exchanged(f"{_layer}.intermediate.intermediate_act_fn",
                        lambda old, half=_name != "bert": nn.SiLU() if half else _TanhActivation()),
              (Where(f"{_layer}.intermediate.intermediate_act_fn", "gelu"),
               Where(f"{_layer}.intermediate.intermediate_act_fn", "silu"))),
        Fault(_name, "epsilon", "argument", "5e-2", setting(f"{_layer}.output.LayerNorm", "eps", 1e-1),
              (Where(f"{_layer}.output.LayerNorm", "layer_norm"),)),
        Fault(_name, "mask", "input", "1e-1", changed_batch(_one_masked),
              (Where("bert", "where"), Where("bert", "all", 0), Where("bert"),
               Where("bert.encoder.layer.0.attention.self", "__add__", around=True))),
        Fault(_name, "one_weight", "parameter", _dtype_size,
              changed_parameter(f"{_layer}.attention.self.value", "weight", one_element(_factor)),
              holder(f"{_layer}.attention.self.value", "linear")),
        Fault(_name, "decoder_scaled", "kernel", "1e-2", kernel(F, "linear", "cls.predictions.decoder", scaled(1.01)),
              (Where("cls.predictions.decoder", "linear"),)),
    ):
        LIBRARY_FAULTS.append(_fault)
