#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data bases of `msprobe graph_visualize` of several ranks and steps: what communication connects, what the
configuration says, ranks that cannot be read, and equal bytes at any number of threads.

usage: golden_graph_ranks.py MSPROBE GOLDEN_FOLDER
"""

import json
import shutil
import sqlite3

import harness
from dumps import tensor
from golden_graph import build, check_nodes, expected_rows, rows_of, write_rank


def edges(path):
    """The partners that each node names."""
    return {(row["rank"], row["node_name"]): json.loads(row["matched_distributed"])
            for row in rows_of(path, "tb_nodes") if row["is_distributed"]}


def config(path):
    (row,) = rows_of(path, "tb_config")
    return row


def check_communication(msprobe, scratch, golden):
    """All rows but those of calls whose partners the Python tool does not look for."""
    case = golden / "comm"
    path, _ = build(msprobe, scratch, case / "target")
    rows, expected = rows_of(path, "tb_nodes"), expected_rows(case / "expected", "tb_nodes")
    for row in expected:
        name = row["node_name"]
        if name in ("Distributed.all_reduce.1.forward", "Distributed.batch_isend_irecv.0.forward"):
            harness.check_equal(f"{name} in the Python tool", row["matched_distributed"], "{}")
            row["matched_distributed"] = json.dumps({
                "communications_type": "send_receive", "nodes_info": {str(1 - row["rank"]): ["Nan", name]}})
    check_nodes(rows, expected, case, False)
    for table in ("tb_stack", "tb_config"):
        harness.check_equal(table, rows_of(path, table), expected_rows(case / "expected", table))


def group(ranks, name="g"):
    return {"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": name}


def integer(value):
    return {"type": "int", "value": value}


TENSOR = tensor((1.0, 0.0, 0.5, 1.0))


def transfer(operation, peer):
    return {"class_type": "torch.distributed.P2POp", "tensor": TENSOR, "op": operation, "peer": peer, "tag": 0,
            "group_id": "g"}


def write_calls(folder, calls):
    """A rank with calls of communication: name, positional arguments, named arguments."""
    data = {name: {"input_args": positional, "input_kwargs": named, "output": [TENSOR]}
            for name, positional, named in calls}
    return write_rank(folder, {name: None for name, *_ in calls}, json.dumps({"task": "statistics", "data": data}))


def roots_groups_and_peers(msprobe, scratch):
    """Each way to name a root, a group and a peer, over three ranks; partners by rank."""
    dump = scratch / "dump"
    for rank in range(3):
        calls = [
            ("Distributed.broadcast.0.forward", [TENSOR], {"src": integer(1), "group": group([0, 1, 2])}),
            ("Distributed.broadcast.1.forward", [TENSOR, integer(2), group([0, 1, 2])], {}),
            ("Distributed.reduce.0.forward", [TENSOR, integer(0)], {}),
            ("Distributed.gather.0.forward", [TENSOR, None, integer(1)], {}),
        ]
        if rank < 2:
            calls.append(("Distributed.all_reduce.0.forward", [TENSOR], {"group": group([0, 1], "h")}))
        calls.append(("Distributed.batch_isend_irecv.0.forward",
                      [[transfer("isend", (rank + 1) % 3), transfer("irecv", (rank + 2) % 3)]], {}))
        if rank == 0:
            calls.append(("Distributed.send.0.forward", [TENSOR, integer(2)], {}))
        if rank == 2:
            calls.append(("Distributed.recv.0.forward", [TENSOR, integer(0)], {}))
            calls.append(("Distributed.send.0.forward", [TENSOR], {"dst": integer(1)}))  # no rank receives it
        write_calls(dump / f"rank{rank}", calls)
    path, _ = build(msprobe, scratch, dump)
    got = edges(path)

    def info(kind, partners):
        return {"communications_type": kind, "nodes_info": {str(r): ["Nan", name] for r, name in partners.items()}}

    def star(name, root, of_root, of_others):
        for rank in range(3):
            others = {r: name for r in range(3) if r != rank}
            expected = info(of_root, others) if rank == root else info(of_others, {root: name})
            harness.check_equal(f"rank {rank}: {name}", got[rank, name], expected)

    star("Distributed.broadcast.0.forward", 1, "send", "receive")
    star("Distributed.broadcast.1.forward", 2, "send", "receive")
    star("Distributed.reduce.0.forward", 0, "receive", "send")
    star("Distributed.gather.0.forward", 1, "receive", "send")
    name = "Distributed.all_reduce.0.forward"
    for rank in range(2):
        harness.check_equal(f"rank {rank}: {name}", got[rank, name], info("send_receive", {1 - rank: name}))
    name = "Distributed.batch_isend_irecv.0.forward"
    for rank in range(3):
        others = {r: name for r in range(3) if r != rank}
        harness.check_equal(f"rank {rank}: {name}", got[rank, name], info("send_receive", others))
    harness.check_equal("send", got[0, "Distributed.send.0.forward"], info("send", {2: "Distributed.recv.0.forward"}))
    harness.check_equal("recv", got[2, "Distributed.recv.0.forward"],
                        info("receive", {0: "Distributed.send.0.forward"}))
    harness.check_equal("no partner", got[2, "Distributed.send.0.forward"], {})


def overflow_levels_of_partners(msprobe, scratch):
    """With -oc the level of a partner is reported, and nothing for a rank without partners."""
    dump = scratch / "dump"
    bad = {**TENSOR, "Max": "inf"}
    for rank in range(2):
        name = "Distributed.all_reduce.0.forward"
        data = {name: {"input_args": [TENSOR], "input_kwargs": {}, "output": [bad if rank else TENSOR]}}
        write_rank(dump / f"rank{rank}", {name: None}, json.dumps({"task": "statistics", "data": data}))
    path, _ = build(msprobe, scratch, dump, "-oc")
    told = {rank: value["nodes_info"] for (rank, _), value in edges(path).items()}
    harness.check_equal("levels", told, {0: {"1": ["critical", name]}, 1: {"0": ["Nan", name]}})
    # A rank's folder by itself has no partners.
    path, _ = build(msprobe, scratch, dump / "rank1", "-oc")
    harness.check_equal("one rank", edges(path), {(0, name): {}})


def steps_ranks_and_micro_steps(msprobe, scratch, golden):
    """Steps by number; all ranks of all steps; the most micro steps of any graph."""
    dump = scratch / "dump"
    two_micro_steps = {f"Module.m.M.{way}.{i}": None for i in range(2) for way in ("forward", "backward")}
    for step, rank in ((2, 0), (10, 0), (10, 3)):
        write_rank(dump / f"step{step}" / f"rank{rank}",
                   two_micro_steps if rank == 3 else {"Module.m.M.forward.0": None})
    path, messages = build(msprobe, scratch, dump)
    row = config(path)
    harness.check_equal("lists", (row["step_list"], row["rank_list"], row["micro_steps"]), ("[2, 10]", "[0, 3]", 2))
    order = [(row["step"], row["rank"]) for row in rows_of(path, "tb_nodes") if row["node_name"] == "DefaultModel"]
    harness.check_equal("order", order, [(2, 0), (10, 0), (10, 3)])
    harness.check("9 nodes of 3 ranks" in messages, messages)
    # The only process of a run, and a rank without a number, count as rank 0; a rank named by itself, too.
    shutil.copytree(golden / "build_single" / "target", scratch / "one" / "proc4711")
    shutil.copytree(golden / "build_single" / "target", scratch / "two" / "rank")
    shutil.copytree(golden / "build_single" / "target", scratch / "three" / "rank5")
    for folder, rank in (("one", 0), ("two", 0), ("three", 5), ("three/rank5", 0)):
        path, _ = build(msprobe, scratch, scratch / folder)
        harness.check_equal(folder, config(path)["rank_list"], f"[{rank}]")


def run_failing(msprobe, scratch, dump, *options):
    out = scratch / "out"
    shutil.rmtree(out, ignore_errors=True)
    result = harness.run(msprobe, ["graph_visualize", "-tp", str(dump), "-o", str(out), *options], scratch)
    harness.check_equal("exit status", (result.returncode, result.stdout), (2, ""))
    return list(out.iterdir()) if out.exists() else [], result.stderr


def check_integrity(path):
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as connection:
        harness.check_equal("integrity", connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])


def a_rank_that_cannot_be_read(msprobe, scratch, golden):
    """It is named in one line, the others are there as if it were not, and the status is 2."""
    dump, whole = scratch / "dump", scratch / "whole.db"
    for rank in (0, 2):
        shutil.copytree(golden / "comm" / "target" / f"rank{rank // 2}", dump / f"rank{rank}")
    shutil.copy(build(msprobe, scratch, dump)[0], whole)
    source = golden / "comm" / "target" / "rank1"
    value = (source / "dump.json").read_text()
    for name, damage in (
        ("dump.json: ", lambda rank: (rank / "dump.json").write_text(value[: len(value) // 2])),
        ("construct.json: ", lambda rank: (rank / "construct.json").unlink()),
        ("construct.json: is empty", lambda rank: (rank / "construct.json").write_text("{}")),
        ("rank1/dump.json: ", lambda rank: (rank / "dump.json").unlink()),
    ):
        shutil.rmtree(dump / "rank1", ignore_errors=True)
        shutil.copytree(source, dump / "rank1")
        damage(dump / "rank1")
        files, messages = run_failing(msprobe, scratch, dump)
        errors = [line for line in messages.splitlines() if line.startswith("msprobe: error: ")]
        harness.check(len(errors) == 1 and "rank1" in errors[0] and name in errors[0], messages)
        harness.check_equal(f"{name}: files", len(files), 1)
        harness.check_equal(f"{name}: ranks", config(files[0])["rank_list"], "[0, 2]")
        harness.check_equal(f"{name}: nodes", len(rows_of(files[0], "tb_nodes")), len(rows_of(whole, "tb_nodes")))
    # Its last entry cannot be taken apart: what was written of it by then is taken out again.
    count = 2000
    construct = {f"Torch.w.{i}.forward": None for i in range(count)}
    data = {name: {"input_args": [TENSOR], "input_kwargs": {}, "output": []} for name in construct}
    data[f"Torch.w.{count - 1}.forward"]["input_args"] = [{"k" * 20000: [TENSOR] * 5000}]
    shutil.rmtree(dump / "rank1")
    write_rank(dump / "rank1", construct, json.dumps({"task": "statistics", "data": data}))
    files, messages = run_failing(msprobe, scratch, dump)
    harness.check("rank1/dump.json: " in messages, messages)
    for table in ("tb_nodes", "tb_stack", "tb_config"):
        harness.check_equal(table, rows_of(files[0], table), rows_of(whole, table))
    check_integrity(files[0])
    for rank in (0, 1, 2):
        (dump / f"rank{rank}" / "construct.json").write_text("{}")
    files, messages = run_failing(msprobe, scratch, dump)
    harness.check_equal("no rank: files", files, [])
    harness.check_equal("no rank: lines", messages.count("construct.json: is empty"), 3)


def two_ranks_of_a_number(msprobe, scratch, golden):
    for name in ("rank", "rank0", "rank1"):
        shutil.copytree(golden / "comm" / "target" / "rank0", scratch / "dump" / name)
    files, messages = run_failing(msprobe, scratch, scratch / "dump")
    harness.check_equal("files", len(files), 1)
    harness.check("rank0: rank 0 again, as rank" in messages, messages)
    harness.check_equal("ranks", config(files[0])["rank_list"], "[0, 1]")


def compare(msprobe, scratch, target, golden, *options):
    out = scratch / "out"
    shutil.rmtree(out, ignore_errors=True)
    result = harness.run(msprobe, ["graph_visualize", "-tp", str(target), "-gp", str(golden), "-o", str(out), *options],
                         scratch)
    harness.check_equal(f"exit status ({result.stderr})", (result.returncode, result.stdout), (0, ""))
    (path,) = out.iterdir()
    return path, result.stderr


def in_order_of_writing(rows):
    """A graph after the other, golden behind target."""
    return sorted(rows, key=lambda row: (row["step"], row["rank"], row["data_source"] != "NPU", row["node_order"]))


def check_compared(msprobe, scratch, golden):
    """Steps, and ranks whose communication shows how the partner's values compare."""
    for name in ("steps", "ddp"):
        case = golden / name
        expected = in_order_of_writing(expected_rows(case / "expected", "tb_nodes"))
        path, _ = compare(msprobe, scratch, case / "target", case / "golden", "--python-rules")
        check_nodes(rows_of(path, "tb_nodes"), expected, case, True)
        for table in ("tb_stack", "tb_config"):
            harness.check_equal(f"{name}: {table}", {row["id"]: row for row in rows_of(path, table)},
                                {row["id"]: row for row in expected_rows(case / "expected", table)})
        path, _ = compare(msprobe, scratch, case / "target", case / "golden")
        check_nodes(rows_of(path, "tb_nodes"), expected, case, False, {"input_data", "output_data"})
        harness.check_equal(f"{name}: tb_config", config(path), expected_rows(case / "expected", "tb_config")[0])
        several = {compare(msprobe, scratch, case / "target", case / "golden", "--jobs", jobs)[0].read_bytes()
                   for jobs in ("1", "4")}
        harness.check_equal(f"{name}: different results", len(several), 1)


