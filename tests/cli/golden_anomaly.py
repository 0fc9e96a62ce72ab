#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs nan_analyze on the golden cases: with --python-rules the file is that of 26.x byte for byte, without it the
answer is the recommended one.

usage: golden_anomaly.py MSPROBE GOLDEN_FOLDER
"""

import json
import re

import harness

# Where we refuse what the Python tool passes over in silence, or answers otherwise than recommended.
REFUSED = {"a26_empty": "no dump here"}


def results(folder):
    return sorted(folder.glob("anomaly_analyze_*.json"))


def names(path):
    return {rank: [node["op_name"] for node in nodes] for rank, nodes in json.loads(path.read_text()).items()}


def ascending(text):
    """The expectation with its ranks in ascending order; 26.x took them in the order of folder names."""
    ranks = re.split(r'(?m)^(?=  "rank_\d+": \[)', text.removesuffix("\n}"))
    parts = sorted((part.rstrip("\n,") for part in ranks[1:]), key=lambda part: int(re.search(r"\d+", part)[0]))
    return ranks[0] + ",\n".join(parts) + "\n}"


def expected_log(lines, out):
    text = [line.split("] ", 1)[1] for line in lines if not line.startswith("[ERROR]")]
    return [line.replace("<out>", str(out)) for line in text]


def got_log(stderr):
    known = ("Start searching", "Cannot find", "After pruning", "The analyze result", "Rank ")
    lines = [line.removeprefix("msprobe: warning: ") for line in stderr.splitlines()]
    return [re.sub(r"(?<=anomaly_analyze_)\d+", "<ns>", line) for line in lines if line.startswith(known)]


def step_folder(folder, name, scratch):
    """The input of a case; that of a26 is an empty folder, which a repository does not keep."""
    step = folder / "cases" / name / "step0"
    if not step.exists():
        step = scratch / "step0"
        step.mkdir()
    return step


def check_python(msprobe, folder, name, case, scratch):
    out = scratch / "out"
    step = step_folder(folder, name, scratch)
    result = harness.run(msprobe, ["nan_analyze", "-vv", "-i", str(step), "-o", str(out), "--python-rules"], scratch)
    if "error" in case:
        harness.check_equal("exit status", result.returncode, 2)
        harness.check(not results(out), "a file was written")
        reason = case["error"].split(": ", 1)[1]
        shared = ("invalid op_name", "object has no attribute", "object is not iterable", "should be a list")
        for words in shared:
            harness.check(words not in reason or words in result.stderr, result.stderr)
        return
    harness.check_equal("exit status", result.returncode, 0)
    harness.check_equal("log", got_log(result.stderr), expected_log(case["log"], out))
    expected = folder / "expected" / f"{name}.json"
    harness.check_equal("expectations agree", bool(case["python"]), expected.exists())
    harness.check_equal("files", len(results(out)), int(expected.exists()))
    for path in results(out):
        harness.check_equal("file", path.read_bytes().decode("ascii"), ascending(expected.read_bytes().decode("ascii")))


def check_recommended(msprobe, folder, name, case, scratch):
    out = scratch / "out"
    step = step_folder(folder, name, scratch)
    result = harness.run(msprobe, ["overflow_check", "-i", str(step), "-o", str(out)], scratch)
    if name in REFUSED:
        harness.check_equal("exit status", result.returncode, 2)
        harness.check(REFUSED[name] in result.stderr, result.stderr)
        harness.check(not results(out), "a file was written")
        return
    harness.check_equal("exit status", result.returncode, 0)
    # What only 26.x refuses for its framework, 8.1.1 answers.
    expected = case.get("recommended", case.get("python", case.get("version_8_1_1")))
    got = [names(path) for path in results(out)]
    harness.check_equal("result", got, [expected] if expected else [])


def make_tests(msprobe, golden):
    folder = harness.data(golden, "anomaly") / "anomaly"
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    tests = []
    for name, case in summary.items():
        for kind, function in (("python rules", check_python), ("recommended", check_recommended)):
            tests.append(
                (f"{name}: {kind}", lambda s, f=function, n=name, c=case: f(msprobe, folder, n, c, s))
            )
    harness.check(len(tests) > 70, "golden cases are missing")
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
