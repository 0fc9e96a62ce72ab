#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kinds of nothing of gates.py in each format of `compare`, and as each recorder writes them: no gate lets one pass.

usage: gates_of_recorders.py MSPROBE SAMPLES
"""

import harness
from gate_checks import RECORDERS, Samples, check_of, tests_of, unjudged_pairs

FORMATS = ("csv", "xlsx", "json", "jsonl", "html", "md", "junit", "sarif", "github")


def generated_cases(samples):
    """The same in each format and of each recorder."""
    two = ["compare", "-tp", "t", "-gp", "g"]
    for recorder in RECORDERS:
        _pair, _both, unjudged = unjudged_pairs(samples, recorder)
        for name, write in unjudged.items():
            for level in ("culprit", "error", "warning", "unmatched") if recorder else ():
                yield f"compare {level}: {recorder}{name}", write, [*two, "-o", "out", "--fail-on", level], check_of(level, name)
            for form in FORMATS if not recorder else ():
                for level in ("culprit", "error"):
                    yield (f"compare {level} --format {form}: {name}", write,
                           [*two, "-o", "out", "--format", form, "--fail-on", level], check_of(level, name))


def make_tests(msprobe, samples_folder):
    return tests_of(msprobe, list(generated_cases(Samples(samples_folder))))


harness.main(make_tests)
