#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of one file.

usage: cases.py MSPROBE DATA CASES [NAME...]

Below a line `=== case NAME` stands a bash script, below `=== stdout`, `=== stderr` and `=== exit STATUS` what it gives;
what is not there is empty or 0. Below `=== before`, ahead of all cases, stands what each script begins with. An empty line
stands before each of these lines and belongs to no text. A line of a text that begins with `===` has one more `=` in the file.

The script runs in a scratch folder of its own and finds msprobe on its PATH, data/samples in $SAMPLES and in $DATA what
it names there of tests/data, as in $DATA/formats and $DATA/golden/compare. These folders, times in file names, durations
and the version are written as SCRATCH, SAMPLES, DATA, TIME, DURATION and VERSION. NAMEs, which may have wildcards, choose
cases. MSPROBE_TEST_ACCEPT=1 writes the expectations anew and reports the cases as skipped.
"""

import difflib
import fnmatch
import os
import pathlib
import re

import harness

SECTION = re.compile(r"\n?^=== (.+)\n", re.MULTILINE)
NOTHING = {"stdout": "", "stderr": "", "exit": "0"}


def parse(text):
    """The comments; what each script begins with; and by name the cases: `script`, and what is not NOTHING."""
    head, *parts = SECTION.split(text)
    before, cases, case = "", {}, NOTHING  # to which nothing can be added
    for title, body in zip(parts[::2], parts[1::2]):
        kind, _, value = title.partition(" ")
        body = re.sub(r"^====", "===", body, flags=re.MULTILINE)
        if title == "before" and not before and not cases:
            before = body
        elif kind == "case":
            harness.check(value not in cases, f"two cases are named {value}")
            case = cases[value] = {"script": body}
        else:
            known = kind in NOTHING and kind not in case and bool(value) == (kind == "exit")
            harness.check(known, f"=== {title}: not expected here")
            case[kind] = value or body
    return head, before, cases


def write(head, before, cases):
    text = head + (section("before", before) if before else "")
    for name, case in cases.items():
        text += section(f"case {name}", case["script"])
        for kind, nothing in NOTHING.items():
            if (value := case.get(kind, nothing)) != nothing:
                text += section(f"exit {value}", "") if kind == "exit" else section(kind, value)
    return text


def section(title, body):
    body = re.sub(r"^===", "====", body, flags=re.MULTILINE)
    return f"\n=== {title}\n{body}"


def normalise(text, replacements):
    for old, new in replacements:
        text = text.replace(old, new)
    text = re.sub(r"(?<=_)20\d{12}(?=[_.])", "TIME", text)
    text = re.sub(r"(?<=_analyze_)\d{19}(?=\.)", "TIME", text)
    return re.sub(r"\b\d+(\.\d+)? m?s\b", "DURATION", text)


def run_script(name, script, msprobe, folders, version, scratch):
    environment = {**harness.environment(msprobe, scratch), **folders}
    result = harness.run("bash", ["-eu", "-c", script, name], scratch, env=environment)
    replacements = [(path, name) for name, path in folders.items()] + [(str(scratch), "SCRATCH"), (version, "VERSION")]
    return {
        "stdout": normalise(result.stdout, replacements),
        "stderr": normalise(result.stderr, replacements),
        "exit": str(result.returncode),
    }


def compare(case, got):
    differences = []
    for kind, nothing in NOTHING.items():
        expected = case.get(kind, nothing)
        lines = difflib.unified_diff(
            expected.splitlines(), got[kind].splitlines(), f"expected {kind}", f"got {kind}", lineterm=""
        )
        differences += lines if got[kind] == expected else [*lines] or [f"{kind}: only line ends differ"]
    harness.check(not differences, "\n".join(differences))


def make_tests(msprobe, data, file, *names):
    file = pathlib.Path(file)
    version = harness.run(msprobe, ["--version"], ".").stdout.split("\n")[0].removeprefix("msprobe ")
    accepting = os.environ.get("MSPROBE_TEST_ACCEPT") == "1"
    head, before, cases = parse(file.read_text(encoding="utf-8"))
    chosen = [name for name in cases if not names or any(fnmatch.fnmatchcase(name, one) for one in names)]
    harness.check(chosen, f"no such cases in {file}")
    used = {name for one in chosen for name in re.findall(r'\$DATA"?/((?:golden/)?\w+)', before + cases[one]["script"])}
    folders = {
        "DATA": str(harness.data(data, *sorted(used))),
        "SAMPLES": str(pathlib.Path(data).resolve().parents[1] / "data" / "samples"),
    }

    def test(name):
        def body(scratch):
            got = run_script(name, before + cases[name]["script"], msprobe, folders, version, scratch)
            if not accepting:
                compare(cases[name], got)
                return
            cases[name].update(got)
            file.write_text(write(head, before, cases), encoding="utf-8")
            raise harness.Skip("expectations written")

        return body

    return [(name, test(name)) for name in chosen]


if __name__ == "__main__":
    harness.main(make_tests)
