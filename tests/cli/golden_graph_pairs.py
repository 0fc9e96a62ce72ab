#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what `msprobe graph_visualize -tp -gp` writes of two runs to the data bases of the Python tool 26.x: with
--python-rules each value and colour; without it all but what docs/differences/graph_visualize.md lists (G10 to G19), with the
differences of statistics made anew from the texts of both sides.

usage: golden_graph_pairs.py MSPROBE GOLDEN_FOLDER
"""

import json
import re
import shutil

import golden_graph
import dumps
import harness
from dumps import tensor
from golden_graph import COMPARED, expected_rows, odd_models, rows_of

METRICS = {"Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio"}
STATISTICS = (("Max", "Max diff", "MaxRelativeErr"), ("Min", "Min diff", "MinRelativeErr"),
              ("Mean", "Mean diff", "MeanRelativeErr"), ("Norm", "L2norm diff", "NormRelativeErr"))
CASES = {
    **{name: {"expected": []} for name in ("stats", "md5", "tensor", "structure", "micro_pair", "megatron", "rules",
                                          "rules_md5", "odd_names")},
    "fuzzy": {"expected": ["-fm"], "expected_plain": []},
    "layer_map": {"expected": ["-lm", "mapping.yaml"], "expected_bare": ["-lm"]},
}

GREW = "warning: The norm relative error of output is 10 times that of input."
NORM = "error: The NormRelativeErr of output is greater than 0.5."
GRAD = "error: The Required_Grad of NPU and Bench are inconsistent"
DTYPE = "error: The dtype of NPU and Bench are inconsistent."
SHAPE = "error: The shape of NPU and Bench are inconsistent."
NO_ITEM = "warning: Bench has this api/module, but not this item."
NO_FILE = "NPU does not have data file."
ZERO_D = ("This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', 'One Thousandth Err Ratio' and "
          "'Five Thousandths Err Ratio'.")
ALIGNED = "Paired by operation and position: Bench has it under another name."
FUZZY = "Fuzzy matching data, the comparison accuracy may be affected."

# Messages that are not those of the Python tool.
MENDED = {
    "stats": {"Functional.layer_norm.0.backward.output.1": [GREW]},  # a golden norm of 0 (G13)
    "tensor": {
        **dict.fromkeys(("Functional.softmax.0.forward.input.dim", "Functional.linear.0.backward.output.1"), [NO_FILE]),
        **dict.fromkeys(("Torch.sum.0.forward.output.0", "Torch.sum.0.backward.input.0"), [ZERO_D]),
        "Torch.square.0.backward.output.0":
            ["error: The input/parameters of One Thousandth Err Ratio > 0.9 while the output < 0.1."],
    },
    "fuzzy/expected": dict.fromkeys((f"Torch.relu.{call}.{item}.0" for call, item in (
        ("2", "forward.input"), ("2", "forward.output"), ("2", "backward.input"), ("2", "backward.output"),
        ("1", "backward.input"), ("1", "backward.output"))), [FUZZY]),
    "fuzzy/expected_plain": dict.fromkeys((f"Torch.relu.{call}.{item}.0" for call in "12" for item in (
        "forward.input", "forward.output", "backward.input", "backward.output")), [ALIGNED]),
    "rules": {
        "Functional.warn20.0.forward.output.0": [], "Functional.warn20.0.forward.output.1": [GREW],
        "Functional.infbench.0.forward.output.0": [NORM, GREW], "Functional.benchzero.0.forward.output.0": [NORM, GREW],
        "Functional.reqabsent.0.forward.input.0": [GRAD], "Functional.qkv.0.forward.input.0": [DTYPE],
        **dict.fromkeys((f"Functional.more_args.0.forward.{item}" for item in ("input.1", "input.2", "output.1")),
                        [NO_ITEM]),
        "Functional.nullarg.0.forward.input.1": [GRAD, DTYPE, SHAPE],
        "Functional.nullarg.0.forward.input.2": [GRAD, DTYPE, SHAPE],
    },
    "rules_md5": {
        "Functional.nomd5.0.forward.input.0": ["warning: Neither side recorded a checksum."],
        "Functional.nullone.0.forward.input.0": ["warning: The parameter of NPU does not match the bench."],
    },
    "odd_names": {"Module.bert.attention.output.dense.Linear.forward.0.input.0": []},
}
# Pairs of other nodes than in the Python tool, by target; None: it has no partner.
LAYERS, BLOCKS = "Module.model.layers.0.", "Module.model.blocks.0."
PAIRS = {
    "fuzzy/expected_plain": {
        "Torch.relu.0.forward": None,
        **{f"Torch.relu.{call + 1}.{way}": f"Torch.relu.{call}.{way}" for call in (0, 1) for way in
           ("forward", "backward")},
    },
    "layer_map/expected": {
        "Module.model.embed.Linear.parameters_grad.0": "Module.model.word_embed.Linear.parameters_grad.0",
        LAYERS + "q_proj.Linear.parameters_grad.0": BLOCKS + "linear_q.Linear.parameters_grad.0",
        LAYERS + "o_proj.Linear.parameters_grad.0": BLOCKS + "linear_proj.Linear.parameters_grad.0",
    },
}
STEPS = {"micro_pair": {"Torch.ones.2.forward": 1}}  # golden nodes without partner stay where they ran
MICRO_STEPS = {"micro_pair": 3}
UNDEFINED = {"empty", "empty_like", "empty_with_format", "new_empty_strided", "new_empty", "empty_strided"}


def graph(msprobe, scratch, arguments):
    out = scratch / "out"
    shutil.rmtree(out, ignore_errors=True)
    result = harness.run(msprobe, ["graph_visualize", *arguments, "-o", str(out)], scratch)
    harness.check_equal(f"status, output ({result.stderr})", (result.returncode, result.stdout), (0, ""))
    (path,) = out.iterdir()
    return path, result.stderr


def compare(msprobe, scratch, case, options, *more):
    options = [str(case / option) if option.endswith(".yaml") else option for option in options]
    both = ["-tp", str(case / "target"), "-gp", str(case / "golden")]
    path, messages = graph(msprobe, scratch, [*both, *options, *more])
    harness.check(re.fullmatch(r"compare_\d{14}\.vis\.db", path.name), path.name)
    return path, messages


def by_id(rows):
    return {row["id"]: row for row in rows}


def other_nodes(case, expected):
    """Nodes that have another partner or place than in the Python tool, with and without --python-rules."""
    pairs = PAIRS[f"{case.name}/{expected.name}"] if case.name == "layer_map" and expected.name == "expected" else {}
    return {*pairs, *pairs.values(), *STEPS.get(case.name, {})}


def check_python_rules(msprobe, scratch, case, expected, options):
    path, _ = compare(msprobe, scratch, case, options, "--python-rules")
    place = lambda row: (row["step"], row["rank"], row["data_source"] != "NPU", row["node_order"])
    nodes = sorted(expected_rows(expected, "tb_nodes"), key=place)
    others = other_nodes(case, expected)
    got, wanted = ([row for row in rows if row["node_name"] not in others] for rows in (rows_of(path, "tb_nodes"), nodes))
    golden_graph.check_nodes(got, wanted, case, True)
    for table in ("tb_stack", "tb_config"):
        if (expected / f"{table}.jsonl").exists():
            theirs = expected_rows(expected, table)
            if table == "tb_config":
                theirs[0]["micro_steps"] = MICRO_STEPS.get(case.name, theirs[0]["micro_steps"])  # G18
            harness.check_equal(table, by_id(rows_of(path, table)), by_id(theirs))


def kind_of(text):
    """A text of a statistic as docs/rules.md, "Differences of statistics", has it."""
    if text.lower() == "nan":
        return "nan"
    if re.fullmatch(r"[+-]?inf", text):
        return text
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d[\d.]*(e[+-]?\d+)?", text):
        return float(text)
    return "other"


def difference(target, golden):
    """Both texts of a statistic's difference."""
    a, b = kind_of(target), kind_of(golden)
    numbers = isinstance(a, (int, float)) and isinstance(b, (int, float))
    if target == golden or (a == b and (numbers or a == "nan")):
        return "0", "0"
    if not numbers:
        word = ("Diff" if "other" in (a, b) else "Nan" if "nan" in (a, b)
                else "inf" if a == "inf" or b == "-inf" else "-inf")
        return word, word
    relative = "inf" if b == 0 else f"{abs((a - b) / b * 100)}%"
    if re.fullmatch(r"\d+\.\d{7,}%", relative):
        relative = f"{float(relative[:-1]):.6f}%"
    return str(a - b), relative


