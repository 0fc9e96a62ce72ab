# SPDX-License-Identifier: Apache-2.0
"""usage: cost.py MODE FOLDER [--double]: milliseconds of a training step on the GPU, without a collector or with
whichever msprobe can be imported."""

import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peer"))

import torch  # noqa: E402
from collector_scenarios import Decoder  # noqa: E402
from torch.nn import functional  # noqa: E402

MODES = {
    "none": None,
    "statistics L1": {"level": "L1", "task": "statistics", "statistics": {}},
    "statistics mix": {"level": "mix", "task": "statistics", "statistics": {}},
    "md5 L1": {"level": "L1", "task": "statistics", "statistics": {"summary_mode": "md5"}},
}


def main(mode, folder, double=False):
    device = "cpu" if double else "cuda"
    torch.manual_seed(0)
    layers, width, heads, length, batch, vocabulary = (1, 32, 4, 8, 1, 100) if double else (6, 512, 8, 256, 8, 8000)
    model = Decoder(vocabulary, width, heads, layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    tokens = torch.randint(0, vocabulary, (batch, length)).to(device)
    debugger = None
    if MODES[mode] is not None:
        from msprobe.pytorch import PrecisionDebugger

        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dict(MODES[mode], dump_path=os.path.join(folder, "dump"), rank=[], step=[], risk_level="ALL"),
                      file)
        debugger = PrecisionDebugger(config_path=path)

    def step():
        begin = time.perf_counter()
        if debugger is not None:
            debugger.start(model)
        optimizer.zero_grad()
        output = model(tokens)
        functional.cross_entropy(output.flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        if not double:
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    for _ in range(2):
        step()
    print(json.dumps(1000 * statistics.median(step() for _ in range(2 if double else 8))))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--double" in sys.argv)
