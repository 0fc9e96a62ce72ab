#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs nan_analyze on the golden cases. The file is that of the Python tool 26.x byte for byte; where it is not, a row of
docs/differences/nan_analyze.md says why, and the answer is the recommended one. --python-rules changes nothing.

usage: golden_anomaly.py MSPROBE GOLDEN_FOLDER
"""

import json
import pathlib
import re

import harness

TABLE = pathlib.Path(__file__).parents[2] / "docs" / "differences" / "nan_analyze.md"
# The row of the table that says why our answer is another, where 26.x has one and where it fails.
DIFFERENCES = {
    "a06_nested_list_missed": "N1",
    "a15_broadcast_group": "N4",
    "a18_separate_groups": "N5",
    "a24_not_pytorch": "N11",
    "a25_no_stack_file": "N11",
    "a26_empty": "N12",
    "a27_scatter_positional_list": "N10",
    "a28_group_without_ranks": "N10",
    "a30_stack_not_list": "N11",
    "a31_stack_old_form": "N11",
    "a32_batch_isend_irecv": "N1",
    "a33_input_bad_before_first_comm": "N8",
    "a34_short_comm_name": "N10",
    "a36_null_before_positional_rank": "N10",
    "r01_real_positional_irecv": "N10",
    "r02_real_two_ranks": "N4",
}
# Where we refuse what the Python tool passes over in silence.
REFUSED = {"a26_empty": "no dump here"}


def results(folder):
    return sorted(folder.glob("anomaly_analyze_*.json"))


def names(text):
    return {rank: [node["op_name"] for node in nodes] for rank, nodes in json.loads(text).items()}


def ascending(text):
    """The expectation with its ranks in ascending order; 26.x took them in the order of folder names."""
    ranks = re.split(r'(?m)^(?=  "rank_\d+": \[)', text.removesuffix("\n}"))
    parts = sorted((part.rstrip("\n,") for part in ranks[1:]), key=lambda part: int(re.search(r"\d+", part)[0]))
    return ranks[0] + ",\n".join(parts) + "\n}"


def step_folder(folder, name, scratch):
    """The input of a case; that of a26 is an empty folder, which a repository does not keep."""
    step = folder / "cases" / name / "step0"
    if not step.exists():
        step = scratch / "step0"
        step.mkdir()
    return step


def recommended(case):
    """The expected answer; 8.1.1 gives one where 26.x refuses the framework."""
    return case.get("recommended", case.get("python", case.get("version_8_1_1")))


def check_case(msprobe, folder, name, case, scratch):
    step = step_folder(folder, name, scratch)
    files = []
    for more in ([], ["--python-rules"]):
        out = scratch / f"out{len(more)}"
        result = harness.run(msprobe, ["overflow_check", "-i", str(step), "-o", str(out), *more], scratch)
        told = result.stderr.splitlines().count("msprobe overflow_check: --python-rules has no effect")
        harness.check_equal("has no effect", told, len(more))
        harness.check_equal("exit status", result.returncode, 2 if name in REFUSED else 0)
        harness.check(REFUSED.get(name, "") in result.stderr, result.stderr)
        files.append([path.read_bytes().decode("ascii") for path in results(out)])
    harness.check_equal("--python-rules", files[1], files[0])
    expected = {} if name in REFUSED else recommended(case)
    harness.check_equal("result", [names(text) for text in files[0]], [expected] if expected else [])
    path = folder / "expected" / f"{name}.json"
    harness.check_equal("expectations agree", bool(case.get("python")), path.exists())
    of_python = [ascending(path.read_bytes().decode("ascii"))] if path.exists() else []
    differs = files[0] != of_python or "error" in case or name in REFUSED
    harness.check_equal("has a row in the table", name in DIFFERENCES, differs)


def check_rows():
    harness.check_equal("no such row", sorted(set(DIFFERENCES.values()) - set(harness.items_of(TABLE))), [])


def make_tests(msprobe, golden):
    folder = harness.data(golden, "anomaly") / "anomaly"
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    tests = [("rows of the table", lambda scratch: check_rows())]
    for name, case in summary.items():
        tests.append((name, lambda s, n=name, c=case: check_case(msprobe, folder, n, c, s)))
    harness.check(len(tests) > 35, "golden cases are missing")
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