def items_of(row):
    return {**json.loads(row["input_data"]), **json.loads(row["output_data"])}


def base_of(item):
    """An item without what a comparison adds."""
    return [(key, value) for key, value in item.items() if key not in COMPARED | METRICS | {"md5"}]


def golden_item(items, node, partner, key):
    """The item of the partner that stands at the place of this one."""
    return items.get(partner + key.removeprefix(node))


def check_item(key, item, other, theirs, messages, task):
    if task == "summary" and other is not None:
        for name, absolute, relative in STATISTICS:
            harness.check_equal(f"{key}: {name}", (item[absolute], item[relative]),
                                difference(item.get(name, "null"), other.get(name, "null")))
    if task == "all" and theirs and "Cosine" in theirs:
        for name in METRICS:
            harness.check_equal(f"{key}: {name}", item[name], theirs[name])
    if messages is None:
        messages = json.loads(theirs["Err_message"]) if theirs and "Err_message" in theirs else []
    harness.check_equal(f"{key}: messages", json.loads(item["Err_message"]), messages)
    levels = [message.split(":")[0] for message in messages]
    result = next((level for level in ("error", "warning") if level in levels), "pass")
    harness.check_equal(f"{key}: Result", item["Result"], result)
    if theirs and "Result" in theirs:
        harness.check_equal(f"{key}: grad", item["Requires_grad Consistent"], theirs["Requires_grad Consistent"])


