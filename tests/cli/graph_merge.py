#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that `msprobe graph_visualize` merges, written by hand: which values are put together and how, what other ranks
alone have, what is refused, and ranks of hostile kinds. Values without another remark are those of the Python tool 26.2.

usage: graph_merge.py MSPROBE GOLDEN_FOLDER
"""

import json
import re

import dumps
import harness
from golden_graph import build, rows_of
from golden_graph_merge import values


def tensor(value, shape=(2, 3), dtype="torch.float32"):
    return dumps.tensor(value, shape, dtype)


def call(inputs, outputs, **more):
    described = [[value if isinstance(value, dict) else tensor(value) for value in side] for side in (inputs, outputs)]
    return dumps.call(*described, **more)


def write_model(folder, nodes):
    """`nodes`: name -> (parent, entry)."""
    data = {name: entry for name, (_, entry) in nodes.items() if entry is not None}
    dumps.write_rank(folder, data, construct={name: parent for name, (parent, _) in nodes.items()})


def nodes_of(msprobe, scratch, folder, *options):
    path, messages = build(msprobe, scratch, folder, *options)
    return {row["node_name"]: row for row in rows_of(path, "tb_nodes")}, messages


def sentences(row):
    return json.loads(row["parallel_merge_info"] or "[]")


def check_statistics(msprobe, scratch):
    """Element types, values that are no numbers, items that a rank lacks."""
    nan, inf = float("nan"), float("inf")
    module = "Module.m.M.forward.0"
    for rank in (0, 1):
        write_model(
            scratch / "ranks" / f"rank{rank}",
            {
                module: (None, call([1.0], [2.0 + rank])),
                "Torch.int.0.forward": (module, call([tensor((5 + rank, 1 - rank, 2, 3 + rank), dtype="torch.int64")], [1.0])),
                "Torch.half.0.forward": (
                    module,
                    call([tensor(1.1 + rank, dtype="torch.float16")], [tensor(70000.0 if rank else 1.0, dtype="torch.float16")]),
                ),
                "Torch.brain.0.forward": (module, call([tensor(1.1 + rank, dtype="torch.bfloat16")], [1.0])),
                "Torch.double.0.forward": (
                    module,
                    call([tensor(1.1 + rank, dtype="torch.float64")], [(1.0, 1.0, 1.0, 1.0 + rank * 1e-7)]),
                ),
                "Torch.nan.0.forward": (module, call([nan], [(inf if rank else 2.0, -1.0, nan if rank else 1.0, 3.0)])),
                "Torch.inf.0.forward": (module, call([1.0], [(inf if rank else 2.0, -1.0, 1.0, 3.0)])),
                "Torch.less.0.forward": (module, call([1.0 + rank], [1.0 + rank] + ([] if rank else [9.0]))),
                "Torch.bool.0.forward": (
                    module,
                    call([1.0], [tensor(1.0 + rank, dtype="torch.bool" if rank else "torch.float32")]),
                ),
                "Torch.null.0.forward": (module, call([(1.0 + rank, None, 2.0 + rank, 3.0)], [1.0])),
                "optimizer": (None, None),
                "Torch.step.0.forward": ("optimizer", call([1.0], [2.0 + rank])),
            },
        )
    rows, _ = nodes_of(msprobe, scratch, scratch / "ranks", "--rank_size", "2", "--tp", "2", "--pp", "1")
    for name, column, wanted in (
        ("int", "input_data", [["6", "0", "2.0", "5.0"]]),
        ("half", "input_data", [["2.099609375", "1.099609375", "1.599609375", "2.37109375"]]),
        ("half", "output_data", [["inf", "1.0", "35008.0", "inf"]]),
        ("brain", "input_data", [["2.09375", "1.1015625", "1.6015625", "2.375"]]),
        ("double", "input_data", [["2.1", "1.1", "1.6", "2.3706539182259396"]]),
        ("double", "output_data", [["1.0"] * 4]),
        ("nan", "input_data", [["nan"] * 4]),
        ("nan", "output_data", [["inf", "-1.0", "nan", "4.242640495300293"]]),
        ("less", "output_data", [["2.0", "1.0", "1.5", "2.2360680103302"], ["9.0"] * 4]),
        ("bool", "output_data", [["1.0"] * 4]),
        ("null", "input_data", [["2.0", "null", "2.5", "4.242640495300293"]]),
        ("step", "output_data", [["2.0"] * 4]),
    ):
        harness.check_equal(name, values(rows[f"Torch.{name}.0.forward"], column), wanted)
    rows, _ = nodes_of(msprobe, scratch, scratch / "ranks", "--rank_size", "2", "--tp", "2", "--pp", "1", "-oc")
    # G40: only rank 1 has infinite outputs.
    harness.check_equal("level", rows["Torch.inf.0.forward"]["overflow_level"], "critical")
    harness.check_equal(
        "half",
        sentences(rows["Torch.half.0.forward"])[1:3],
        [
            "The Max value merging method for input.0 is: max(1.1, 2.1) = 2.099609375",
            "The Min value merging method for input.0 is: min(1.1, 2.1) = 1.099609375",
        ],
    )
    harness.check_equal("no number", [text for text in sentences(rows["Torch.null.0.forward"]) if " Min " in text], [])


def check_sums(msprobe, scratch):
    """A value that the ranks sum up at once has the sum, whatever the names; a value that is equal on all ranks stays (G34); a
    sum over other ranks changes nothing."""
    for rank in (0, 1):
        group = {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "tp"}
        other = {"type": "torch.ProcessGroup", "group_ranks": [rank, rank + 2], "group_id": "dp"}
        row = "Module.p.o.Any.forward.0"
        nodes = {
            "Module.p.q.ColumnParallelLinear.forward.0": (None, call([1.0], [2.0], parameters={"weight": tensor(4.0)})),
            row: (None, call([2.0], [3.0], parameters={"weight": tensor(4.0)})),
            "Functional.linear.0.forward": (row, call([2.0, 4.0], [2.5 + rank])),
            "Distributed.all_reduce.0.forward": (row, call([2.5 + rank], [6.0])),
            "Torch.mul.0.forward": (row, call([6.0], [7.0 + rank])),
            "Distributed.all_reduce.1.forward": (row, call([7.0 + rank], [9.0 + rank])),
        }
        for call_number, ranks in enumerate((group, other)):
            nodes[f"Distributed.all_reduce.{call_number}.forward"][1]["input_kwargs"] = {"group": ranks}
        write_model(scratch / "ranks" / f"rank{rank}", nodes)
    rows, messages = nodes_of(msprobe, scratch, scratch / "ranks", "--rank_size", "2", "--tp", "2", "--pp", "1")
    harness.check("differs" not in messages, messages)
    harness.check_equal("sum", values(rows["Functional.linear.0.forward"], "output_data"), [["6.0"] * 4])
    harness.check_equal(
        "said",
        sentences(rows["Functional.linear.0.forward"]),
        ["The output of this data is merged from Distributed.all_reduce.0.forward.output.0"],
    )
    harness.check_equal("of other ranks", values(rows["Torch.mul.0.forward"], "output_data")[0][:3], ["8.0", "7.0", "7.5"])
    for name in ("Module.p.q.ColumnParallelLinear.forward.0", "Module.p.o.Any.forward.0"):
        harness.check_equal(name, rows[name]["parallel_merge_info"], "")


def check_mixed_operations(msprobe, scratch):
    """Two copies of a model, each of two stages of two shards: operations between modules of all ranks are there."""
    for rank in range(8):
        stage, layer = rank // 4, "Module.layers.0.L.forward.0"
        write_model(
            scratch / "ranks" / f"rank{rank}",
            {
                "Torch.a.0.forward": (None, call([1.0 + rank], [1.0])),
                "Torch.b.0.forward": (None, call([1.0], [1.0])),
                layer: (None, call([1.0 + stage], [2.0 + stage])),
            },
        )
    path, _ = build(msprobe, scratch, scratch / "ranks", "--rank_size", "8", "--tp", "2", "--pp", "2")
    rows = {(row["rank"], row["node_name"]): row for row in rows_of(path, "tb_nodes")}
    for first, ranks in ((0, (0, 1, 4, 5)), (2, (2, 3, 6, 7))):
        collections = [f"Apis_Between_Modules_Rank{rank}.0" for rank in ranks]
        gathered = rows[(first, "Apis_Between_Modules_All_Ranks.0")]
        harness.check_equal("collections", json.loads(gathered["sub_nodes"]), collections)
        for rank in ranks:
            name = "Torch.a.0.forward" if rank == first else f"Torch.a_rank{rank}.0.forward"
            row = rows[(first, name)]
            harness.check_equal(
                name, (row["up_node"], values(row, "input_data")), (f"Apis_Between_Modules_Rank{rank}.0", [[f"{1.0 + rank}"] * 4])
            )
        harness.check("Module.layers.1.L.forward.0" in {name for rank, name in rows if rank == first}, "layers")


def check_replicas(msprobe, scratch):
    """A warning names tensors that all ranks of a group hold whole and that differ; sums over another group get none."""
    column, norm = "Module.p.q.ColumnParallelLinear.forward.0", "Module.p.n.Any.forward.0"
    heads, fused = "Module.p.h.RMSNorm.forward.0", "Module.p.f.LayerNormColumnParallelLinear.forward.0"

    def rank(number, drift):
        group = {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "tp"}
        other = {"type": "torch.ProcessGroup", "group_ranks": [number, number + 2], "group_id": "dp"}
        shard = tensor(2.0 + number, (2, 1, 4))
        nodes = {
            norm: (None, call([1.0 + drift], [2.0], parameters={"weight": tensor(4.0 + drift, (3,))})),
            column: (None, call([2.0], [3.0 + number])),
            # A norm of the heads of each rank, and a module that is a norm and a product in one.
            heads: (None, call([shard], [shard], parameters={"weight": tensor(1.0, (4,))})),
            fused: (
                None,
                call([2.0], [5.0 + number], parameters={"norm": tensor(1.0, (3,)), "weight": tensor(6.0 + number, (3, 3))}),
            ),
        }
        for index, (ranks, value) in enumerate(((group, 7.0 + drift), (other, 9.0 + number))):
            name = f"Distributed.all_reduce.{index}.forward"
            nodes[name] = (column, call([1.0], [value]))
            nodes[name][1]["input_kwargs"] = {"group": ranks}
        return nodes

    options = ("--rank_size", "2", "--tp", "2", "--pp", "1")
    for name, drift in (("alike", 0.0), ("different", 0.5)):
        for number in (0, 1):
            write_model(scratch / name / f"rank{number}", rank(number, drift * number))
    _, messages = nodes_of(msprobe, scratch, scratch / "alike", *options)
    harness.check("differs" not in messages, messages)
    _, messages = nodes_of(msprobe, scratch, scratch / "different", *options)
    told = re.findall(r"warning: (\S+) differs between ranks 0 and 1, which should be equal: norms (\S+) and (\S+)", messages)
    harness.check_equal(
        "told",
        told,
        [
            (f"{norm}.input.0", "1.0", "1.5"),
            (f"{norm}.parameters.weight", "4.0", "4.5"),
            ("Distributed.all_reduce.0.forward.output.0", "7.0", "7.5"),
        ],
    )


def check_uneven_stages(msprobe, scratch):
    """Stages of one, three and three layers: by default none is lost, and numbers inside of a layer stay."""

    def stage(rank, layers):
        top, parent = "Module.s.S.forward.0", "Module.s.d.D.forward.0"
        nodes = {top: (None, call([rank + 1.0], [rank + 2.0])), parent: (top, call([rank + 1.0], [rank + 2.0]))}
        for layer in range(layers):
            name = f"Module.s.d.layers.{layer}.L.forward.0"
            nodes[name] = (parent, call([rank * 10.0 + layer], [rank * 10.0 + layer + 1]))
            nodes[f"Module.s.d.layers.{layer}.f.layers.7.F.forward.0"] = (name, call([1.0], [1.0]))
        if rank == 2:
            nodes["Module.s.head.H.forward.0"] = (top, call([5.0], [6.0]))
        return nodes

    for rank, layers in enumerate((1, 3, 3)):
        write_model(scratch / "ranks" / f"rank{rank}", stage(rank, layers))
    options = ("--rank_size", "3", "--tp", "1", "--pp", "3")
    rows, _ = nodes_of(msprobe, scratch, scratch / "ranks", *options)
    layers = [f"Module.s.d.layers.{layer}.L.forward.0" for layer in range(7)]
    harness.check_equal("layers", json.loads(rows["Module.s.d.D.forward.0"]["sub_nodes"]), layers)
    harness.check_equal(
        "inputs",
        [values(rows[name], "input_data")[0][0] for name in layers],
        ["0.0", "10.0", "11.0", "12.0", "20.0", "21.0", "22.0"],
    )
    harness.check("Module.s.d.layers.6.f.layers.7.F.forward.0" in rows, "an inner layer got the number of the outer one")
    for name in ("Module.s.S.forward.0", "Module.s.d.D.forward.0"):
        harness.check_equal(
            name, (values(rows[name], "input_data"), values(rows[name], "output_data")), ([["1.0"] * 4], [["4.0"] * 4])
        )


def check_chunks(msprobe, scratch):
    """Modules of later parts of a stage outside the layers are kept in the first part."""

    def part(rank, chunk):
        top, parent = f"Module.{chunk}.S.forward.0", f"Module.{chunk}.d.D.forward.0"
        value = chunk * 100.0 + rank * 10
        nodes = {
            top: (None, call([value], [value + 1])),
            parent: (top, call([value], [value + 1])),
            f"Module.{chunk}.d.layers.0.L.forward.0": (parent, call([value + 2], [value + 3])),
        }
        if chunk == 1:
            nodes["Module.1.out.Head.forward.0"] = (top, call([7.0], [8.0]))
            nodes[f"Torch.head.{rank}.forward"] = ("Module.1.out.Head.forward.0", call([7.0], [8.0]))
        return nodes

    for rank in (0, 1):
        write_model(scratch / "ranks" / f"rank{rank}", part(rank, 0) | part(rank, 1))
    options = ("--rank_size", "2", "--tp", "1", "--pp", "2", "--vpp", "2")
    rows, _ = nodes_of(msprobe, scratch, scratch / "ranks", *options)
    layers = [f"Module.0.d.layers.{layer}.L.forward.0" for layer in range(4)]
    harness.check_equal("layers", json.loads(rows["Module.0.d.D.forward.0"]["sub_nodes"]), layers)
    harness.check_equal("inputs", [values(rows[name], "input_data")[0][0] for name in layers], ["2.0", "12.0", "102.0", "112.0"])
    harness.check_equal(
        "head",
        (rows["Module.0.out.Head.forward.0"]["up_node"], rows["Torch.head.0.forward"]["up_node"]),
        ("Module.0.S.forward.0", "Module.0.out.Head.forward.0"),
    )
    harness.check_equal("other parts", [name for name in rows if name.startswith("Module.1.")], [])


def check_refused(msprobe, scratch, golden):
    """Status 2, one line with the reason, and no file."""
    ranks = str(golden / "tp_merge" / "target")
    one = {"Torch.a.0.forward": (None, call([1.0], [1.0]))}
    write_model(scratch / "odd" / "rank0", one)
    (scratch / "odd" / "notes").mkdir()
    write_model(scratch / "gap" / "rank0", one)
    (scratch / "gap" / "rank1").mkdir()
    (scratch / "none").mkdir()
    for rank in range(6):
        write_model(scratch / "six" / f"rank{rank}", one)
    most = "2147483647"
    for arguments, reason in (
        ([ranks, "--rank_size", "2"], "--tp is missing"),
        ([ranks, "--tp", "2"], "--rank_size is missing"),
        ([ranks, "--rank_size", "2", "1", "--tp", "2", "--pp", "1"], "--rank_size needs one value"),
        ([ranks, "--rank_size", "4", "--tp", "2", "--pp", "1"], "--rank_size is 4, but there are 2 ranks"),
        ([ranks, "--rank_size", most, "--tp", most, "--pp", most], f"--rank_size is {most}, but there are 2 ranks"),
        ([ranks, "--rank_size", "2147483648", "--tp", "1", "--pp", "1"], "--rank_size 2147483648: not a valid size"),
        ([ranks, "--rank_size", "2", "--tp", "x", "--pp", "1"], "--tp x: not a valid size"),
        ([ranks, "--rank_size", "2", "--tp", "0", "--pp", "1"], "--tp is 0: it must be greater than 0"),
        ([ranks, "--rank_size", "2", "--tp", "1", "--pp", most], f"--pp {most} is more than --rank_size 2"),
        ([ranks, "--rank_size", "2", "--tp", "2", "--pp", "2"], "cannot be divided by --tp 2 times --pp 2"),
        ([ranks, "--rank_size", "2", "--tp", "2", "--pp", "1", "--vpp", "2"], "--vpp 2 needs a --pp greater than 1"),
        ([ranks, "--rank_size", "2", "--tp", "2", "--pp", "1", "--order", "tp-xx"], "--order: xx must be one of"),
        ([ranks, "--rank_size", "2", "--tp", "2", "--pp", "1", "--order", "dp-pp"], "--order: tp is 2, but dp-pp"),
        ([ranks, "--rank_size", "2", "--tp", "2", "--pp", "1", "--order", "tp-tp"], "and only once"),
        ([str(scratch / "six"), "--rank_size", "6", "--tp", "4", "--pp", "1"], "cannot be divided by --tp 4"),
        ([ranks, "-gp", ranks, "--rank_size", "2", "--tp", "2", "--pp", "1"], "--rank_size needs two values"),
        ([ranks, "-gp", ranks, "--rank_size", "2", "2", "--tp", "2", "1", "--pp", "1", "1"], "the target has 1 models and the"),
        (
            [ranks, "-gp", ranks, "--rank_size", "2", "3", "--tp", "2", "1", "--pp", "1", "1"],
            "reference: --rank_size is 3, but there are 2 ranks",
        ),
        (
            [ranks, "-gp", ranks, "--rank_size", "2", "2", "--tp", "2", "2", "--pp", "1", "1", "--file_type", "json"],
            "--file_type json is for a single run",
        ),
        ([str(scratch / "odd"), "--rank_size", "1", "--tp", "1", "--pp", "1"], "notes is not a rank folder"),
        ([str(scratch / "gap"), "--rank_size", "2", "--tp", "2", "--pp", "1"], "rank1/construct.json: "),
        ([str(scratch / "none"), "--rank_size", "1", "--tp", "1", "--pp", "1"], "none: it has no ranks"),
        ([str(scratch / "missing"), "--rank_size", "1", "--tp", "1", "--pp", "1"], "missing: "),
    ):
        result = harness.run(msprobe, ["graph_visualize", "-tp", *arguments, "-o", "out"], scratch)
        harness.check_refused(result, reason)
        harness.check(not (scratch / "out").exists(), f"{arguments}: files")


def check_hostile(msprobe, scratch):
    """Ranks that do not go together, names that look like merged ones, many operations, deep and circular trees:
    a data base that is whole."""
    count = 10000
    group = {"type": "torch.ProcessGroup", "group_ranks": [0, 1, 7, -3, "x"], "group_id": "g"}
    odd = {
        "Torch.a_rank4.0.forward": (None, call([1.0], [1.0])),
        "Torch.b_rank.0.forward": (None, None),
        "Apis_Between_Modules_All_Ranks.0": (None, None),
        "Apis_Between_Modules_Rank1.0": (None, None),
        "Module.layers.99999999999999999999.L.forward.0": (None, call([1.0], [1.0])),
        "_rank4.": (None, None),
        "Module.1.x": (None, None),
        "Module.": (None, None),
        "": (None, None),
        "Distributed.all_reduce.0.forward": (None, {"input_args": [], "input_kwargs": {"group": group}, "output": 3}),
        "Distributed.send.0.forward": (None, {"input_kwargs": {"dst": {"type": "int", "value": 1 << 80}}}),
    }
    columns = {f"Module.x{i}.ColumnParallelLinear.forward.0": ("Module.x", call([1.0], [1.0])) for i in range(2000)}
    chain = {
        f"Module.layers.{i}.L.forward.0": (f"Module.layers.{i - 1}.L.forward.0" if i else None, call([i * 1.0], [1.0]))
        for i in range(5000)
    }
    circle = {f"Module.c{i}.C.forward.0": (f"Module.c{(i + 1) % 50}.C.forward.0", None) for i in range(50)}
    free = {f"Torch.free.{i}.forward": (None, call([1.0], [1.0])) for i in range(count)}
    other = {"Module.y.Y.forward.0": (None, call([1.0], [1.0]))}
    for name, first, second in (
        ("odd", odd, odd),
        ("columns", columns, columns),
        ("chain", chain, chain),
        ("circle", circle, circle),
        ("free", free, free),
        ("different", chain, other),
    ):
        write_model(scratch / name / "rank0", first)
        write_model(scratch / name / "rank1", second)
        for split in (("2", "1", "1"), ("1", "2", "1"), ("1", "2", "2147483647"), ("1", "1", "1")):
            tp, pp, vpp = split
            result = harness.run(
                msprobe,
                [
                    "graph_visualize",
                    "-tp",
                    str(scratch / name),
                    "-o",
                    f"out-{name}-{'-'.join(split)}",
                    "--rank_size",
                    "2",
                    "--tp",
                    tp,
                    "--pp",
                    pp,
                    "--vpp",
                    vpp,
                ],
                scratch,
            )
            harness.check_equal(f"{name} {split}: {result.stderr}", (result.returncode, result.stdout), (0, ""))
            (path,) = (scratch / f"out-{name}-{'-'.join(split)}").iterdir()
            rows = rows_of(path, "tb_nodes")
            place = {(row["rank"], row["node_name"]): row["node_order"] for row in rows}
            for row in rows:
                if row["node_name"] != "DefaultModel":
                    harness.check(place[(row["rank"], row["up_node"])] > row["node_order"], f"{name} {split}: {row['node_name']}")
            if name == "free":
                ranks = 2 * count if tp != "1" or pp != "1" else count
                harness.check_equal(f"{name} {split}", sum(row["node_type"] == "1" and row["rank"] == 0 for row in rows), ranks)


def make_tests(msprobe, folder):
    golden = harness.data(folder, "visualize") / "visualize" / "cases"
    return harness.tests_of_script(msprobe=msprobe, golden=golden)


if __name__ == "__main__":
    harness.main(make_tests)