def what_one_side_alone_has(msprobe, scratch, golden):
    """Ranks and steps that one side alone has are reported and skipped."""
    one = golden / "build_single" / "target"
    for side, places in (("new", ("step0/rank0", "step0/rank1", "step1/rank0", "step2/rank0", "step2/rank1")),
                         ("old", ("step0/rank0", "step0/rank2", "step1/rank0", "step3/rank0"))):
        for place in places:
            shutil.copytree(one, scratch / side / place)
    path, messages = compare(msprobe, scratch, scratch / "new", scratch / "old")
    told = sorted(line.removeprefix("msprobe: warning: ") for line in messages.splitlines() if line.startswith("msprobe: warning: "))
    new, old = str(scratch / "new"), str(scratch / "old")
    harness.check_equal("told", told, sorted(
        [f"{new}: {what} has no partner in {old} and was skipped" for what in ("step0/rank1", "step2")]
        + [f"{old}: {what} has no partner in {new} and was skipped" for what in ("step0/rank2", "step3")]))
    row = config(path)
    harness.check_equal("lists", (row["step_list"], row["rank_list"]), ("[0, 1]", "[0]"))
    for target, other, reason in (
        ("new", "old/step0", "holds folders of steps, "), ("new/step0", "old/step0/rank0", "holds the files of one rank"),
        ("new/step2", "old/step4", "have no rank in common"),
    ):
        if other == "old/step4":
            shutil.copytree(one, scratch / other / "rank7")
        files, messages = run_failing(msprobe, scratch, scratch / target, "-gp", str(scratch / other))
        harness.check(reason in messages, messages)
        harness.check_equal("files", files, [])