def index_of(row, rows, task):
    """The number that a node's items and children make."""
    worst = {"pass": 0, "warning": 0.5, "error": 1}
    if row["node_type"] == "9":
        children = [index_of(rows[name], rows, task) for name in json.loads(row["sub_nodes"])]
        return max((index for index in children if index is not None), default=None)  # G17
    results = [worst[item["Result"]] for item in items_of(row).values() if "Result" in item]
    if not results:
        return None
    parts = row["node_name"].split(".")
    return 0 if len(parts) > 1 and parts[1] in UNDEFINED else max(results)


def check_mended(msprobe, scratch, case, expected, options):
    path, _ = compare(msprobe, scratch, case, options)
    got = {side: {} for side in ("NPU", "Bench")}
    for row in rows_of(path, "tb_nodes"):
        got[row["data_source"]][row["node_name"]] = row
    config, = rows_of(path, "tb_config")
    task = config["task"]
    names = (case.name, f"{case.name}/{expected.name}")
    listed = {name: {**table.get(names[0], {}), **table.get(names[1], {})}
              for name, table in (("messages", MENDED), ("pairs", PAIRS), ("steps", STEPS))}
    alone = {}
    for side, folder in (("NPU", "target"), ("Bench", "golden")):
        built, _ = graph(msprobe, scratch, ["-tp", str(case / folder)])
        alone[side] = {row["node_name"]: row for row in rows_of(built, "tb_nodes")}
        harness.check_equal(f"{side}: nodes", list(got[side]), list(alone[side]))
    partners = {}
    theirs = {side: {} for side in got}
    for row in expected_rows(expected, "tb_nodes"):
        theirs[row["data_source"]][row["node_name"]] = row
    back = {golden: target for target, golden in listed["pairs"].items()}
    for side, other, pairs in (("NPU", "Bench", listed["pairs"]), ("Bench", "NPU", back)):
        for name, row in got[side].items():
            link = json.loads(row["matched_node_link"])
            wanted = json.loads(theirs[side][name]["matched_node_link"])
            wanted = pairs.get(name, wanted[-1] if wanted else None)
            harness.check_equal(f"{name}: partner", link[-1] if link else None, wanted)
            if link:
                above = got[other][wanted]["up_node"]
                path_above = []
                while above:
                    path_above.insert(0, above)
                    above = got[other][above]["up_node"]
                harness.check_equal(f"{name}: path", link[:-1], path_above)
            if side == "NPU":
                partners[name] = wanted
            step = (theirs if case.name != "megatron" else alone)[side][name]["micro_step_id"]
            harness.check_equal(f"{name}: micro step", row["micro_step_id"],
                                listed["steps"].get(name, step) if side == "Bench" else step)
            ours, built = items_of(row), items_of(alone[side][name])
            harness.check_equal(f"{name}: items", list(ours), list(built))
            for key, item in ours.items():
                harness.check_equal(key, base_of(item), base_of(built[key]))
    for name, row in got["NPU"].items():
        items, partner = items_of(row), partners[name]
        golden = items_of(got["Bench"][partner]) if partner else {}
        python = items_of(theirs["NPU"][name])
        for key, item in items.items():
            harness.check_equal(f"{key}: compared", "Result" in item, partner is not None and task != "structure")
            if "Result" in item:
                check_item(key, item, golden_item(golden, name, partner, key), python[key],
                           listed["messages"].get(key), task)
        harness.check_equal(f"{name}: index", row["precision_index"], index_of(row, got["NPU"], task))
        if not listed["messages"] and not listed["pairs"]:
            theirs_index = theirs["NPU"][name]["precision_index"]
            if row["node_type"] == "9" and row["precision_index"] is None:
                harness.check_equal(f"{name}: index of the Python tool", theirs_index, 0)  # G17
            else:
                harness.check_equal(f"{name}: index", row["precision_index"], theirs_index)
    for row in got["Bench"].values():
        harness.check_equal(f"{row['id']}: index", row["precision_index"], None)
        harness.check(not any("Result" in item for item in items_of(row).values()), f"{row['id']}: judged")
    if (expected / "tb_config.jsonl").exists():
        wanted, = expected_rows(expected, "tb_config")
        wanted["micro_steps"] = MICRO_STEPS.get(case.name, wanted["micro_steps"])
        harness.check_equal("config", config, wanted)
    harness.check_equal("micro steps", config["micro_steps"], 1 + max(
        row["micro_step_id"] for side in got.values() for row in side.values()))


