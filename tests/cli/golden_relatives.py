#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comparisons of dumps without dump.json on their golden cases: a predicate of predicates.py covers each cell that differs.
--python-rules changes nothing.

usage: golden_relatives.py MSPROBE GOLDEN_FOLDER ITEMS      the page docs/differences/compare.md
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import harness
import predicates
import result_cells

TIME_STAMP = re.compile(r"_\d{14}(?=\.csv$)")
CASES = {
    "graph_npy": ["-tp", "{CASE}/target", "-gp", "{CASE}/golden", "--rank", "0,1"],
    "graph_stat": ["-tp", "{CASE}/target", "-gp", "{CASE}/golden", "--rank", "0,1"],
    "single_save": ["-tp", "{CASE}/dir1", "-gp", "{CASE}/dir2", "--format", "csv"],
}


NO_EFFECT = "msprobe compare: --python-rules has no effect on dumps without a dump.json"


def run(msprobe, folder, name, out):
    """{output name without time: (header, rows)}; paths of this machine are {ROOT}."""
    case = folder / name
    words = [word.replace("{CASE}", str(case)) for word in CASES[name]]
    done = harness.run(msprobe, ["compare", *words, "-o", str(out), "--python-rules"], out)
    harness.check(done.returncode == 0, f"exit status {done.returncode}: {done.stderr}")
    harness.check(NO_EFFECT in done.stderr, done.stderr)
    tables = {}
    for path in sorted(out.rglob("*.csv")):
        header, rows = result_cells.read_table(path)
        rows = [[cell.replace(str(folder), "{ROOT}") for cell in row] for row in rows]
        # The Python tool has no messages for saved arrays; our column of messages follows its columns.
        if name == "single_save" and header[-1] == "Err_message":
            header, rows = header[:-1], [row[:-1] for row in rows]
        tables[TIME_STAMP.sub("", path.name)] = (header, rows)
    return tables


def expected_tables(case):
    return {
        path.name.removeprefix("expected_26.").removeprefix("expected_"): result_cells.read_table(path)
        for path in sorted(case.glob("expected_*.csv"))
    }


def in_order(name, table):
    """The Python tool lists `.npy` files as the folder has them; ours are sorted. Absent names sort last."""
    header, rows = table
    if name != "graph_npy":
        return table
    keys = [header.index(column) for column in ("NPU Name", "Bench Name")]
    return header, sorted(rows, key=lambda row: [(row[key] in ("", "N/A"), row[key]) for key in keys])


def make_tests(msprobe, folder, page):
    folder = harness.data(folder, "relatives") / "relatives"

    def differences(scratch):
        problems = []
        for name in CASES:
            out = scratch / name
            out.mkdir()
            tables = run(msprobe, folder, name, out)
            expected = expected_tables(folder / name)
            harness.check_equal(f"{name}: result files", sorted(tables), sorted(expected))
            for table, theirs in expected.items():
                header, rows = in_order(name, theirs)
                our_header, our_rows = in_order(name, tables[table])
                harness.check_equal(f"{name}: columns", our_header, header)
                harness.check_equal(f"{name}: rows", len(our_rows), len(rows))
                for wanted, mine in zip(rows, our_rows):
                    row = predicates.Row(dict(zip(header, wanted)), dict(zip(header, mine)))
                    lines = predicates.unexplained_cells(row, row.differing(), predicates.CELLS_OF_RELATIVES)
                    problems += [f"{name}: {wanted[:4]}: {line}" for line in lines]
        problems += predicates.wrong(predicates.CELLS_OF_RELATIVES, page)
        harness.check(not problems, "\n".join(problems))

    return [("differences", differences)]


if __name__ == "__main__":
    harness.main(make_tests)
