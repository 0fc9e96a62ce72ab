# SPDX-License-Identifier: Apache-2.0
"""Gradients that were not cleared."""
from recording import WRONG, record
import torch

model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(2, 8, 16), torch.randn(2, 8, 4)


def step(count=iter(range(2))):
    i = next(count)
    if not WRONG:
        optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x[i]), y[i]).backward()
    optimizer.step()


record(model, step, steps=2)
