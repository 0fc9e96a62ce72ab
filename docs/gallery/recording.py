# SPDX-License-Identifier: Apache-2.0
"""What the scripts of the gallery share: each is called with the folder of the dump, and with `wrong` for its wrong run."""
import sys

import torch

from msprobe.pytorch import PrecisionDebugger, seed_all

WRONG = sys.argv[2:] == ["wrong"]
seed_all(1)


def record(model, step, steps=1):
    """Records whole steps: forward, backward and update."""
    debugger = PrecisionDebugger(dump_path=sys.argv[1], task="tensor", level="mix")
    for _ in range(steps):
        debugger.start(model)
        step()
        debugger.stop()
        debugger.step()


class Attention(torch.nn.Module):
    """Of a language model, with four heads."""

    def __init__(self, width=32):
        super().__init__()
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)

    def split(self, x):
        return (one.reshape(*one.shape[:-1], 4, -1).transpose(-3, -2) for one in self.qkv(x).chunk(3, -1))

    def join(self, x):
        return self.out(x.transpose(-3, -2).flatten(-2))
