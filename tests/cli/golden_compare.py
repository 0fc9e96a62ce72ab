#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `msprobe compare --python-rules` on the golden cases and compares each cell with what 26.x printed.

usage: golden_compare.py MSPROBE GOLDEN_FOLDER [--case NAME]... [--show N] [--keep FOLDER]
"""

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness
import result_cells

TIME_STAMP = re.compile(r"_\d{14}(?=(_part_\d+)?\.csv$)")
# A spreadsheet takes this for a formula, at the start of a cell or, where `;` separates cells, after it.
FORMULA = re.compile("(^|;)[=+\\-@%\uff0b\uff0d\uff1d\uff05\uff20]")
TIME_LIMIT_S = 120
# Rows pair otherwise in these cases, with --python-rules as without (docs/differences/compare.md): differences.py checks them.
OTHER_PAIRS = {"md5_fuzzy": "D42", "stats_fuzzy_all": "D42", "tensor_fuzzy": "D42", "ms_layer": "D41", "stats_datamap_bwd": "D41"}
OTHER_ROWS = {"stats_rules": {"Torch.dtypegrp.0.forward.input.2"}}  # D100


class Case:
    def __init__(self, name, arguments, expected, refused=False, crashed=False, data_mapping=pathlib.Path("none"), folder=None):
        self.name = name
        self.folder = folder  # that relative paths in its files start from
        self.arguments = arguments  # with OUT where the output folder belongs
        self.expected = expected  # output name without its time stamp -> expected file
        self.refused = refused  # 26.x refuses this input, we must not
        self.data_mapping = data_mapping  # what -lm writes, if it is there
        self.crashed = crashed  # 26.x has no result for this command, we must


def plain_name(expected_name, label):
    """`expected_26.X.csv` -> `X.csv`; `expected_26.csv` alone stands for `compare_result.csv`."""
    rest = expected_name.removeprefix(label).removeprefix(".")
    return "compare_result.csv" if rest == "csv" else rest


def cases_of(path):
    """One case for each command of 26.x in cmd.txt. `expected_26_NAME` belongs to the command of that name."""
    cases = []
    lines = (path / "cmd.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        label, _, command = line.partition(":")
        if not re.fullmatch(r"expected_26(_\w+)?", label):
            continue
        words = [word.replace("{CASE}", str(path)) for word in shlex.split(command.split("#", 1)[0])]
        part = label.removeprefix("expected_26").removeprefix("_")
        expected = {plain_name(p.name, label): p for p in sorted(path.glob("expected_26*.csv")) if p.name.startswith(label + ".")}
        name = f"{path.name}/{part}" if part else path.name
        error = path / f"{label}.error.txt"
        cases.append(
            Case(
                name,
                words[1:],
                expected,
                refused=error.exists() and path.name.startswith("inject_"),
                crashed=error.exists() and not path.name.startswith("inject_"),
                data_mapping=path / f"{label}.data_mapping.yaml",
                folder=path,
            )
        )
    if not cases:
        raise ValueError(f"{path}/cmd.txt: no command of 26.x")
    return cases


def find_cases(folder):
    cases = []
    for mode in ("tensor", "statistics", "md5"):
        stem = "stats" if mode == "statistics" else mode
        expected = folder / "real" / f"{stem}_expected"
        if not expected.is_dir():
            raise FileNotFoundError(f"{expected}: golden case is missing")
        arguments = [
            "compare",
            "-tp",
            str(folder / "real" / f"{stem}_target" / "step0"),
            "-gp",
            str(folder / "real" / f"{stem}_golden" / "step0"),
            "-o",
            "OUT",
        ]
        cases.append(Case(f"real/{stem}", arguments, {p.name: p for p in sorted(expected.glob("*.csv"))}))
    for path in sorted((folder / "compare").iterdir()):
        # golden_analysis.py and golden_merge.py have those.
        if not path.name.startswith(("da_", "merge_")):
            cases += cases_of(path)
    return cases


def is_formula(cell):
    """A leading apostrophe makes the whole text plain; numbers such as -1.5 are no formulas."""
    return not cell.startswith("'") and result_cells.parse_number(cell) is None and FORMULA.search(cell) is not None


def check_refused(case, outputs):
    """The input that 26.x refuses must give a table with its rows, and no cell that a spreadsheet runs."""
    problems = []
    if len(outputs) != 1:
        return [f"expected one result file, found {sorted(outputs)}"], 0
    header, rows = result_cells.read_table(next(iter(outputs.values())))
    if len(rows) != 2:
        problems.append(f"{len(rows)} rows, expected 2")
    cells = 0
    for number, row in enumerate(rows, 1):
        for column, cell in zip(header, row):
            cells += 1
            if is_formula(cell):
                problems.append(f"row {number}, {column}: {cell!r} reads as a formula")
    # Escaped is not the same as dropped: the text itself must still be there.
    if not any("Torch.a.0.forward" in row[0] for row in rows):
        problems.append("the operator's name is gone")
    return problems, cells


def check_crashed(outputs):
    """Where 26.x crashes there must be a table with a partner for some row."""
    if len(outputs) != 1:
        return [f"expected one result file, found {sorted(outputs)}"], 0, 0
    header, rows = result_cells.read_table(next(iter(outputs.values())))
    matched = sum(row[header.index("Bench Name")] != "N/A" for row in rows)
    return ([] if matched else [f"none of {len(rows)} rows has a partner"]), len(rows), 0


def read_mapping(path):
    """The pairs of a flat mapping, keys longer than 100 characters in a different form."""
    text = re.sub(r"^\? (.*)\n: ", r"\1: ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [tuple(line.split(": ", 1)) for line in text.splitlines()]


def check_mapping(case, out):
    """-lm writes the pairs down."""
    written = sorted(out.rglob("data_mapping_*.yaml"))
    if not case.data_mapping.exists():
        return [f"a data mapping that 26.x does not write: {path.name}" for path in written]
    if len(written) != 1:
        return [f"{len(written)} data mappings, expected one"]
    same = read_mapping(written[0]) == read_mapping(case.data_mapping)
    return [] if same else [f"{written[0].name} has other pairs than 26.x"]


def run_case(binary, case, out, show):
    words = [os.path.abspath(binary)] + [str(out) if word == "OUT" else word for word in case.arguments] + ["--python-rules"]
    done = subprocess.run(
        words, cwd=case.folder, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT_S, check=False
    )
    if done.returncode != 0:
        return [f"exit status {done.returncode}: {done.stderr.strip()[-500:]}"], 0, 0
    outputs = {TIME_STAMP.sub("", p.name): p for p in sorted(out.rglob("*.csv"))}
    if case.refused:
        problems, cells = check_refused(case, outputs)
        return problems, 1, cells
    if case.crashed:
        return check_crashed(outputs)
    problems, rows, equal = [], 0, 0
    if sorted(outputs) != sorted(case.expected):
        problems.append(f"result files {sorted(outputs)}, expected {sorted(case.expected)}")
    problems += check_mapping(case, out)
    others = OTHER_ROWS.get(case.name, set())
    for name in sorted(set(outputs) & set(case.expected)):
        tables = [result_cells.read_table(path) for path in (outputs[name], case.expected[name])]
        outcome = result_cells.compare_tables(
            *((header, [row for row in rows if row[0] not in others]) for header, rows in tables)
        )
        rows += outcome.rows
        equal += outcome.equal
        problems += [f"{name}: {line}" for line in outcome.structure]
        problems += [f"{name}: {line}" for line in outcome.lines[:show]]
        hidden = len(outcome.lines) - show
        if hidden > 0:
            problems.append(f"{name}: {hidden} more cells; differing cells by column: {outcome.columns}")
    return problems, rows, equal


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("msprobe")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--case", action="append", help="only this case (may be given again)")
    parser.add_argument("--show", type=int, default=12, help="mismatches printed per file (default 12)")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the result files here")
    options = parser.parse_args()

    cases = [case for case in find_cases(harness.data(options.folder, "compare", "real")) if case.name not in OTHER_PAIRS]
    if options.case:
        unknown = set(options.case) - {case.name for case in cases}
        if unknown:
            parser.error(f"no such case: {', '.join(sorted(unknown))}")
        cases = [case for case in cases if case.name in options.case]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="msprobe-golden-") as scratch:
        root = options.keep.resolve() if options.keep else pathlib.Path(scratch)
        for case in cases:
            out = root / case.name
            out.mkdir(parents=True)
            try:
                problems, rows, equal = run_case(options.msprobe, case, out, options.show)
            except (OSError, ValueError, subprocess.TimeoutExpired) as error:
                problems, rows, equal = [str(error)], 0, 0
            print(f"{'FAIL' if problems else 'ok':4} {case.name}: {rows} rows, {equal} cells equal", flush=True)
            for line in problems:
                print(f"     {line}")
            failed += bool(problems)
    print(f"{len(cases)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
