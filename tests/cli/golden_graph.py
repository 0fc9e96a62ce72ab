#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the data bases of `msprobe graph_visualize` to those of the Python tool 26.x: with --python-rules each value, and all
but what docs/differences/graph_visualize.md lists. SQLite is Python's own.

usage: golden_graph.py MSPROBE GOLDEN_FOLDER

A case has the folder of a rank, `target` or `golden`, and the rows of the Python tool as JSON, one a line.
"""

import json
import re
import shutil
import sqlite3

import harness

# The keys that a comparison adds to the item of a node; these cases were compared, and here each side is built alone.
COMPARED = {
    *("Max diff", "Min diff", "Mean diff", "L2norm diff"),
    *("MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"),
    *("Requires_grad Consistent", "Result", "Err_message"),
}
PAIRED = {"precision_index", "matched_node_link"}


def rows_of(path, table, key="id"):
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY rowid")]
    harness.check_equal(f"different keys of the rows of {table}", len({row[key] for row in rows}), len(rows))
    return rows


def build(msprobe, scratch, folder, *options):
    out = scratch / "out"
    shutil.rmtree(out, ignore_errors=True)
    result = harness.run(msprobe, ["graph_visualize", "-tp", str(folder), "-o", str(out), *options], scratch)
    harness.check_equal("exit status", (result.returncode, result.stdout), (0, ""))
    (path,) = out.iterdir()
    harness.check(re.fullmatch(r"build_\d{14}\.vis\.db", path.name), path.name)
    return path, result.stderr


def expected_rows(case, table):
    with (case / f"{table}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def as_pairs(text):
    """JSON with the order of its members."""
    return json.loads(text, object_pairs_hook=list)


def with_mended_texts(items):
    """The items as they are without --python-rules: quotes stay."""
    return [
        (name, [(key, re.sub(r"^<class (\w+)>$", r"<class '\1'>", value)) for key, value in item])
        for name, item in items
    ]


def check_items(name, column, got, expected, python_rules):
    if python_rules:
        harness.check_equal(f"{name}: {column}", as_pairs(got), as_pairs(expected))
        return
    got, expected = as_pairs(got), with_mended_texts(as_pairs(expected))
    harness.check_equal(f"{name}: {column}", [key for key, _ in got], [key for key, _ in expected])
    for (key, ours), (_, theirs) in zip(got, expected):
        ours = [member for member in ours if member[0] != "md5"]
        if theirs == [("value", "null")] and len(ours) > 1:
            harness.check_equal(f"{name}: {key}: Max", dict(ours)["Max"], "null")  # G4
        else:
            harness.check_equal(f"{name}: {key}", ours, theirs)


def check_nodes(got, expected, case, python_rules, ignored=()):
    harness.check_equal("nodes", [row["node_name"] for row in got], [row["node_name"] for row in expected])
    for ours, theirs in zip(got, expected):
        name = theirs["node_name"]
        harness.check_equal(f"{name}: columns", list(ours), list(theirs))
        for column, value in theirs.items():
            if column in ignored:
                continue
            if column in ("input_data", "output_data"):
                check_items(name, column, ours[column], value, python_rules)
                continue
            if column == "dump_data_dir" and value is not None:
                value = value.replace("{CASE}", str(case))
            harness.check_equal(f"{name}: {column}", ours[column], value)


# Nodes that nothing connects to the root, and the node that each is below (G1).
UNCONNECTED = {
    "Module.ghost.Ghost.forward.0": "DefaultModel",
    "Torch.orphan.0.forward": "Module.ghost.Ghost.forward.0",
    "Torch.cycle.1.forward": "Apis_Between_Modules.2",
    "Torch.cycle.0.forward": "Apis_Between_Modules.2",
    "Module.self.Self.forward.0": "DefaultModel",
    "Apis_Between_Modules.2": "DefaultModel",
}


MORE_EDGES = {"Distributed.all_reduce.1.forward", "Distributed.batch_isend_irecv.0.forward"}  # G23, G24


def without_unconnected(rows):
    """The rows of the Python tool, without their places behind the nodes that it lacks."""
    kept = [{**row, "node_order": 0, "stack_id": 0} for row in rows if row["node_name"] not in UNCONNECTED]
    for row in kept:
        row["sub_nodes"] = json.dumps([name for name in json.loads(row["sub_nodes"] or "[]") if name not in UNCONNECTED])
    return kept


def check_build(msprobe, scratch, case, expected, options, python_rules):
    path, _ = build(msprobe, scratch, case / "target", *options, *(["--python-rules"] if python_rules else []))
    got, wanted = rows_of(path, "tb_nodes"), expected_rows(expected, "tb_nodes")
    tables = ["tb_stack", "tb_config"]
    if case.name == "tree":
        got, wanted = without_unconnected(got), without_unconnected(wanted)
        tables = []
        (ours,), (theirs,) = rows_of(path, "tb_config"), expected_rows(expected, "tb_config")
        harness.check_equal("tb_config", {**ours, "micro_steps": 1}, theirs)  # G1: a module below the root begins a second one
    if case.name == "comm":
        for row, theirs in zip(got, wanted):
            if row["node_name"] in MORE_EDGES:
                harness.check_equal(f"{row['id']}: edges of the Python tool", theirs["matched_distributed"], "{}")
                harness.check("send_receive" in row["matched_distributed"], row)
                row["matched_distributed"] = "{}"
    check_nodes(got, wanted, case, python_rules)
    for table in tables:
        harness.check_equal(table, rows_of(path, table), expected_rows(expected, table))


def as_built(row, side):
    """The row of a side as it would be without the other one."""
    row = {key: value.replace(f"{side}_0_0", "NPU_0_0", 1) if key.endswith("id") and isinstance(value, str) else value
           for key, value in row.items()}
    row["data_source"] = "NPU"
    for column in ("input_data", "output_data"):
        items = json.loads(row[column])
        row[column] = json.dumps(
            {name: {k: v for k, v in item.items() if k not in COMPARED} for name, item in items.items()}
        )
    return row


def check_side(msprobe, scratch, case, side, folder, ignored, python_rules=True):
    path, _ = build(msprobe, scratch, case / folder, *(["--python-rules"] if python_rules else []))
    expected = [as_built(row, side) for row in expected_rows(case / "expected", "tb_nodes")
                if row["data_source"] == side]
    check_nodes(rows_of(path, "tb_nodes"), expected, case, python_rules, PAIRED | ignored)


def check_schema_and_journal(msprobe, scratch, golden):
    path, _ = build(msprobe, scratch, golden / "tree" / "target")
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as connection:
        made = [row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
        harness.check_equal("integrity", connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        harness.check_equal("encoding", connection.execute("PRAGMA encoding").fetchone(), ("UTF-8",))
    wanted = [statement.strip() for statement in (golden / "schema.sql").read_text().split(";") if statement.strip()]
    harness.check_equal("schema", made, wanted)
    head = path.read_bytes()[:20]
    harness.check_equal("page size and journal mode", (head[16:18], head[18:20]), (b"\x10\x00", b"\x02\x02"))
    harness.check_equal("mode", path.stat().st_mode & 0o777, 0o644)
    # The viewer writes: SQLite itself takes the file up in its journal mode.
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE tb_nodes SET modified = 1 WHERE node_name = 'optimizer'")
    with sqlite3.connect(path) as connection:
        changed = connection.execute("SELECT node_name FROM tb_nodes WHERE modified = 1").fetchall()
    harness.check_equal("changed by a reader", changed, [("optimizer",)])


def check_unconnected_nodes(msprobe, scratch, golden):
    """A node that nothing connects to the root is placed below the root, with a warning."""
    path, messages = build(msprobe, scratch, golden / "tree" / "target")
    rows = {row["node_name"]: row for row in rows_of(path, "tb_nodes")}
    expected = {row["node_name"] for row in expected_rows(golden / "tree" / "expected", "tb_nodes")}
    harness.check_equal("more nodes", set(rows) - expected, set(UNCONNECTED))
    harness.check_equal("lost nodes", expected - set(rows), set())
    for name, parent in UNCONNECTED.items():
        harness.check_equal(name, rows[name]["up_node"], parent)
        harness.check(name in json.loads(rows[parent]["sub_nodes"]), f"{name} is not below {parent}")
        if name not in ("Torch.orphan.0.forward", "Apis_Between_Modules.2"):
            harness.check(f"{name} is unconnected" in messages, messages)


def check_mended_items(msprobe, scratch, golden):
    """Items that say more than the Python tool's."""
    path, _ = build(msprobe, scratch, golden / "rules" / "target")
    rows = {row["node_name"]: row for row in rows_of(path, "tb_nodes")}
    name = "Functional.types.0.forward"
    items = json.loads(rows[name]["input_data"])
    harness.check_equal("torch.Size", items[f"{name}.input.0"], {
        "type": "torch.Size", "value": "[2, 3]", "data_name": "-1", "requires_grad": "null",
        **dict.fromkeys(("Max", "Min", "Mean", "Norm"), "null"), "dtype": "torch.Size", "shape": "[2, 3]"})
    harness.check_equal("device", items[f"{name}.input.7"]["value"], "cpu:None")
    name = "Functional.strarg.0.forward"
    harness.check_equal("text", json.loads(rows[name]["input_data"])[f"{name}.input.0"]["value"], "it's None")
    path, _ = build(msprobe, scratch, golden / "rules_md5" / "target")
    sums = {item.get("md5") for row in rows_of(path, "tb_nodes") for item in json.loads(row["input_data"]).values()}
    dumped = set(re.findall(r'"md5": "(\w+)"', (golden / "rules_md5" / "target" / "dump.json").read_text()))
    harness.check(sums - {None} and sums - {None} <= dumped, f"checksums: {sums}")
    path, _ = build(msprobe, scratch, golden / "odd_names" / "target")
    for row in rows_of(path, "tb_nodes"):
        for column, wrong in (("input_data", ".output."), ("output_data", ".input.")):
            for item in json.loads(row[column]):
                part = item.removeprefix(row["node_name"]) + "."
                harness.check(not part.startswith(wrong), f"{item} is in {column}")


