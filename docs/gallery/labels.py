# SPDX-License-Identifier: Apache-2.0
"""Labels that are not shifted."""
from recording import WRONG, record
import torch

model = torch.nn.Sequential(torch.nn.Embedding(50, 32), torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 50))
tokens = torch.randint(50, (2, 9))


def step():
    scores = model(tokens[:, :-1])
    labels = tokens[:, :-1] if WRONG else tokens[:, 1:]
    torch.nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten()).backward()


record(model, step)
