#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that `msprobe graph_visualize` merges into one model, held to the Python tool 26.x: each row of the target
with --python-rules, and without it all but what docs/differences.md lists.

usage: golden_graph_merge.py MSPROBE GOLDEN_FOLDER
"""

import json
import pathlib
import shlex

import harness
from golden_graph import COMPARED, build, check_nodes, expected_rows, rows_of


def arguments_of(case):
    """Those of the target."""
    (line,) = [line for line in (case / "cmd.txt").read_text().splitlines() if line.startswith("expected:")]
    words = shlex.split(line.partition(":")[2])
    options = {}
    for word in words:
        if word.startswith("-"):
            values = options[word] = []
        elif options:
            values.append(word)
    return [word for name in ("--rank_size", "--tp", "--pp", "--vpp") if name in options
            for word in (name, options[name][0])]


def target_rows(case):
    """The rows of the target, without what a comparison adds."""
    rows = [row for row in expected_rows(case / "expected", "tb_nodes") if row["data_source"] == "NPU"]
    for row in rows:
        for column in ("input_data", "output_data"):
            row[column] = json.dumps({name: {key: value for key, value in item.items() if key not in COMPARED}
                                      for name, item in json.loads(row[column]).items()})
    return rows


def check_python_rows(msprobe, scratch, case):
    path, _ = build(msprobe, scratch, case / "target", *arguments_of(case), "--python-rules")
    rows = sorted(rows_of(path, "tb_nodes"), key=lambda row: (row["rank"], row["node_order"]))
    check_nodes(rows, target_rows(case), case, True, {"precision_index", "matched_node_link"})
    stacks = [row for row in expected_rows(case / "expected", "tb_stack") if row["id"].startswith("NPU_")]
    harness.check_equal("tb_stack", rows_of(path, "tb_stack"), stacks)
    (config,) = expected_rows(case / "expected", "tb_config")
    (ours,) = rows_of(path, "tb_config")
    for column in ("micro_steps", "overflow_check", "rank_list", "step_list"):
        harness.check_equal(column, ours[column], config[column])


CASES = ("tp_merge", "pp_merge", "vpp_merge", "tppp_merge", "full_merge", "pp_root")


def make_tests(msprobe, folder):
    golden = pathlib.Path(folder).resolve() / "visualize"
    return [(f"{case} --python-rules",
             lambda scratch, case=case: check_python_rows(msprobe, scratch, golden / case)) for case in CASES]


if __name__ == "__main__":
    harness.main(make_tests)