def a_pair_that_cannot_be_read(msprobe, scratch, golden):
    """A rank whose second side fails leaves nothing of the first: neither rows nor edges."""
    case = golden / "ddp"
    for side in ("target", "golden"):
        shutil.copytree(case / side, scratch / side)
        for rank in (0, 1):
            shutil.copytree(case / side / f"rank{rank}", scratch / side / f"rank{rank + 2}")
    whole = scratch / "whole.db"
    for side in ("target", "golden"):
        (scratch / side / "rank0").rename(scratch / f"{side}0")
    shutil.copy(compare(msprobe, scratch, scratch / "target", scratch / "golden")[0], whole)
    for side in ("target", "golden"):
        (scratch / f"{side}0").rename(scratch / side / "rank0")
    file = scratch / "golden" / "rank0" / "dump.json"
    dump = json.loads(file.read_text())
    name = next(reversed(dump["data"]))
    dump["data"][name]["input_kwargs"] = {"k" * 20000: [TENSOR] * 5000}
    file.write_text(json.dumps(dump))
    files, messages = run_failing(msprobe, scratch, scratch / "target", "-gp", str(scratch / "golden"))
    harness.check("golden/rank0/dump.json: " in messages, messages)
    for table in ("tb_nodes", "tb_stack", "tb_config"):
        harness.check_equal(table, rows_of(files[0], table), rows_of(whole, table))
    check_integrity(files[0])


