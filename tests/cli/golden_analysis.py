#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `compare -da` on the golden cases: every value of its JSON files is that of 26.x, or a row of
docs/differences/compare.md says why it is not. --python-rules changes nothing.

usage: golden_analysis.py MSPROBE GOLDEN_FOLDER
"""

import json
import pathlib
import re

import harness

TABLE = pathlib.Path(__file__).parents[2] / "docs" / "differences" / "compare.md"
NO_EFFECT = "msprobe compare: --python-rules has no effect with -da"
# D80: a reference of 0 counts.
FOUND_BY_US = {"da_bench_zero": {"rank_1": ["Torch.sub.0.forward"]}}


def results(folder):
    found = {}
    for path in sorted(folder.glob("*.json")):
        name = re.sub(r"_\d+\.json$", ".json", path.name)
        harness.check(name not in found, f"two files of {name}")
        found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def expectation(case):
    prefix = "expected_26."
    return {path.name.removeprefix(prefix): json.loads(path.read_text(encoding="utf-8")) for path in case.glob(prefix + "*.json")}


def run(msprobe, case, scratch, *extra):
    scratch.mkdir()
    paths = ["-tp", str(case / "target" / "step0"), "-gp", str(case / "golden" / "step0"), "-o", str(scratch / "out")]
    result = harness.run(msprobe, ["compare", *paths, "-da", *extra], scratch, status=0)
    return results(scratch / "out"), result.stderr


def as_text(value):
    """With the order of keys; NaN equals itself in text. The order of ranks in 26.x is that of a hash."""
    return json.dumps(value, indent=1)


def names_of(analysis):
    return {rank: [node["op_name"] for node in nodes] for rank, nodes in analysis.items()}


def as_ours(theirs, ours, also_different):
    """Their entries with our answer where a row of the table explains it."""
    for entry, value in theirs.items():
        if entry in also_different:
            value["is_same"] = False  # D80
        for i, row in enumerate(value["op_items"]):
            for key, cell in row.items():
                if cell != cell:  # D86: a bare NaN
                    row[key] = ours[entry]["op_items"][i][key]
    return theirs


def check_case(msprobe, case, scratch):
    without, _ = run(msprobe, case, scratch / "without")
    got, log = run(msprobe, case, scratch / "with", "--python-rules")
    harness.check_equal("says so", log.splitlines().count(NO_EFFECT), 1)
    harness.check_equal("--python-rules", as_text(got), as_text(without))
    expected = expectation(case)
    ours = got.pop("diff_analyze.json", {})
    theirs = expected.pop("diff_analyze.json", {})
    if case.name in FOUND_BY_US:
        harness.check_equal("first difference", names_of(ours), FOUND_BY_US[case.name])
        harness.check(ours != theirs, "26.x finds the same")
    else:
        harness.check_equal("first difference", ours, theirs)
    for rank, names in names_of(ours).items():
        for name in names:
            harness.check(f"{rank.replace('_', '')}: {name}" in log, log)
    harness.check("/a/" in log or not ours, "no line of the user's program: " + log)
    harness.check_equal("files of ranks", len(got), 2)
    for name, value in expected.items():
        also_different = FOUND_BY_US.get(case.name, {}).get("rank_" + re.search(r"rank(\d+)", name)[1], [])
        harness.check_equal(name, as_text(got[name]), as_text(as_ours(value, got[name], also_different)))


def check_rows():
    harness.check_equal("no such row", sorted({"D80", "D86"} - set(harness.items_of(TABLE))), [])


def make_tests(msprobe, golden):
    cases = sorted((harness.data(golden, "compare") / "compare").glob("da_*"))
    harness.check_equal("number of cases", len(cases), 8)
    tests = [("rows of the table", lambda scratch: check_rows())]
    for case in cases:
        tests.append((case.name, lambda s, c=case: check_case(msprobe, c, s)))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
