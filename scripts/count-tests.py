#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the single cases in Meson's test logs: those of a doctest summary, of a TAP stream or of a line
"N cases, N failed", else the test itself.

usage: count-tests.py [--left-out INTRO-TESTS.JSON] LOG...

Prints "N passed, N failed" as its last line and fails if something failed or nothing ran. The lines before name the tests that
failed and, with Meson's list of all tests, the long ones, which did not run.
"""

import argparse
import json
import os
import re
import sys

DOCTEST = re.compile(r"\[doctest\] test cases: *(\d+) *\| *(\d+) passed *\| *(\d+) failed")
SUMMARY = re.compile(r"^(\d+) cases, (\d+) failed$", re.MULTILINE)
TAP = re.compile(r"^(ok|not ok) \d+(.*)$", re.MULTILINE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--left-out")
    parser.add_argument("logs", nargs="+")
    options = parser.parse_args()
    passed = failed = 0
    skipped = []
    faulty = []
    for path in filter(os.path.exists, options.logs):
        with open(path, encoding="utf-8", errors="replace") as log:
            records = [json.loads(line) for line in log if line.strip()]
        for record in records:
            output = record.get("stdout", "")
            good = bad = 0
            if record["result"] == "SKIP":
                skipped.append(record["name"])
                continue
            for _, cases_passed, cases_failed in DOCTEST.findall(output):
                good += int(cases_passed)
                bad += int(cases_failed)
            for cases, cases_failed in SUMMARY.findall(output):
                good += int(cases) - int(cases_failed)
                bad += int(cases_failed)
            for verdict, rest in TAP.findall(output):
                if "# SKIP" in rest.upper():
                    skipped.append(record["name"] + ":" + rest.split("#")[0].strip(" -"))
                elif verdict == "ok":
                    good += 1
                else:
                    bad += 1
            ok = record["result"] in ("OK", "EXPECTEDFAIL")
            if ok and good + bad == 0:
                good = 1
            if not ok and bad == 0:
                bad = 1  # a crash, a time-out, or a wrong exit status
            if bad:
                faulty.append(f"{record['name']} ({record['result']}, {record['duration']:.0f} s)")
            passed += good
            failed += bad
    if skipped:
        print("skipped: " + ", ".join(skipped))
    if options.left_out:
        with open(options.left_out, encoding="utf-8") as file:
            names = [test["name"] for test in json.load(file) if "long" in [suite.split(":")[-1] for suite in test["suite"]]]
        print(f"left out: {len(names)} long tests ({', '.join(names)}); scripts/test --all runs them")
    if faulty:
        print("failed: " + ", ".join(faulty))
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
