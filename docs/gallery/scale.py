# SPDX-License-Identifier: Apache-2.0
"""Attention scaled by the wrong width."""
from recording import WRONG, Attention, record
import torch


class Scaled(Attention):
    def forward(self, x):
        q, k, v = self.split(x)
        width = x.shape[-1] if WRONG else q.shape[-1]  # of the model; of a head
        scores = q @ k.transpose(-2, -1) / width ** 0.5
        return self.join(scores.softmax(-1) @ v)


model = Scaled()
x = torch.randn(2, 8, 32)
record(model, lambda: model(x).square().mean().backward())
