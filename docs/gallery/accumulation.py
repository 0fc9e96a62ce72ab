# SPDX-License-Identifier: Apache-2.0
"""Accumulated gradients that are not averaged."""
from recording import WRONG, record
import torch

model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(4, 8, 16), torch.randn(4, 8, 4)


def step():
    optimizer.zero_grad()
    for i in range(4):
        loss = torch.nn.functional.mse_loss(model(x[i]), y[i])
        (loss if WRONG else loss / 4).backward()
    optimizer.step()


record(model, step, steps=2)
