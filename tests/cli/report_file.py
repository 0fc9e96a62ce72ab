#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML report as a file: that it asks for nothing, that nothing in a dump becomes part of the page, that its rows are those of
the csv, that its counts are those of the csv and of the terminal, and that its answer shows without scripts.

usage: report_file.py MSPROBE FOLDER-OF-GOLDEN-CASES SAMPLES GENERATOR
"""

import base64
import collections
import csv
import hashlib
import html
import json
import pathlib
import re
import shutil
import subprocess
import sys

import report_page
from dumps import tensor, write_rank
from harness import check, check_equal, data, main, run

VERDICTS = ["pass", "warning", "error"]
ORIGINS = ["equal", "rounding", "unexplained", "introduced", "propagated", "not compared"]
ONLY_IN_GOLDEN = 3
HOSTILE = [
    "Torch.<img src=x onerror=document.title='owned'>.0.forward",
    "Torch.</script><script>document.title='owned'</script>.0.forward",
    "Torch.\u2028\u2029.0.forward",
    "Torch.\u202edrawkcab\u202c.0.forward",
    "Torch.nul\0inside.0.forward",
    "Torch.'\"`${document.title='owned'}.0.forward",
    "Torch.__proto__.0.forward",
    "Torch.=cmd|' /C calc'!A0.0.forward",
]


def write_hostile(folder):
    """Two dumps whose names try everything; returns their paths."""
    entry = lambda value: {"input_args": [tensor(1.0)], "input_kwargs": {}, "output": [tensor(value)]}
    for side, value in (("target", 5.0), ("golden", 1.0)):
        write_rank(
            folder / side,
            {name: entry(value) for name in HOSTILE},
            stack={name: [f"File {name}, line 1, in {name}, \n {name}"] for name in HOSTILE},
            construct={name: HOSTILE[(i + 1) % len(HOSTILE)] for i, name in enumerate(HOSTILE)},
        )
    return folder / "target", folder / "golden"


def entry(value, received=1.0, **gradient):
    """An entry that makes a tensor from another, and its backward if `gradient` has the error that it receives."""
    if gradient:
        return {"input": [tensor(gradient["error"])], "output": [tensor(value), None]}
    return {"input_args": [tensor(received)], "input_kwargs": {}, "output": [tensor(value)]}


def write_pair(folder, target, golden):
    write_rank(folder / "target", target)
    write_rank(folder / "golden", golden)
    return folder / "target", folder / "golden"


def write_apart(folder):
    """Rows that their types keep apart, in two outputs and an argument, after an error that spreads."""
    def dump(value, argument, others):
        return {
            "Torch.mul.0.forward": entry(value),
            "Torch.add.0.forward": {"input_args": [tensor(value), argument], "input_kwargs": {}, "output": [tensor(value), *others]},
        }

    number = {"type": "int", "Max": 1, "Min": 1, "Mean": 1, "Norm": 1}
    return write_pair(folder, dump(5.0, number, [tensor(2.0), None]),
                      dump(1.0, number | {"type": "float", "Max": 1.0}, [None, tensor(2.0)]))


def write_detached(folder):
    """The target lacks the backward of the last of three calls."""
    def dump(calls):
        forward = {f"Torch.mul.{call}.forward": entry(2.0 + call, 1.0 + call) for call in range(3)}
        return forward | {f"Torch.mul.{call}.backward": entry(0.1 * call + 0.3, error=0.5 + call) for call in calls}

    return write_pair(folder, dump([1, 0]), dump([2, 1, 0]))


def compared(msprobe, scratch, target, golden, *options):
    """The output on the terminal, the page, and the rows of all tables."""
    shutil.rmtree(scratch / "out", ignore_errors=True)
    result = run(msprobe, ["compare", "-tp", target, "-gp", golden, "-o", "out", "--format", "csv,html", *options], scratch)
    (page,) = (scratch / "out").glob("*.html")
    return result.stdout, page.read_text(encoding="utf-8"), sum(tables_in(scratch / "out"), [])


def summary_of(page):
    """The text that a reader sees without scripts. It has no elements: the pattern ends at the first."""
    (found,) = re.findall(r'<pre id="summary">([^<]*)</pre>', page)
    return html.unescape(found)


def said_without_files(said):
    lines = [line for line in said.splitlines() if not re.match(r" *(written|report): ", line)]
    return "\n".join(lines).replace(" (--details lists the worst)", "")


def counts_in(line):
    return {what: int(number.replace(",", "")) for number, what in re.findall(r"([0-9][0-9,]*) ([a-z][a-z ]*[a-z])", line)}


def check_counts(said, page, rows):
    """The terminal, the table and the page have the same counts."""
    overview = report_page.overview(page)
    by_limits = counts_in(re.search("(?:by fixed limits|rows?): ([^\n]*error, [^\n]*)", said)[1])
    results = collections.Counter(row["Result"] for row in rows)
    for what in ("error", "warning"):
        check_equal(f"{what}, on the terminal and in the table", by_limits[what], results[what])
    check_equal("unmatched", by_limits.get("unmatched", 0), sum(row["Bench Name"] == "N/A" for row in rows))
    on_page = collections.Counter(row["verdict"] for i in range(len(overview["ranks"])) for row in report_page.rows(page, i))
    check_equal("verdicts of the page's rows", [on_page[i] for i in range(3)], [results[verdict] for verdict in VERDICTS])
    check_equal("only in golden", by_limits.get("only in golden", 0), on_page[ONLY_IN_GOLDEN])
    for what, key in (("error", "errors"), ("warning", "warnings"), ("unmatched", "unmatched"), ("only in golden", "goldenOnly")):
        check_equal(f"{what} of the page", sum(rank[key] for rank in overview["ranks"]), by_limits.get(what, 0))
    if not overview.get("diagnosis"):
        return
    by_origin = counts_in(re.search("^[0-9,]+ rows?: ([^\n]*)", said, re.MULTILINE)[1])
    origins = collections.Counter(row["Origin"] for row in rows)
    check_equal("origins on the terminal", {what: by_origin.get(what, 0) for what in ORIGINS}, {what: origins[what] for what in ORIGINS})
    check_equal("origins of the page", {what: overview["diagnosis"]["origins"][what] for what in ORIGINS},
                {what: origins[what] for what in ORIGINS})


def report(msprobe, scratch, target, golden, *options):
    """Compares into csv and html; returns the page and the tables, one for each rank, in order."""
    out = scratch / "out"
    result = run(msprobe, ["-q", "compare", "-tp", target, "-gp", golden, "-o", out, "--format", "csv,html", *options], scratch)
    check_equal("exit status", result.returncode, 0)
    (page,) = out.glob("*.html")
    return page.read_text(encoding="utf-8"), tables_in(out)


def tables_in(out):
    tables = []
    for path in sorted(out.rglob("*.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            tables.append(list(csv.DictReader(file)))
    return tables


def number(text):
    try:
        return float(text.strip().removesuffix("%"))
    except ValueError:
        return None


def check_same_cells(page, rank, table):
    """Every cell of the page is the csv's; what only golden has stands among them."""
    all_rows = report_page.rows(page, rank)
    rows = [row for row in all_rows if row["verdict"] != ONLY_IN_GOLDEN]
    for row in all_rows:
        if row["verdict"] == ONLY_IN_GOLDEN:
            check_equal("cells of what only golden has", [row["NPU Name"], row["Result"], row["Origin"]], ["N/A", "N/A", "not compared"])
            check(row["Bench Name"] != "N/A", "it has its name")
    check_equal("rows", len(rows), len(table))
    check(rows, "a comparison without rows tests nothing")
    compared = 0
    for got, expected in zip(rows, table):
        check_equal("verdict", VERDICTS[got["verdict"]], expected["Result"])
        for column, text in expected.items():
            if column == "NPU_Stack_Info":
                continue
            value = got[column]
            if isinstance(value, float):
                check_equal(f"{expected['NPU Name']}, {column}", value, number(text))
            else:
                check_equal(f"{expected['NPU Name']}, {column}", value, text.strip())
            compared += 1
    return compared


