# SPDX-License-Identifier: Apache-2.0
"""Tiny models of the library `transformers` with random weights, and one changed line each."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import (BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
                          T5Config, T5ForConditionalGeneration, ViTConfig, ViTForImageClassification)

from catalogue import holder, one_element
from models import Bench
from planting import (Fault, Where, changed_batch, changed_parameter, exchanged, kernel, kernel_backward,
                      kernel_gradient, noisy, not_updated, optimizer_setting, scaled, setting, tile)


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


class Gpt(Bench):
    name = "gpt"
    seeds = (51,)
    kernels = ("avx512", "plain", "avx2", "math_attention")
    held_out = True

    def build(self):
        return GPT2LMHeadModel(GPT2Config(
            vocab_size=80, n_positions=32, n_embd=48, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0, use_cache=False, attn_implementation="sdpa")).train()

    def batch(self, generator):
        tokens = torch.randint(0, 80, (3, 11), generator=generator)
        return {"input_ids": tokens, "labels": tokens}

    def loss(self, model, batch):
        return model(**batch).loss

    def optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=1e-3)


class Summary(Bench):
    name = "summary"
    dtype = "bfloat16"
    seeds = (51,)
    kernels = ("avx512", "plain", "avx2", "two_threads")
    held_out = True

    def build(self):
        return T5ForConditionalGeneration(T5Config(
            vocab_size=72, d_model=40, d_kv=10, d_ff=96, num_layers=2, num_heads=4, dropout_rate=0.0, use_cache=False,
            decoder_start_token_id=0, pad_token_id=0)).to(torch.bfloat16).train()

    def batch(self, generator):
        return {"input_ids": torch.randint(1, 72, (2, 10), generator=generator),
                "labels": torch.randint(1, 72, (2, 7), generator=generator)}

    def loss(self, model, batch):
        return model(**batch).loss

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=0.3)


class Sight(Bench):
    name = "sight"
    dtype = "autocast"
    seeds = (51,)
    kernels = ("avx512", "plain", "avx2", "math_attention")
    held_out = True

    def build(self):
        return ViTForImageClassification(ViTConfig(
            hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=16,
            patch_size=4, num_labels=6, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            attn_implementation="sdpa")).train()

    def batch(self, generator):
        return {"pixel_values": torch.randn(4, 3, 16, 16, generator=generator),
                "labels": torch.randint(0, 6, (4,), generator=generator)}

    def loss(self, model, batch):
        with torch.autocast(self.device, torch.bfloat16):
            return model(**batch).loss

    def optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=1e-3)


LIBRARY_BENCHES = {bench.name: bench for bench in (Llama, LlamaHalf, Bert, BertHalf, Gpt, Summary, Sight)}
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


def _last_token(batch):
    batch["input_ids"][1, 6] = (batch["input_ids"][1, 6] + 5) % 70 + 1


def _dimmed(batch):
    batch["pixel_values"][2].mul_(0.9)


def add(bench, name, kind, size, plant, *expect):
    LIBRARY_FAULTS.append(Fault(bench, name, kind, size, plant, expect))


def _backward(path, op):
    return Where(path, op, 0, way="backward")


def _all_parameters():
    return Where(None, "*parameters*", step=1)


_B, _L = "gpt", "transformer.h.1"
add(_B, "epsilon", "argument", "1e-2", setting(f"{_L}.ln_2", "eps", 1e-3), Where(f"{_L}.ln_2", "layer_norm"))
add(_B, "activation", "code", "1e-1", exchanged(f"{_L}.mlp.act", lambda old: nn.SiLU()), Where(f"{_L}.mlp.act"),
    Where(f"{_L}.mlp.act", "silu"), Where(f"{_L}.mlp.act", "__mul__"), Where(f"{_L}.mlp.act", "pow"))
add(_B, "stale", "parameter", "3e-2", changed_parameter(f"{_L}.mlp.c_proj", "weight", noisy(0.03)),
    *holder(f"{_L}.mlp.c_proj", "addmm"))
add(_B, "token", "input", "1e-1", changed_batch(_last_token), Where("transformer.wte", "embedding", around=True))
add(_B, "tile", "kernel", "1e-1", kernel(F, "scaled_dot_product_attention", f"{_L}.attn", tile(4, 6, 0.5)),
    Where(f"{_L}.attn", "scaled_dot_product_attention"))
add(_B, "norm_backward", "backward", "1e-1", kernel_backward(F, "layer_norm", f"{_L}.ln_1", scaled(0.9)),
    _backward(f"{_L}.ln_1", "layer_norm"))
add(_B, "rate", "update", "2e-1", optimizer_setting("lr", 1.2e-3), _all_parameters())
add(_B, "not_updated", "update", "1e-2", not_updated(f"{_L}.attn.c_attn", "weight"),
    *holder(f"{_L}.attn.c_attn", "addmm", step=1))

_B, _L = "summary", "encoder.block.1.layer"
add(_B, "epsilon", "argument", "1e-1", setting(f"{_L}.0.layer_norm", "variance_epsilon", 0.3),
    Where(f"{_L}.0.layer_norm", "__add__"))
add(_B, "activation", "code", "3e-1", exchanged(f"{_L}.1.DenseReluDense.act", lambda old: nn.GELU()),
    Where(f"{_L}.1.DenseReluDense.act", "relu"), Where(f"{_L}.1.DenseReluDense.act", "gelu"))
add(_B, "stale", "parameter", "2e-1",
    changed_parameter("decoder.block.0.layer.1.EncDecAttention.k", "weight", noisy(0.2)),
    *holder("decoder.block.0.layer.1.EncDecAttention.k", "linear"))
add(_B, "token", "input", "3e-1", changed_batch(_last_token), Where(None, "embedding"),
    Where("encoder.embed_tokens"), Where("shared"))
add(_B, "gradient", "backward", "3e-1",
    kernel_gradient("decoder.block.1.layer.2.DenseReluDense.wi", "weight", scaled(1.3)),
    Where("decoder.block.1.layer.2.DenseReluDense.wi", "*grad*"))
add(_B, "rate", "update", "5e-1", optimizer_setting("lr", 0.45), _all_parameters())

_B, _L = "sight", "vit.layers.1"
add(_B, "token", "input", "1e-1", changed_batch(_dimmed),
    Where("vit.embeddings.patch_embeddings.projection", "conv2d", around=True))
add(_B, "head_stale", "parameter", "1e-1", changed_parameter("classifier", "weight", noisy(0.1)),
    *holder("classifier", "linear"))
add(_B, "norm_scaled", "kernel", "2e-2", kernel(F, "layer_norm", "vit.layernorm", scaled(1.02)),
    Where("vit.layernorm", "layer_norm"))
add(_B, "epsilon", "argument", "1e-1", setting("vit.layernorm", "eps", 0.5), Where("vit.layernorm", "layer_norm"))
add(_B, "gradient", "backward", "3e-1", kernel_gradient("classifier", "weight", scaled(1.3)),
    Where("classifier", "*grad*"))
add(_B, "rate", "update", "3e-1", optimizer_setting("lr", 1.4e-3), _all_parameters())
