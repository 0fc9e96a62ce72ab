#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: three_frameworks.py --msprobe BINARY --package FOLDER --pytorch PYTHON --mindspore PYTHON --msadapter PYTHON

One network with the same weights and data under PyTorch, MindSpore and MSAdapter: every pair of recordings pairs
completely and passes; a fault planted in one of them is the culprit in each comparison with another.
"""
import argparse
import csv
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FAULT = "blocks.1.exact"


def record(options, framework, folder, fault=""):
    subprocess.run([getattr(options, framework), "-W", "ignore", os.path.join(HERE, "three_networks.py"), options.package,
                    framework, folder, *([fault] if fault else [])], check=True, capture_output=True, text=True)


def compare(options, target, golden, out):
    """Status, what it said, and its rows."""
    found = subprocess.run([options.msprobe, "compare", "-tp", os.path.join(target, "step0"), "-gp", os.path.join(golden, "step0"),
                            "-o", out, "--fail-on", "unmatched"], capture_output=True, text=True, check=False)
    assert found.returncode < 2, found.stderr
    with open(glob.glob(os.path.join(out, "*.csv"))[0], encoding="utf-8-sig", newline="") as file:
        return found.returncode, found.stdout, list(csv.DictReader(file))


def main():
    parser = argparse.ArgumentParser()
    for option in ("msprobe", "package", "pytorch", "mindspore", "msadapter"):
        parser.add_argument("--" + option, required=True)
    options = parser.parse_args()
    frameworks = ("pytorch", "mindspore", "msadapter")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="msprobe_three_") as folder:
        def inside(name):
            return os.path.join(folder, name)

        for framework in frameworks:
            record(options, framework, inside(framework))
            record(options, framework, inside(framework + "_fault"), FAULT)
        for target in frameworks:
            for golden in frameworks:
                if target == golden:
                    continue
                status, said, rows = compare(options, inside(target), inside(golden), inside(f"{target}_{golden}"))
                failed = [row["NPU Name"] for row in rows if row["Result"] != "pass"]
                clean = status == 0 and not failed and said.lstrip().startswith("no culprit")
                _, said, _ = compare(options, inside(target + "_fault"), inside(golden), inside(f"{target}_{golden}_fault"))
                first = said.strip().splitlines()[0]
                named = first.startswith("culprit") and f".{FAULT}." in first
                print(f"{target} against {golden}: {len(rows)} rows, {'all pass' if clean else 'not clean'}; the planted fault is "
                      f"{'' if named else 'not '}named: {first}")
                for name in failed[:10]:
                    print("   ", name)
                wrong += not (clean and named)
    sys.exit(bool(wrong))


main()