def a_request_of_8x(msprobe, scratch, golden):
    """compare.json of 8.x asks for the same bytes as today's options."""
    case = golden / "ddp"
    request = scratch / "compare.json"

    def ask(*options, **keys):
        request.write_text(json.dumps(keys))
        out = scratch / "asked"
        shutil.rmtree(out, ignore_errors=True)
        result = harness.run(msprobe, ["-f", "pytorch", "graph", "-i", str(request), "-o", str(out), *options], scratch)
        files = list(out.iterdir()) if out.exists() else []
        return result, files

    sides = {"npu_path": str(case / "target"), "bench_path": str(case / "golden")}
    for keys, arguments in ((sides, ["-tp", sides["npu_path"], "-gp", sides["bench_path"]]),
                            ({"npu_path": sides["npu_path"]}, ["-tp", sides["npu_path"]])):
        result, (file,) = ask("-cs", "-oc", *(["-f"] if "bench_path" in keys else []), **keys)
        harness.check_equal(f"status ({result.stderr})", (result.returncode, result.stdout), (0, ""))
        out = scratch / "today"
        shutil.rmtree(out, ignore_errors=True)
        harness.run(msprobe, ["graph_visualize", *arguments, "-o", str(out), "-oc",
                              *(["-fm"] if "bench_path" in keys else [])], scratch)
        (today,) = out.iterdir()
        harness.check_equal("name", file.name.split("_")[0], today.name.split("_")[0])
        harness.check(file.read_bytes() == today.read_bytes(), f"{keys}: other bytes than today's options give")
    split = {"rank_size": 2, "tp": 1, "pp": 1}
    for keys, options, reason in (
        ({}, [], "Missing npu_path"), ({"npu_path": 3}, [], "npu_path must be text"),
        ({**sides, "is_print_compare_log": "no"}, [], "is_print_compare_log must be true or false"),
        ({**sides, "parallel_merge": {}}, [], "parallel_merge has no object npu"),
        ({**sides, "parallel_merge": []}, [], "parallel_merge must be an object"),
        ({**sides, "parallel_merge": {"npu": split}}, [], "parallel_merge has no object bench"),
        ({**sides, "parallel_merge": {"npu": {**split, "tp": None}, "bench": split}}, [], "npu.tp is missing"),
        ({**sides, "parallel_merge": {"npu": split, "bench": {**split, "pp": "1"}}}, [], "bench.pp is not a valid size"),
        ({**sides, "parallel_merge": {"npu": {**split, "tp": True}, "bench": split}}, [], "npu.tp is not a valid size"),
        ({**sides, "parallel_merge": {"npu": {**split, "tp": 2.0}, "bench": split}}, [], "npu.tp is not a valid size"),
        ({**sides, "parallel_merge": {"npu": {**split, "rank_size": 2**64 - 1}, "bench": split}}, [],
         "npu.rank_size is not a valid size"),
        ({**sides, "parallel_merge": {"npu": {**split, "vpp": 0}, "bench": split}}, [], "npu.vpp is not a valid size"),
        ({**sides, "parallel_merge": {"npu": {**split, "order": 5}, "bench": split}}, [], "npu.order must be text"),
        ({**sides, "parallel_merge": {"npu": {**split, "rank_size": 4}, "bench": split}}, [], "rank_size"),
        ({**sides, "parallel_merge": {"npu": split, "bench": split}}, ["--rank_size", "2", "2"],
         "leave out --rank_size"),
        ({**sides, "parallel_merge": {"npu": split, "bench": split}}, ["--file_type", "vis"],
         "--file_type vis is for single ranks"),
        (sides, ["-tp", "x"], "-i names both dumps"),
    ):
        result, files = ask(*options, **keys)
        harness.check_equal(f"{keys}: status", (result.returncode, result.stdout, files), (2, "", []))
        harness.check(reason in result.stderr.splitlines()[0], result.stderr)


