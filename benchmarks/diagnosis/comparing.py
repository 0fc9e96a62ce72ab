# SPDX-License-Identifier: Apache-2.0
"""Runs `msprobe compare` on the pairs that `record` has made, and reads its answer. Python 3.9 and its standard library."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
from dataclasses import dataclass

import retelling

NO_FINDINGS = ("row", "no_culprit", "note", "not_clear", "meeting_points")


class ComparisonError(Exception):
    """The comparison failed, or its output is not JSON."""


@dataclass(frozen=True)
class Judge:
    name: str
    task: str
    noise_floor: bool = False
    options: tuple = ()


@dataclass
class Finding:
    """One line of an answer."""
    step: int | None
    rank: int | None
    entries: tuple  # names in the target and in golden, of everything the line names
    golden_entries: tuple
    confidence: str
    evidence: str
    score: float | str | None
    text: str


def records(msprobe, case, judge):
    """The objects that one comparison prints, without its rows."""
    runs = {side: pathlib.Path(run) / judge.task for side, run in case["runs"].items()}
    command = [msprobe, "--quiet", "-j", "1", "compare", "-tp", runs["target"], "-gp", runs["golden"],
               "--format", "jsonl", "-o", "-", *judge.options]
    if judge.noise_floor:
        command += ["--noise-floor", runs["noise_floor"]]
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True, errors="replace")
    if done.returncode not in (0, 1):
        raise ComparisonError((done.stderr.strip() or f"status {done.returncode}")[-300:])
    try:
        return [json.loads(line) for line in done.stdout.splitlines() if not line.startswith('{"kind": "row"')]
    except ValueError as error:
        raise ComparisonError(f"no JSON: {error}") from None


def findings_in(objects):
    """The findings among the objects of one comparison, in order of ranking."""
    findings = []
    for item in objects:
        if item["kind"] in NO_FINDINGS:
            continue
        findings.append(Finding(
            step=_number(item.get("step")), rank=_number(item.get("rank")),
            entries=_names(item["entry"]), golden_entries=_names(item.get("golden_entry")),
            confidence=item.get("confidence"), evidence=item["kind"], score=item.get("excess"), text=item["text"]))
    return findings


def _number(value):
    """0 of 0, "0", "step0" and "rank0"."""
    match = re.search(r"\d+$", str(value)) if value is not None else None
    return int(match[0]) if match else None


def _names(*values):
    names = []
    for value in values:
        names += [value] if isinstance(value, str) else list(value or ())
    return tuple(name for name in names if name)


def cases_of(folder, only):
    cases = []
    for path in sorted((pathlib.Path(folder) / "cases").glob("*.json")):
        case = json.loads(path.read_text(encoding="utf-8"))
        if case.get("set") != "ports" and (not only or any(text in case["name"] for text in only)):
            case["runs"] = {side: str(pathlib.Path(folder) / run) for side, run in case["runs"].items()}
            cases.append(case)
    if not cases:
        raise SystemExit(f"{folder}: no cases there; benchmarks/diagnosis/record makes them")
    return cases


def retold(cases, names, judges, scratch, pool):
    """The cases with their runs told differently; without those whose guilty entry is not told any more."""
    if "exchange" in names:
        cases = [exchanged(case) for case in cases]
    tasks = sorted({judge.task for judge in judges})
    runs = sorted({(side, run) for case in cases for side, run in case["runs"].items()
                   if side != "noise_floor" and retelling.changes(names, side)})
    places = {key: f"{scratch}/{number}" for number, key in enumerate(runs)}

    def tell(key):
        side, run = key
        return [retelling.retell(names, side, f"{run}/{task}", f"{places[key]}/{task}") for task in tasks
                if os.path.isdir(f"{run}/{task}")][0]

    told = dict(zip(runs, pool.map(tell, runs)))
    left = []
    for case in cases:
        new = {**case, "runs": {side: places.get((side, run), run) for side, run in case["runs"].items()}}
        if not case["benign"]:
            new["expect"] = retelling.expectation(case, {side: told[side, run] for side, run in case["runs"].items()
                                                         if (side, run) in told})
        if case["benign"] or new["expect"]:
            left.append(new)
    return left


def exchanged(case):
    runs = {**case["runs"], "target": case["runs"]["golden"], "golden": case["runs"]["target"]}
    if case["benign"]:
        return {**case, "runs": runs}
    expect = {**case["expect"], "target": case["expect"]["golden"], "golden": case["expect"]["target"]}
    return {**case, "runs": runs, "expect": expect}
