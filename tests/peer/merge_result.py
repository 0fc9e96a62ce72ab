# SPDX-License-Identifier: Apache-2.0
"""Compares `msprobe merge_result` with the Python tool on the workbooks that both tools write for random dumps.

usage: merge_result.py MSPROBE PYTHON [--trees N] [--seed S]
       merge_result.py --merged OURS THEIRS

Every cell of every sheet must be equal, numbers as numbers; rows are found by their names, because pandas 2.2 and newer
sorts them. Our result out of csv must be the same. The second form compares two merged workbooks.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import random_trees
from forked_runs import python_tool

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import result_cells
import sheets

CONFIGS = [
    "api: [Torch, Tensor, Distributed]\n",
    "api: [Distributed.all_reduce, Torch.mul.0, Torch.nothing]\ncompare_index: [Max diff, NormRelativeErr]\n",
    "api:\n- Torch.mul\n- Functional.linear\ncompare_index:\n- Requires_grad Consistent\n- MeanRelativeErr\n",
]


def tables(path):
    """Sheet -> (header, name -> cells)."""
    found = {}
    for name, rows in sheets.read(path).items():
        found[name] = (rows[0], {row[0]: row for row in rows[1:]})
        if len(found[name][1]) != len(rows) - 1:
            raise AssertionError(f"{path}: {name}: a name stands there twice")
    return found


def value(cell):
    """pandas turns a column of texts into numbers if all of them are; so a number is one in whatever form."""
    if isinstance(cell, str) and result_cells.NUMBER.fullmatch(cell):
        return float(cell)
    return cell


def differences(ours, theirs):
    lines = []
    if list(ours) != list(theirs):
        return 0, [f"sheets: ours {list(ours)}, theirs {list(theirs)}"]
    cells = 0
    for name, (header, rows) in ours.items():
        other_header, other_rows = theirs[name]
        if header != other_header or set(rows) != set(other_rows):
            lines.append(f"{name}: ours {header} with {len(rows)} rows, theirs {other_header} with {len(other_rows)}")
            continue
        for key, row in rows.items():
            cells += len(row)
            if [value(cell) for cell in row] != [value(cell) for cell in other_rows[key]]:
                lines.append(f"{name}: {key}: ours {row[1:]}, theirs {other_rows[key][1:]}")
    return cells, lines


def only_workbook(folder):
    (path,) = folder.glob("multi_ranks_compare_merge_*.xlsx")
    return path


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def check_tree(msprobe, tool, folder, seed):
    random_trees.make_tree(folder, seed)
    paths = ["-tp", folder / "target" / "step0", "-gp", folder / "golden" / "step0"]
    run([msprobe, "-q", "compare", "--python-rules", *paths, "-o", folder / "in_ours", "--format", "xlsx,csv"]).check_returncode()
    (folder / "in_csv").mkdir()
    for path in (folder / "in_ours").glob("*.csv"):
        path.rename(folder / "in_csv" / path.name)
    tool.run(["compare", *paths, "-o", folder / "in_theirs", "--xlsx"]).check_returncode()
    config = folder / "merge.yaml"
    config.write_text(random.Random(seed).choice(CONFIGS))
    problems, compared = [], 0
    for source in ("in_ours", "in_theirs"):
        arguments = ["merge_result", "-i", folder / source, "-config", config]
        ours = run([msprobe, *arguments, "-o", folder / f"{source}_by_us"])
        theirs = tool.run([*arguments, "-o", folder / f"{source}_by_them"])
        if ours.returncode != 0 or theirs.returncode != 0:
            problems.append(f"{source}: status {ours.returncode} and {theirs.returncode}: {ours.stderr} {theirs.stderr}")
            continue
        mine = tables(only_workbook(folder / f"{source}_by_us"))
        cells, lines = differences(mine, tables(only_workbook(folder / f"{source}_by_them")))
        compared += cells
        problems += [f"{source}: {line}" for line in lines]
    arguments = ["merge_result", "-i", folder / "in_csv", "-config", config, "-o", folder / "csv_by_us"]
    run([msprobe, *arguments]).check_returncode()
    # csv tells 5.0 from 5, workbooks do not: what shows both sides' maxima is left to the other comparison.
    merged = [tables(only_workbook(folder / name)) for name in ("csv_by_us", "in_ours_by_us")]
    for found in merged:
        for _, rows in found.values():
            for row in rows.values():
                row[:] = ["NPU" if str(cell).startswith("NPU:") else cell for cell in row]
    problems += [f"csv: {line}" for line in differences(*merged)[1]]
    return compared, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("msprobe")
    parser.add_argument("python")
    parser.add_argument("--trees", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--merged", action="store_true", help="the two are merged workbooks")
    options = parser.parse_args()
    if options.merged:
        cells, lines = differences(tables(pathlib.Path(options.msprobe)), tables(pathlib.Path(options.python)))
        print("\n".join([*lines[:20], f"{cells} cells compared, {len(lines)} rows differ"]))
        return 1 if lines or cells == 0 else 0
    failed = 0
    with tempfile.TemporaryDirectory(prefix="msprobe-peer-") as scratch:
        seeds = range(options.seed, options.seed + options.trees)
        with python_tool(options.python) as tool, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            checked = pool.map(
                lambda seed: check_tree(options.msprobe, tool, pathlib.Path(scratch) / str(seed), seed), seeds
            )
        for seed, (cells, problems) in zip(seeds, checked):
            print(f"{'FAIL' if problems or cells == 0 else 'ok'} tree {seed}: {cells} cells equal to the Python tool's")
            for line in problems[:20]:
                print("  ", line)
            failed += bool(problems) or cells == 0
    print(f"{options.trees} trees, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
