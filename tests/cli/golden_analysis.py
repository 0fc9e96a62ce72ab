#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `compare -da` on the golden cases: with --python-rules every value of its JSON files is that of 26.x, without it
what docs/differences.md says is otherwise.

usage: golden_analysis.py MSPROBE GOLDEN_FOLDER
"""

import json
import re

import harness

# D80: a reference of 0 counts.
FOUND_BY_US = {"da_bench_zero": {"rank_1": ["Torch.sub.0.forward"]}}


def results(folder):
    found = {}
    for path in folder.glob("*.json"):
        name = re.sub(r"_\d+\.json$", ".json", path.name)
        harness.check(name not in found, f"two files of {name}")
        found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def expectation(case):
    prefix = "expected_26."
    return {
        path.name.removeprefix(prefix): json.loads(path.read_text(encoding="utf-8"))
        for path in case.glob(prefix + "*.json")
    }


def run(msprobe, case, scratch, *extra):
    paths = ["-tp", str(case / "target" / "step0"), "-gp", str(case / "golden" / "step0"), "-o", str(scratch / "out")]
    result = harness.run(msprobe, ["compare", *paths, "-da", *extra], scratch)
    harness.check_equal("exit status", result.returncode, 0)
    return results(scratch / "out"), result.stderr


def as_text(value):
    """With the order of keys; NaN equals itself in text. The order of ranks in 26.x is that of a hash."""
    return json.dumps(value, indent=1)


def check_python(msprobe, case, scratch):
    got, _ = run(msprobe, case, scratch, "--python-rules")
    expected = expectation(case)
    first = "diff_analyze.json"
    harness.check_equal("first difference found", first in got, first in expected)
    harness.check_equal("files of ranks", len([name for name in got if name != first]), 2)
    for name, value in expected.items():
        if name == first:
            harness.check_equal(name, got[name], value)
        else:
            harness.check_equal(name, as_text(got[name]), as_text(value))


def check_recommended(msprobe, case, scratch):
    got, log = run(msprobe, case, scratch)
    expected = {
        rank: [node["op_name"] for node in nodes]
        for rank, nodes in expectation(case).get("diff_analyze.json", {}).items()
    }
    expected = FOUND_BY_US.get(case.name, expected)
    found = {rank: [node["op_name"] for node in nodes] for rank, nodes in got.pop("diff_analyze.json", {}).items()}
    harness.check_equal("result", found, expected)
    for rank, nodes in found.items():
        for name in nodes:
            harness.check(f"{rank.replace('_', '')}: {name}" in log, log)
    harness.check("/a/" in log or not found, "no line of the user's program: " + log)
    for name, value in expectation(case).items():
        if name == "diff_analyze.json":
            continue
        different = {
            f"{entry}/{key}"
            for entry, theirs in value.items()
            for i, row in enumerate(theirs["op_items"])
            for key in row
            if got[name][entry]["op_items"][i][key] != row[key] and row[key] == row[key]
        }
        harness.check_equal("cells that differ from 26.x", different, set())
        unlike = {entry for entry in value if value[entry]["is_same"] != got[name][entry]["is_same"]}
        ours = set(FOUND_BY_US.get(case.name, {}).get("rank_" + re.search(r"rank(\d+)", name)[1], []))
        harness.check_equal("entries that differ for us alone", unlike, ours)


def make_tests(msprobe, golden):
    cases = sorted((harness.data(golden, "compare") / "compare").glob("da_*"))
    harness.check_equal("number of cases", len(cases), 8)
    tests = []
    for case in cases:
        for kind, function in (("python rules", check_python), ("recommended", check_recommended)):
            tests.append((f"{case.name}: {kind}", lambda s, f=function, c=case: f(msprobe, c, s)))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
