#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `msprobe compare` with its own rules on the golden cases. Each cell is that of 26.x, or one of predicates.py covers it.

usage: differences.py MSPROBE GOLDEN_FOLDER ITEMS      the page docs/differences/compare.md
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import golden_compare
import harness
import predicates
import result_cells

DIAGNOSIS = ["Error", "Origin", "Evidence"]  # D99: behind the columns of 26.x


def run(binary, case, out):
    words = [os.path.abspath(binary)] + [str(out) if word == "OUT" else word for word in case.arguments]
    done = subprocess.run(
        words, cwd=case.folder, capture_output=True, text=True, errors="replace", timeout=golden_compare.TIME_LIMIT_S, check=False
    )
    if done.returncode != 0:
        raise ValueError(f"exit status {done.returncode}: {done.stderr.strip()[-500:]}")
    return {golden_compare.TIME_STAMP.sub("", p.name): p for p in sorted(out.rglob("*.csv"))}


def without_partner(ours):
    return (ours["NPU Name"], ours["Bench Name"], ours["Result"], ours["Err_message"]) == (
        "Torch.d.0.forward.output.0",
        "N/A",
        "warning",
        '["warning: Bench api/module unmatched."]',
    )


def check_table(case, place, ours, theirs, folder):
    """Lines on what differs from 26.x in one table without a predicate."""
    header, rows = ours
    if header[-3:] == DIAGNOSIS:
        header, rows = header[:-3], [row[:-3] for row in rows]
    their_header, their_rows = theirs
    surplus = rows[len(their_rows) :] if "-fm" in case.arguments else []
    if header != their_header or len(rows) - len(surplus) != len(their_rows):
        return [f"{place}: other columns or another number of rows than 26.x"]
    lines = [f"{place}: an additional row {row}" for row in surplus if not without_partner(dict(zip(header, row)))]
    predicates.SURPLUS.covered += len(surplus)
    table = [dict(zip(their_header, row)) for row in their_rows]
    for wanted, cells in zip(table, rows):
        mine = dict(zip(header, (cell.replace(str(folder), "GOLDEN") for cell in cells)))
        row = predicates.Row(wanted, mine, table, case.folder)
        lines += [f"{place}: {wanted['NPU Name']}: {line}" for line in predicates.unexplained(row)]
    return lines


def check_case(case, outputs, folder):
    """Lines on one case."""
    if case.refused:
        predicates.REFUSED.covered += 1
        return golden_compare.check_refused(case, outputs)[0]
    if case.crashed:
        predicates.CRASHED.covered += 1
        return golden_compare.check_crashed(outputs)[0]
    if sorted(outputs) != sorted(case.expected):
        return [f"result files {sorted(outputs)}, expected {sorted(case.expected)}"]
    lines = []
    for name, path in case.expected.items():
        ours, theirs = result_cells.read_table(outputs[name]), result_cells.read_table(path)
        lines += check_table(case, name, ours, theirs, folder)
    return lines


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    binary = sys.argv[1]
    folder = harness.data(sys.argv[2], "compare", "real")
    problems = []
    with tempfile.TemporaryDirectory(prefix="msprobe-differences-") as scratch:
        for case in golden_compare.find_cases(folder):
            out = pathlib.Path(scratch) / case.name
            out.mkdir(parents=True)
            try:
                lines = check_case(case, run(binary, case, out), folder)
            except (OSError, ValueError, subprocess.TimeoutExpired) as error:
                lines = [str(error)]
            problems += [f"{case.name}: {line}" for line in lines]
    problems += predicates.wrong(predicates.TABLES, sys.argv[3])
    for line in problems:
        print(line)
    cells = sum(predicate.covered for predicate in predicates.TABLES)
    print(f"{cells} differences from 26.x by {len(predicates.TABLES)} predicates, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
