#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real model, recorded on one rank and on two ranks of tensor parallelism (tests/data/graph/make_tensor_parallel.py):
merged by `graph_visualize` and by `compare --merge-ranks` it equals the one of one rank, and a row of a weight that was
changed on one rank is found as in the whole model.

usage: tensor_parallel.py MSPROBE DATA_FOLDER
"""

import csv
import json
import shutil

import harness
from golden_graph import rows_of
from graph_merge import call, tensor, write_model

WEIGHT = "Module.model.layers.1.mlp.up_proj.Linear.forward.0"
SPLIT = ("--rank_size", "2", "1", "--tp", "2", "1", "--pp", "1", "1")
WHOLE = ("--rank_size", "1", "1", "--tp", "1", "1", "--pp", "1", "1")


def copy(models, scratch, *names):
    for name in names:
        shutil.copytree(models / name, scratch / name)


def graph(msprobe, scratch, target, golden, *options):
    """Rows of the target by name, in their order, and the lines on standard error."""
    out = scratch / "out" / str(len(list(scratch.glob("out/*"))))
    result = harness.run(msprobe, ["graph_visualize", "-tp", target, "-gp", golden, "-o", str(out), *options], scratch)
    harness.check_equal(f"status: {result.stderr}", (result.returncode, result.stdout), (0, ""))
    (path,) = out.iterdir()
    rows = [row for row in rows_of(path, "tb_nodes") if row["data_source"] == "NPU"]
    return {row["node_name"]: row for row in sorted(rows, key=lambda row: row["node_order"])}, result.stderr


def judged(rows):
    return {name: row["precision_index"] for name, row in rows.items() if row["precision_index"] is not None}


def items(row, column):
    return json.loads(row[column])


def check_whole(msprobe, scratch, models):
    """No difference but rounding: torch's parallelize_module, and transformers' own plan."""
    copy(models, scratch, "one", "tp", "plan")
    for target in ("tp", "plan"):
        rows, messages = graph(msprobe, scratch, target, "one", *SPLIT)
        harness.check_equal(f"{target}: judged", set(judged(rows).values()), {0})
        harness.check(len(judged(rows)) >= 229, f"{target}: {len(judged(rows))} nodes")
        harness.check("introduced at" not in messages, f"{target}: {messages}")
    rows, _ = graph(msprobe, scratch, "tp", "one", *SPLIT)
    whole = json.loads((scratch / "one" / "rank0" / "dump.json").read_text())["data"]
    parts = [json.loads((scratch / "tp" / f"rank{rank}" / "dump.json").read_text())["data"] for rank in (0, 1)]
    query = "Functional.linear.0.forward"  # columns
    (output,) = items(rows[query], "output_data").values()
    for key in ("Max", "Min", "Mean", "Norm"):
        wanted = whole[query]["output"][0][key]
        harness.check(abs(float(output[key]) - wanted) <= 1e-6 * abs(wanted), f"{key}: {output[key]}, {wanted}")
    harness.check(output["Norm"] != str(parts[0][query]["output"][0]["Norm"]), "the norm is that of one rank")
    harness.check_equal("query", output["NormRelativeErr"], "0")
    terms = "Functional.linear.3.forward"  # rows, before they are added up
    (output,) = items(rows[terms], "output_data").values()
    mean = sum(part[terms]["output"][0]["Mean"] for part in parts)
    harness.check_equal("terms", (output["Max"], output["Norm"], output["NormRelativeErr"]), ("null", "null", "N/A"))
    harness.check(abs(float(output["Mean"]) - mean) < 1e-9, f"mean of terms: {output['Mean']}, {mean}")
    harness.check(
        any("terms of a sum in output.0" in text for text in json.loads(rows[terms]["parallel_merge_info"])),
        rows[terms]["parallel_merge_info"],
    )


def check_half_precision(msprobe, scratch, models):
    """Terms of sums are rounded before they are added: there are differences, and none of them is evidence."""
    copy(models, scratch, "one_bfloat16", "tp_bfloat16")
    rows, messages = graph(msprobe, scratch, "tp_bfloat16", "one_bfloat16", *SPLIT)
    harness.check(1 not in judged(rows).values(), "errors")
    harness.check("introduced at" not in messages, messages)


def check_changed(msprobe, scratch, models):
    """Red are the node with the weight, which is named first, and what follows from it, as in the whole model."""
    copy(models, scratch, "one", "one_changed", "tp_changed")
    rows, messages = graph(msprobe, scratch, "tp_changed", "one", *SPLIT)
    expected, _ = graph(msprobe, scratch, "one_changed", "one", *WHOLE)
    red = [name for name, index in judged(rows).items() if index == 1]
    harness.check_equal("red", red, [name for name, index in judged(expected).items() if index == 1])
    harness.check_equal("first red", red[0], WEIGHT)
    introduced = [line for line in messages.splitlines() if "introduced at" in line]
    harness.check(introduced[0].strip().startswith(f"introduced at {WEIGHT}: parameters.weight is a parameter"), introduced[0])
    ahead = list(judged(rows))[: list(judged(rows)).index(WEIGHT)]
    harness.check_equal("ahead", {judged(rows)[name] for name in ahead if ".forward" in name}, {0})


def check_tensors(msprobe, scratch, models):
    copy(models, scratch, "one_tensor", "tp_tensor", "tp_changed_tensor")
    rows, messages = graph(msprobe, scratch, "tp_tensor", "one_tensor", *SPLIT)
    harness.check_equal("judged", set(judged(rows).values()), {0})
    harness.check("introduced at" not in messages, messages)
    for node in ("Functional.linear.0.forward", "Functional.linear.3.forward"):  # shards, terms of a sum
        (output,) = items(rows[node], "output_data").values()
        harness.check(0 <= float(output["MaxAbsErr"]) < 1e-6, f"{node}: {output}")
        harness.check_equal(f"{node}: cosine", output["Cosine"], "1.0")
    rows, messages = graph(msprobe, scratch, "tp_changed_tensor", "one_tensor", *SPLIT)
    red = [name for name, index in judged(rows).items() if index == 1]
    harness.check_equal("first red", red[0], WEIGHT)
    # One of 32 rows.
    weight = items(rows[WEIGHT], "input_data")[f"{WEIGHT}.parameters.weight"]
    harness.check_equal("rows of the weight", weight["One Thousandth Err Ratio"], "0.96875")


def edit(path, change):
    dump = json.loads(path.read_text())
    change(dump["data"])
    path.write_text(json.dumps(dump))


def check_copies(msprobe, scratch, models):
    """A weight that should be equal on all ranks, and is not on one."""
    copy(models, scratch, "one", "tp", "one_tensor", "tp_tensor")
    norm = "Module.model.layers.1.input_layernorm.LlamaRMSNorm.forward.0"

    def change(data):
        for key in ("Max", "Norm"):
            data[norm]["parameters"]["weight"][key] *= 1.25

    edit(scratch / "tp" / "rank1" / "dump.json", change)
    rows, _ = graph(msprobe, scratch, "tp", "one", *SPLIT)
    harness.check_equal("red", [name for name, index in judged(rows).items() if index == 1], [norm])
    weight = items(rows[norm], "input_data")[f"{norm}.parameters.weight"]
    harness.check_equal(
        "words",
        json.loads(weight["Err_message"]),
        ["error: Ranks 0 and 1 should hold equal values, but do not: norms 8.0 and 10.0."],
    )
    # The same in tensors whose numbers say nothing of it.
    folder = scratch / "tp_tensor" / "rank1" / "dump_tensor_data"
    file = folder / f"{norm}.parameters.weight.pt"
    content = file.read_bytes()
    one, two = b"\x00\x00\x80\x3f", b"\x00\x00\x80\xbf"
    harness.check(one * 16 in content, "ones")
    file.write_bytes(content.replace(one * 16, one * 15 + two))
    rows, _ = graph(msprobe, scratch, "tp_tensor", "one_tensor", *SPLIT)
    harness.check_equal("red", [name for name, index in judged(rows).items() if index == 1], [norm])


def compare(msprobe, scratch, target, golden, *options):
    result = harness.run(msprobe, ["compare", "-tp", target, "-gp", golden, "-o", "-", "--merge-ranks", *options], scratch)
    return result, list(csv.DictReader(result.stdout.splitlines()))


def check_table(msprobe, scratch, models):
    """compare --merge-ranks."""
    copy(models, scratch, "one", "tp", "tp_changed", "plan", "one_tensor", "tp_tensor")
    for target, golden in (("tp", "one"), ("plan", "one"), ("tp", "tp"), ("one", "one"), ("tp_tensor", "one_tensor")):
        result, rows = compare(msprobe, scratch, target, golden, "--fail-on", "error")
        harness.check_equal(f"{target} {golden}: {result.stderr}", result.returncode, 0)
        harness.check(len(rows) > 600, f"{target} {golden}: {len(rows)} rows")
        wrong = [row["NPU Name"] for row in rows if row["Result"] == "error"]
        harness.check_equal(f"{target} {golden}: errors", wrong, [])
        harness.check("no culprit" in result.stderr, result.stderr)
    result, rows = compare(msprobe, scratch, "one", "tp")
    harness.check_equal("other way round", [row for row in rows if row["Result"] == "error"], [])
    shapes = {row["NPU Name"]: (row["NPU Tensor Shape"], row["Bench Tensor Shape"]) for row in rows}
    harness.check_equal("shapes", shapes["Functional.linear.0.forward.output.0"], ("[2, 8, 64]", "[2, 8, 64]"))
    result, rows = compare(msprobe, scratch, "tp_changed", "one", "--fail-on", "culprit")
    harness.check_equal("culprit", result.returncode, 1)
    harness.check(WEIGHT in result.stderr, result.stderr)


def check_experts_and_sequences(msprobe, scratch):
    """Experts that one rank alone has (expert parallelism), and a sequence that ranks share out (context parallelism)."""
    block, numbers = "Module.b.B.forward.0", {0: (4.0, -1.0, 1.0, 3.0), 1: (2.0, -2.0, 2.0, 4.0)}
    joined = (4.0, -2.0, 1.5, 5.0)

    def model(ranks, rows):
        def values(of):
            return tensor(numbers[of] if len(ranks) == 1 else joined, (rows, 8))

        nodes = {block: (None, call([values(ranks[0])], [values(ranks[0])]))}
        for rank in ranks:
            expert = f"Module.b.experts.{rank}.E.forward.0"
            nodes[expert] = (block, call([tensor(numbers[rank], (4, 8))], [tensor(numbers[rank], (4, 8))]))
        nodes["Torch.gelu.0.forward"] = (block, call([values(ranks[0])], [values(ranks[0])]))
        return nodes

    for rank in (0, 1):
        write_model(scratch / "split" / f"rank{rank}", model([rank], 4))
    write_model(scratch / "whole" / "rank0", model([0, 1], 8))
    rows, _messages = graph(msprobe, scratch, "split", "whole", *SPLIT)
    experts = [f"Module.b.experts.{rank}.E.forward.0" for rank in (0, 1)]
    harness.check_equal("experts", [rows[name]["up_node"] for name in experts], [block] * 2)
    harness.check_equal("judged", set(judged(rows).values()), {0})
    harness.check_equal("all judged", len(judged(rows)), 4)
    (gelu,) = items(rows["Torch.gelu.0.forward"], "output_data").values()
    harness.check_equal("sequence", [gelu[key] for key in ("Max", "Min", "Mean", "Norm")], ["4.0", "-2.0", "1.5", "5.0"])
    result, table = compare(msprobe, scratch, "split", "whole", "--fail-on", "unmatched")
    harness.check_equal(f"table: {result.stderr}", (result.returncode, len(table)), (0, 8))
    # Nothing makes up 7 rows.
    write_model(scratch / "seven" / "rank0", model([0, 1], 7))
    result, table = compare(msprobe, scratch, "split", "seven", "--fail-on", "warning")
    harness.check_equal("seven", result.returncode, 1)
    harness.check("The shapes cannot be merged to match" in result.stdout, result.stdout)


def check_progress(msprobe, scratch, models):
    copy(models, scratch, "one", "tp")
    result = harness.run(msprobe, ["graph_visualize", "-tp", "tp", "-gp", "one", "-o", "out", *SPLIT, "-progress_log"], scratch)
    lines = [json.loads(line.removeprefix("PROGRESS: ")) for line in result.stdout.splitlines()]
    percents = [line["current_progress"] for line in lines]
    harness.check_equal("percents", (percents == sorted(percents), percents[-1], len(percents) > 3), (True, 100, True))
    harness.check_equal("running", [line["process_running"] for line in lines][-1], False)


def check_refused(msprobe, scratch, models):
    copy(models, scratch, "one", "tp")
    for arguments, reason in (
        (["tp", "tp", "--tp", "2", "1"], "merged, target has 1 models and golden 2"),
        (["tp", "one", "--tp", "3"], "2 ranks cannot be split into models of 3"),
        (["tp", "one", "--tp", "0"], "--tp 0: not a number of ranks"),
        (["tp", "one", "--python-rules"], "--merge-ranks and --python-rules cannot be combined"),
        (["tp", "one", "-da"], "--merge-ranks and -da cannot be combined"),
        (["tp/rank0/dump.json", "missing"], "missing"),
    ):
        harness.check_refused(compare(msprobe, scratch, *arguments)[0], reason)
    result = harness.run(msprobe, ["compare", "-tp", "tp", "-gp", "one", "-o", "-", "--tp", "2"], scratch)
    harness.check_refused(result, "--tp needs --merge-ranks")


def make_tests(msprobe, folder):
    models = harness.data(folder, "graph") / "graph" / "tensor_parallel"
    return harness.tests_of_script(msprobe=msprobe, models=models)


if __name__ == "__main__":
    harness.main(make_tests)