def check_stacks(page, rank, table):
    known = report_page.names(page, rank)
    found = 0
    for expected in table:
        if expected.get("NPU_Stack_Info", "N/A") == "N/A":
            continue
        entry = max((name for name in known["entries"] if expected["NPU Name"].startswith(name + ".")), key=len)
        frames = known["stacks"][known["stackOf"][known["entries"].index(entry)]]
        for _, frame in frames:
            check(json.dumps(frame)[1:-1].split("\\n")[0] in expected["NPU_Stack_Info"], f"{entry}: {frame}")
        found += 1
    return found


def make_tests(msprobe, golden, samples, generator):
    golden, samples = data(golden, "compare"), pathlib.Path(samples)

    def policy(scratch):
        page, _ = report(msprobe, scratch, samples / "target", samples / "golden")
        policies = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
        check_equal("policies", len(policies), 1)
        rules = dict(rule.strip().split(" ", 1) for rule in policies[0].split(";"))
        check_equal("default-src", rules.pop("default-src"), "'none'")
        check_equal("img-src", rules.pop("img-src"), "data:")
        check_equal("base-uri", rules.pop("base-uri"), "'none'")
        check_equal("form-action", rules.pop("form-action"), "'none'")
        scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
        for kind, parts in (("script-src", scripts), ("style-src", styles)):
            digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
            check_equal(kind, rules.pop(kind).split(), [f"'sha256-{digest}'" for digest in digests])
        check_equal("other rules", rules, {})
        check(page.index("Content-Security-Policy") < page.index("<style"), "the policy comes first")

    def no_reference(scratch):
        page, _ = report(msprobe, scratch, samples / "target", samples / "golden")
        for bad in ("http:", "https:", "//cdn", "src=", "@import", "url(", "eval(", "innerHTML", "insertAdjacent", "document.write"):
            check(bad not in page, f"the page has {bad!r}")
        check_equal("hrefs", re.findall(r"href=\"([^\"]*)\"", page), ["data:,"])

    def hostile_names(scratch):
        page, tables = report(msprobe, scratch, *write_hostile(scratch / "hostile"))
        check_equal("tables", len(tables), 1)
        # The text for readers without scripts has a name, as text.
        check("onerror=document.title='owned'>.0.forward" in summary_of(page), summary_of(page))
        rest = re.sub(r'<pre id="summary">[^<]*</pre>', "", page)
        for bad in ("owned", "onerror"):
            check(bad not in rest, f"the page has {bad!r}")
        for bad in ("\u2028", "\u202e", "\0"):
            check(bad not in page, f"the page has {bad!r}")
        known = report_page.names(page, 0)
        for name in HOSTILE:
            check(name in known["entries"], f"{name!r} is in the data")
        # Modules that enclose each other in a circle are cut open somewhere.
        for entry in range(len(known["parents"])):
            for _ in range(len(known["parents"]) + 1):
                entry = known["parents"][entry]
                if entry < 0:
                    break
            check(entry < 0, "a circle of modules")

    def answer_without_scripts(scratch):
        """The page has the terminal's words before any script runs."""
        pairs = [(samples / "target", samples / "golden"), (samples / "tile", samples / "golden"), (samples / "golden", samples / "golden"),
                 (samples / "target", samples / "golden", "--python-rules"), write_apart(scratch / "apart")]
        for pair in pairs:
            said, page, _ = compared(msprobe, scratch, *pair)
            check_equal("the text of the page", summary_of(page).rstrip(), said_without_files(said))
        check("culprit: Torch.mul.0.forward" in summary_of(page), summary_of(page))

    def counts(scratch):
        pairs = [(samples / "target", samples / "golden"), (samples / "tile", samples / "golden"),
                 (samples / "target", samples / "golden", "--python-rules"), write_apart(scratch / "apart"),
                 write_detached(scratch / "detached")]
        pairs += [(case / "target", case / "golden") for case in sorted((golden / "compare").iterdir())
                  if (case / "target" / "dump.json").exists() and (case / "golden" / "dump.json").exists()]
        check(len(pairs) > 10, "many pairs are compared")
        for pair in pairs:
            try:
                check_counts(*compared(msprobe, scratch, *pair))
            except AssertionError as error:
                raise AssertionError(f"{pair[0]}: {error}") from error

    def backward_that_one_side_lacks(scratch):
        """Each backward pairs with the backward of the same call, not with the one at its position."""
        _, _, rows = compared(msprobe, scratch, *write_detached(scratch / "detached"))
        backward = {row["NPU Name"]: row["Bench Name"] for row in rows if ".backward." in row["NPU Name"]}
        check_equal("pairs", backward, {name: name for name in backward})
        check_equal("origins", {row["Origin"] for row in rows}, {"equal"})

    def same_as_csv(case):
        def test(scratch):
            page, tables = report(msprobe, scratch, golden / "compare" / case / "target", golden / "compare" / case / "golden")
            check_equal("tables", len(tables), 1)
            check(check_same_cells(page, 0, tables[0]) > 20, "cells were compared")

        return test

    def same_as_csv_of_ranks(scratch):
        page, tables = report(msprobe, scratch, samples / "target", samples / "golden")
        check_equal("ranks", [rank["label"] for rank in report_page.overview(page)["ranks"]], ["step0/rank0", "step0/rank1"])
        for rank, table in enumerate(tables):
            check_same_cells(page, rank, table)
            judged = [row for row in report_page.rows(page, rank) if row["explained"] == row["explained"]]
            check(len(judged) > 20, "outputs are judged by their size")
            for row in judged:
                check_equal(f"{row['NPU Name']} is more than explained", row["Error"] >= row["explained"], row["Origin"] == "introduced")
            check(check_stacks(page, rank, table) > 10, "stacks were compared")

    def same_as_csv_beyond_one_chunk(scratch):
        subprocess.run([sys.executable, generator, "statistics", scratch / "dumps", "--apis", "14000"], check=True, stdout=subprocess.DEVNULL)
        page, tables = report(msprobe, scratch, scratch / "dumps" / "target", scratch / "dumps" / "golden")
        check_equal("chunks", len(report_page.overview(page)["ranks"][0]["chunks"]), 2)
        check_same_cells(page, 0, tables[0])

    def a_rank_that_failed(scratch):
        for side in ("target", "golden"):
            for rank in ("rank0", "rank1"):
                write_rank(scratch / side / rank, {"Torch.a.0.forward": {"input_args": [tensor(1.0)], "output": []}})
        (scratch / "target" / "rank1" / "dump.json").write_text('{"task": "statistics"')
        run(msprobe, ["-q", "compare", "-tp", "target", "-gp", "golden", "-o", "out", "--format", "html"], scratch)
        (page,) = (scratch / "out").glob("*.html")
        ranks = report_page.overview(page.read_text(encoding="utf-8"))["ranks"]
        check_equal("failures", [bool(rank["failure"]) for rank in ranks], [False, True])

    cases = ["stats_rules", "stats_intquirk", "md5", "tensor_metrics", "tensor_rules"]
    return [
        ("policy", policy),
        ("no reference", no_reference),
        ("hostile names", hostile_names),
        ("the answer shows without scripts", answer_without_scripts),
        ("the terminal, the table and the page count the same", counts),
        ("a backward that one side lacks", backward_that_one_side_lacks),
        ("same as csv: ranks, stacks", same_as_csv_of_ranks),
        ("same as csv: beyond one chunk", same_as_csv_beyond_one_chunk),
        ("a rank that failed", a_rank_that_failed),
        *((f"same as csv: {case}", same_as_csv(case)) for case in cases),
    ]


if __name__ == "__main__":
    main(make_tests)
