# SPDX-License-Identifier: Apache-2.0
"""usage: cost.py SHAPE MODE FOLDER [--double]: milliseconds of a training step on the GPU, without a collector or with
whichever msprobe can be imported."""

import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peer"))

import torch
from collector_scenarios import Decoder
from torch.nn import functional

# (layers, width, heads, tokens of a sequence, sequences, dtype): one whose steps wait for kernels to be launched, one whose
# steps wait for what they compute.
SHAPES = {
    "launch-bound": (6, 256, 8, 64, 2, torch.float32),
    "compute-bound": (4, 4096, 32, 2048, 1, torch.bfloat16),
}
DOUBLE = (1, 32, 4, 8, 1, torch.float32)
# The configuration, and by shape how many times the step without a collector is aimed at.
MODES = {
    "none": (None, {}),
    "statistics L1": ({"level": "L1", "statistics": {}}, {"launch-bound": 3.0, "compute-bound": 1.3}),
    "statistics mix": ({"level": "mix", "statistics": {}}, {"launch-bound": 5.0, "compute-bound": 1.5}),
    "md5 L1": ({"level": "L1", "statistics": {"summary_mode": "md5"}}, {}),
}
LONGEST = 6.0  # seconds, of the steps that are measured


def main(shape, mode, folder, double=False):
    device = "cpu" if double else "cuda"
    torch.manual_seed(0)
    layers, width, heads, length, batch, dtype = DOUBLE if double else SHAPES[shape]
    vocabulary = 100 if double else 8000
    model = Decoder(vocabulary, width, heads, layers).to(device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    tokens = torch.randint(0, vocabulary, (batch, length)).to(device)
    debugger = None
    configuration = MODES[mode][0]
    if configuration is not None:
        from msprobe.pytorch import PrecisionDebugger

        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dict(configuration, task="statistics", dump_path=os.path.join(folder, "dump"), rank=[], step=[],
                           risk_level="ALL"), file)
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
    steps = [step()]
    while len(steps) < (2 if double else 20) and sum(steps) < LONGEST:
        steps.append(step())
    print(json.dumps(1000 * statistics.median(steps)))


if __name__ == "__main__":
    main(*sys.argv[1:4], "--double" in sys.argv)
