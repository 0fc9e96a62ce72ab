#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the ranks of a large run spread over the processes of msprobe-mpi, by the plan of `msprobe compare --dry-run`.

usage: balance.py MSPROBE [--ranks N] [--tail ALPHA] [--seed S] [--processes P,P,...]

The dump has no bytes: its tensors are files with holes, whose sizes are those of a distribution with a heavy tail
(Pareto: the smaller ALPHA, the more of all bytes a few ranks have).
"""

import argparse
import os
import pathlib
import random
import subprocess
import tempfile

SMALLEST = 2 << 30  # bytes of a rank and side
FILES = 8
JSON = b'{"task": "tensor", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {}}'


def make_tree(folder, sizes):
    for rank, size in enumerate(sizes):
        for side in ("target", "golden"):
            place = folder / side / "step0" / f"rank{rank}"
            data = place / "dump_tensor_data"
            data.mkdir(parents=True)
            (place / "dump.json").write_bytes(JSON)
            os.truncate(place / "dump.json", 5 << 20)
            for number in range(FILES):
                path = data / f"Torch.matmul.{number}.forward.output.0.pt"
                path.touch()
                os.truncate(path, size // FILES)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("msprobe")
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--tail", type=float, default=1.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", default="16,128,1024")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    sizes = [int(SMALLEST * draw.paretovariate(arguments.tail)) for _ in range(arguments.ranks)]
    print(f"{arguments.ranks} ranks of {sum(sizes) * 2 / 1e12:.1f} TB in two sides; the largest has "
          f"{max(sizes) / sum(sizes):.1%}, half of all is in the largest {half(sizes)}")
    with tempfile.TemporaryDirectory(prefix="msprobe-balance-") as scratch:
        folder = pathlib.Path(scratch)
        make_tree(folder, sizes)
        for processes in arguments.processes.split(","):
            words = ["compare", "-tp", folder / "target", "-gp", folder / "golden", "--dry-run", processes]
            plan = subprocess.run([arguments.msprobe, *words], check=True, capture_output=True, text=True).stdout
            print(f"\n{plan}", end="")


def half(sizes):
    """How many of the largest hold half of all."""
    rest = sum(sizes) / 2
    for count, size in enumerate(sorted(sizes, reverse=True), 1):
        rest -= size
        if rest <= 0:
            return count
    return len(sizes)


if __name__ == "__main__":
    main()
