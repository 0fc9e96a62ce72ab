# SPDX-License-Identifier: Apache-2.0
"""A branch that gets no gradient."""
from recording import WRONG, record
import torch


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.value, self.gate = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)

    def forward(self, x):
        gate = self.gate(x).sigmoid()
        return self.value(x) * (gate.detach() if WRONG else gate)


model = Gated()
x = torch.randn(8, 16)
record(model, lambda: model(x).square().mean().backward())
