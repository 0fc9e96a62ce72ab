#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the .vis files of `msprobe graph --file_type vis` to those of the Python tool 8.1.1, in all but what
docs/differences/graph_visualize.md lists. --python-rules changes nothing.

usage: golden_graph_vis.py MSPROBE GOLDEN_FOLDER

A case has folders `expected_811*`; of each file the first line is all but its nodes, then one line a node.
"""

import json
import re
import shutil

import dumps
import harness
from golden_graph import odd_models, with_mended_texts, write_rank

# The options of the run, by the text after `expected_811` in the name.
RUNS = {"": [], "_fuzzy": ["-f"], "_lm": ["-lm", "{CASE}/mapping.yaml"], "_oc": ["-oc"]}
# Nodes with another index by default, and why (docs/differences.md).
MENDED = {
    "rules": {
        "Functional.benchzero.0.forward": 1,  # golden 0
        "Functional.nanbench.0.forward": 1,  # golden NaN
        "Functional.infbench.0.forward": 1,  # golden infinite
    },
    # Means of elements that cancel aside (G49), and what holds them.
    "stats": {
        "Functional.softmax.0.backward": 0.01810131502972439,
        "Tensor.add_.7.forward": 0.07490175618540719,
        "Apis_Between_Modules.0": 0.20055760570992692,
    },
    "structure": {"Apis_Between_Modules.0": None},  # nothing in it was judged
    "tensor": {"Apis_Between_Modules.0": 1.0},  # what it holds, when that was measured
}
# Nodes of both sides that pair by default, whatever the types and shapes of their arguments.
UNPAIRED = {"rules": 10, "rules_md5": 6}


# Pairs and trees are otherwise: golden_graph_pairs and golden_graph check them.
OTHER_CASES = {(case, "expected_811") for case in ("fuzzy", "micro_pair", "odd_names", "tree")}
OTHER_CASES |= {("rules", "expected_811_fuzzy")}


def graph(msprobe, scratch, folders, *options, status=0):
    out = scratch / "out"
    shutil.rmtree(out, ignore_errors=True)
    (scratch / "compare.json").write_text(json.dumps(folders))
    result = harness.run(msprobe, ["-f", "pytorch", "graph", "-i", "compare.json", "-o", "out", "--file_type", "vis",
                                   *options], scratch)
    harness.check_equal(f"status, output ({result.stderr})", (result.returncode, result.stdout), (status, ""))
    files = {re.sub(r"\d{14}", "{TS}", path.name): path for path in out.iterdir()} if out.exists() else {}
    return files, result.stderr


def folders_of(case):
    sides = {"npu_path": str(case / "target")}
    if (case / "golden").is_dir():
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
    for _, name in extra:
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
            data = {key: value for key, value in data.items() if value is not None}
        harness.check_equal(f"{name}: data", node["data"], data)
    harness.check_equal("pairs that the Python tool lacks", unpaired, UNPAIRED.get(case, 0))


def check_case(msprobe, scratch, case, expected):
    options = [each.replace("{CASE}", str(case)) for each in RUNS[expected.name.removeprefix("expected_811")]]
    files, messages = graph(msprobe, scratch, folders_of(case), *options, "--python-rules")
    harness.check("--python-rules has no effect with --file_type vis" in messages, messages)
    wanted = {path.name.removesuffix(".jsonl"): path for path in expected.iterdir()}
    harness.check_equal("files", set(files), set(wanted))
    for name, path in files.items():
        got = nodes_of(json.loads(path.read_text()))
        check_mended(case.name, got, expected_of(wanted[name], case))


def document_of(files):
    harness.check_equal("files", len(files), 1)
    return json.loads(next(iter(files.values())).read_text())


def call(value, shape=(2,), **kwargs):
    return dumps.call([dumps.tensor(1.0, shape)], [dumps.tensor(value, shape)],
                      input_kwargs={name: dumps.tensor(number, shape) for name, number in kwargs.items()})


def rank(folder, data, task="statistics", construct=None, stack=None):
    path = write_rank(folder, construct if construct is not None else dict.fromkeys(data),
                      json.dumps({"task": task, "dump_data_dir": None, "data": data}))
    if stack is not None:
        (folder / "stack.json").write_text(json.dumps(stack))
    return path


def check_index(msprobe, scratch):
    """The index by statistics, against numbers worked out by hand."""
    inf, nan = float("inf"), float("nan")
    # Value here and in the reference, and the index.
    values = {"same": (2.0, 2.0, 0), "half": (1.5, 1.0, 0.5), "large": (9.0, 1.0, 1), "zeros": (0.0, 0.0, 0),
              "zero": (5.0, 0.0, 1), "nan": (1.0, nan, 1), "nans": (nan, nan, 1), "inf": (1.0, inf, 1),
              "down": (-inf, 1.0, 1), "null": (1.0, None, 1), "whole": (2.0, 1.0, 1.0)}
    names = {word: f"Torch.{word}.0.forward" for word in values}
    target = {names[word]: call(value[0]) for word, value in values.items()}
    golden = {names[word]: call(value[1]) for word, value in values.items()}
    # A mean beside one of 0: a difference of a tenth of the largest value.
    names["mean"], values["mean"] = "Torch.mean.0.forward", (0, 0, 0.1)
    for side, mean in ((target, 0.2), (golden, 0.0)):
        side[names["mean"]] = call(1.0)
        side[names["mean"]]["output"][0].update(Max=2.0, Min=-2.0, Mean=mean)
    # Another shape, one more result, and a gradient.
    names["shape"], values["shape"] = "Torch.shape.0.forward", (0, 0, 1)
    target[names["shape"]], golden[names["shape"]] = call(1.0), call(1.0, shape=(1, 2))
    names["more"], values["more"] = "Torch.more.0.forward", (0, 0, 1)
    target[names["more"]], golden[names["more"]] = call(1.0), call(1.0)
    target[names["more"]]["output"].append(call(1.0)["output"][0])
    construct = dict.fromkeys(target)
    construct["Module.m.M.backward.0"] = None
    names["grad"], values["grad"] = "Module.m.M.parameters_grad", (0, 0, 0.25)
    target[names["grad"]] = {"weight": call(1.25)["output"]}
    golden[names["grad"]] = {"weight": call(1.0)["output"]}
    sides = {"npu_path": rank(scratch / "new", target, construct=construct),
             "bench_path": rank(scratch / "old", golden, construct=construct)}
    files, _ = graph(msprobe, scratch, sides)
    nodes = document_of(files)["NPU"]["node"]
    for word, name in names.items():
        index = nodes[name]["data"]["precision_index"]
        harness.check_equal(f"{word}: index", json.dumps(round(index, 12)), json.dumps(values[word][2]))
    held = max(values[word][2] for word in names if word != "grad")
    harness.check_equal("collection", nodes["Apis_Between_Modules.0"]["data"], {"precision_index": held})


def check_stacks(msprobe, scratch):
    """Without -cs the line that counts."""
    lines = ["File a.py, line 1, in forward, \n x = self.fc1(x)", "File b.py, line 2, in f, \n y = AddTemplate(z)",
             "File c.py, line 3, in g, \n y = myTemplate(z)", "File d.py, line 4, in h, \n y = fc1 (api_template(z))",
             "File e.py, line 5, in i, \n last"]
    construct = {"Module.net.fc1.Linear.forward.0": None, "Module.net.fc1.Linear.backward.0": None,
                 "Torch.add.0.forward": None, "Torch.sub.0.forward": None, "Torch.mul.0.forward": None,
                 "Torch.div.0.forward": None, "optimizer": None, "Module.fc2.Linear.forward.0": None}
    stack = {"Module.net.fc1.Linear.forward.0": lines, "Torch.add.0.forward": lines, "Torch.sub.0.forward": lines[2:],
             "Torch.mul.0.forward": lines[1:2], "Torch.div.0.forward": lines[2:4], "optimizer": lines,
             "Module.fc2.Linear.forward.0": lines}
    folder = rank(scratch / "rank", {}, construct=construct, stack=stack)
    short = {**stack, "Module.net.fc1.Linear.forward.0": lines[:1], "Module.net.fc1.Linear.backward.0": lines[:1],
             "Torch.add.0.forward": lines[2:3], "Torch.sub.0.forward": lines[4:5]}
    whole = {**stack, "Module.net.fc1.Linear.backward.0": lines}
    for options, expected in (([], short), (["-cs"], whole)):
        files, messages = graph(msprobe, scratch, {"npu_path": folder}, *options)
        nodes = document_of(files)["node"]
        for name, wanted in expected.items():
            harness.check_equal(f"{options} {name}", nodes[name]["stack_info"], wanted)
        harness.check("-cs" not in messages, messages)
    (scratch / "compare.json").write_text(json.dumps({"npu_path": folder}))
    result = harness.run(msprobe, ["graph", "-i", "compare.json", "-o", "base", "-cs"], scratch, status=0)
    harness.check("-cs has no effect: a database always has full call stacks" in result.stderr, result.stderr)


def check_steps(msprobe, scratch, golden):
    """A file for each rank of each step, of both sides what both have."""
    case = golden / "steps"
    for side in ("target", "golden"):
        shutil.copytree(case / side, scratch / side)
    shutil.copytree(scratch / "target" / "step0", scratch / "target" / "step10")
    shutil.copytree(scratch / "target" / "step0" / "rank0", scratch / "target" / "step0" / "rank1")
    names = {path.name for path in (scratch / "target").iterdir()}
    files, _ = graph(msprobe, scratch, {"npu_path": "target"})
    expected = {f"build_{step}_rank0_{{TS}}.vis" for step in names} | {"build_step0_rank1_{TS}.vis"}
    harness.check_equal("build", set(files), expected)
    files, messages = graph(msprobe, scratch, {"npu_path": "target", "bench_path": "golden"})
    harness.check_equal("compare", set(files), {f"compare_{step}_rank0_{{TS}}.vis" for step in names - {"step10"}})
    harness.check("step10 has no partner" in messages and "step0/rank1 has no partner" in messages, messages)
    # A file that is written a second time within one second has a number.
    first = graph(msprobe, scratch, {"npu_path": "target/step0/rank0"})[0]
    harness.check_equal("one rank", set(first), {"build_{TS}.vis"})


def check_edges(msprobe, scratch, golden):
    """The files of all ranks have the communication; by default batches are one object."""
    files, _ = graph(msprobe, scratch, folders_of(golden / "comm"))
    ranks = [json.loads(files[f"build_rank{number}_{{TS}}.vis"].read_text())["node"] for number in (0, 1)]
    name = "Distributed.batch_isend_irecv.0.forward"
    harness.check_equal("batch", ranks[0][name]["matched_distributed"],
                        {"communications_type": "send_receive", "nodes_info": {"1": ["Nan", name]}})
    harness.check_equal("isend", ranks[0]["Distributed.isend.0.forward"]["matched_distributed"],
                        {"communications_type": "send", "nodes_info": {"1": ["Nan", "Distributed.irecv.0.forward"]}})
    told = 0
    for number, nodes in enumerate(ranks):
        for name, node in nodes.items():
            for partner, (_, other) in node.get("matched_distributed", {}).get("nodes_info", {}).items():
                back = ranks[int(partner)][other]["matched_distributed"]["nodes_info"]
                harness.check_equal(f"{name}: back", back[str(number)][1], name)
                told += 1
    harness.check(told >= 20, told)


def check_broken_rank(msprobe, scratch, golden):
    """It is named, the others are written, whole; alone it is an error, and nothing is left."""
    shutil.copytree(golden / "ddp" / "target", scratch / "ranks")
    good = graph(msprobe, scratch, {"npu_path": "ranks/rank0"})[0]
    alone = document_of(good)
    file = scratch / "ranks" / "rank1" / "dump.json"
    text = file.read_text()
    for broken, reason in ((text[: len(text) // 2], "rank1/dump.json: "), (None, "rank1/dump.json: ")):
        file.unlink() if broken is None else file.write_text(broken)
        files, messages = graph(msprobe, scratch, {"npu_path": "ranks"}, status=2)
        harness.check(reason in messages, messages)
        harness.check_equal("files", set(files), {"build_rank0_{TS}.vis"})
        harness.check_equal("rank 0", document_of(files), alone)
        files, messages = graph(msprobe, scratch, {"npu_path": "ranks/rank1"}, status=2)
        harness.check_equal("files", files, {})
    # The program finds an entry whose items it cannot describe when the file is half written.
    dump = json.loads(text)
    name = next(reversed(dump["data"]))
    dump["data"][name]["input_kwargs"] = {"k" * 20000: [call(1.0)["output"][0]] * 5000}
    file.write_text(json.dumps(dump))
    files, messages = graph(msprobe, scratch, {"npu_path": "ranks"}, status=2)
    harness.check("rank1/dump.json: " in messages, messages)
    harness.check_equal("files", set(files), {"build_rank0_{TS}.vis"})
    harness.check_equal("rank 0", document_of(files), alone)


def check_full_disk(msprobe, scratch, golden):
    """Files may not grow: status 2, a line, and nothing under a final name."""
    (scratch / "compare.json").write_text(json.dumps(folders_of(golden / "ddp")))
    for limit in (8, 64):
        done = harness.subprocess.run(
            ["bash", "-c", f"ulimit -f {limit}; trap '' XFSZ; exec '{msprobe}' graph -i compare.json -o out{limit} "
                           "--file_type vis"],
            cwd=scratch, env=harness.environment(msprobe, scratch), capture_output=True, text=True, check=False)
        harness.check_equal(f"status ({done.stderr})", done.returncode, 2)
        harness.check("cannot be written" in done.stderr, done.stderr)
        harness.check_equal("files", list(scratch.glob(f"out{limit}/*")), [])


def check_same_bytes(msprobe, scratch, golden):
    for case in ("comm", "ddp", "stats", "tensor"):
        runs = [{name: path.read_bytes() for name, path in
                 graph(msprobe, scratch, folders_of(golden / case), *options)[0].items()}
                for options in ([], ["--jobs", "1"])]
        harness.check(runs[0] == runs[1] and runs[0], f"{case}: two runs differ")


def check_odd_structure(msprobe, scratch):
    """Deep, wide and circular models and names of every kind: files that are whole, with every node."""
    for name, construct in odd_models(3000).items():
        folder = write_rank(scratch / name, construct)
        files, _ = graph(msprobe, scratch, {"npu_path": folder, "bench_path": folder})
        nodes = document_of(files)["NPU"]["node"]
        harness.check(len(nodes) > len(set(construct) - {"", "DefaultModel"}), f"{name}: {len(nodes)} nodes")
        for each in nodes.values():
            harness.check(each["id"] == "DefaultModel" or each["upnode"] in nodes, f"{name}: {each['id']} is lost")
            for below in each["subnodes"]:
                harness.check_equal(f"{name}: above {below}", nodes[below]["upnode"], each["id"])


def check_parallel_merge(msprobe, scratch, golden):
    """parallel_merge of compare.json asks for the same bytes as the options."""
    for case, sizes in (("tp_merge", ((2, 2, 1), (1, 1, 1))), ("tppp_merge", ((4, 2, 2), (1, 1, 1))),
                        ("vpp_merge", ((2, 1, 2, 2, "tp-cp-ep-dp-pp"),))):
        sides = [dict(zip(("rank_size", "tp", "pp", "vpp", "order"), each)) for each in sizes]
        request = {"npu_path": str(golden / case / "target"), "parallel_merge": {"npu": sides[0]}}
        arguments = ["-tp", str(golden / case / "target")]
        if len(sides) > 1:
            request["bench_path"] = str(golden / case / "golden")
            request["parallel_merge"]["bench"] = {**sides[1], "vpp": None}
            arguments += ["-gp", request["bench_path"]]
        for key in sides[0]:
            arguments += ["--" + key, *(str(side[key]) for side in sides)]
        (scratch / "compare.json").write_text(json.dumps(request))
        results = []
        for command in (["graph", "-i", "compare.json"], ["graph_visualize", *arguments]):
            out = scratch / case / command[0]
            harness.run(msprobe, [*command, "-o", str(out)], scratch, status=0)
            path, = out.iterdir()
            results.append(path.read_bytes())
        harness.check(results[0] == results[1], f"{case}: other bytes than the options give")


def make_tests(msprobe, folder):
    golden = harness.data(folder, "visualize") / "visualize" / "cases"
    tests = []
    for expected in sorted(golden.glob("*/expected_811*")):
        if (expected.parent.name, expected.name) in OTHER_CASES:
            continue
        tests.append((
            f"{expected.parent.name}/{expected.name}",
            lambda scratch, expected=expected: check_case(msprobe, scratch, expected.parent, expected),
        ))
    return tests + harness.tests_of_script(msprobe=msprobe, golden=golden)


if __name__ == "__main__":
    harness.main(make_tests)
