#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs api_precision_compare over the golden details files: with --python-rules both tables are the Python tool's byte by
byte, of both releases; without, what it lets pass does not pass.

usage: golden_precheck_compare.py MSPROBE GOLDEN_FOLDER
"""

import csv
import json
import pathlib
import re

import harness
import sheets

RELEASES = {"8": "8.1.1", "26": "26.2.0"}


def compare(msprobe, case, name, scratch, *more, status=0):
    out = scratch / "out"
    command = ["api_precision_compare", "-npu", case / f"in/{name}_npu.csv", "-gpu", case / f"in/{name}_gpu.csv", "-o", out]
    result = harness.run(msprobe, [*map(str, command), *more], scratch)
    harness.check_equal("exit status", (result.returncode, result.stderr if result.returncode != status else ""), (status, ""))
    return out, result.stderr


def only(folder, pattern):
    (path,) = folder.glob(pattern)
    return path


def table(path):
    """First column -> rows of that name as dictionaries."""
    rows = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["API Name"], []).append(row)
    return rows


def tables(folder):
    return [table(only(folder, f"api_precision_compare_{kind}_*.csv")) for kind in ("details", "result")]


def check_bytes(msprobe, case, name, release, scratch):
    out, stderr = compare(msprobe, case, name, scratch, "--python-rules", "--release", release)
    for kind in ("details", "result"):
        expected = (case / RELEASES[release] / f"{name}_{kind}.csv").read_bytes()
        got = only(out, f"api_precision_compare_{kind}_*.csv").read_bytes()
        for mine, theirs in zip(got.split(b"\r\n"), expected.split(b"\r\n")):
            harness.check_equal(kind, mine.decode(), theirs.decode())
        harness.check_equal(kind, got, expected)
        harness.check(
            re.fullmatch(r"api_precision_compare_[a-z]+_\d{14}\.csv", only(out, f"*_{kind}_*").name), "name of the file"
        )
    told = [line.removeprefix("msprobe: warning: ") for line in stderr.splitlines() if "warning: " in line]
    summary = json.loads((case / RELEASES[release] / "summary.json").read_text(encoding="utf-8"))
    harness.check_equal("warnings", told, summary[name]["log"])


def check_missing_column(msprobe, case, _, scratch):
    out, stderr = compare(msprobe, case, "missing_column", scratch, "--python-rules", status=2)
    harness.check("missing_column_npu.csv: not a details file" in stderr, stderr)
    harness.check("missing: 双千指标, 均方根误差" in stderr, stderr)
    harness.check_equal("files", list(out.iterdir()), [])


def main():
    msprobe, golden = harness.arguments(__doc__)
    case = pathlib.Path(golden).resolve() / "prechecks" / "precision_compare"
    tests = {}
    harness.tap(tests)


if __name__ == "__main__":
    main()
