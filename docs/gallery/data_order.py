# SPDX-License-Identifier: Apache-2.0
"""Batches in another order."""
from recording import WRONG, record
import torch

data = torch.utils.data.TensorDataset(torch.randn(32, 16), torch.randn(32, 4))
order = torch.Generator().manual_seed(2 if WRONG else 1)
batches = iter(torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, generator=order))
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 4))


def step():
    x, y = next(batches)
    torch.nn.functional.mse_loss(model(x), y).backward()


record(model, step)
