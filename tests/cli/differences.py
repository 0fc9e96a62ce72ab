#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `msprobe compare` with its own rules on the golden cases. The cells that then differ from what 26.x
printed must be those of differences_expected.json, each explained by an item of docs/differences.md.

usage: differences.py MSPROBE GOLDEN_FOLDER ITEMS      the page docs/differences/compare.md

With MSPROBE_TEST_ACCEPT=1 the list is written anew; a cell that no rule below explains still fails.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import golden_compare
import harness
import result_cells

EXPECTED = pathlib.Path(__file__).resolve().parent / "differences_expected.json"
REFUSED = "D19"  # input that 26.x refuses, and we compare

CRASHED = "D40"  # a command that 26.x does not survive

METRICS = set(result_cells.ROUNDED) | {"EucDist"}
RELATIVE = {"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"}
INFINITE = {"inf", "-inf"}

# A message that 26.x does not print, and the items that bring it. Those that depend on the row are in
# rule_message().
ADDED = [
    (r"(NPU|Bench) does not have data file\.", ["D1"]),
    (r"This is type of 0-d tensor, .*", ["D1"]),
    (r"This is empty data, can not compare\.", ["D1"]),
    (r"Dtype of NPU and bench tensor do not match\.", ["D1"]),
    (r"Cannot compare by .*", ["D1"]),
    (r"Complex tensors are compared as pairs of real numbers\.", ["D11"]),
    (r"warning: Bench api/module unmatched\.", ["D2"]),
    (r"warning: NPU api/module unmatched\.", ["D2"]),
    (r"warning: Bench has this api/module, but not this item\.", ["D2"]),
    (r"warning: Unmatched, because the dtypes cannot be compared \(Bench: .*\)\.", ["D2"]),
    (r"warning: (NPU|Bench) does not have data file\.", ["D3"]),
    (r"warning: Dump file: .* not found or read failed\. \(.*\)", ["D3"]),
    (r"warning: Shape of NPU and bench tensor do not match\. Skipped\.", ["D3"]),
    (r"warning: This is empty data, can not compare\.", ["D3"]),
    (r"warning: The position of inf or nan .* \(\d+ of \d+ elements\)", ["D3", "D14"]),
    (r"warning: The position of inf or nan .* \(\d+ infinities of opposite sign\)", ["D12", "D14"]),
    (r"warning: Neither side recorded a checksum\.", ["D16"]),
    (r"Not compared: .* \(only in (NPU|Bench)\)\.", ["D106"]),
    (r"(NPU|Bench) tensor (multiplied by .* from the (left|right)|not multiplied: .*)\.", ["D24"]),
    (r"NPU elements from \[\d+\] on were taken as 0: .*\.", ["D108"]),
    (r"Paired by operation and position: Bench has it under another name\.", ["D98"]),
    (r"Fuzzy matching data, the comparison accuracy may be affected\.", ["D42"]),
]

DIAGNOSIS = ["Error", "Origin", "Evidence"]
RATIO = "error: The input/parameters of One Thousandth Err Ratio > 0.9 while the output < "
NORM_ERROR = "error: The NormRelativeErr of output is greater than 0.5."
NORM_GROWTH = "warning: The norm relative error of output is 10 times that of input."
DTYPE = "error: The dtype of NPU and Bench are inconsistent."


class Rows:
    """A table of 26.x, with the rows of one entry together."""

    def __init__(self, header, rows):
        self.rows = [dict(zip(header, row)) for row in rows]

    @staticmethod
    def entry(name):
        return re.sub(r"\.(input|output|parameters)\..*", "", name)

    def infinite_input(self, name):
        entry = self.entry(name)
        return any(
            self.entry(row["NPU Name"]) == entry
            and ".output." not in row["NPU Name"]
            and row.get("NormRelativeErr") in INFINITE
            for row in self.rows
        )


def rule_message(message, added, row, table):
    """Items behind a message of the rules that only one of the two tools prints in this row."""
    if message == NORM_GROWTH:
        infinite = row["NormRelativeErr"] in INFINITE if added else table.infinite_input(row["NPU Name"])
        return ["D8"] if infinite else ["D7"]
    if message == NORM_ERROR and not added and table.infinite_input(row["NPU Name"]):
        return ["D8"]
    if added and message == DTYPE and re.search("qkv|gate_up", row["Bench Name"]):
        return ["D6"]
    if not added and message == DTYPE and row["Bench Dtype"] == "torch." + row["NPU Dtype"].lower():
        return ["D4"]
    return []


