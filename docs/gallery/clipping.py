# SPDX-License-Identifier: Apache-2.0
"""Gradients that are clipped too late."""
from recording import WRONG, record
import torch

model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 16), torch.randn(8, 4)


def step():
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    if not WRONG:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()


record(model, step, steps=2)
