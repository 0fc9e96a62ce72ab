# SPDX-License-Identifier: Apache-2.0
"""A weight that was not loaded."""
from recording import WRONG, record
import torch

model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 4))
torch.manual_seed(7)
trained = {name: torch.randn_like(one) / 4 for name, one in model.state_dict().items()}
if WRONG:
    trained["module.2.weight"] = trained.pop("2.weight")
model.load_state_dict(trained, strict=False)
x, y = torch.randn(8, 16), torch.randn(8, 4)


def step():
    torch.nn.functional.mse_loss(model(x), y).backward()


record(model, step)
