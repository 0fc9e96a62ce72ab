#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that mean harm, from a dump into every kind of result: each reader gets the name back, and none gets more. (The HTML report: report_file.py.)

usage: hostile_names.py MSPROBE
"""

import csv
import json
import re
import unicodedata
import xml.etree.ElementTree

import sheets
from dumps import call, tensor, write_rank
from harness import check, check_equal, main, run

MOST_IN_CELL = 32767  # characters that a cell of a workbook holds

# The name of an entry, and its form in csv where that differs.
NAMES = {
    "Torch.<img src=x onerror=document.title='owned'>.0.forward": None,
    "Torch.</script><script>document.title='owned'</script>.0.forward": None,
    "Torch.]]>&amp;<!--.0.forward": None,
    "Torch.'\"`${document.title='owned'}.0.forward": None,
    "Torch.__proto__.0.forward": None,
    "Torch.\u2028\u2029\u202edrawkcab\u202c.0.forward": None,
    "Torch.nul\0inside\x1b]0;owned\x07\x7f\x9b.0.forward": None,
    "Torch.\ufffe\uffff\U0001f600.0.forward": None,
    "Torch.a\nb,c\"d\re.0.forward": None,
    "Torch._x0041_.0.forward": None,
    "Torch." + "x" * 40000 + ".0.forward": None,
    "=cmd|' /C calc'!A0.0.forward": "'=cmd|' /C calc'!A0.0.forward",
    "@SUM(A1).0.forward": "'@SUM(A1).0.forward",
    "+1;=2.0.forward": "'+1;'=2.0.forward",
    "-2.0.forward": "'-2.0.forward",
    "\t=1.0.forward": "'\t=1.0.forward",
    "\r=1.0.forward": "'\r=1.0.forward",
    "  =1.0.forward": "'  =1.0.forward",
    "\ufeff=1.0.forward": "'\ufeff=1.0.forward",
    "\u200b@SUM(A1).0.forward": "'\u200b@SUM(A1).0.forward",
    "Torch.hid\u200bden\U000e0041\U000e0100.0.forward": None,
    "\uff1d1.0.forward": "'\uff1d1.0.forward",
}


def without_controls(text):
    """As csv has it, so that it drives no terminal."""
    return "".join(c if unicodedata.category(c) != "Cc" or c in "\n\r\t" else f"\\x{ord(c):02x}" for c in text)


def write_dump(folder, value, names=NAMES):
    one = tensor(value, requires_grad=True)
    write_rank(folder, {name: call([one], [one]) for name in names}, stack={name: [f"File {name}, line 1, in {name}, \n {name}"] for name in names})


def compare(msprobe, scratch, *options):
    for side, value in (("target", 1.0), ("golden", 200.0)):
        if not (scratch / side).exists():
            write_dump(scratch / side, value)
    result = run(msprobe, ["compare", "-tp", "target", "-gp", "golden", *options], scratch, status=0)
    return result


def rows_of(names):
    return [f"{name}.{part}.0" for name in names for part in ("input", "output")]


def in_workbook(text):
    """As ECMA-376 (part 1, 22.9.2.19) writes what XML cannot hold; two code points have no way at all."""
    text = re.sub(r"_(?=x[0-9A-Fa-f]{4}_)", "_x005F_", text)
    text = re.sub(r"[\x00-\x08\x0b-\x1f]", lambda found: f"_x{ord(found[0]):04X}_", text)
    text = text.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
    return text if len(text) <= MOST_IN_CELL else text[: MOST_IN_CELL - 1] + "\u2026"


def make_tests(msprobe):
    def table_files(scratch):
        compare(msprobe, scratch, "-o", "out", "--format", "csv,xlsx,json,jsonl")
        files = {path.suffix: path for path in (scratch / "out").iterdir()}
        check_equal("files", sorted(files), [".csv", ".json", ".jsonl", ".xlsx"])
        named, cells = rows_of(NAMES), rows_of(cell or name for name, cell in NAMES.items())
        with open(files[".csv"], encoding="utf-8", newline="") as file:
            table = list(csv.DictReader(file))
        check(b"\"'\t=1" in files[".csv"].read_bytes(), "a tab is quoted")
        for column in ("NPU Name", "Bench Name"):
            check_equal(f"csv, {column}", [row[column] for row in table], [*map(without_controls, cells)])
        text = files[".csv"].read_bytes().decode("utf-8")
        check_equal("controls in csv", {c for c in text if unicodedata.category(c) == "Cc"} - set("\n\r\t"), set())
        check_equal("width of csv", {len(row) for row in table}, {len(table[0])})
        (sheet,) = sheets.read(files[".xlsx"]).values()  # fails if a cell is a formula
        check_equal("rows of xlsx", len(sheet), 1 + len(cells))
        for row, cell in zip(sheet[1:], cells):
            check_equal("xlsx", row[0], in_workbook(cell))
        whole = json.loads(files[".json"].read_text(encoding="utf-8"))
        place = whole["columns"].index("NPU Name")
        check_equal("json", [row[place] if isinstance(row, list) else row["NPU Name"] for row in whole["rows"]], named)
        lines = files[".jsonl"].read_bytes().splitlines()
        check_equal("jsonl", [row["NPU Name"] for row in map(json.loads, lines) if row["kind"] == "row"], named)

    def terminal(scratch):
        for options in (["-o", "out", "--top", "50"], *(["--explain", name] for name in NAMES if "\0" not in name)):
            result = compare(msprobe, scratch, *options)
            shown = result.stdout + result.stderr
            bad = {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c != "\n"}
            bad |= {c for c in shown if 0xE0000 <= ord(c) <= 0xE0FFF}
            check_equal(f"characters that steer a terminal, {options[-1][:40]!r}", bad, set())

    def texts(scratch):
        # Each name is that of the culprit, and of its file, once.
        for name in NAMES:
            for side, value in (("target", 1.0), ("golden", 200.0)):
                write_dump(scratch / side, value, [name])
            out = {}
            for kind in ("junit", "sarif", "github"):
                out[kind] = compare(msprobe, scratch, "--format", kind, "-o", "-").stdout
            root = xml.etree.ElementTree.fromstring(out["junit"])
            tags = {"testsuites", "testsuite", "properties", "property", "testcase", "failure", "skipped", "error"}
            check_equal(f"elements of {name[:40]!r}", {each.tag for each in root.iter()} - tags, set())
            check_equal("failures", len(root.findall(".//failure")), 1)
            for suite in root:
                check_equal("tests", int(suite.get("tests")), len(suite.findall("testcase")))
                check_equal("failures", int(suite.get("failures")), len(suite.findall("testcase/failure")))
            sarif = json.loads(out["sarif"])
            (one,) = sarif["runs"]
            check_equal("version", (sarif["version"], one["tool"]["driver"]["name"]), ("2.1.0", "msprobe"))
            (result,) = one["results"]
            check_equal("rule", one["tool"]["driver"]["rules"][result["ruleIndex"]]["id"], result["ruleId"])
            check(result["level"] in ("error", "warning"), "level")
            check(result["message"]["text"], "message")
            uri = result["locations"][0].get("physicalLocation", {}).get("artifactLocation", {}).get("uri", "")
            check(re.fullmatch(r"[A-Za-z0-9/._~:-]*|([A-Za-z0-9/._~:-]|%[0-9A-F]{2})*", uri), f"uri {uri!r}")
            (command,) = out["github"].splitlines()
            check(re.match(r"::(error|warning) (file=[^,:]*,line=[0-9]+,)?title=[^,:]*::", command), command)
            bad = {c for text in out.values() for c in text if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"}
            check_equal("characters that steer a terminal", bad, set())

    return [("table_files", table_files), ("terminal", terminal), ("texts", texts)]


if __name__ == "__main__":
    main(make_tests)
