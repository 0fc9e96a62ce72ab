# SPDX-License-Identifier: Apache-2.0
"""Another weight decay."""
from recording import WRONG, record
import torch

model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1 if WRONG else 0.01)
x, y = torch.randn(8, 16), torch.randn(8, 4)


def step():
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()


record(model, step, steps=2)
