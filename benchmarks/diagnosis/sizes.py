#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records right pairs, and eight faults each at some of them, of one decoder at many sizes, depths and types.

    PYTHONPATH=BUILD/python benchmarks/diagnosis/sizes.py FOLDER [--seed N] [--only TEXT,...]

Statistics only, laid out as `record` does, for `score`. A right pair is one training by other kernels: held to AVX2, to
SSE4.1 or to attention as separate operations, or without oneDNN. Where `msprobe` is a release of the Python tool,
that one records.
"""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch
from torch import nn
from torch.nn import functional as F

from models import Bench
from planting import (Fault, Where, changed_parameter, kernel, kernel_backward, not_updated, rounded_to,
                      scaled, setting, tile)
from recording import Recorder

TYPES = ("float32", "bfloat16", "autocast")

# hidden, layers, tokens, sequences, vocabulary
SHAPES = [
    (64, 2, 32, 2, 200), (64, 12, 32, 2, 200), (64, 32, 32, 2, 200), (64, 48, 32, 2, 200), (64, 64, 16, 1, 200),
    (192, 2, 96, 4, 6000), (192, 12, 64, 2, 500),
    (256, 2, 64, 2, 500), (256, 32, 64, 2, 500),
    (512, 2, 256, 4, 8000), (512, 8, 128, 2, 1000),
    (768, 12, 128, 2, 4000),
    (1024, 2, 256, 2, 1000), (1024, 4, 64, 2, 1000),
    (2048, 1, 128, 1, 1000), (2048, 2, 64, 1, 500), (4096, 1, 64, 1, 200), (8192, 1, 32, 1, 100),
]
ONE_TYPE = {8192: "bfloat16"}  # a layer's parameters, gradients and moments in float32 are 14 GB
WITHOUT_ONEDNN = {(64, 2), (64, 12), (192, 2), (256, 2), (512, 2)}
WITH_FAULTS = {(64, 2), (64, 48), (256, 2), (512, 2), (1024, 2), (2048, 1)}


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = 1e-6

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.before, self.between = Norm(width), Norm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 3 * width, bias=False), nn.Linear(3 * width, width, bias=False)
        self.act = nn.GELU()
        self.scale = 1.0

    def forward(self, x):
        batch, tokens, width = x.shape
        y = self.before(x)
        parts = [linear(y).view(batch, tokens, 4, width // 4).transpose(1, 2)
                 for linear in (self.query, self.key, self.value)]
        mixed = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape)) * self.scale
        return x + self.down(self.act(self.up(self.between(x))))


class Decoder(nn.Module):
    def __init__(self, width, layers, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.Sequential(*(Layer(width) for _ in range(layers)))
        self.norm = Norm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        return self.head(self.norm(self.layers(self.tokens(tokens))))


def holder(path, step=0):
    return Where(path, "linear", step=step), Where(path, step=step)


class Size(Bench):
    records_optimizer = True

    def __init__(self, shape, dtype):
        self.width, self.layers, self.length, self.sequences, self.vocabulary = shape
        self.dtype = dtype
        self.halves = dtype != "float32"
        # Products of half types without AVX take minutes where they are large.
        self.third_kernel = "math_attention" if self.halves and self.width >= 512 else "plain"
        self.name = f"hidden{self.width}x{self.layers}_{dtype}"

    def __call__(self):
        """The benchmark that a child process trains."""
        return self

    def build(self):
        model = Decoder(self.width, self.layers, self.vocabulary)
        return model.to(torch.bfloat16) if self.dtype == "bfloat16" else model

    def batch(self, generator):
        tokens = torch.randint(0, self.vocabulary, (self.sequences, self.length + 1), generator=generator)
        return {"tokens": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous()}

    def loss(self, model, batch):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.dtype == "autocast"):
            logits = model(batch["tokens"])
        return F.cross_entropy(logits.flatten(0, 1).float(), batch["labels"].flatten())

    def optimizer(self, model):
        return torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)

    def faults(self):
        at = f"layers.{self.layers // 2}"
        return [
            Fault(self.name, "eps", "argument", "1e-3", setting(f"{at}.between", "eps", 1e-3),
                  (Where(f"{at}.between", "__add__"),)),
            Fault(self.name, "scale", "argument", "2e-2", setting("layers.0", "scale", 1.02),
                  (Where("layers.0", "__mul__"),)),
            Fault(self.name, "gelu_tanh", "argument", "1e-4", setting(f"{at}.act", "approximate", "tanh"),
                  (Where(f"{at}.act", "gelu"),)),
            Fault(self.name, "up_scaled", "parameter", "2e-2",
                  changed_parameter(f"{at}.up", "weight", scaled(1.02)), holder(f"{at}.up")),
            Fault(self.name, "down_tile", "kernel", "1e-1", kernel(F, "linear", f"{at}.down", tile(16, 16, 0.5)),
                  (Where(f"{at}.down", "linear"),)),
            Fault(self.name, "head_in_half", "precision", "2e-3",
                  kernel(F, "linear", "head", rounded_to(torch.float8_e4m3fn if self.halves else torch.bfloat16)),
                  (Where("head", "linear"),)),
            Fault(self.name, "gelu_backward", "backward", "1e-2",
                  kernel_backward(F, "gelu", f"{at}.act", scaled(1.02)),
                  (Where(f"{at}.act", "gelu", 0, way="backward"),)),
            Fault(self.name, "key_not_updated", "update", "1",
                  not_updated(f"{at}.key", "weight"), holder(f"{at}.key", step=1)),
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=61)
    parser.add_argument("--only", default="", help="sizes whose name (hidden64x2_float32) holds one of these")
    options = parser.parse_args()
    wanted = options.only.split(",")
    benches = [Size(shape, dtype) for shape in SHAPES for dtype in TYPES if ONE_TYPE.get(shape[0], dtype) == dtype]
    benches = {bench.name: bench for bench in benches if any(text in bench.name for text in wanted)}
    recorder = Recorder(options.folder, benches, ["statistics"])
    begin = time.time()
    for bench in benches.values():
        size = (bench.width, bench.layers)
        recorder.attempt(recorder.benign, bench, options.seed, "avx512", "avx2", "avx2")
        recorder.attempt(recorder.benign, bench, options.seed, "avx512", bench.third_kernel, bench.third_kernel)
        if size in WITHOUT_ONEDNN:
            recorder.attempt(recorder.benign, bench, options.seed, "avx512", "native", "native")
        for fault in bench.faults() if size in WITH_FAULTS else ():
            recorder.attempt(recorder.case_of_fault, fault, options.seed, "avx512", "avx2", None)
        print(f"{bench.name}: {recorder.cases} cases in {time.time() - begin:.0f} s", file=sys.stderr, flush=True)
    print(*recorder.failed, sep="\n", file=sys.stderr)
    return 1 if recorder.failed else 0


if __name__ == "__main__":
    sys.exit(main())