def call(*inputs, output=1.0, **keywords):
    keywords = {key: {"type": "int", "value": value} for key, value in keywords.items()}
    return dumps.call([tensor(each) for each in inputs], [tensor(output)], input_kwargs=keywords)


def write_rank(folder, construct, data=None, **header):
    return str(dumps.write_rank(folder, data or {}, construct=construct, **header).parent)


def pairs_of(msprobe, scratch, target, golden, *options):
    """The rows of the side under test, the last name of each link, and the messages."""
    path, messages = graph(msprobe, scratch, ["-tp", target, "-gp", golden, *options])
    rows = {row["node_name"]: row for row in rows_of(path, "tb_nodes") if row["data_source"] == "NPU"}
    links = {name: (json.loads(row["matched_node_link"]) or [None])[-1] for name, row in rows.items()}
    return rows, links, messages


def check_aligned_calls(msprobe, scratch):
    """A renamed module and an extra call leave all others where they are."""
    def rank(folder, module, operations):
        construct, data, counts = {}, {}, {}
        for operation in operations:
            number = counts[operation] = counts.get(operation, -1) + 1
            construct[f"Torch.{operation}.{number}.forward"] = f"Module.{module}.Net.forward.0"
            data[f"Torch.{operation}.{number}.forward"] = call(1.0)
        construct[f"Module.{module}.Net.forward.0"] = None
        data[f"Module.{module}.Net.forward.0"] = call(1.0)
        for name in ("Torch.cos.0.forward", "Torch.exp.0.forward"):
            construct[name] = None
            data[name] = call(9.0, output=9.5)
        return write_rank(scratch / folder, construct, data)

    target = rank("new", "network", ["sin", "tanh", "sin", "relu", "sin"])
    golden = rank("old", "net", ["sin", "tanh", "relu", "sin"])
    rows, links, _ = pairs_of(msprobe, scratch, target, golden)
    extra = "Torch.sin.1.forward"
    same = ("DefaultModel", "Apis_Between_Modules.0", "Torch.sin.0.forward", "Torch.tanh.0.forward",
            "Torch.relu.0.forward", "Torch.cos.0.forward", "Torch.exp.0.forward")
    harness.check_equal("pairs", links, {
        **{name: name for name in same}, extra: None, "Torch.sin.2.forward": "Torch.sin.1.forward",
        "Module.network.Net.forward.0": "Module.net.Net.forward.0"})
    for name, row in rows.items():
        expected = None if name in ("DefaultModel", extra) else 0
        harness.check_equal(f"{name}: index", row["precision_index"], expected)
        renamed = links[name] not in (None, name)
        for key, item in items_of(row).items():
            if links[name]:
                harness.check_equal(key, json.loads(item["Err_message"]), [ALIGNED] if renamed else [])


