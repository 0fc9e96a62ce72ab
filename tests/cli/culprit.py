#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The culprit that compare names: on recorded pairs with a planted fault, and on pairs that differ in kernels alone.

usage: culprit.py MSPROBE CASES SCHEMA
"""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import check, check_equal, run, tap  # noqa: E402


# What statistics cannot tell from rounding, as docs/diagnosis.md says: nobody else may be named then.
BELOW_ROUNDING = {("tiny-up_not_updated", "statistics")}


def number(label):
    return int(re.search(r"\d+$", label)[0])


def findings_of(msprobe, folder, case, task, scratch, *options):
    options = options or ("--fail-on", "culprit")
    runs = case["runs"]
    done = run(msprobe, ["compare", "-tp", str(folder / runs["target"] / task), "-gp", str(folder / runs["golden"] / task),
                         "--format", "jsonl", "-o", "-", *options], scratch)
    objects = [json.loads(line) for line in done.stdout.splitlines() if not line.startswith('{"kind": "row"')]
    return done, objects


def is_named(finding, expect):
    """The guilty entry or the module directly around it, at its step and rank."""
    named = finding["entry"] in expect["target"] or finding["golden_entry"] in expect["golden"]
    named = named or finding["entry"] in expect["golden"]
    return named and number(finding["step"]) in expect["steps"] and number(finding["rank"]) in expect["ranks"]


def check_schema(objects, schema):
    evidence, none = schema["oneOf"]
    for one in objects:
        form = none if one["kind"] == "no_culprit" else evidence
        check_equal("keys", sorted(one), sorted(form["required"]))
        check_equal("keys of the schema", sorted(form["properties"]), sorted(form["required"]))
        if form is evidence:
            check(one["kind"] in form["properties"]["kind"]["enum"], f"unknown kind {one['kind']}")


def make_tests(msprobe, folder, schema):
    def of_case(case, task):
        def test(scratch):
            done, objects = findings_of(msprobe, folder, case, task, scratch)
            check(objects, done.stderr)
            check_schema(objects, schema)
            if case["benign"] or (case["name"], task) in BELOW_ROUNDING:
                check_equal("kind", objects[0]["kind"], "no_culprit")
                check_equal("status", done.returncode, 0)  # hints do not count
                check("\nno culprit: " in "\n" + done.stderr, done.stderr)
                return
            check(is_named(objects[0], case["expect"]), f"{objects[0]}, expected {case['expect']}")
            check(objects[0]["confidence"] != "hint", "only a hint")
            check_equal("status", done.returncode, 1)
            check(f"culprit   {objects[0]['entry']}" in done.stderr, done.stderr)

        return test

    def without(scratch):
        case = cases["tiny-norm_eps"]
        done, objects = findings_of(msprobe, folder, case, "statistics", scratch, "--python-rules")
        check("kind" not in objects[0] and "Evidence" not in objects[0], f"--python-rules: {objects[0]}")
        check("culprit" not in done.stderr, done.stderr)

    def noise_floor(scratch):
        # Where golden's noise is as large as the fault, the fault is no evidence.
        case = cases["tiny_half-softmax_elements"]
        target = str(folder / case["runs"]["target"] / "statistics")
        _, plain = findings_of(msprobe, folder, case, "statistics", scratch)
        done, objects = findings_of(msprobe, folder, case, "statistics", scratch, "--noise-floor", target)
        check(objects[0]["kind"] == "no_culprit" or objects[0]["entry"] != plain[0]["entry"], f"{objects[0]}")
        done, _ = findings_of(msprobe, folder, case, "statistics", scratch, "--noise-floor", "nowhere")
        check_equal("status", done.returncode, 2)
        check("nowhere" in done.stderr, done.stderr)

    def threads(scratch):
        case = cases["tiny-matmul_tile"]
        one, _ = findings_of(msprobe, folder, case, "tensor", scratch, "-j", "1")
        many, _ = findings_of(msprobe, folder, case, "tensor", scratch, "-j", "8")
        check_equal("results at 8 threads", many.stdout, one.stdout)
        check_equal("answer at 8 threads", many.stderr, one.stderr)

    cases = {path.stem: json.loads(path.read_text()) for path in sorted((folder / "cases").glob("*.json"))}
    tests = [(f"{name}, {task}", of_case(case, task)) for name, case in cases.items() for task in case["tasks"]]
    return [*tests, ("--python-rules names nobody", without), ("--noise-floor", noise_floor), ("any number of threads", threads)]


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[2]).resolve()
    return tap(make_tests(str(pathlib.Path(sys.argv[1]).resolve()), folder, json.loads(pathlib.Path(sys.argv[3]).read_text())))


if __name__ == "__main__":
    sys.exit(main())