def check_refused(msprobe, scratch):
    (scratch / "none").mkdir()
    write_rank(scratch / "procs" / "proc1", {"Torch.a.0.forward": None})
    write_rank(scratch / "procs" / "proc2", {"Torch.a.0.forward": None})
    for folder, reason in (("none", "no dump here"), ("procs", "several proc folders")):
        files, messages = run_failing(msprobe, scratch, scratch / folder)
        harness.check(reason in messages, messages)
        harness.check_equal("files", files, [])


def check_same_bytes(msprobe, scratch, golden):
    for case in ("comm", "steps"):
        results = {build(msprobe, scratch, golden / case / "target", "--jobs", jobs)[0].read_bytes()
                   for jobs in ("1", "2", "4")}
        harness.check_equal(f"{case}: different results", len(results), 1)
    # More nodes than are made at once.
    wide = {f"Torch.w.{i}.forward": "Module.w.W.forward.0" for i in range(3000)}
    data = {name: {"input_args": [{**TENSOR, "Max": float(i)}], "input_kwargs": {}, "output": []}
            for i, name in enumerate(wide)}
    folder = write_rank(scratch / "wide", wide, json.dumps({"task": "statistics", "data": data}))
    path, _ = build(msprobe, scratch, folder, "--jobs", "1")
    rows = rows_of(path, "tb_nodes")
    harness.check_equal("order", [row["node_name"] for row in rows],
                        [*wide, "Module.w.W.forward.0", "DefaultModel"])
    for i in (0, 511, 512, 513, 2999):
        harness.check_equal(f"node {i}", json.loads(rows[i]["input_data"])[f"Torch.w.{i}.forward.input.0"]["Max"],
                            f"{i}.0")
    first = path.read_bytes()
    harness.check(build(msprobe, scratch, folder, "--jobs", "4")[0].read_bytes() == first, "threads make a difference")


def check_progress_lines(msprobe, scratch, golden):
    result = harness.run(msprobe, ["graph_visualize", "-tp", str(golden / "comm" / "target"), "-o", "out",
                                   "-progress_log"], scratch)
    harness.check_equal("exit status", result.returncode, 0)
    lines = [json.loads(line.removeprefix("PROGRESS: ")) for line in result.stdout.splitlines()]
    harness.check_equal("lines", [(line["current_progress"], line["process_running"], line["error_msg"])
                                  for line in lines], [(50.0, True, []), (100.0, True, []), (100.0, False, [])])


def make_tests(msprobe, folder):
    golden = harness.data(folder, "visualize") / "visualize" / "cases"
    return harness.tests_of_script(msprobe=msprobe, golden=golden)


if __name__ == "__main__":
    harness.main(make_tests)
