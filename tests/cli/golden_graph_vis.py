#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the .vis files of `msprobe graph --file_type vis` to those of the Python tool 8.1.1: text for text with
--python-rules, and without it all but what docs/differences.md lists.

usage: golden_graph_vis.py MSPROBE GOLDEN_FOLDER

A case has folders `expected_811*`; of each file the first line is all but its nodes, then one line a node.
"""

import json
import pathlib
import re
import shutil

import harness
from golden_graph import odd_models, with_mended_texts, write_rank

# What follows `expected_811`: options of the run, and is one side alone looked at?
RUNS = {"": ([], False), "_build": ([], True), "_fuzzy": (["-f"], False), "_lm": (["-lm", "{CASE}/mapping.yaml"], False),
        "_oc": (["-oc"], False), "_cs": (["-cs"], False)}
# Nodes with another index by default, and why (docs/differences.md).
MENDED = {
    "rules": {
        "Functional.benchzero.0.forward": 1,  # golden 0
        "Functional.nanbench.0.forward": 1,  # golden NaN
        "Functional.infbench.0.forward": 1,  # golden infinite
    },
    "tensor": {"Apis_Between_Modules.0": 1.0},  # what it holds, when that was measured
}
# Nodes of both sides that pair by default, whatever the types and shapes of their arguments.
UNPAIRED = {"rules": 10, "rules_md5": 6}


def graph(msprobe, scratch, folders, *options, status=0):
    out = scratch / "out"
    shutil.rmtree(out, ignore_errors=True)
    (scratch / "compare.json").write_text(json.dumps(folders))
    result = harness.run(msprobe, ["-f", "pytorch", "graph", "-i", "compare.json", "-o", "out", "--file_type", "vis",
                                   *options], scratch)
    harness.check_equal(f"status, output ({result.stderr})", (result.returncode, result.stdout), (status, ""))
    files = {re.sub(r"\d{14}", "{TS}", path.name): path for path in out.iterdir()} if out.exists() else {}
    return files, result.stderr


def folders_of(case, alone):
    sides = {"npu_path": str(case / "target")}
    if not alone and (case / "golden").is_dir():
        sides["bench_path"] = str(case / "golden")
    return sides


def nodes_of(document):
    """(side, node) in the order of the file, and the rest; keys are those of the nodes."""
    sides = [("NPU", document["NPU"]), ("Bench", document["Bench"])] if "NPU" in document else [("", document)]
    nodes = []
    for side, graph_of_side in sides:
        held = graph_of_side.pop("node")
        harness.check_equal("keys", list(held), [node["id"] for node in held.values()])
        nodes += [(side, node) for node in held.values()]
    return nodes, document


def expected_of(path, case):
    lines = [json.loads(line.replace("{CASE}", str(case))) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(line["side"], line["node"]) for line in lines[1:]], lines[0]


def check_as_written(got, expected):
    (nodes, rest), (wanted, frame) = got, expected
    harness.check_equal("frame", json.dumps(rest), json.dumps(frame))
    for ours, theirs in zip(nodes, wanted):
        # The spelling of numbers and the order of members count.
        harness.check_equal(f"{theirs[1]['id']}", json.dumps(ours), json.dumps(theirs))
    harness.check_equal("nodes", len(nodes), len(wanted))


def check_items(name, ours, theirs):
    wanted = dict(with_mended_texts([(key, list(item.items())) for key, item in theirs.items()]))
    harness.check_equal(f"{name}: items", list(ours), list(wanted))
    for key, item in wanted.items():
        item, mine = dict(item), ours[key]
        if item == {"value": "null"}:
            harness.check_equal(f"{key}: value", mine.get("Max", "null"), "null")  # G4
            continue
        for member, value in item.items():
            if value in ("its null", "cpu:null"):
                continue  # G3
            if value in ("N/A", "Nan", "nan%") or value.endswith("\t"):
                continue  # G13, and below
            if member == "MaxRelativeErr" and re.fullmatch(r"[1-9]\d{9,}\.0", value):
                continue  # G44
            harness.check_equal(f"{key}: {member}", mine[member], value)
        if item.get("type") == "torch.ProcessGroup":
            continue
        harness.check(set(mine) - set(item) <= {"md5", "Result"}, f"{key}: {set(mine) - set(item)}")


def check_mended(case, got, expected):
    (nodes, rest), (wanted, frame) = got, expected
    harness.check_equal("frame", rest, frame)
    ours = {(side, node["id"]): node for side, node in nodes}
    extra = set(ours) - {(side, node["id"]) for side, node in wanted}
    for side, name in extra:
        harness.check(re.search(r"\.parameters_grad\.\d+$", name), f"{name} is not in the Python tool's file")
    unpaired = 0
    for side, theirs in wanted:
        node, name = ours[side, theirs["id"]], theirs["id"]
        harness.check_equal(f"{name}: below", [each for each in node["subnodes"] if (side, each) not in extra],
                            theirs["subnodes"])
        for member in ("id", "node_type", "upnode", "suggestions", "stack_info", "micro_step_id"):
            harness.check_equal(f"{name}: {member}", node.get(member), theirs.get(member))
        if not theirs["matched_node_link"] and node["matched_node_link"]:
            unpaired += 1  # arguments of other types or shapes
            continue
        harness.check_equal(f"{name}: link", node["matched_node_link"], theirs["matched_node_link"])
        check_items(name, node["input_data"], theirs["input_data"])
        check_items(name, node["output_data"], theirs["output_data"])
        data = dict(theirs["data"])
        if side == "NPU" and name in MENDED.get(case, {}):
            data["precision_index"] = MENDED[case][name]
        harness.check_equal(f"{name}: data", node["data"], data)
    harness.check_equal("pairs that the Python tool lacks", unpaired, UNPAIRED.get(case, 0))


def check_case(msprobe, scratch, case, expected, python_rules):
    options, alone = RUNS[expected.name.removeprefix("expected_811")]
    options = [each.replace("{CASE}", str(case)) for each in options]
    files, _ = graph(msprobe, scratch, folders_of(case, alone), *options,
                     *(["--python-rules"] if python_rules else []))
    wanted = {path.name.removesuffix(".jsonl"): path for path in expected.iterdir()}
    harness.check_equal("files", set(files), set(wanted))
    for name, path in files.items():
        got = nodes_of(json.loads(path.read_text()))
        if python_rules:
            check_as_written(got, expected_of(wanted[name], case))
        else:
            check_mended(case.name, got, expected_of(wanted[name], case))


def make_tests(msprobe, folder):
    golden = pathlib.Path(folder).resolve() / "visualize"
    tests = []
    for expected in sorted(golden.glob("*/expected_811*")):
        for python_rules in (True, False):
            tests.append((
                f"{expected.parent.name}/{expected.name}" + (" --python-rules" if python_rules else ""),
                lambda scratch, expected=expected, python_rules=python_rules:
                    check_case(msprobe, scratch, expected.parent, expected, python_rules),
            ))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