def check_arguments(msprobe, scratch):
    """Keyword arguments pair by name, all else that is left in order."""
    name = "Torch.sum.0.forward"
    target = write_rank(scratch / "new", {name: None}, {name: call(1.0, 2.0, dim=1, keepdim=3)})
    golden = write_rank(scratch / "old", {name: None}, {name: call(1.0, alpha=7, keepdim=4, dim=1)})
    results = {".input.0": [], ".input.1": [NO_ITEM], ".input.dim": [], ".output.0": [],
               ".input.keepdim": ["error: The scalar parameters of NPU and Bench are inconsistent."]}
    for options in ([], ["-fm"]):
        rows, _, _ = pairs_of(msprobe, scratch, target, golden, *options)
        harness.check_equal("messages", {key.removeprefix(name): json.loads(item["Err_message"])
                                         for key, item in items_of(rows[name]).items()}, results)
        harness.check_equal("index", rows[name]["precision_index"], 1)


def check_counts(msprobe, scratch, golden):
    case = golden / "fuzzy"
    _, messages = compare(msprobe, scratch, case, ["-fm"])
    warning = "Torch.relu.forward below Module.a.FuzzyA.forward.0: 2 calls in the target, 1 in the golden dump"
    harness.check(warning in messages, messages)


def check_overflow(msprobe, scratch, golden):
    """Levels of both sides."""
    dump = str(golden / "overflow" / "target")
    path, _ = graph(msprobe, scratch, ["-tp", dump, "-gp", dump, "-oc"])
    wanted = expected_rows(golden / "overflow" / "expected", "tb_nodes")
    levels = {row["node_name"]: row["overflow_level"] for row in wanted}
    rows = rows_of(path, "tb_nodes")
    harness.check_equal("rows", len(rows), 2 * len(levels))
    for row in rows:
        harness.check_equal(row["id"], row["overflow_level"], levels[row["node_name"]])
    harness.check_equal("config", rows_of(path, "tb_config")[0]["overflow_check"], 1)


def check_origins(msprobe, scratch, golden):
    """The table of origins agrees with the origins that `compare` reports for the items of each node."""
    introduced = {
        "stats": {"Functional.linear.3.forward", "Torch.mul.1.forward"},
        "tensor": {"Functional.linear.0.forward"},
        "md5": {"Functional.linear.1.forward"},
        "fuzzy": set(),
    }
    weight = ("equal", "rounding", "not compared", "propagated", "introduced")
    for case, wanted in introduced.items():
        path, _ = compare(msprobe, scratch, golden / case, [])
        rows = by_id(rows_of(path, "tb_nodes"))
        origins = rows_of(path, "tb_origin")
        out = scratch / case
        result = harness.run(msprobe, ["compare", "-tp", str(golden / case / "target"), "-gp",
                                       str(golden / case / "golden"), "--format", "json", "-o", str(out)], scratch)
        harness.check(result.returncode in (0, 1), result.stderr)
        table, = out.glob("*.json")
        told = {row["NPU Name"]: row["Origin"] for row in json.loads(table.read_text())["rows"]}
        judged = {row["id"] for row in rows.values() if any("Result" in item for item in items_of(row).values())}
        harness.check_equal(f"{case}: judged", {row["id"] for row in origins} - judged, set())
        for row in origins:
            items = [told[key] for key in items_of(rows[row["id"]])]
            harness.check_equal(row["id"], row["origin"], max(items, key=weight.index, default="equal"))
            harness.check(row["error"] is None or row["error"] >= 0, row)
        names = {rows[row["id"]]["node_name"] for row in origins if row["origin"] == "introduced"}
        harness.check_equal(f"{case}: introduced", names, wanted)
        names = {rows[row["id"]]["node_name"] for row in origins if row["finding"]}
        harness.check_equal(f"{case}: findings", names, wanted)
    for options in (["-gp", str(golden / "stats" / "golden"), "--python-rules"], []):
        path, _ = graph(msprobe, scratch, ["-tp", str(golden / "stats" / "target"), *options])
        harness.check(b"tb_origin" not in path.read_bytes(), options)


