#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Twenty right pairs are recorded anew, on two kernels each: what rounding leaves of them is within what
data/rounding.yaml has, by benchmarks/diagnosis/calibrate.

usage: rounding.py MSPROBE SOURCE    (run by the Python that has PyTorch; 77 without)
"""

import os
import subprocess
import sys
import tempfile

try:
    import torch  # noqa: F401
except ImportError:
    print("SKIPPED: PyTorch is not installed (python3-torch)")
    sys.exit(77)

msprobe, source = sys.argv[1:]
sys.path.insert(0, os.path.join(source, "benchmarks", "diagnosis"))

from recording import Recorder
from tiny_models import TINY_BENCHES

SEEDS = range(31, 41)
# oneDNN of PyTorch 1 computes bfloat16 on processors with AVX-512 only.
KERNELS = {"tiny": "plain", "tiny_half": "native"}

with tempfile.TemporaryDirectory(prefix="msprobe-rounding-") as folder:
    recorder = Recorder(folder, TINY_BENCHES, ["statistics"])
    for bench in TINY_BENCHES.values():
        for seed in SEEDS:
            # The third run of a pair is only for a noise floor: it is golden again.
            recorder.attempt(recorder.benign, bench, seed, "avx512", KERNELS[bench.name], "avx512")
    if recorder.failed:
        sys.exit("\n".join(recorder.failed))
    done = subprocess.run([sys.executable, os.path.join(source, "benchmarks", "diagnosis", "calibrate"), folder, "--msprobe",
                           msprobe, "--check", os.path.join(source, "data", "rounding.yaml")], check=False)
sys.exit(done.returncode)
