# SPDX-License-Identifier: Apache-2.0
"""Tensors of chance -> random_inputs.json, and what the Python tool makes of each pair: random_26.2.0.json (rows as in
26.2.0.json). Run with a Python that has mindstudio-probe 26.2.0 and PyTorch."""

import importlib
import json
import math
import random

import torch

API_NAMES = ["matmul", "add", "relu", "conv2d", "sum", "test_api", "layer_norm", "mul", "tanh"]
UNLIKE = [math.inf, -math.inf, math.nan]
chance = random.Random(5)
generator = torch.Generator().manual_seed(5)


def normal(count):
    return torch.randn(count, generator=generator, dtype=torch.float64)


def pair():
    dtype = chance.choice([torch.float16, torch.bfloat16, torch.float32])
    wide = torch.float64 if dtype == torch.float32 and chance.random() < 0.9 else torch.float32
    count = chance.choice([1, 2, 5, 17, 31])
    reference = (normal(count) * chance.choice([1e-6, 1e-3, 1, 1, 10, 1000, 1e4])).to(wide)
    if chance.random() < 0.3:
        reference = reference * torch.where(normal(count) > 1, 1e-5, 1.0).to(wide)
    if chance.random() < 0.2:
        reference = torch.where(normal(count) > 0.5, torch.zeros((), dtype=wide), reference)
    error = chance.choice([0, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.1])
    device = (reference.double() * (1 + error * normal(count))).to(dtype)
    if chance.random() < 0.25:
        at = chance.randrange(count)
        reference[at] = chance.choice([*UNLIKE, 1.0])
        device[at] = chance.choice([*UNLIKE, 1.0])
    if chance.random() < 0.05:
        reference = reference * (1e6 if dtype == torch.float16 else 1e38)
        device = reference.to(dtype)
    return reference, device


def encoded(tensor):
    data = tensor.contiguous().view(torch.uint8).numpy().tobytes().hex()
    return {"tensor": str(tensor.dtype)[6:], "shape": list(tensor.shape), "bytes_le": data}


def spelled(value):
    return f"{value:.14f}" if isinstance(value, float) else str(value)


compare = importlib.import_module("msprobe.pytorch.api_accuracy_checker.compare.compare")
comparator = compare.Comparator("unused_result.csv", "unused_details.csv", True)
inputs, results = [], []
for number in range(80):
    api, (reference, device) = chance.choice(API_NAMES), pair()
    inputs.append({"name": f"random{number}", "api": api, "bench": encoded(reference), "device": encoded(device)})
    status, rows = comparator._compare_core_wrapper(api, reference, device, False)
    results.append({"name": f"random{number}", "status": status, "rows": [[spelled(x) for x in row] for row in rows]})
for name, value in (("random_inputs.json", inputs), ("random_26.2.0.json", results)):
    with open(name, "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(map(json.dumps, value)) + "\n]\n")
