# SPDX-License-Identifier: Apache-2.0
"""A causal mask that lets one token too many through."""
from recording import WRONG, Attention, record
import torch


class Causal(Attention):
    def forward(self, x):
        q, k, v = self.split(x)
        future = torch.ones(8, 8, dtype=torch.bool).triu(2 if WRONG else 1)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        return self.join(scores.masked_fill(future, float("-inf")).softmax(-1) @ v)


model = Causal()
x = torch.randn(2, 8, 32)
record(model, lambda: model(x).square().mean().backward())
