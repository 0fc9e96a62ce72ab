#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Merges the golden results of three ranks: every cell is that of 26.x, out of its workbooks and out of the same tables as
csv, and the formats agree.

usage: golden_merge.py MSPROBE GOLDEN_FOLDER
"""

import csv
import io
import json

import harness
import sheets


def expectation(path):
    """Sheet name -> rows."""
    tables = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.reader(file):
            if row[0] == "#sheet":
                rows = tables[row[1]] = []
            else:
                rows.append(row)
    return tables


def merge(msprobe, case, scratch, name, source, formats):
    out = scratch / "out"
    command = ["merge_result", "-i", str(source), "-o", str(out), "-config", str(case / f"config_{name}.yaml")]
    harness.run(msprobe, [*command, "--format", formats], scratch, status=0)
    return out


def text(value):
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def workbook(folder):
    (path,) = folder.glob("multi_ranks_compare_merge_*.xlsx")
    return {name: [[text(cell) for cell in row] for row in rows] for name, rows in sheets.read(path).items()}


def csv_tables(folder, names):
    tables = {}
    for name in names:
        (path,) = folder.glob(f"multi_ranks_compare_merge_*_{name.replace(' ', '_')}.csv")
        tables[name] = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    return tables


def check_workbooks(msprobe, case, name, scratch):
    out = merge(msprobe, case, scratch, name, case / "input", "xlsx,csv,json")
    expected = expectation(case / f"expected_{name}.csv")
    harness.check_equal("workbook", workbook(out), expected)
    harness.check_equal("csv", csv_tables(out, expected), expected)
    for index, rows in expected.items():
        (path,) = out.glob(f"multi_ranks_compare_merge_*_{index.replace(' ', '_')}.json")
        found = [[text(cell) for cell in row.values()] for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]
        harness.check_equal("json", found, rows[1:])


def check_csv(msprobe, case, name, scratch):
    source = scratch / "csv"
    source.mkdir()
    for path in (case / "input").glob("*.xlsx"):
        (rows,) = sheets.read(path).values()
        with (source / path.with_suffix(".csv").name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([text(cell) for cell in row] for row in rows)
    out = merge(msprobe, case, scratch, name, source, "xlsx")
    harness.check_equal("workbook", workbook(out), expectation(case / f"expected_{name}.csv"))


def make_tests(msprobe, golden):
    case = harness.data(golden, "compare") / "compare" / "merge_result"
    tests = []
    for name in ("all", "subset"):
        for kind, function in (("workbooks", check_workbooks), ("csv", check_csv)):
            tests.append((f"{name}: {kind}", lambda s, f=function, n=name: f(msprobe, case, n, s)))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
