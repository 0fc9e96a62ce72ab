# SPDX-License-Identifier: Apache-2.0
"""usage: hard_links.py MSPROBE OURS PYTHON

Records a decoder twice with the collector in the folder OURS under PYTHON, changes tensors of one of both, and lets the
Python tool compare: the dump as it was recorded, with its tensors as links, and a copy without them. Both tables must be
the same, and ours by the Python tool's rules cell by cell.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import collector_parity
from compare_with_peer import Job, compare_job, tell
from forked_runs import python_tool

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import result_cells

CHANGE = """
import pathlib, sys, torch
for number, path in enumerate(sorted(pathlib.Path(sys.argv[1]).rglob("*.pt"))):
    tensor = torch.load(path)
    if number % 3 == 0 and tensor.is_floating_point():
        torch.save(tensor * (1 + 1e-3 * (number % 7)), path)
"""


def files_and_names(folder):
    """How many files hold how many tensors' names."""
    found = [path.stat().st_ino for path in folder.rglob("*.pt")]
    return len(set(found)), len(found)


def main():
    binary, package, python = sys.argv[1:]
    binary = str(pathlib.Path(binary).resolve())
    with tempfile.TemporaryDirectory(prefix="msprobe-peer-") as temporary:
        root = pathlib.Path(temporary)
        with collector_parity.runs_of(python, "collector_scenarios", "pytorch", package) as runs:
            for name, extra in (("linked", None), ("golden", {"hard_links": False})):
                collector_parity.run(runs, "decoder_tensor", root / name, package, extra)
        subprocess.run([python, "-c", CHANGE, root / "golden"], check=True)
        shutil.copytree(root / "linked", root / "copied")
        files, names = files_and_names(root / "linked")
        if files >= names:
            raise SystemExit(f"{names} tensors lie in {files} files: none is a link")
        if files_and_names(root / "copied") != (names, names):
            raise SystemExit("the copy has links")
        tables, good = [], True
        with python_tool(python) as tool:
            for name in ("linked", "copied"):
                sides = [str(root / side / "dump" / "step0") for side in (name, "golden")]
                job = Job(name, ["compare", "-tp", sides[0], "-gp", sides[1], "-o", "OUT"])
                for row in compare_job(binary, tool, job, root / "results" / name):
                    tell(row, 8)
                    good = good and row.good
                theirs = sorted((root / "results" / name / "theirs").rglob("*.csv"))
                tables.append([result_cells.read_table(path) for path in theirs])
        if tables[0] != tables[1] or not tables[0]:
            raise SystemExit("the Python tool finds other results for a dump with links than for its copy")
        print(f"{names} tensors in {files} files: {len(tables[0][0][1])} rows, the same as of a copy without links")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
