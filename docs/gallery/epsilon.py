# SPDX-License-Identifier: Apache-2.0
"""Another epsilon in a norm."""
from recording import WRONG, record
import torch

norm = torch.nn.LayerNorm(16, eps=1e-3 if WRONG else 1e-5)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), norm, torch.nn.Linear(16, 4))
x, y = torch.randn(8, 16), torch.randn(8, 4)


def step():
    torch.nn.functional.mse_loss(model(x), y).backward()


record(model, step)
