#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes `zero1/` and `zero3/`: what DeepSpeed (0.19) saves on two ranks, of a model with a frozen parameter, a tied one
and a buffer; and `zero1_whole.pt`, `zero3_whole.pt`: what DeepSpeed's own zero_to_fp32 makes of them.

usage: make_deepspeed.py FOLDER
"""

import os
import pathlib
import shutil
import sys

import torch
import torch.multiprocessing as mp


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(7, 5)
        self.frozen = torch.nn.Linear(5, 3)
        self.cube = torch.nn.Parameter(torch.randn(3, 2, 5))
        self.head = torch.nn.Linear(5, 7, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("table", torch.arange(4.0))
        self.frozen.requires_grad_(False)

    def forward(self, tokens):
        hidden = self.embedding(tokens)
        return self.head(hidden).sum() + (self.frozen(hidden).sum(-1, keepdim=True) * self.cube.sum()).sum()


def run(rank, out, stage, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), LOCAL_RANK=str(rank),
                      WORLD_SIZE="2", DS_ACCELERATOR="cpu")
    import deepspeed

    torch.manual_seed(2)
    model = Model()
    config = {"train_batch_size": 2, "zero_optimization": {"stage": stage}, "bf16": {"enabled": stage == 1},
              "optimizer": {"type": "AdamW", "params": {"lr": 1e-2, "torch_adam": True}}}
    engine, *_ = deepspeed.initialize(model=model, model_parameters=[p for p in model.parameters() if p.requires_grad],
                                      config=config, dist_init_required=True)
    engine.backward(engine(torch.arange(7)))
    engine.step()
    engine.save_checkpoint(str(out / f"zero{stage}"))


def main(folder):
    out = pathlib.Path(folder)
    for stage in (1, 3):
        shutil.rmtree(out / f"zero{stage}", ignore_errors=True)
        mp.spawn(run, (out, stage, 29700 + stage), 2)
        from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint

        state = get_fp32_state_dict_from_zero_checkpoint(str(out / f"zero{stage}"))
        torch.save({name: value.contiguous().clone() for name, value in state.items()}, out / f"zero{stage}_whole.pt")
        for script in (out / f"zero{stage}").glob("*.py"):
            script.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