def items_of_messages(python, ours, row, table):
    """{message: items}; an empty list means that nothing explains the message."""
    theirs, mine = json.loads(python), json.loads(ours)
    removed = [message for message in theirs if message not in mine]
    added = [message for message in mine if message not in theirs]
    explained = {}
    ratio_removed = RATIO + "0.6." in removed
    ratio_added = RATIO + "0.1." in added
    for message in removed:
        if message == RATIO + "0.6.":
            explained[message] = ["D5"] if ratio_added else ["D7"]
        else:
            explained[message] = rule_message(message, False, row, table)
    for message in added:
        if message == RATIO + "0.1.":
            explained[message] = ["D5"] if ratio_removed else ["D5", "D7"]
            continue
        explained[message] = next(
            (items for pattern, items in ADDED if re.fullmatch(pattern, message)),
            rule_message(message, True, row, table),
        )
    return explained


def items_of_metric(python, ours, row):
    dtype = row["NPU Dtype"]
    zero_dimensional = re.fullmatch(r"\[(1(, 1)*)?\]", row["NPU Tensor Shape"]) is not None
    if dtype.startswith("torch.complex"):
        return ["D11"]
    if zero_dimensional:
        return ["D10"]
    if dtype == "torch.int64" and result_cells.parse_number(ours):
        return ["D13"]
    if ours == "N/A" and {row["NPU max"].strip(), row["NPU min"].strip()} & INFINITE:
        return ["D12"]
    return []


def item_of_pairing(case, name, dtypes):
    """The item that explains why a row of this dtype, and its partner's, has another partner than in 26.x."""
    if "torch.float64" in dtypes and dtypes <= {"torch.float64", "torch.float32", "torch.float16", "torch.bfloat16"}:
        return ["D100"]
    if "-fm" in case.arguments:
        return ["D42"]
    if {"-dm", "-am", "-cm", "-lm"} & set(case.arguments) and ".backward." in name:
        return ["D41"]
    if "-lm" in case.arguments and re.search(r"\.parameters_grad\.\d+\.", name):
        return ["D43"]
    return []


def explain_row(theirs, ours, table, case):
    """[(column, python, ours, items)] of the cells that differ; no items where nothing explains a cell."""
    differing = {
        column: (theirs[column], ours[column])
        for column in theirs
        if not result_cells.cells_equal(column, ours[column], theirs[column])
    }
    lost_checksums = "-fm" in case.arguments and "NPU MD5" in differing and theirs["NPU MD5"] == ""
    if "Bench Name" in differing or lost_checksums:
        # Another partner: every other cell follows from it.
        items = item_of_pairing(case, theirs["NPU Name"], {ours["NPU Dtype"], ours["Bench Dtype"]})
        return [(column, python, mine, items) for column, (python, mine) in differing.items()]
    messages = {}
    if "Err_message" in differing:
        messages = items_of_messages(*differing["Err_message"], theirs, table)
    cells = []
    for column, (python, mine) in differing.items():
        if column == "Err_message":
            items = [] if [] in messages.values() else sum(messages.values(), [])
        elif column == "Result":
            # Only a message with a level can have moved the verdict.
            items = sum((i for m, i in messages.items() if m.startswith(("error: ", "warning: "))), [])
        elif column in METRICS and "Cosine" in theirs:
            items = items_of_metric(python, mine, theirs)
        elif column in RELATIVE and python in INFINITE and mine == "0":
            items = ["D15"]
        elif column in ("NPU MD5", "BENCH MD5") and (python, mine) == ("00000000", "N/A"):
            items = ["D16"]
        else:
            items = []
        cells.append((column, python, mine, sorted(set(items), key=lambda item: int(item[1:]))))
    return cells


