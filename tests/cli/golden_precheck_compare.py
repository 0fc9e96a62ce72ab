#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs api_precision_compare over the golden details files. Each cell of both tables is that of the Python tool, of both
releases, or a predicate covers it that names an item of docs/differences/prechecks.md; what the Python tool lets pass though
nothing was judged does not pass.

usage: golden_precheck_compare.py MSPROBE GOLDEN_FOLDER
"""

import csv
import json
import math
import pathlib
import re

import harness
import sheets
from predicates import Cell, Row, number, unexplained_cells, wrong

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "differences" / "prechecks.md"
RELEASES = {"8": "8.1.1", "26": "26.2.0"}


def compare(msprobe, folder, name, scratch, *more, status=0, out="out"):
    out = scratch / out
    command = ["api_precision_compare", "-npu", folder / f"{name}_npu.csv", "-gpu", folder / f"{name}_gpu.csv", "-o", out]
    result = harness.run(msprobe, [*map(str, command), *more], scratch)
    harness.check(result.returncode == status, f"exit status {result.returncode}: {result.stderr}")
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


# Our column Reason names figures by their English names; here are the columns of the details file and of our table.
FIGURES = {
    "Small Value Errors": ("小值域错误占比", "小值域.*"),
    "RMSE": ("均方根误差", "均方根误差.*"),
    "Max Relative Error": ("相对误差最大值", "相对误差最大值.*"),
    "Mean Relative Error": ("相对误差平均值", "相对误差平均值.*"),
    "Error Balance": ("误差均衡性", "误差均衡性.*"),
    "Inf/NaN Error Rate": ("inf/nan错误率", "inf/nan.*"),
    "Relative Error Rate": ("相对误差错误率", "相对误差(错误率|判定结果)"),
    "Absolute Error Rate": ("绝对误差错误率", "绝对误差.*"),
    "Unequal": ("二进制一致错误率", "二进制一致.*"),
    "Mean ULP Error": ("ULP误差平均值", "ULP.*"),
    "ULP Errors Above Limit": ("ULP误差大于阈值占比", "ULP.*"),
    "Within 0.1 %": ("双千指标", "双千.*"),
}
REASON = re.compile(f"({'|'.join(FIGURES)})( of the other device)? is (.*)")
TOLD = {
    "blank": lambda cells: not cells[0].strip(),
    "not a number": lambda cells: math.isnan(number(cells[0])) and cells[0] != "nan",
    "negative": lambda cells: number(cells[0]) < 0,
    "(nan|inf|-inf) on both devices": lambda cells: cells[0] == cells[1] and not math.isfinite(number(cells[0])),
    ".*, but .* on the other device": lambda cells: not all(math.isfinite(number(cell)) for cell in cells),
}
UNKNOWN = "blank|not a number"
ODD = "negative|.* on both devices|.*, but .* on the other device"
NO_COLUMN = "no column needed by a criterion is filled"
UNJUDGED = "This data type does not support benchmark compare."
MEASURED = "|".join(dict.fromkeys(columns for _, columns in FIGURES.values()))
VERDICT = "比对结果"
SIDES = "Forward Test Success|Backward Test Success|Message"


class Output(Row):
    """A row of a table and ours. `outputs`: those of an operation; `stopped`: the Python tool ended its work before."""

    outputs, stopped = (), False

    @property
    def name(self):
        return self["API Name"] or self.ours["API Name"]

    def says(self, what, column=".*"):
        """Does our reason say this of the figure of a column, by default of any figure?"""
        parts = map(REASON.fullmatch, self.ours["Reason"].split("; "))
        return any(part and re.fullmatch(what, part[3]) and (column == ".*" or re.fullmatch(FIGURES[part[1]][1], column))
                   for part in parts)

    def given_up(self):
        return self["Message"].startswith(("ERROR: Input", "'float' object")) and self.theirs.get("比对算法") == " "

    def status(self, side):
        """The result of one direction of an operation, by our rows of its outputs (P7)."""
        rows = [output for output in self.outputs if f".{side}." in output.name]
        found = {output.ours[VERDICT] for output in rows if not nothing_there(output)}
        return next((word for word in ("error", "SKIP", "pass") if word in found), "SKIP" if rows else " ")

    def any_output(self, *whats):
        return any(what(output) for output in self.outputs for what in whats)


def unknown(row, column=".*"):
    return row.says(UNKNOWN, column) or row.ours["Reason"] == NO_COLUMN


def odd(row, column=".*"):
    return row.says(ODD, column)


def infinite(row, column=None):
    """The ratio of two finite figures is beyond all numbers."""
    ratios = {name: value for name, value in row.theirs.items() if name.endswith("比值")}
    return "inf" in (value for name, value in ratios.items() if column is None or name[:5] == column[:5])


def lone(row, _=None):
    return "the other device's file" in row.ours["Reason"]


def is_invalid(row, _=None):
    return row["Message"].endswith(" is invalid.") and row.name.count(".") > 6


def nothing_there(row):
    return row.ours["Reason"] in ("no elements", "nothing to judge")


def not_judged(row):
    return nothing_there(row) or row.ours["Reason"] == "its type is not judged"


def more_than(row, column):
    """The parts of our message that theirs does not have."""
    ours, theirs = (set(re.split("\n|(?<=阈值)(?=ERROR)", rows[column])) for rows in (row.ours, row.theirs))
    return sorted(filter(None, ours - theirs))


DETAILS = [
    Cell("P4", 26, ".*", ".*", ".*", when=is_invalid),
    Cell("P5", 4, "API Name", "", ".*", when=lambda r, _: r.stopped),
    Cell("P6", 17, "API Name", "", ".*", when=lone),
    Cell("P7", 94, f"{MEASURED}|比对算法", ".*", " ", when=lambda r, _: r.ours["Reason"] == "no elements"),
    Cell("P7", 10, VERDICT, "pass|error", "SKIP", when=lambda r, _: r.ours["Reason"] == "no elements"),
    Cell("P7", 12, "Message", ".*", ".*", when=lambda r, _: r.ours["Reason"] == "no elements"),
    Cell("P2", 186, f"{MEASURED}|比对算法|Message|{VERDICT}", " |ERROR: Input.*|'float' .*|SKIP", ".*", when=lambda r, _: r.given_up()),
    Cell("P2", 440, MEASURED, ".*", " ", when=unknown),
    Cell("P3", 228, MEASURED, ".*", " ", when=lambda r, c: r.says("negative", c)),
    Cell("P3", 21, MEASURED, "pass", "SKIP", when=lambda r, c: r.says(".* on both devices", c)),
    Cell("P3", 5, MEASURED, "pass", "error", when=infinite),
    Cell("P2", 52, VERDICT, "pass|error", "SKIP", when=lambda r, _: unknown(r)),
    Cell("P3", 50, VERDICT, "pass|error", "SKIP", when=lambda r, _: odd(r)),
    Cell("P3", 11, VERDICT, "pass", "error", when=lambda r, _: odd(r) or infinite(r)),
    Cell("P2", 9, "Message", ".*", ".*", when=lambda r, c: unknown(r) and not more_than(r, c)),
    Cell("P3", 30, "Message", ".*", ".*", when=lambda r, c: odd(r) and not more_than(r, c)),
    Cell("P3", 2, "Message", ".*", ".*", when=lambda r, c: infinite(r) and more_than(r, c)[0].endswith("比值超过阈值")),
]
OPERATIONS = [
    Cell("P5", 6, "API Name", "", ".*", when=lambda r, _: r.stopped),
    Cell("P4", 4, "API Name", ".*", ".*", when=lambda r, _: r.any_output(is_invalid)),
    Cell("P6", 9, "API Name", "", ".*", when=lambda r, _: all(lone(output) for output in r.outputs)),
    Cell("P2", 28, "API Name", "", ".*", when=lambda r, _: r.any_output(Output.given_up)),
    Cell("P2", 57, "API Name", r".*\.output\.\d+", "", when=lambda r, _: r.any_output(Output.given_up)),
    Cell("P7", 2, "API Name", ".*", "", when=lambda r, _: r.repeated),
    Cell("P7", 78, SIDES, ".*", ".*", when=lambda r, _: r.repeated or r["Message"] == UNJUDGED or r.any_output(not_judged)),
    Cell("P2", 45, SIDES, ".*", ".*", when=lambda r, _: r.any_output(unknown, Output.given_up)),
    Cell("P3", 65, SIDES, ".*", ".*", when=lambda r, _: r.any_output(odd, infinite)),
]


def paired(theirs, ours):
    """Rows of both tables by their names; the side that lacks one has empty cells."""
    left = list(theirs)
    for row in ours:
        partner = next((other for other in left if other["API Name"] == row["API Name"]), None)
        if partner:
            left.remove(partner)
        yield Output(partner or dict.fromkeys(row, ""), row)
    for other in left:
        yield Output(other, {**dict.fromkeys(other, ""), "Reason": ""})


def read(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def check_cells(msprobe, case, name, release, scratch):
    """Both tables of a case, cell by cell; --python-rules changes nothing."""
    out, stderr = compare(msprobe, case / "in", name, scratch, "--release", release, "--python-rules")
    harness.check("msprobe api_precision_compare: --python-rules has no effect" in stderr, stderr)
    told = [line.removeprefix("msprobe: warning: ") for line in stderr.splitlines() if "warning: " in line and "not judged" not in line]
    summary = json.loads((case / RELEASES[release] / "summary.json").read_text(encoding="utf-8"))
    harness.check_equal("warnings", set(told) - set(summary[name]["log"]), set())
    (ours, theirs), (our_operations, their_operations) = (
        [read(only(out, f"api_precision_compare_{kind}_*.csv")), read(case / RELEASES[release] / f"{name}_{kind}.csv")]
        for kind in ("details", "result"))
    device, other = ({row["API Name"]: row for row in read(case / "in" / f"{name}_{side}.csv")} for side in ("npu", "gpu"))
    outputs = list(paired(theirs, ours))
    problems = [] if [row["API Name"] for row in outputs if row["API Name"]] == [row["API Name"] for row in theirs] else ["order"]
    for row in outputs:
        row.stopped = name == "duplicate"
        problems += unexplained(row, DETAILS)
        for part in filter(None, map(REASON.fullmatch, row.ours["Reason"].split("; "))):
            cells = [side[row.ours["API Name"]][FIGURES[part[1]][0]] for side in (other, device)[:: 1 if part[2] else -1]]
            tests = [test for what, test in TOLD.items() if re.fullmatch(what, part[3])]
            if not all(test(cells) for test in tests):
                problems.append(f"{row.ours['API Name']}: {part[0]!r}, but the cells are {cells}")
    for row in paired(their_operations, our_operations):
        row.outputs = [output for output in outputs if (output.name + ".").startswith(row.name + ".")]
        row.repeated = sum(other["API Name"] == row["API Name"] for other in their_operations) > 1
        row.stopped = name == "duplicate"
        problems += unexplained(row, OPERATIONS)
        for side in ("Forward", "Backward") if row.ours["API Name"] else ():
            judged = row.status(side.lower())
            if row.ours[f"{side} Test Success"] != judged:
                problems.append(f"{row.name}: {side} is {row.ours[f'{side} Test Success']}, by its outputs {judged}")
    harness.check(not problems, "\n".join(problems))


def unexplained(row, predicates):
    """Lines on the cells that differ and that no predicate covers; of a row that one side lacks, the name stands for all."""
    lone = "" in (row["API Name"], row.ours["API Name"])
    columns = ["API Name"] if lone else [c for c in row.theirs if row[c] != row.ours[c]]
    return [f"{row['API Name']}: {line} ({row.ours['Reason']})" for line in unexplained_cells(row, columns, predicates)]


def check_missing_column(msprobe, case, scratch):
    out, stderr = compare(msprobe, case / "in", "missing_column", scratch, status=2)
    harness.check("missing_column_npu.csv: not a details file" in stderr, stderr)
    harness.check("missing: 双千指标, 均方根误差" in stderr, stderr)
    harness.check_equal("files", list(out.glob("*")), [])


def result_of(details, row):
    return details[row][0]["比对结果"]


def check_selection(msprobe, case, scratch):
    """Without options, the filled columns decide how a row is judged: the verdicts of both releases where each can judge."""
    out, _ = compare(msprobe, case / "in", "main", scratch)
    details, operations = tables(out)
    theirs = {name: table(case / folder / "main_details.csv") for name, folder in RELEASES.items()}
    for api in ("matmul", "conv2d", "relu", "test_api", "add"):
        names = [name for name in details if name.startswith(f"Torch.{api}.")]
        harness.check(len(names) >= 2, f"no rows of {api}")
        odd = [name for name in names if "on both devices" in details[name][0]["Reason"]]
        harness.check_equal("NaN and Inf", odd, [f"Torch.matmul.{i}.forward.output.0" for i in (5, 6)] if api == "matmul" else [])
        for name in names:
            if name in odd:
                continue
            expected = theirs["8"][name][0]
            harness.check_equal(name, result_of(details, name), expected["比对结果"])
            if expected["比对结果"] != "SKIP":
                harness.check_equal(name, {k: details[name][0][k] for k in expected}, expected)
    for api in ("tanh", "embedding", "sum", "quant", "eq"):
        for name in (name for name in details if name.startswith(f"Torch.{api}.")):
            expected = theirs["26"][name][0]["比对结果"]
            # NaN or Inf on both sides, blanks and a negative figure are no pass of ours.
            reason = details[name][0]["Reason"]
            excuse = re.search(r"on both devices|is blank|is negative|no column|Error Balance is|no elements", reason)
            harness.check(result_of(details, name) == expected or excuse, f"{name}: {result_of(details, name)}: {reason}")
    harness.check_equal("operations", len({row[0]["API Name"] for row in operations.values()}), sum(map(len, operations.values())))


def check_never_passes(msprobe, case, scratch):
    """Rows that the Python tool lets pass though nothing was judged, and rows that it loses."""
    out, _ = compare(msprobe, case / "in", "main", scratch)
    details, operations = tables(out)
    expected = {
        "Torch.tanh.57.forward.output.0": ("SKIP", "no column needed by a criterion is filled"),
        "Torch.tanh.58.forward.output.0": ("SKIP", "Small Value Errors of the other device is blank"),
        "Torch.tanh.59.forward.output.0": ("SKIP", "no column needed by a criterion is filled"),
        "Torch.tanh.60.forward.output.0": ("SKIP", "RMSE is not a number"),
        "Torch.tanh.24.forward.output.0": ("SKIP", "RMSE is negative"),
        "Torch.tanh.25.forward.output.0": ("SKIP", "RMSE is nan on both devices"),
        "Torch.tanh.50.forward.output.0": ("error", "Error Balance is nan, but 0.5 on the other device"),
        "Torch.add.5.forward.output.0": ("SKIP", "Absolute Error Rate is blank"),
        "Torch.missing.0.forward.output.0": ("SKIP", "missing from the other device's file"),
        "Torch.mixed.0.forward.output.1": ("SKIP", "its type is not judged"),
        "Torch.a.b.c.0.forward.output.0": ("pass", ""),
    }
    for name, (status, reason) in expected.items():
        harness.check_equal(name, result_of(details, name), status)
        harness.check(details[name][0]["Reason"].startswith(reason), f"{name}: {details[name][0]['Reason']!r}")
    harness.check_equal("rows", len(details), 173)
    for name, forward in {"mixed.0": "SKIP", "mixed.1": "error", "interleaved.0": "error", "between.0": "pass", "stack.0": "SKIP"}.items():
        (row,) = operations[f"Torch.{name}"]
        harness.check_equal(name, row["Forward Test Success"], forward)
    (row,) = operations["Torch.split.0"]
    harness.check_equal("split", (row["Forward Test Success"], row["Backward Test Success"]), ("pass", "error"))
    harness.check("backward.output.0: RMSE 5 is 10 times" in row["Reason"], row["Reason"])


def check_duplicates(msprobe, case, scratch):
    out, stderr = compare(msprobe, case / "in", "duplicate", scratch)
    details, operations = tables(out)
    statuses = {name: [row["比对结果"] for row in rows] for name, rows in details.items()}
    harness.check_equal("details", list(statuses.values()), [["pass"], ["SKIP"], ["error"]])
    harness.check("2 of the other device" in list(details.values())[1][0]["Reason"], stderr)
    harness.check_equal("operations", len(operations), 3)
    # The same twice on the judged side.
    source = (case / "in" / "duplicate_npu.csv").read_bytes().splitlines(keepends=True)
    (scratch / "twice_npu.csv").write_bytes(b"".join([*source, source[1]]))
    (scratch / "twice_gpu.csv").write_bytes(b"".join(source))
    details, operations = tables(compare(msprobe, scratch, "twice", scratch, out="twice")[0])
    name = "Torch.tanh.0.forward.output.0"
    harness.check_equal("details", [row["比对结果"] for row in details[name]], ["SKIP", "SKIP"])
    harness.check_equal("operation", operations["Torch.tanh.0"][0]["Forward Test Success"], "SKIP")


def check_other_side(msprobe, case, scratch):
    """Outputs that only the other device has."""
    lines = (case / "in" / "main_npu.csv").read_bytes().splitlines(keepends=True)
    (scratch / "lone_npu.csv").write_bytes(b"".join(lines[:2]))
    (scratch / "lone_gpu.csv").write_bytes(b"".join(lines[:3]))
    out, stderr = compare(msprobe, scratch, "lone", scratch)
    details, operations = tables(out)
    (row,) = details["Torch.tanh.1.forward.output.0"]
    harness.check_equal("row", (row["比对结果"], row["Reason"]), ("SKIP", "only in the other device's file"))
    harness.check_equal("operation", operations["Torch.tanh.1"][0]["Forward Test Success"], "SKIP")
    harness.check("1 output unmatched" in stderr, stderr)


def check_gates(msprobe, case, scratch):
    source = case / "in" / "main_npu.csv"
    lines = source.read_bytes().splitlines(keepends=True)
    good = next(line for line in lines if line.startswith(b"Torch.tanh.0."))
    blank = next(line for line in lines if line.startswith(b"Torch.tanh.57."))
    for name, rows in {"good": [good], "some": [good, blank], "none": [blank], "empty": []}.items():
        for side in ("npu", "gpu"):
            (scratch / f"{name}_{side}.csv").write_bytes(b"".join([lines[0], *rows]))
    for name, gate, status in (
        ("good", "error", 0), ("good", "skip", 0), ("some", "error", 2), ("some", "skip", 1), ("none", "error", 2),
        ("empty", "error", 2), ("none", "never", 0),
    ):
        compare(msprobe, scratch, name, scratch, "--fail-on", gate, status=status, out=f"{name}-{gate}")
    compare(msprobe, case / "in", "main", scratch, "--fail-on", "error", status=1)


def check_formats(msprobe, case, scratch):
    """Workbooks and JSON hold what the csv files hold, numbers as numbers."""
    out, _ = compare(msprobe, case / "in", "main", scratch, "--format", "csv,xlsx,json,jsonl")
    for kind, rows in zip(("details", "result"), tables(out)):
        rows = [row for rows in rows.values() for row in rows]
        order = [row["API Name"] for row in csv.DictReader(only(out, f"*_{kind}_*.csv").open(encoding="utf-8-sig", newline=""))]
        loaded = json.loads(only(out, f"*_{kind}_*.json").read_text(encoding="utf-8"))["rows"]
        harness.check_equal("names", [row["API Name"] for row in loaded], order)
        harness.check_equal("count", len(rows), len(loaded))
        (sheet,) = sheets.read(only(out, f"*_{kind}_*.xlsx")).values()
        harness.check_equal("sheet", [row[0] for row in sheet[1:]], order)
        lines = only(out, f"*_{kind}_*.jsonl").read_text(encoding="utf-8").splitlines()
        harness.check_equal("lines", [json.loads(line)["API Name"] for line in lines], order)
    loaded = json.loads(only(out, "*_details_*.json").read_text(encoding="utf-8"))["rows"]
    by_name = {row["API Name"]: row for row in loaded}
    harness.check_equal("ratio", by_name["Torch.tanh.2.forward.output.0"]["相对误差最大值比值"], 10.001)
    harness.check_equal("blank", by_name["Torch.tanh.2.forward.output.0"]["双千指标"], "")


def check_english(msprobe, case, scratch):
    out, _ = compare(msprobe, case / "in", "main", scratch, "--english", "--format", "csv,xlsx")
    for path in out.glob("*.csv"):
        text = path.read_text(encoding="utf-8-sig")
        harness.check(text.isascii(), "not ASCII: " + "".join(sorted({c for c in text if ord(c) > 127})))
    details, _ = tables(out)
    row = details["Torch.tanh.2.forward.output.0"][0]
    harness.check_equal("row", (row["Max Relative Error Ratio"], row["Result"]), ("10.00100000000000", "error"))


def check_standards(msprobe, case, scratch):
    """Limits come from the file that is named."""
    rules = scratch / "rules.yaml"
    rules.write_text("ratios:\n  level_0: {max_relative: 11}\nbinary_consistency: [tanh]\n", encoding="ascii")
    out, _ = compare(msprobe, case / "in", "main", scratch, "--standards", str(rules))
    name = "Torch.tanh.2.forward.output.0"
    harness.check_equal("details", result_of(tables(out)[0], name), "pass")
    out, _ = compare(msprobe, case / "in", "main", scratch, "--standards", str(rules), "--release", "8", out="binary")
    details = tables(out)[0]
    harness.check_equal("binary", (result_of(details, name), details[name][0]["Reason"]), ("SKIP", "Unequal is blank"))
    for text, complaint in (
        ("ratio: {}\n", "line 1: unknown rule 'ratio'"),
        ("limits: {cosine: near}\n", "line 1: cosine must be a number"),
        ("types:\n  float17: {small_value: 1}\n", "line 2: unknown type 'float17'"),
        ("ulp: matmul\n", "line 1: ulp must be a list of names"),
    ):
        rules.write_text(text, encoding="ascii")
        out, stderr = compare(msprobe, case / "in", "main", scratch, "--standards", str(rules), status=2, out="none")
        harness.check(complaint in stderr, stderr)


def check_hostile(msprobe, case, scratch):
    """Each is refused in one line that names the file, or taken as it is; nothing is half-written."""
    header = (case / "in" / "main_npu.csv").read_bytes().splitlines(keepends=True)[0]
    cases = {
        "nothing": (b"", "it is empty"),
        "nul": (header + b"a\0b,\r\n", "a NUL byte"),
        "quote": (header + b'"abc', "a quote is not closed"),
        "wide": (header + b"," * 40 + b"\r\n", "line 2: more fields than the header has columns"),
        "long": (header + b"a" * 2_000_000 + b"\r\n", "a row longer than 1 MiB"),
        "twice": (header.replace(b"Shape", b"Message"), "column 'Message' appears twice"),
        "zip": (b"PK\3\4" + bytes(100), "a NUL byte"),
    }
    for name, (data, complaint) in cases.items():
        (scratch / f"{name}_npu.csv").write_bytes(data)
        (scratch / f"{name}_gpu.csv").write_bytes(header)
        out, stderr = compare(msprobe, scratch, name, scratch, status=2, out=f"out-{name}")
        harness.check_equal("lines", len(stderr.splitlines()), 1)
        harness.check(f"{name}_npu.csv" in stderr and complaint in stderr, stderr)
        harness.check_equal("files", list(out.glob("*")), [])
    names = ["=cmd|' /C calc'!A0.0.forward.output.0", "Torch.\x1b]0;owned\x07.0.forward.output.0", "...", "......", "", "a.b.c.d.e.f",
             "Torch.x.0.sideways.output.0", "\udcff\udcfe.x.0.forward.output.0", "Torch.<b>.0.forward.output.0"]
    with (scratch / "odd_npu.csv").open("w", encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        writer = csv.writer(file)
        columns = header.decode("utf-8-sig").strip().split(",")
        writer.writerow(columns)
        for name in names:
            row = {**dict.fromkeys(columns, "1e999"), "API Name": name, "DEVICE Dtype": "torch.float32", "Shape": "(0" * 1000}
            writer.writerow(row.values())
        writer.writerow([names[0]])  # too short
    (scratch / "odd_gpu.csv").write_bytes((scratch / "odd_npu.csv").read_bytes())
    out, stderr = compare(msprobe, scratch, "odd", scratch, "--format", "csv,xlsx,json", out="odd")
    harness.check("\x1b" not in stderr and "\x07" not in stderr, "the terminal gets control characters")
    details, operations = tables(out)
    harness.check("'" + names[0] in details, "a formula in csv")
    harness.check_equal("passes", [name for name, rows in details.items() for row in rows if row["比对结果"] == "pass"], [])
    harness.check_equal("passes", [name for name, (row, *_) in operations.items() if "pass" in row.values()], [])


def make_tests(msprobe, golden):
    case = harness.data(golden, "prechecks/precision_compare") / "prechecks/precision_compare"
    tests = []
    for release, folder in RELEASES.items():
        for name in ("main", "duplicate", "empty", *(["random"] if release == "26" else [])):
            tests.append((f"{folder}: {name}", lambda s, n=name, r=release: check_cells(msprobe, case, n, r, s)))
    tests.append(("as many cells as the predicates say", lambda _: harness.check_equal("", wrong(DETAILS + OPERATIONS, PAGE), [])))
    return tests + harness.tests_of_script(msprobe=msprobe, case=case)


if __name__ == "__main__":
    harness.main(make_tests)
