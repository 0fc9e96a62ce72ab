# SPDX-License-Identifier: Apache-2.0
"""A recurrent language model: the fused layers of PyTorch against cells by hand, with a list of parameters."""

import torch
from torch import nn
from torch.nn import functional as F

from ports.port import Port, Wrong, tokens

WORDS, WIDTH = 90, 64


class Recurrent(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, layers, batch_first=True)
        self.out = nn.Linear(WIDTH, WORDS)

    def forward(self, ids):
        return self.out(self.lstm(self.embedding(ids))[0])


class LstmPort(Port):
    name = "lstm"
    wrongs = (Wrong("gate_order"), Wrong("dropped_bias", layer=1), Wrong("no_tanh"),
              Wrong("transposed_weight", layer=0), Wrong("memory_not_kept", layer=1), Wrong("layers_swapped"),
              Wrong("truncated", layer=1, backward=True))

    def reference(self):
        return Recurrent(self.layers)

    def batch(self, generator):
        return tokens(generator, WORDS, 14)

    def reference_loss(self, model, batch):
        logits = model(batch["input_ids"])
        return F.cross_entropy(logits[:, :-1].reshape(-1, WORDS), batch["labels"][:, 1:].reshape(-1))

    def port(self, weights, wrong):
        return HandWritten(weights, self.layers, wrong)

    def port_loss(self, port, batch):
        logits = port(batch["input_ids"].t())
        chosen = torch.gather(F.log_softmax(logits[:-1], dim=-1), 2, batch["labels"].t()[1:, :, None])
        return -torch.mean(chosen)


class HandWritten:
    """Length first; one product for all gates of input and state together."""

    def __init__(self, weights, layers, wrong):
        order = [1, 0] if wrong("layers_swapped") else list(range(layers))
        self.embedding, self.out_weight, self.out_bias = (
            weights[name].clone() for name in ("embedding.weight", "out.weight", "out.bias"))
        self.cells = []
        for layer, source in enumerate(order):
            w_x, w_h, b_x, b_h = (weights[f"lstm.{kind}_l{source}"]
                                  for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
            if wrong("transposed_weight", layer):
                w_h = torch.cat([gate.t() for gate in w_h.chunk(4)])
            self.cells.append((torch.cat([w_x, w_h], dim=1).t().contiguous(), b_x.clone(), b_h.clone()))
        for tensor in self.parameters():
            tensor.requires_grad_()
        self.wrong = wrong

    def parameters(self):
        return [self.embedding, *(tensor for cell in self.cells for tensor in cell), self.out_weight, self.out_bias]

    def step(self, layer, x, h, c):
        weight, b_x, b_h = self.cells[layer]
        bias = b_x if self.wrong("dropped_bias", layer) else b_x + b_h
        joined = torch.cat([x, h], dim=-1)
        gates = torch.addmm(bias, joined, weight)  # fault: dropped_bias, transposed_weight, layers_swapped
        i, f, g, o = gates.chunk(4, dim=-1)
        if self.wrong("gate_order"):
            g, o = o, g
        i, f, o, g = i.sigmoid(), f.sigmoid(), o.sigmoid(), g.tanh()  # fault: gate_order
        if self.wrong("memory_not_kept", layer):
            c = i * g  # fault: memory_not_kept
        else:
            c = f * c + i * g
        if self.wrong("no_tanh"):
            return o * c, c  # fault: no_tanh
        return o * c.tanh(), c

    def __call__(self, ids):
        x = F.embedding(ids, self.embedding)
        for layer in range(len(self.cells)):
            h = c = x.new_zeros(ids.shape[1], WIDTH)
            outputs = []
            for at in range(len(ids)):
                if self.wrong("truncated", layer) and at % 4 == 0:
                    h, c = h.detach(), c.detach()
                h, c = self.step(layer, x[at], h, c)  # fault: truncated
                outputs.append(h)
            x = torch.stack(outputs)
        return x @ self.out_weight.t() + self.out_bias
