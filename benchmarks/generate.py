#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dump trees and checkpoints for measurements, the same bytes for the same options and seed.

    generate.py statistics OUT [--apis N] [--ranks R] [--seed S]
    generate.py tensor     OUT [--apis N] [--tensors K | --fault] [--mib M] [--ranks R] [--seed S]
    generate.py anomaly    OUT [--apis N] [--ranks R] [--seed S]
    generate.py graph      OUT [--modules N] [--apis N] [--ranks R] [--seed S]
    generate.py checkpoint OUT [--parameters N] [--mib M] [--seed S]

writes OUT/target/step0/rank<r> and OUT/golden/step0/rank<r>, or OUT/step0/rank<r> with NaN from the middle on, or
OUT/first.safetensors and OUT/second.safetensors. Needs Python 3.9 and nothing else.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import anomaly_tree
import checkpoint_files
import graph_tree
import statistics_tree
import tensor_tree


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def generate(kind, out, apis, ranks=1, seed=1, tensors=2, size=4 << 20, fault=False):
    """Returns the number of rows that a comparison of all ranks has."""
    rows = 0
    for rank in range(ranks):
        target, golden = (out / side / "step0" / f"rank{rank}" for side in ("target", "golden"))
        if kind == "statistics":
            rows += statistics_tree.write_rank(target, golden, apis, seed * 1000 + rank)
        else:
            of_rank = seed * 1000 + rank
            entries = (
                tensor_tree.chain(size, apis, of_rank) if fault else tensor_tree.unrelated(size, apis, tensors, of_rank)
            )
            rows += tensor_tree.write_rank(target, golden, entries, size)
    return rows


def main():
    parser = argparse.ArgumentParser(description="Dump trees and checkpoints for measurements.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind, apis in (("statistics", 10_000), ("tensor", 128)):
        sub = kinds.add_parser(kind)
        sub.add_argument("out", type=pathlib.Path)
        sub.add_argument("--apis", type=positive, default=apis, help=f"entries per rank (default {apis})")
        sub.add_argument("--ranks", type=positive, default=1)
        sub.add_argument("--seed", type=positive, default=1)
        if kind == "tensor":
            sub.add_argument(
                "--tensors", type=positive, default=2, help="files per entry and side (default 2)"
            )
            sub.add_argument("--fault", action="store_true", help="a chain of entries, one of them wrong")
            sub.add_argument("--mib", type=float, default=4.0, help="size of one tensor in MiB (default 4)")
    sub = kinds.add_parser("anomaly")
    sub.add_argument("out", type=pathlib.Path)
    sub.add_argument("--apis", type=positive, default=8000, help="entries per rank (default 8000)")
    sub.add_argument("--ranks", type=positive, default=16)
    sub.add_argument("--seed", type=positive, default=1)
    sub = kinds.add_parser("graph")
    sub.add_argument("out", type=pathlib.Path)
    sub.add_argument("--modules", type=positive, default=10_000, help="modules per rank (default 10000)")
    sub.add_argument("--apis", type=positive, default=50_000, help="operations per rank (default 50000)")
    sub.add_argument("--ranks", type=positive, default=1)
    sub.add_argument("--seed", type=positive, default=1)
    sub = kinds.add_parser("checkpoint")
    sub.add_argument("out", type=pathlib.Path)
    sub.add_argument("--parameters", type=positive, default=32)
    sub.add_argument("--mib", type=positive, default=64, help="size of one parameter in MiB (default 64)")
    sub.add_argument("--seed", type=positive, default=1)
    options = parser.parse_args()
    if options.kind == "anomaly":
        anomaly_tree.write(options.out, options.ranks, options.apis, options.seed)
        return
    if options.kind == "graph":
        graph_tree.write(options.out, options.modules, options.apis, options.ranks, options.seed)
        return
    if options.kind == "checkpoint":
        checkpoint_files.write(options.out, options.parameters, options.mib, options.seed)
        return
    sizes = {}
    if options.kind == "tensor":
        size = int(options.mib * (1 << 20))
        if size < 64 or size % 4:
            parser.error("--mib: a tensor needs a multiple of 4 bytes, and at least 64")
        sizes = {"tensors": options.tensors, "size": size, "fault": options.fault}
    rows = generate(options.kind, options.out, options.apis, options.ranks, options.seed, **sizes)
    print(f"{options.out}: {rows} rows")


if __name__ == "__main__":
    main()