def check_same_bytes(msprobe, scratch, golden):
    for case, options in (("stats", []), ("fuzzy", ["-fm"]), ("tensor", []), ("layer_map", ["-lm"])):
        first = compare(msprobe, scratch, golden / case, options)[0].read_bytes()
        second = compare(msprobe, scratch, golden / case, options, "--jobs", "1")[0].read_bytes()
        harness.check(first == second, f"{case}: two runs differ")


def check_told(msprobe, scratch, golden):
    """The terminal says how many nodes passed, and where errors are introduced; collections count by what is in them."""
    for case, options in (("stats", []), ("md5", []), ("structure", []), ("ddp", []), ("fuzzy", []), ("layer_map", [])):
        path, messages = compare(msprobe, scratch, golden / case, options)
        counts = dict.fromkeys(("error", "warning", "pass", "without values", "target", "reference"), 0)
        for row in rows_of(path, "tb_nodes"):
            if row["node_type"] == "9":
                continue
            if row["matched_node_link"] == "[]":
                counts["target" if row["data_source"] == "NPU" else "reference"] += 1
            elif row["data_source"] == "NPU":
                counts[{1: "error", 0.5: "warning", 0: "pass", None: "without values"}[row["precision_index"]]] += 1
        said = re.search(r"(\d+) error, (\d+) warning, (\d+) pass, (\d+) without values; unmatched: (\d+) of the "
                         r"target, (\d+) of the golden dump", messages)
        harness.check(said, messages)
        harness.check_equal(f"{case}: counts", [int(each) for each in said.groups()], list(counts.values()))
        judged = case != "structure"  # nothing is, of shapes alone
        introduced = [row["id"].split("_", 3)[3] for row in rows_of(path, "tb_origin") if row["finding"]] if judged else []
        told = re.findall(r"^  introduced at (?:rank\d+: )?(\S+): ", messages, re.M)
        harness.check_equal(f"{case}: introduced", told, introduced[:5])


def check_ranks(msprobe, scratch, golden):
    """Several ranks: what communication leads to has its number, and another kind of data is a problem of its rank."""
    path, _ = compare(msprobe, scratch, golden / "ddp", [])
    rows = {(row["rank"], row["node_name"]): row for row in rows_of(path, "tb_nodes") if row["data_source"] == "NPU"}
    edges = 0
    for row in rows.values():
        for rank, (status, name) in json.loads(row["matched_distributed"]).get("nodes_info", {}).items():
            index = rows[int(rank), name]["precision_index"]
            harness.check_equal(f"{row['id']}: status", status, "Nan" if index is None else f"{index:g}")
            edges += 1
    harness.check(edges > 0, "no edges")
    shutil.copytree(golden / "ddp", scratch / "ddp")
    for side in ("target", "golden"):
        dump = scratch / "ddp" / side / "rank1" / "dump.json"
        dump.write_text(dump.read_text().replace('"task": "statistics"', '"task": "structure"'))
    arguments = ["-tp", "ddp/target", "-gp", "ddp/golden", "-o", "mixed"]
    result = harness.run(msprobe, ["graph_visualize", *arguments], scratch, status=2)
    harness.check("rank1: compared by a different kind of data than the ranks before it" in result.stderr, result.stderr)
    path, = (scratch / "mixed").iterdir()
    harness.check_equal("ranks", {row["rank"] for row in rows_of(path, "tb_nodes")}, {0})