def run(binary, case, out):
    words = [os.path.abspath(binary)] + [str(out) if word == "OUT" else word for word in case.arguments]
    done = subprocess.run(
        words,
        cwd=case.folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=golden_compare.TIME_LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise ValueError(f"exit status {done.returncode}: {done.stderr.strip()[-500:]}")
    return {golden_compare.TIME_STAMP.sub("", p.name): p for p in sorted(out.rglob("*.csv"))}


def differences(case, outputs, folder, problems):
    """{"case/file": [cell, …]} for one case."""
    if case.refused:
        lines, _ = golden_compare.check_refused(case, outputs)
        problems += [f"{case.name}: {line}" for line in lines]
        return {case.name: [{"refused by 26.x": True, "items": [REFUSED]}]}
    if case.crashed:
        lines, _, _ = golden_compare.check_crashed(outputs)
        problems += [f"{case.name}: {line}" for line in lines]
        return {case.name: [{"crash of 26.x": True, "items": [CRASHED]}]}
    if sorted(outputs) != sorted(case.expected):
        problems.append(f"{case.name}: result files {sorted(outputs)}, expected {sorted(case.expected)}")
    found = {}
    for name in sorted(set(outputs) & set(case.expected)):
        place = f"{case.name}/{name}"
        header, rows = result_cells.read_table(outputs[name])
        their_header, their_rows = result_cells.read_table(case.expected[name])
        if header[-3:] == DIAGNOSIS:  # D99: behind their columns
            header, rows = header[:-3], [row[:-3] for row in rows]
        surplus = rows[len(their_rows) :] if "-fm" in case.arguments else []
        if header != their_header or len(rows) - len(surplus) != len(their_rows):
            problems.append(f"{place}: other columns or another number of rows than 26.x")
            continue
        table = Rows(their_header, their_rows)
        cells = [{"row": row[0], "only here": True, "items": ["D42"]} for row in surplus]
        for theirs, row in zip(table.rows, rows):
            ours = dict(zip(header, (cell.replace(str(folder), "GOLDEN") for cell in row)))
            for column, python, mine, items in explain_row(theirs, ours, table, case):
                if not items:
                    problems.append(
                        f"{place}: {theirs['NPU Name']}, {column}: {mine!r} where 26.x has {python!r}:"
                        " no item explains this"
                    )
                cells.append(
                    {
                        "row": theirs["NPU Name"],
                        "column": column,
                        "python": python,
                        "ours": mine,
                        "items": items,
                    }
                )
        if cells:
            found[place] = cells
    return found


def documented_items(path):
    return set(re.findall(r"^\| (D\d+) \|", path.read_text(encoding="utf-8"), re.MULTILINE))


def compare_lists(found, expected, problems):
    for place in sorted(set(found) | set(expected)):
        left = [json.dumps(cell, sort_keys=True) for cell in found.get(place, [])]
        right = [json.dumps(cell, sort_keys=True) for cell in expected.get(place, [])]
        problems += [f"{place}: not in the list: {cell}" for cell in left if cell not in right]
        problems += [f"{place}: in the list, but does not differ: {cell}" for cell in right if cell not in left]
        if sorted(left) == sorted(right) and left != right:
            problems.append(f"{place}: the order of the list is not that of the rows")


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    binary = sys.argv[1]
    folder = harness.data(sys.argv[2], "compare", "real")
    documented = documented_items(pathlib.Path(sys.argv[3]))
    problems, found = [], {}
    with tempfile.TemporaryDirectory(prefix="msprobe-differences-") as scratch:
        for case in golden_compare.find_cases(folder):
            out = pathlib.Path(scratch) / case.name
            out.mkdir(parents=True)
            try:
                found.update(differences(case, run(binary, case, out), folder, problems))
            except (OSError, ValueError, subprocess.TimeoutExpired) as error:
                problems.append(f"{case.name}: {error}")
    cells = [cell for cells in found.values() for cell in cells]
    named = {item for cell in cells for item in cell["items"]}
    problems += [f"docs/differences.md has no item {item}" for item in sorted(named - documented)]
    if os.environ.get("MSPROBE_TEST_ACCEPT") == "1":
        text = json.dumps(found, indent=1, sort_keys=False, ensure_ascii=True)
        EXPECTED.write_text(text + "\n", encoding="utf-8")
    else:
        compare_lists(found, json.loads(EXPECTED.read_text(encoding="utf-8")), problems)
    for line in problems:
        print(line)
    print(f"{len(cells)} differences from 26.x in {len(found)} tables, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
