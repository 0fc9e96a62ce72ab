#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The culprit that compare names does not depend on the recorders of the sides, nor on the form of a recording.

usage: recorders.py MSPROBE DATA_FOLDER RETELLING

DATA_FOLDER is tests/data/diagnosis. A right pair may never alarm; of the faults, at least the numbers below are named
first: the recorders do not show the others.
"""

import importlib.util
import json
import pathlib

from culprit import findings_of, is_named
from harness import check, check_equal, data, main

# One run by six recorders; the first two have the wrong runs, too.
ONE_RUN = ("ours", "python_tool", "python_tool_1.3.0", "python_tool_8.1.1", "python_tool_8.3.3",
           "python_tool_26.0.0")
FAULTS = {"eps": ("Tensor.__add__.6.forward", "0.001"), "scale": ("Tensor.__mul__.2.forward", "1.02")}

# compare names this many of the ten faults, by the recorders of target and golden.
RECORDERS = ("ours", "python_tool_26.2.0", "python_tool_8.3.3")
NAMED = dict.fromkeys([(target, golden) for target in RECORDERS for golden in RECORDERS], 10)

# After such a change of the dumps compare names this many of the ten faults with statistics, and of the three with tensors;
# None: not tried, because the change is one of the recorded numbers.
RETOLD = {
    "exchange": (10, 3),
    "without-modules": (10, 3),
    "missing-5-percent": (10, 3),
    "shift-calls": (10, 3),
    "cut-70": (10, 3),
    "six-digits": (10, None),
    "sums-3e-7": (10, None),
    "sums-1e-6": (10, None),
    "null-integers": (10, None),
    "null-integers+sums-3e-7+shift-calls": (10, None),
}


def is_evidence(finding):
    return finding.get("confidence") in ("likely", "certain")


def cases_of(folder):
    return [json.loads(path.read_text()) for path in sorted((folder / "cases").glob("*.json"))]


def evidence(msprobe, case, task, scratch, whole=True):
    """`whole`: both sides recorded all of it; else a part of one is not compared."""
    done, found = findings_of(msprobe, pathlib.Path("/"), case, task, scratch)
    check(found, done.stderr)
    named = [one for one in found if is_evidence(one)]
    check_equal(f"status: {done.stderr.partition(chr(10))[0]}", done.returncode, 1 if named else 0 if whole else 2)
    return named


def check_answers(msprobe, cases, task, floor, scratch, whole=True):
    """No right pair alarms, and so many faults are named first."""
    alarms, missed = [], []
    faulty = [case for case in cases if not case["benign"]]
    for case in cases:
        named = evidence(msprobe, case, task, scratch, whole)
        told = [f"{case['name']}: {one['entry'] or one['golden_entry']}: {one['text']}" for one in named[:1]]
        if case["benign"]:
            alarms += told
        elif not named or not is_named(named[0], case["expect"]):
            missed += told or [f"{case['name']}: nothing"]
    check(len(cases) > len(faulty), "no right pair")
    check(not alarms, "\n".join(["right pairs:", *alarms]))
    few = f"{len(missed)} of {len(faulty)} are not named:"
    check(len(faulty) - len(missed) >= floor, "\n".join([few, *missed]))


def one_run(msprobe, folder, dtype):
    def pair(target, golden):
        return {"runs": {"target": f"{folder}/{target}", "golden": f"{folder}/{golden}"}}

    def same(golden):
        def test(scratch):
            for target in ONE_RUN:
                runs = pair(f"{target}/{dtype}", f"{golden}/{dtype}")
                named = evidence(msprobe, runs, "golden", scratch)
                check(not named, f"by {target}: {named[:1]}")

        return test

    def run(name, target, golden):
        def test(scratch):
            runs = pair(f"{target}/{dtype}/{name}", f"{golden}/{dtype}/golden")
            named = evidence(msprobe, runs, "", scratch)
            if name == "right":
                check(not named, f"{named[:1]}")
                return
            entry, value = FAULTS[name]
            check(named, "nothing is named")
            check_equal("entry", named[0]["entry"], entry)
            check(f" is {value}," in named[0]["text"], named[0]["text"])

        return test

    yield from ((f"one run, {dtype}, all against {golden}", same(golden)) for golden in ONE_RUN)
    for name in ("right", *FAULTS):
        yield from ((f"{name}, {dtype}, {target} against {golden}", run(name, target, golden))
                    for target in ONE_RUN[:2] for golden in ONE_RUN[:2])


def by_two(msprobe, folder, target, golden):
    def test(scratch):
        cases = []
        for own, other in zip(cases_of(folder / target), cases_of(folder / golden)):
            check_equal("name", own["name"], other["name"])
            runs = {"target": f"{folder}/{target}/{own['runs']['target']}",
                    "golden": f"{folder}/{golden}/{other['runs']['golden']}"}
            case = {**own, "runs": runs}
            if not case["benign"]:
                case["expect"] = {**own["expect"], "golden": other["expect"]["golden"]}
            cases.append(case)
        check_answers(msprobe, cases, "statistics", NAMED[target, golden], scratch)

    return f"faults and right pairs, {target} against {golden}", test


def told(retelling, folder, case, task, names, scratch):
    """The pair as `retelling` rewrites it."""
    sides = {"target": "target", "golden": "golden"}
    if "exchange" in names:
        sides = {"target": "golden", "golden": "target"}
    places, entries, expect = {}, {}, dict(case.get("expect", {}))
    for side, recorded in sides.items():
        places[side] = f"{scratch}/{case['name']}/{side}"
        entries[side] = retelling.retell(names, side, f"{folder}/{case['runs'][recorded]}/{task}",
                                         f"{places[side]}/{task}")
        if expect:
            expect[side] = case["expect"][recorded]
    case = {**case, "runs": places, **({"expect": expect} if expect else {})}
    return {**case, "expect": retelling.expectation(case, entries)} if expect else case


def retold(msprobe, cases, folder, retelling, name, task, floor):
    def test(scratch):
        retold_cases = [told(retelling, folder, case, task, retelling.names_of(name), scratch)
                        for case in cases if task in case["tasks"]]
        lost = [case["name"] for case in retold_cases if not case["benign"] and not case["expect"]]
        check(not lost, f"without their guilty entry: {lost}")
        check_answers(msprobe, retold_cases, task, floor, scratch, whole=name != "cut-70")

    return f"told differently: {name}, {task}", test


def load(path):
    spec = importlib.util.spec_from_file_location("retelling", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_tests(msprobe, folder, retelling):
    folder, retelling = pathlib.Path(folder).resolve(), load(retelling)
    unpacked = data(folder, "one_run", "recorders", "runs")
    yield from one_run(msprobe, unpacked / "one_run" / "recorders", "fp32")
    yield from one_run(msprobe, unpacked / "one_run" / "recorders", "bf16")
    for target in RECORDERS:
        for golden in RECORDERS:
            yield by_two(msprobe, unpacked / "recorders" / "recorders", target, golden)
    cases = cases_of(folder)
    for name, floors in RETOLD.items():
        for task, floor in zip(("statistics", "tensor"), floors):
            if floor is not None:
                yield retold(msprobe, cases, unpacked, retelling, name, task, floor)


main(make_tests)
