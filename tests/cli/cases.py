#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of one folder.

usage: cases.py MSPROBE DATA CASES

A case is a folder with `cmd`, a bash script that runs in a scratch folder of its own and finds msprobe on its PATH and
the test data in $DATA, and the expected `stdout`, `stderr` and `exit`; a file that is not there means empty and 0. The
scratch folder, the data folder, times in file names, durations and the version are written as SCRATCH, DATA, TIME,
DURATION and VERSION. MSPROBE_TEST_ACCEPT=1 writes the expectations anew and reports the cases as skipped.
"""

import difflib
import os
import pathlib
import re
import subprocess

import harness

FILES = ("stdout", "stderr", "exit")


def normalise(text, replacements):
    for old, new in replacements:
        text = text.replace(old, new)
    text = re.sub(r"(?<=_)20\d{12}(?=[_.])", "TIME", text)
    text = re.sub(r"(?<=_analyze_)\d{19}(?=\.)", "TIME", text)
    return re.sub(r"\b\d+(\.\d+)? m?s\b", "DURATION", text)


def run_case(folder, msprobe, data, version, scratch):
    result = subprocess.run(
        ["bash", "-eu", str(folder / "cmd")],
        cwd=scratch,
        env={**harness.environment(msprobe, scratch), "DATA": str(data)},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=harness.TIME_LIMIT_S,
        check=False,
    )
    replacements = ((str(scratch), "SCRATCH"), (str(data), "DATA"), (version, "VERSION"))
    return {
        "stdout": normalise(result.stdout, replacements),
        "stderr": normalise(result.stderr, replacements),
        "exit": "" if result.returncode == 0 else f"{result.returncode}\n",
    }


def accept(folder, got):
    for name in FILES:
        path = folder / name
        if got[name]:
            path.write_text(got[name], encoding="utf-8")
        else:
            path.unlink(missing_ok=True)
    raise harness.Skip("expectations written")


def compare(folder, got):
    differences = []
    for name in FILES:
        path = folder / name
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        differences += difflib.unified_diff(
            expected.splitlines(), got[name].splitlines(), f"expected {name}", f"got {name}", lineterm=""
        )
    harness.check(not differences, "\n".join(differences))


def make_tests(msprobe, data, cases):
    data = pathlib.Path(data).resolve()
    version = harness.run(msprobe, ["--version"], ".").stdout.split("\n")[0].removeprefix("msprobe ")
    accepting = os.environ.get("MSPROBE_TEST_ACCEPT") == "1"

    def test(folder):
        def body(scratch):
            got = run_case(folder, msprobe, data, version, scratch)
            (accept if accepting else compare)(folder, got)

        return body

    folders = sorted(path.parent for path in pathlib.Path(cases).resolve().glob("*/cmd"))
    harness.check(folders, f"no cases in {cases}")
    return [(folder.name, test(folder)) for folder in folders]


if __name__ == "__main__":
    harness.main(make_tests)
