#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that `msprobe graph_visualize` merges into one model, held to the Python tool 26.x in all but what
docs/differences/graph_visualize.md lists. --python-rules changes nothing.

usage: golden_graph_merge.py MSPROBE GOLDEN_FOLDER
"""

import json
import re
import shlex
import shutil

import harness
from golden_graph import COMPARED, build, check_nodes, expected_rows, rows_of


def arguments_of(case, sides=1):
    """The options of the target, or of both sides."""
    (line,) = [line for line in (case / "cmd.txt").read_text().splitlines() if line.startswith("expected:")]
    words = shlex.split(line.partition(":")[2])
    options = {}
    for word in words:
        if word.startswith("-"):
            values = options[word] = []
        elif options:
            values.append(word)
    return [
        word for name in ("--rank_size", "--tp", "--pp", "--vpp") if name in options for word in (name, *options[name][:sides])
    ]


def target_rows(case):
    """The rows of the target, without what a comparison adds."""
    rows = [row for row in expected_rows(case / "expected", "tb_nodes") if row["data_source"] == "NPU"]
    for row in rows:
        for column in ("input_data", "output_data"):
            row[column] = json.dumps(
                {
                    name: {key: value for key, value in item.items() if key not in COMPARED}
                    for name, item in json.loads(row[column]).items()
                }
            )
    return rows


def compare(msprobe, scratch, case, *options):
    out = scratch / "out"
    result = harness.run(
        msprobe,
        [
            "graph_visualize",
            "-tp",
            str(case / "target"),
            "-gp",
            str(case / "golden"),
            "-o",
            str(out),
            *arguments_of(case, 2),
            *options,
        ],
        scratch,
    )
    harness.check_equal("exit status", (result.returncode, result.stdout), (0, ""))
    (path,) = out.iterdir()
    harness.check(re.fullmatch(r"compare_\d{14}\.vis\.db", path.name), path.name)
    return path


def check_no_false_difference(msprobe, scratch, case):
    """One model split and whole: every node of the reference has a partner, and none differs."""
    rows = rows_of(compare(msprobe, scratch, case), "tb_nodes")
    target = [row for row in rows if row["data_source"] == "NPU"]
    golden = [row for row in rows if row["data_source"] == "Bench"]
    harness.check_equal("differ", [row["node_name"] for row in target if row["precision_index"] not in (None, 0)], [])
    compared = [row for row in target if row["precision_index"] == 0]
    harness.check(len(compared) >= 20, f"{len(compared)} nodes were compared")
    harness.check_equal("without partner", [row["node_name"] for row in golden if row["matched_node_link"] == "[]"], [])


def check_changed_shard(msprobe, scratch, case):
    """A product that another weight of one shard made is red, and so is its module, whose weight it is that differs (G53);
    nothing else is."""
    for side in ("target", "golden"):
        shutil.copytree(case / side, scratch / side)
    shutil.copy(case / "cmd.txt", scratch)
    path = scratch / "target" / "rank1" / "dump.json"
    dump = json.loads(path.read_text())
    module, product = "Module.mlp.linear_fc1.ColumnParallelLinear.forward.0", "Torch.matmul.0.forward"
    data = dump["data"]
    for value in (data[module]["parameters"]["weight"], data[module]["output"][0], data[product]["output"][0]):
        for key in ("Max", "Mean", "Norm"):
            value[key] *= 30
    path.write_text(json.dumps(dump))
    rows = rows_of(compare(msprobe, scratch, scratch), "tb_nodes")
    differ = {row["node_name"]: row["precision_index"] for row in rows if row["precision_index"]}
    harness.check_equal("differ", differ, {product: 1, module: 1})


# Nodes of the other ranks whose name the first rank lacks, and the parent of each by default.
MORE = {
    "tp_merge": {},
    "pp_merge": {f"Distributed.{name}_rank1.0.forward": "DefaultModel" for name in ("recv", "send")},
    "vpp_merge": {"Distributed.recv_rank1.0.forward": "DefaultModel", "Distributed.send_rank1.2.forward": "DefaultModel"},
    "pp_root": {},
}
for name, ranks in (("tppp_merge", {0: (2, 3)}), ("full_merge", {0: (4, 5), 2: (6, 7)})):
    MORE[name] = {"Apis_Between_Modules_All_Ranks.0": "DefaultModel"}
    for first, second in ranks.values():
        MORE[name] |= {
            f"Distributed.recv_rank{first}.0.forward": "DefaultModel",
            f"Tensor.add__rank{first}.0.forward": "optimizer",
        }
        for rank in (first, second):
            MORE[name][f"Apis_Between_Modules_Rank{rank}.0"] = "Apis_Between_Modules_All_Ranks.0"
            MORE[name] |= {f"Torch.loss_rank{rank}.{call}.forward": f"Apis_Between_Modules_Rank{rank}.0" for call in (0, 1)}


def values(row, column):
    return [[item.get(key) for key in ("Max", "Min", "Mean", "Norm")] for item in json.loads(row[column]).values()]


def mended_places(case, by_name):
    """(node, column) -> the values that it has by default, which other rows of the expected data base show."""
    if case == "tp_merge":  # the other output of a product that was added up
        return {
            ("Torch.matmul.0.backward", "output_data"): [
                values(by_name["Torch.matmul.0.backward"], "output_data")[0],
                values(by_name["Tensor.t.0.backward"], "input_data")[0],
            ]
        }
    borders = {}
    if case == "pp_merge":  # containers of layers: the inputs of the first stage, the outputs of the last
        stage, last = "Module.module", "Module.module.decoder.layers.3.Layer"
        containers = (f"{stage}.Stage", f"{stage}.decoder.Decoder")
    elif case == "vpp_merge":
        stage, last = "Module.0.module", "Module.0.module.decoder.layers.3.Layer"
        containers = (f"{stage}.Stage", f"{stage}.decoder.Decoder")
    else:
        return borders
    for container in containers:
        borders[(f"{container}.forward.0", "output_data")] = values(by_name[f"{last}.forward.0"], "output_data")
        borders[(f"{container}.backward.0", "input_data")] = values(by_name[f"{last}.backward.0"], "input_data")
    return borders


def check_mended_rows(msprobe, scratch, case):
    path, messages = build(msprobe, scratch, case / "target", *arguments_of(case), "--python-rules")
    harness.check("--python-rules has no effect on merged ranks" in messages, messages)
    if case.name in ("pp_root", "full_merge", "tppp_merge"):
        harness.check("warning" not in messages, messages)  # a rank that only receives is in its group
    rows = sorted(rows_of(path, "tb_nodes"), key=lambda row: (row["rank"], row["node_order"]))
    expected = target_rows(case)
    expected_names = [(row["rank"], row["node_name"]) for row in expected]
    more = [row for row in rows if (row["rank"], row["node_name"]) not in expected_names]
    harness.check_equal("more nodes", {row["node_name"]: row["up_node"] for row in more}, MORE[case.name])
    rows = [row for row in rows if (row["rank"], row["node_name"]) in expected_names]
    mended = mended_places(case.name, {row["node_name"]: row for row in expected})
    changed = set()
    ours = {row["node_name"]: row for row in rows} if mended else {}
    for (name, column), wanted in mended.items():
        harness.check_equal(f"{name}: {column}", values(ours[name], column), wanted)
        changed.add(name)
    ignored = {"precision_index", "matched_node_link", "node_order", "stack_id", "sub_nodes"}
    keep = [
        i
        for i, row in enumerate(expected)
        if row["node_name"] not in changed
        and not (case.name in ("tppp_merge", "full_merge") and row["node_name"].startswith("Module.module.decoder.Block"))
        and not (case.name in ("tppp_merge", "full_merge") and "GPTModel" in row["node_name"])
    ]
    check_nodes([rows[i] for i in keep], [expected[i] for i in keep], case, False, ignored)


def check_json(msprobe, scratch, case):
    """The merged model as a dump is the Python tool's but for what was not merged there, and reads like any dump."""
    out = scratch / "out"
    result = harness.run(
        msprobe,
        ["graph_visualize", "-tp", str(case / "target"), "-o", str(out), *arguments_of(case), "--file_type", "json"],
        scratch,
    )
    harness.check_equal("status", (result.returncode, result.stdout), (0, ""))
    harness.check_equal(
        "files",
        sorted(str(path.relative_to(out)) for path in out.rglob("*.json")),
        [f"step0/rank0/{name}.json" for name in ("construct", "dump", "stack")],
    )
    expected = case / "expected_json" / "step0" / "rank0"
    for name in ("construct", "stack"):
        harness.check_equal(name, (out / "step0" / "rank0" / f"{name}.json").read_text(), (expected / f"{name}.json").read_text())
    ours, theirs = (json.loads((folder / "dump.json").read_text()) for folder in (out / "step0" / "rank0", expected))
    harness.check_equal("nodes", list(ours["data"]), list(theirs["data"]))
    merged = 0
    for name, entry in theirs["data"].items():
        mine = ours["data"][name]
        if "_rank1." in name:  # G35: entries of other ranks are written as they were dumped
            mine = {{"input": "input_args"}.get(key, key): value for key, value in mine.items() if key != "input_kwargs"}
        if name == "Torch.matmul.0.backward":  # G33: the other output of the product that was added up is merged, too
            said = [line for line in mine["parallel_merge_info"] if " output.1 " in line]
            harness.check(len(said) == 4 and mine["output"][1] != entry["output"][1], mine)
            mine = {
                **mine,
                "output": [mine["output"][0], entry["output"][1]],
                "parallel_merge_info": [line for line in mine["parallel_merge_info"] if line not in said],
            }
        for value in [*entry.get("input_kwargs", {}).values(), *entry.get("output", [])]:
            if isinstance(value, dict) and value.get("type") == "torch.ProcessGroup":  # G35: no statistics
                for key in ("Max", "Min", "Mean", "Norm"):
                    value.pop(key, None)
        for sentence in entry.get("parallel_merge_info", []):  # G35: all that is said to be merged is
            said = re.fullmatch(r"The (\w+) value merging method for (?:(\w+)\.)?(\w+) is: .* = (\S+)", sentence)
            if not said:
                continue
            statistic, section, key, value = said.groups()
            place = entry if section is None else entry.get(section, entry.get("input_args"))
            item = place[int(key)] if isinstance(place, list) else place[key]
            item = item[0] if isinstance(item, list) else item
            merged += item[statistic] != float(value)
            item[statistic] = float(value)
        harness.check_equal(name, mine, entry)
    harness.check(merged > 4, f"{merged} merged statistics of parameters")
    del ours["data"], theirs["data"]
    harness.check_equal("header", list(ours.items()), list(theirs.items()))
    (scratch / "again").mkdir()
    build(msprobe, scratch / "again", out / "step0" / "rank0")


CASES = ("tp_merge", "pp_merge", "vpp_merge", "tppp_merge", "full_merge", "pp_root")


def make_tests(msprobe, folder):
    golden = harness.data(folder, "visualize") / "visualize" / "cases"
    tests = []
    for case in CASES:
        tests.append((case, lambda scratch, case=case: check_mended_rows(msprobe, scratch, golden / case)))
    for case in ("tp_merge", "pp_merge"):
        tests.append((f"{case} compared", lambda scratch, case=case: check_no_false_difference(msprobe, scratch, golden / case)))
    tests.append(("changed shard", lambda scratch: check_changed_shard(msprobe, scratch, golden / "tp_merge")))
    tests.append(("json", lambda scratch: check_json(msprobe, scratch, golden / "tp_merge")))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
