# SPDX-License-Identifier: Apache-2.0
"""Dropout that is still active."""
from recording import WRONG, record
import torch

model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(64, 4))
model.train(WRONG)
x, y = torch.randn(8, 16), torch.randn(8, 4)


def step():
    torch.nn.functional.mse_loss(model(x), y).backward()


record(model, step)
