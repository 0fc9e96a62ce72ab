# SPDX-License-Identifier: Apache-2.0
"""Mamba: the library's, with channels before time, against one with time first that shifts where that convolves."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import MambaConfig, MambaForCausalLM

from ports.port import Port, Wrong, below, parameter, tokens


class MambaPort(Port):
    name = "mamba"
    held_out = True
    wrongs = (Wrong("kernel_reversed", layer=1), Wrong("no_skip"), Wrong("gate_first"), Wrong("decay_not_negative"),
              Wrong("input_and_output_swapped", layer=0), Wrong("no_step_bias", layer=1), Wrong("gate_not_activated"))

    def config(self):
        return MambaConfig(vocab_size=80, hidden_size=64, state_size=8, num_hidden_layers=self.layers, expand=2,
                           conv_kernel=4, time_step_rank=6, use_cache=False, residual_in_fp32=False)

    def reference(self):
        return MambaForCausalLM(self.config())

    def batch(self, generator):
        return tokens(generator, self.config().vocab_size, 12)

    def port(self, weights, wrong):
        return Model(self.config(), below(weights, "backbone."), wrong)

    def port_loss(self, port, batch):
        logits = port(batch["input_ids"])[:, :-1]
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), batch["labels"][:, 1:].reshape(-1))


class StateSpace(nn.Module):
    def __init__(self, config, weights, layer, wrong):
        super().__init__()
        w = below(weights, "mixer.")
        self.scale = parameter(weights["norm.weight"])
        self.eps, self.rank, self.state = config.layer_norm_epsilon, config.time_step_rank, config.state_size
        self.w_in, self.w_out = parameter(w["in_proj.weight"]), parameter(w["out_proj.weight"])
        self.taps, self.tap_bias = parameter(w["conv1d.weight"].squeeze(1).t()), parameter(w["conv1d.bias"])
        self.w_select, self.w_step = parameter(w["x_proj.weight"]), parameter(w["dt_proj.weight"])
        self.b_step, self.a_log, self.skip = parameter(w["dt_proj.bias"]), parameter(w["A_log"]), parameter(w["D"])
        self.layer, self.wrong = layer, wrong

    def convolved(self, x):
        """Each channel by itself, from the past only."""
        width, length = len(self.taps), x.shape[1]
        before = F.pad(x, (0, 0, width - 1, 0))
        taps = self.taps.flip(0) if self.wrong("kernel_reversed", self.layer) else self.taps
        y = self.tap_bias
        for at in range(width):
            y = y + before[:, at:at + length] * taps[at]  # fault: kernel_reversed
        return F.silu(y)

    def selected(self, u):
        step, b, c = F.linear(u, self.w_select).split([self.rank, self.state, self.state], dim=-1)
        if self.wrong("input_and_output_swapped", self.layer):
            b, c = c, b
        bias = None if self.wrong("no_step_bias", self.layer) else self.b_step
        step = F.linear(step, self.w_step, bias)  # fault: no_step_bias
        return F.softplus(step), b, c

    def scanned(self, u, step, b, c):
        decay = torch.exp(self.a_log)
        if not self.wrong("decay_not_negative"):
            decay = -decay
        kept = torch.exp(torch.einsum("btd,dn->btdn", step, decay))  # fault: decay_not_negative
        put = torch.einsum("btd,btn->btdn", step * u, b)  # fault: input_and_output_swapped
        state = torch.zeros_like(put[:, 0])
        states = []
        for at in range(u.shape[1]):
            state = torch.addcmul(put[:, at], kept[:, at], state)
            states.append(state)
        y = torch.einsum("btdn,btn->btd", torch.stack(states, dim=1), c)
        return y if self.wrong("no_skip") else y + u * self.skip

    def forward(self, x):
        normed = F.rms_norm(x, x.shape[-1:], self.scale, self.eps)
        u, gate = F.linear(normed, self.w_in).chunk(2, dim=-1)
        if self.wrong("gate_first"):
            u, gate = gate, u
        u = self.convolved(u)  # fault: gate_first
        y = self.scanned(u, *self.selected(u))
        if not self.wrong("gate_not_activated"):
            gate = F.silu(gate)
        y = y * gate  # fault: gate_not_activated, no_skip
        return x + F.linear(y, self.w_out)


class Model(nn.Module):
    def __init__(self, config, weights, wrong):
        super().__init__()
        self.words, self.scale = parameter(weights["embeddings.weight"]), parameter(weights["norm_f.weight"])
        self.mixers = nn.ModuleList([StateSpace(config, below(weights, f"layers.{layer}."), layer, wrong)
                                     for layer in range(config.num_hidden_layers)])
        self.eps = config.layer_norm_epsilon

    def forward(self, ids):
        x = F.embedding(ids, self.words)
        for mixer in self.mixers:
            x = mixer(x)
        return F.linear(F.rms_norm(x, x.shape[-1:], self.scale, self.eps), self.words)
