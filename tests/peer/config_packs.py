#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two small trainings under the Python tool's ConfigChecker, their packs compared by both tools, cell by cell. What
differs must be one of the items C1 to C31 of docs/differences.md.

usage: config_packs.py compare MSPROBE PEER_PYTHON
       config_packs.py train VARIANT PACK FILE...      (by PEER_PYTHON, from the above)
"""

import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))


def train(variant, pack, files):
    """Variant 1 has another weight, another layer, a step and a random call more, other data."""
    import random

    import numpy
    from msprobe.core.config_check.config_checker import ConfigChecker

    ConfigChecker.apply_patches()
    import torch

    random.seed(1)
    numpy.random.seed(1)
    torch.manual_seed(1)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(8, 16)
            self.second = torch.nn.Linear(16, 4)
            if variant:
                self.extra = torch.nn.Linear(2, 2)

        def forward(self, batch, mask=None, more=None):
            return self.second(torch.relu(self.first(batch)) * mask)

    net = Net()
    if variant:
        with torch.no_grad():
            net.first.weight[0, 0] += 1e-3
    for _ in range(2 + variant):
        numpy.random.rand(2)
    torch.rand(3)
    random.randint(0, 5)
    ConfigChecker(model=net, shell_path=files, output_zip_path=pack)
    data = torch.Generator().manual_seed(7 + variant)
    for _ in range(2 + variant):
        batch = torch.randn(3, 8, generator=data)
        more = {"list": [torch.tensor([1.0, float("nan")]), "text"], "half": torch.ones(3, dtype=torch.bfloat16)}
        net(batch, mask=torch.ones(16), more=more).sum().backward()


def same(left, right):
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        # The Python tool prints 16 digits, and divides by the signed value (C6).
        return math.isclose(abs(left), abs(right), rel_tol=1e-12)
    return left == right


def explained(sheet, row, ours):
    """Is the row one that only this tool has, for a known reason?"""
    if sheet == "env":  # C1 to C3, held to its cells by the golden cases
        return True
    if sheet == "dataset":  # C5
        return ours and row[3] == "only cmp have"
    if sheet == "weights":  # C5: steps that only cmp has
        return ours and row[3] == "only cmp have"
    if sheet == "hyperparameters":  # C12
        return ours and {"bf16", "fp32"} & set(row[1:3])
    return False


def compare(msprobe, python):
    import sheets

    with tempfile.TemporaryDirectory(prefix="msprobe-peer-") as scratch:
        scratch = pathlib.Path(scratch)
        for variant, (lr, precision) in enumerate((("1e-4", "bf16"), ("2e-4", "fp32"))):
            script = scratch / f"run{variant}.sh"
            script.write_text(f"torchrun train.py --lr {lr} --{precision} true --seed 1\n", encoding="utf-8")
            values = scratch / f"model{variant}.yaml"
            values.write_text(f"model:\n  layers: {2 + variant}\n  dropout: 0.1\n", encoding="utf-8")
            environment = {**os.environ, **({"ASCEND_X": "1", "HCCL_ALGO": "Ring"} if variant else {"NCCL_ALGO": "Ring"})}
            command = [python, __file__, "train", str(variant), str(scratch / f"{variant}.zip"), str(script), str(values)]
            trained = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if "No module named" in trained.stderr:
                print(f"skipped: {python} lacks {trained.stderr.splitlines()[-1]}")
                return 0
            trained.check_returncode()
        packs = ["-c", str(scratch / "0.zip"), str(scratch / "1.zip"), "-o"]
        subprocess.run([msprobe, "-q", "config_check", *packs, str(scratch / "ours")], check=True)
        tool = [python, "-c", "from msprobe.msprobe import main; main()", "config_check", *packs, str(scratch / "theirs")]
        subprocess.run(tool, check=True, capture_output=True)
        ours = sheets.read(scratch / "ours" / "result.xlsx")
        theirs = sheets.read(scratch / "theirs" / "result.xlsx")
    problems = []
    if list(ours) != list(theirs):
        problems.append(f"sheets: {list(ours)} and {list(theirs)}")
    for name in theirs:
        for mine, (rows, others) in ((True, (ours[name], theirs[name])), (False, (theirs[name], ours[name]))):
            for row in rows:
                if any(len(row) == len(other) and all(map(same, row, other)) for other in others):
                    continue
                if not explained(name, row, mine):
                    problems.append(f"{name}: only {'ours' if mine else 'theirs'}: {row}")
    rows = sum(len(sheet) for sheet in theirs.values())
    print("\n".join(problems) or f"config_check: {len(theirs)} sheets, {rows} rows of the Python tool, all explained")
    return 1 if problems else 0


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(int(sys.argv[2]), sys.argv[3], sys.argv[4:])
    else:
        sys.exit(compare(str(pathlib.Path(sys.argv[2]).resolve()), sys.argv[3]))
