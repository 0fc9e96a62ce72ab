#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs msprobe and the Python msprobe on the same dumps and compares their results cell by cell.

usage: compare_with_peer.py --msprobe BIN --peer-python PYTHON [--framework NAME] [--dumps FOLDER] [--golden FOLDER]
           [--show N]

FOLDER of --dumps is what make_real_dumps.py wrote; without it the dumps are made first, in a temporary
folder. FOLDER of --golden is tests/data/golden. Our side runs with --python-rules. Numbers are equal within
1e-6, everything else as text, the Result column exactly. Exit status: 0 all equal, 1 something differs,
77 skipped.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import golden_compare
import harness
import result_cells
from forked_runs import python_tool

SKIPPED = 77
TIME_LIMIT_S = 900

# Rows where Python msprobe 26.2.0 with a present NumPy gives another value than the 26.x run that the golden
# files record; our --python-rules follow the golden files.
KNOWN = {
    ("stats_rules", "Torch.dtypegrp.0.forward.input.2"): "26.2.0 also matches float64 with float32",
    ("tensor_metrics", "Torch.s0bool.0.forward.input.0"): "NumPy 2 keeps a 0-d bool in float64, NumPy 1 took float32",
}


class Job:
    def __init__(self, name, arguments):
        self.name = name
        self.arguments = arguments  # OUT stands for the output folder


class Row:
    """One line of the printed table."""

    HEAD = ("dump", "file", "rows", "equal cells", "differing cells", "known", "Result equal")

    def __init__(self, job, name, outcome, known):
        self.outcome = outcome
        self.good = outcome.clean
        same = "yes" if not outcome.structure and outcome.result_different == 0 else "NO"
        self.cells = (job.name, name, outcome.rows, outcome.equal, outcome.different, known, same)


def dump_jobs(folder):
    jobs = []
    for variant in sorted(p for p in folder.iterdir() if (p / "target").is_dir()):
        for step in sorted(p.name for p in (variant / "target").iterdir()):
            jobs.append(
                Job(
                    f"{variant.name}/{step}",
                    ["compare", "-tp", str(variant / "target" / step), "-gp", str(variant / "golden" / step)] + ["-o", "OUT"],
                )
            )
    return jobs


def copy_golden(source):
    """git keeps no empty folder, but the Python tool refuses tensor dumps without one for tensors."""
    folder = harness.data(source, "compare", "real")
    for dump in folder.rglob("dump.json"):
        if json.loads(dump.read_text(encoding="utf-8")).get("task") == "tensor":
            (dump.parent / "dump_tensor_data").mkdir(exist_ok=True)
    return folder


def golden_jobs(folder, framework):
    """The cases that the Python tool has a result for; it loads MindSpore for those of MindSpore, which begin so."""
    return [
        Job(case.name, case.arguments)
        for case in golden_compare.find_cases(folder)
        if not case.refused and not case.crashed and case.name not in golden_compare.OTHER_PAIRS
        if case.name.startswith("ms_") == (framework == "mindspore")
    ]