def check_same_bytes(msprobe, scratch, golden):
    for case in ("build_single", "overflow"):
        first = build(msprobe, scratch, golden / case / "target")[0].read_bytes()
        second = build(msprobe, scratch, golden / case / "target", "--jobs", "1")[0].read_bytes()
        harness.check(first == second, f"{case}: two runs differ")


def write_rank(folder, construct, dump='{"task": "statistics", "data": {}}'):
    folder.mkdir(parents=True)
    (folder / "construct.json").write_text(construct if isinstance(construct, str) else json.dumps(construct))
    (folder / "dump.json").write_text(dump)
    return str(folder)


def check_refused(msprobe, scratch, golden):
    """Status 2, one line with the reason, and no file."""
    tree = str(golden / "tree" / "target")
    value = '{"input_args": [{"type": "torch.Tensor", "dtype": "float32", "Max": 1}]}'
    node = {"Torch.a.0.forward": None}
    for arguments, reason in (
        ([], "-tp/--target_path is required"),
        (["-tp", tree + "/dump.json"], "dump.json: not a dump folder"),
        (["-tp", str(scratch / "none")], "none: does not exist"),
        (["-tp", write_rank(scratch / "empty", {})], "construct.json: is empty"),
        (["-tp", write_rank(scratch / "list", "[]")], "construct.json: "),
        (["-tp", write_rank(scratch / "cut", node, '{"data": {"Torch.a.0.forward": ' + value)], "dump.json: "),
        (["-tp", write_rank(scratch / "deep", node, '{"data": {"Torch.a.0.forward": ' + "[" * 5000)], "dump.json: "),
    ):
        result = harness.run(msprobe, ["graph_visualize", *arguments, "-o", "out"], scratch)
        harness.check_refused(result, reason)
        left = list((scratch / "out").iterdir()) if (scratch / "out").exists() else []
        harness.check_equal(f"{arguments}: files", left, [])


