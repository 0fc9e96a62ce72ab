# SPDX-License-Identifier: Apache-2.0
"""A small training that everything of the native collector records: training.py FOLDER WHAT. For
scripts/check-collector-sanitizers, which loads a sanitizer ahead of Python."""

import json
import os
import pathlib
import sys
import threading

import torch
from torch import nn

from msprobe.pytorch import PrecisionDebugger, TrainerMon, seed_all

STEPS = 3
CONFIGS = {
    "statistics": {"task": "statistics", "level": "mix", "statistics": {"summary_mode": "statistics"}},
    "checksums": {"task": "statistics", "level": "mix", "statistics": {"summary_mode": "md5"}},
    "tensor": {"task": "tensor", "level": "mix"},
    "kept": {"task": "tensor", "level": "L1", "async_dump": True, "tensor": {"list": ["linear", "matmul"]}},
    "structure": {"task": "structure", "level": "mix"},
    "overflow": {"task": "overflow_check", "level": "L1"},
    "gradients": {"task": "grad_probe", "grad_probe": {"grad_level": "L2"}},
    "perturbed": {"task": "free_benchmark", "free_benchmark": {"pert_mode": "bit_noise", "fuzz_stage": "forward"}},
    "monitor": {"targets": {}, "wg_distribution": True, "mv_distribution": True, "ops": ["norm", "min", "max", "nans"],
                "alert": {"rules": [{"rule_name": "AnomalyNan"}], "dump": True}},
}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x):
        return self.layers(self.norm(x + self.attention(x, x, x)[0]))


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 2 * STEPS

    def __getitem__(self, index):
        return torch.randn(4, 16, generator=torch.Generator().manual_seed(index))


def train(model, optimizer, started, stopped):
    # A worker is a fork of this process, threads and all.
    batches = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=1)
    for step, batch in enumerate(batches):
        started()
        # Beside it another thread calls operations, which belong to this step as well.
        beside = threading.Thread(target=lambda: [torch.matmul(batch[0], batch[1].T).relu() for _ in range(20)])
        beside.start()
        optimizer.zero_grad()
        loss = model(batch).square().mean() / (0 if step == STEPS - 1 else 1)
        loss.backward()
        beside.join()
        optimizer.step()
        stopped()


def main():
    folder, what = pathlib.Path(sys.argv[1]) / sys.argv[2], sys.argv[2]
    folder.mkdir(parents=True)
    config = folder / "config.json"
    seed_all(1)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    if what == "monitor":
        os.environ["MONITOR_OUTPUT_DIR"] = str(folder / "out")
        config.write_text(json.dumps(CONFIGS[what]))
        TrainerMon(str(config)).set_monitor(model, optimizer=optimizer, grad_acc_steps=1)
        train(model, optimizer, lambda: None, lambda: None)
    else:
        config.write_text(json.dumps({**CONFIGS[what], "dump_path": str(folder / "out")}))
        debugger = PrecisionDebugger(config_path=str(config))
        if what == "gradients":
            debugger.monitor(model)
            train(model, optimizer, lambda: None, lambda: None)
        else:

            def stopped():
                debugger.stop()
                debugger.step()

            train(model, optimizer, lambda: debugger.start(model), stopped)


if __name__ == "__main__":
    main()