def check_refused(msprobe, scratch, golden):
    """Status 2, a line with the reason, and no file."""
    node = {"Torch.a.0.forward": None}
    plain = write_rank(scratch / "plain", node, {"Torch.a.0.forward": call(1.0)})
    mindspore = write_rank(scratch / "mindspore", node, framework="mindspore")
    empty = write_rank(scratch / "empty", {})
    odd = write_rank(scratch / "odd", node, task="free_benchmark")
    (scratch / "broken.yaml").write_text("a: [")
    for arguments, reason in (
        (["-gp", mindspore], "different frameworks can only be compared with a layer mapping (-lm)"),
        (["-gp", str(scratch / "none")], "none: does not exist"),
        (["-gp", plain + "/dump.json"], "dump.json: not a dump folder"),
        (["-gp", empty], "empty/construct.json: is empty"),
        (["-gp", plain, "-fm", "-lm"], "-fm and -lm cannot be combined"),
        (["-gp", plain, "-lm", str(scratch / "broken.yaml")], "broken.yaml"),
        (["-gp", plain, "-lm", str(scratch / "none.yaml")], "none.yaml"),
        (["-fm"], "-fm is for two runs: name the golden dump with -gp"),
        (["-lm"], "-lm is for two runs"),
        (["-tensor_log"], "-tensor_log is for two runs"),
        (["-tp", odd, "-gp", odd], "task 'free_benchmark' cannot be compared"),
    ):
        arguments = arguments if "-tp" in arguments else ["-tp", plain, *arguments]
        arguments = [each.replace(f"{scratch}/", "") for each in arguments]
        result = harness.run(msprobe, ["graph_visualize", *arguments, "-o", "out"], scratch)
        harness.check_refused(result, reason)
        left = list((scratch / "out").iterdir()) if (scratch / "out").exists() else []
        harness.check_equal(f"{arguments}: files", left, [])


def check_other_data(msprobe, scratch):
    """Sides with other kinds of data are compared by statistics, and a warning says so."""
    node = {"Torch.a.0.forward": None}
    entry = {"input_args": [tensor(1.0)]}
    write_rank(scratch / "plain", node, {"Torch.a.0.forward": entry})
    write_rank(scratch / "sums", node, {"Torch.a.0.forward": {"input_args": [tensor(1.0, md5="12345678")]}})
    write_rank(scratch / "tensors", node, {"Torch.a.0.forward": entry}, task="tensor")
    for golden, data in (("sums", "checksums"), ("tensors", "tensors")):
        result = harness.run(msprobe, ["graph_visualize", "-tp", "plain", "-gp", golden, "-o", "out"], scratch, status=0)
        harness.check(f"this run has statistics, golden {data}: they are compared by the statistics that both have" in result.stderr,
                      result.stderr)


def check_odd_structure(msprobe, scratch):
    """Deep, wide and circular models and names of every kind, in each way of pairing."""
    models = odd_models(20000)
    models["odd"].update({"Torch..0..forward": None, "_rank": None, "Torch.a_rank1.1.forward": None})
    ranks = {name: write_rank(scratch / name, construct, {node: call(1.0) for node in list(construct)[::2]})
             for name, construct in models.items()}
    for options in ([], ["-fm"], ["-lm"], ["--python-rules"], ["-fm", "--python-rules"]):
        large = [("chain", "chain"), ("wide", "wide"), ("wide", "chain")] if options in ([], ["-fm"]) else []
        for target, golden in (*large, ("odd", "odd"), ("circle", "circle"), ("odd", "circle")):
            rows, links, _ = pairs_of(msprobe, scratch, ranks[target], ranks[golden], *options)
            lost = "-fm" in options and target in ("odd", "circle")
            if target == golden and not lost:
                names = {name: link for name, link in links.items() if link != name}
                harness.check_equal(f"{target} {options}: other partners", names, {})
            for name, row in rows.items():
                below = json.loads(row["sub_nodes"] or "[]")
                harness.check_equal(f"{name}: below it", [each for each in below if each not in rows], [])
                holder = row["node_type"] == "9"
                judged = "Result" in row["input_data"] or (holder and (
                    "--python-rules" in options or any("Result" in rows[below]["input_data"]
                                                       for below in json.loads(row["sub_nodes"]))))
                index = {0, 0.5, 1} if judged else {None}
                harness.check(row["precision_index"] in index, f"{name}: {row['precision_index']}")


def make_tests(msprobe, folder):
    golden = harness.data(folder, "visualize") / "visualize" / "cases"
    tests = []
    for name, runs in CASES.items():
        for expected, options in runs.items():
            for suffix, check in ((" --python-rules", check_python_rules), ("", check_mended)):
                tests.append((
                    f"{name}/{expected}{suffix}",
                    lambda scratch, case=golden / name, expected=expected, options=options, check=check:
                        check(msprobe, scratch, case, case / expected, options),
                ))
    return tests + harness.tests_of_script(msprobe=msprobe, golden=golden)


if __name__ == "__main__":
    harness.main(make_tests)