def odd_models(count):
    """construct.json of deep, wide and circular models, and of names and parents of every kind."""
    return {
        "chain": {f"Module.m.M{i}.forward.0": f"Module.m.M{i - 1}.forward.0" if i else None for i in range(count)},
        "circle": {f"Module.c.C{i}.forward.0": f"Module.c.C{(i + 1) % 500}.forward.0" for i in range(500)},
        "wide": {f"Torch.w.{i}.forward": "Module.w.W.forward.0" for i in range(count)},
        "odd": {"\ud800x": None, "\ud801x": None, "a\0b": "\ud800x", "": "q", "DefaultModel": "zz",  # noqa: F601 - two surrogates
                "x\ny": "DefaultModel", "Apis_Between_Modules.0": None, "Torch.a.0.forward": None,
                "Torch.b.0.forward": None, "n": 5, "k": ["l", {}]},
    }


def check_odd_structure(msprobe, scratch):
    """They make a data base that is whole, with every node below the root."""
    count = 20000
    nodes_of = {"chain": count + 1, "circle": 501, "wide": count + 2, "odd": 12}
    for name, construct in odd_models(count).items():
        nodes = nodes_of[name]
        path, _ = build(msprobe, scratch, write_rank(scratch / name, construct))
        rows = rows_of(path, "tb_nodes")
        harness.check_equal(f"{name}: nodes", len(rows), nodes)
        with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as connection:
            harness.check_equal(name, connection.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        place = {row["node_name"]: row["node_order"] for row in rows}
        for row in rows[:-1]:
            above = place[row["up_node"]]
            harness.check(above > row["node_order"], f"{name}: {row['node_name']} is not below its parent")
        harness.check_equal(f"{name}: the last", (rows[-1]["node_name"], rows[-1]["up_node"]), ("DefaultModel", ""))


def make_tests(msprobe, folder):
    golden = harness.data(folder, "visualize") / "visualize" / "cases"
    tests = []
    for case in sorted(path for path in golden.iterdir() if path.is_dir()):
        for expected in sorted(case.glob("expected*")):
            graph = expected / "tb_config.jsonl"
            if (case / "cmd.txt").exists() and "--rank_size" in (case / "cmd.txt").read_text():
                continue  # golden_graph_merge
            if not graph.exists() or json.loads(graph.read_text())["graph_type"] != "build":
                continue
            options = ["-oc"] if case.name == "overflow" else []
            for python_rules in (True, False):
                tests.append((
                    f"{case.name}/{expected.name}" + (" --python-rules" if python_rules else ""),
                    lambda scratch, case=case, expected=expected, options=options, python_rules=python_rules:
                        check_build(msprobe, scratch, case, expected, options, python_rules),
                ))
    for case in sorted(golden.iterdir()):
        if not (case / "expected" / "tb_nodes.jsonl").exists() or (case / "expected" / "tb_config.jsonl").exists():
            continue
        for side, folder in (("NPU", "target"), ("Bench", "golden")):
            ignored = {"micro_step_id"} if side == "Bench" else set()
            tests.append((
                f"{case.name}: {folder} --python-rules",
                lambda scratch, case=case, side=side, folder=folder, ignored=ignored:
                    check_side(msprobe, scratch, case, side, folder, ignored),
            ))
    return tests + harness.tests_of_script(msprobe=msprobe, golden=golden)


if __name__ == "__main__":
    harness.main(make_tests)