def run_us(msprobe, arguments, cwd):
    return subprocess.run(
        [msprobe, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=TIME_LIMIT_S,
        check=False,
        cwd=cwd,
    )


def results_of(run, name, arguments, out):
    """The tables that run(arguments, out) writes."""
    out.mkdir(parents=True)
    done = run([str(out) if word == "OUT" else word for word in arguments], out)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: exit status {done.returncode}\n{done.stdout.strip()[-1500:]}")
    return {golden_compare.TIME_STAMP.sub("", p.name): p for p in sorted(out.rglob("*.csv"))}


def without_known(job, ours, theirs):
    """Takes known rows out of both tables; returns the tables and how many rows went."""
    known = {row for case, row in KNOWN if case == job.name}
    if not known or len(ours[1]) != len(theirs[1]):
        return ours, theirs, 0
    kept = [(a, b) for a, b in zip(ours[1], theirs[1]) if not (b[0] in known and a[0] == b[0])]
    dropped = len(theirs[1]) - len(kept)
    return (ours[0], [a for a, _ in kept]), (theirs[0], [b for _, b in kept]), dropped


def compare_job(msprobe, tool, job, scratch):
    ours = results_of(
        lambda arguments, cwd: run_us(msprobe, arguments, cwd), msprobe, job.arguments + ["--python-rules"], scratch / "ours"
    )
    theirs = results_of(tool.run, "the Python tool", job.arguments, scratch / "theirs")
    if not theirs:
        raise RuntimeError("the Python tool wrote no result")
    # A lone process is rank 0 (docs/differences.md, D113).
    theirs = {re.sub(r"_proc\d+", "_rank0", name): result for name, result in theirs.items()}
    if sorted(ours) != sorted(theirs):
        raise RuntimeError(f"files {sorted(ours)}, the Python tool wrote {sorted(theirs)}")
    rows = []
    for name in sorted(theirs):
        left, right, known = without_known(job, result_cells.read_table(ours[name]), result_cells.read_table(theirs[name]))
        rows.append(Row(job, name, result_cells.compare_tables(left, right, forgive_reading=True), known))
    return rows


def tell(row, show):
    print(f"{'ok' if row.good else 'DIFFERS'} {row.cells[0]} {row.cells[1]}", file=sys.stderr, flush=True)
    for line in row.outcome.structure + row.outcome.lines[:show]:
        print(f"     {line}", file=sys.stderr)
    if row.outcome.columns:
        print(f"     differing cells by column: {row.outcome.columns}", file=sys.stderr)


def print_table(rows):
    lines = [Row.HEAD] + [row.cells for row in rows]
    widths = [max(len(str(line[i])) for line in lines) for i in range(len(Row.HEAD))]
    lines.insert(1, tuple("-" * width for width in widths))
    for line in lines:
        print("| " + " | ".join(str(cell).ljust(width) for cell, width in zip(line, widths)) + " |")


def importable(python, framework):
    module = "torch" if framework == "pytorch" else framework
    probe = f"import {module}, msprobe.{framework}, msprobe.core.compare"
    try:
        done = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["unknown reason"])[-1]


def main():
    parser = argparse.ArgumentParser(description="Compares our results with the Python tool's, cell by cell.")
    parser.add_argument("--msprobe", required=True)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--dumps", type=pathlib.Path, help="what make_real_dumps.py wrote (default: make them now)")
    parser.add_argument("--golden", type=pathlib.Path, help="tests/data/golden, to run those cases as well")
    parser.add_argument(
        "--framework",
        choices=("pytorch", "mindspore"),
        default="pytorch",
        help="what PYTHON has; with mindspore only the golden cases of MindSpore are run",
    )
    parser.add_argument("--only", action="append", help="only dumps and cases whose name starts so")
    parser.add_argument("--show", type=int, default=8, help="differing cells printed per file (default 8)")
    options = parser.parse_args()
    options.msprobe = str(pathlib.Path(options.msprobe).resolve())

    reason = importable(options.peer_python, options.framework)
    if reason is not None:
        print(f"skipped: {options.peer_python} cannot import {options.framework} and the Python msprobe: {reason}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="msprobe-peer-") as temporary:
        root = pathlib.Path(temporary)
        if options.dumps is None and options.framework == "pytorch":
            options.dumps = root / "dumps"
            command = [options.peer_python, "-W", "ignore", str(HERE / "make_real_dumps.py"), str(options.dumps)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        jobs = dump_jobs(options.dumps.resolve()) if options.dumps else []
        if options.dumps and not jobs:
            parser.error(f"{options.dumps}: no dumps here")
        if options.golden:
            jobs += golden_jobs(copy_golden(options.golden), options.framework)
        if options.only:
            jobs = [job for job in jobs if job.name.startswith(tuple(options.only))]
            if not jobs:
                parser.error("--only leaves nothing to compare")
        rows, broken = [], []
        with python_tool(options.peer_python) as tool, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = [pool.submit(compare_job, options.msprobe, tool, job, root / str(i)) for i, job in enumerate(jobs)]
            for job, result in zip(jobs, results):
                try:
                    made = result.result()
                except (RuntimeError, ValueError, OSError, subprocess.TimeoutExpired) as error:
                    broken.append(f"{job.name}: {error}")
                    print(f"FAIL {broken[-1]}", file=sys.stderr, flush=True)
                    continue
                rows += made
                for row in made:
                    tell(row, options.show)
    print_table(rows)
    for (case, name), why in sorted(KNOWN.items()):
        if any(row.cells[0] == case and row.cells[5] for row in rows):
            print(f"known: {case}, {name}: {why}")
    for line in broken:
        print(f"failed: {line.splitlines()[0]}")
    return 1 if broken or not all(row.good for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
