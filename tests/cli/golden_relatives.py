#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Comparisons of dumps without dump.json on their golden cases: with --python-rules every cell is the Python
tool's; without, the cells that differ are those of relatives_expected.json, each explained by an item of
docs/differences.md.

usage: golden_relatives.py MSPROBE GOLDEN_FOLDER DIFFERENCES_MD

With MSPROBE_TEST_ACCEPT=1 the list is written anew; a cell that nothing explains still fails.
"""

import json
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import differences
import harness
import result_cells

EXPECTED = pathlib.Path(__file__).resolve().parent / "relatives_expected.json"
TIME_STAMP = re.compile(r"_\d{14}(?=\.csv$)")
# Case: arguments, and the columns that name a row.
CASES = {
    "graph_npy": (["-tp", "{CASE}/target", "-gp", "{CASE}/golden", "--rank", "0,1"], ["NPU Name", "Bench Name"]),
    "graph_stat": (["-tp", "{CASE}/target", "-gp", "{CASE}/golden", "--rank", "0,1"], ["NPU Name", "Bench Name"]),
    "single_save": (["-tp", "{CASE}/dir1", "-gp", "{CASE}/dir2", "--format", "csv"], ["id"]),
}


def run(msprobe, folder, name, out, more=()):
    """{output name without time: (header, rows)}; paths of this machine are {ROOT}."""
    case = folder / name
    words = [word.replace("{CASE}", str(case)) for word in CASES[name][0]]
    done = harness.run(msprobe, ["compare", *words, "-o", str(out), *more], out)
    harness.check(done.returncode == 0, f"exit status {done.returncode}: {done.stderr}")
    tables = {}
    for path in sorted(out.rglob("*.csv")):
        header, rows = result_cells.read_table(path)
        rows = [[cell.replace(str(folder), "{ROOT}") for cell in row] for row in rows]
        # Of saved arrays the Python tool has no messages; ours stand behind its columns.
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
    keys = [header.index(column) for column in CASES[name][1]]
    return header, sorted(rows, key=lambda row: [(row[key] in ("", "N/A"), row[key]) for key in keys])


def items_of(column, python, ours):
    if column.endswith("误差") or column.startswith(("误差在", "相同", "首个")):
        return ["D67"]
    if (python, ours) in (("", "N/A"), ("nan", "N/A"), ("None", "N/A")):
        return ["D60"]
    if column == "Err_message":
        text = python.replace("\n", " ").strip()
        if text == ours:
            return ["D64"]
        if ours in ("Dump file of NPU not found.", "Dump file of Bench not found."):
            return ["D60", "D64"]
        if text == "This is type of scalar data, can not compare." and (not ours or "0-d tensor" in ours):
            return ["D63", "D64"]
    if python == "" and ours != "":
        if ours == "Nan":
            return ["D61"]
        if ours in ("0.0", "0.0%"):
            return ["D61", "D63"]
        return ["D63"]
    if column.endswith("Err") and python in ("Nan", "N/A") and ours in ("0.0%", "inf"):
        return ["D61"]
    return []


def list_of_differences(name, theirs, ours, problems):
    found = []
    for wanted, row in zip(theirs[1], ours[1]):
        expected_row = dict(zip(theirs[0], wanted))
        title = next((expected_row[column] for column in CASES[name][1] if expected_row[column]), "")
        for column, python, mine in zip(theirs[0], wanted, row):
            if result_cells.cells_equal(column, mine, python):
                continue
            items = items_of(column, python, mine)
            if not items:
                problems.append(f"{name}: {title}, {column}: {mine!r} where 26.x has {python!r}")
            found.append({"row": title, "column": column, "python": python, "ours": mine, "items": items})
    return found


def make_tests(msprobe, folder, documented):
    folder = harness.data(folder, "relatives") / "relatives"

    def python_rules(name):
        def body(scratch):
            tables = run(msprobe, folder, name, scratch, ["--python-rules"])
            expected = expected_tables(folder / name)
            harness.check_equal("result files", sorted(tables), sorted(expected))
            for table in expected:
                outcome = result_cells.compare_tables(
                    in_order(name, tables[table]), in_order(name, expected[table])
                )
                harness.check(outcome.clean, "\n".join(outcome.structure + outcome.lines))

        return body

    def own_rules(scratch):
        found, problems = {}, []
        for name in CASES:
            out = scratch / name
            out.mkdir()
            tables = run(msprobe, folder, name, out)
            for table, theirs in expected_tables(folder / name).items():
                harness.check_equal(f"{name}: columns", tables[table][0], theirs[0])
                harness.check_equal(f"{name}: rows", len(tables[table][1]), len(theirs[1]))
                cells = list_of_differences(
                    name, in_order(name, theirs), in_order(name, tables[table]), problems
                )
                if cells:
                    found[f"{name}/{table}"] = cells
        named = {item for cells in found.values() for cell in cells for item in cell["items"]}
        problems += [f"docs/differences.md has no item {item}" for item in sorted(named - documented)]
        harness.check(not problems, "\n".join(problems))
        if os.environ.get("MSPROBE_TEST_ACCEPT") == "1":
            EXPECTED.write_text(json.dumps(found, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
            raise harness.Skip("expectations written")
        differences.compare_lists(found, json.loads(EXPECTED.read_text(encoding="utf-8")), problems)
        harness.check(not problems, "\n".join(problems))

    tests = [(f"{name} with --python-rules", python_rules(name)) for name in CASES]
    return [*tests, ("differences without --python-rules", own_rules)]


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(
        harness.tap(
            make_tests(
                str(pathlib.Path(sys.argv[1]).resolve()),
                sys.argv[2],
                differences.documented_items(pathlib.Path(sys.argv[3])),
            )
        )
    )
