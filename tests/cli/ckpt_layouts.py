#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that newer PyTorch spread over ranks (tests/data/ckpt/wild), each against each and against the whole;
with a changed element, with a file that is missing; MindSpore's in inspect and parse.

usage: ckpt_layouts.py MSPROBE DATA_FOLDER
"""

import itertools
import json
import pathlib
import shutil
import struct

import harness
import tensor_files
from ckpt_runs import compare

ALL = {"columns", "plain", "rows", "same", "strided"}
LAYOUTS = ("whole.pt", "dtensor", "hf_writer", "dcp_safetensors")


def equal(msprobe, wild, first, second, scratch):
    result, rows = compare(msprobe, scratch, wild / first, wild / second, "--fail-on", "unequal")
    harness.check_equal(result.stderr, result.returncode, 0)
    harness.check_equal("names", set(rows), ALL)
    harness.check_equal("statuses", {row["Status"] for row in rows.values()}, {"equal"})


def one_file_stands_for_all(msprobe, wild, scratch):
    for name in ("dtensor/model_world_size_4_rank_2.pt", "sharded_tensor/model_world_size_2_rank_1.pt"):
        result, rows = compare(msprobe, scratch, wild / name, wild / "whole.pt")
        harness.check_equal(name, (result.returncode, rows["rows"]["Status"]), (0, "equal"))


def parts_of_fsdp1_are_joined(msprobe, wild, scratch):
    result, rows = compare(msprobe, scratch, wild / "sharded_tensor", wild / "dtensor")
    harness.check_equal("status", result.returncode, 0)
    harness.check_equal("equal", [name for name, row in rows.items() if row["Status"] == "equal"], ["rows"])


def other_files_of_the_program_are_passed_over(msprobe, wild, scratch):
    shutil.copytree(wild / "dtensor", scratch / "actor")
    for kind in ("optim", "extra_state"):
        for rank in range(4):
            name = f"{kind}_world_size_4_rank_{rank}.pt"
            shutil.copy(wild / "dtensor" / f"model_world_size_4_rank_{rank}.pt", scratch / "actor" / name)
    result, rows = compare(msprobe, scratch, "actor", wild / "whole.pt", "--fail-on", "unequal")
    harness.check_equal("status", (result.returncode, set(rows)), (0, ALL))


def a_missing_rank_is_told(msprobe, wild, scratch):
    shutil.copytree(wild / "dtensor", scratch / "three")
    (scratch / "three" / "model_world_size_4_rank_2.pt").unlink()
    result, _ = compare(msprobe, scratch, "three", wild / "whole.pt")
    harness.check_equal("status", result.returncode, 2)
    harness.check("rank 2 of 4 is missing" in result.stderr, result.stderr)
    result, rows = compare(msprobe, scratch, "three", wild / "whole.pt", "--allow-partial")
    harness.check_equal("status", result.returncode, 2)
    # Rank 3 has a copy of what rank 2 has of the columns, and every rank has what is not cut.
    expected = {"columns": "equal", "plain": "equal", "rows": "not comparable", "same": "equal"}
    expected["strided"] = "not comparable"
    harness.check_equal("rows", {name: row["Status"] for name, row in rows.items()}, expected)
    harness.check_equal("note", rows["rows"]["Note"], "none of the files has 14 of its 63 elements")


def change(path, name, index):
    """One float32 element of a safetensors file; nothing if it does not have that tensor."""
    data = bytearray(path.read_bytes())
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    if name in header:
        at = 8 + length + header[name]["data_offsets"][0] + 4 * index
        struct.pack_into("<f", data, at, struct.unpack_from("<f", data, at)[0] + 1)
        path.write_bytes(bytes(data))


def a_changed_element_has_its_place(msprobe, wild, scratch):
    shutil.copytree(wild / "hf_writer", scratch / "hf")
    shutil.copytree(wild / "dcp_safetensors", scratch / "dcp")
    # The second rank has columns 4 to 6 of 5 rows: element 7 of its part is row 2, its column 1.
    for path in [*(scratch / "hf").glob("shard-00002-*"), scratch / "dcp" / "__1_0.distcp"]:
        change(path, "columns", 7)
    for folder in ("hf", "dcp"):
        result, rows = compare(msprobe, scratch, wild / "dtensor", folder, "--fail-on", "different")
        harness.check_equal("status", result.returncode, 1)
        changed = {name: row["First Unequal At"] for name, row in rows.items() if row["Status"] != "equal"}
        harness.check_equal(folder, changed, {"columns": "[2, 5]"})
        harness.check_equal("count", rows["columns"]["Unequal Elements"], "1")


def a_missing_distcp_is_not_comparable(msprobe, data, scratch):
    for source, name in ((data / "ckpt/real/torch_dist", "iter_0000010/__1_0.distcp"),
                         (data / "ckpt/wild/dcp_safetensors", "__1_0.distcp")):
        shutil.rmtree(scratch / "broken", ignore_errors=True)
        shutil.copytree(source, scratch / "broken")
        (scratch / "broken" / name).unlink()
        result, rows = compare(msprobe, scratch, "broken", source)
        harness.check_equal("status", result.returncode, 2)
        states = [row["Status"] for row in rows.values()]
        harness.check("not comparable" in states and "different" not in states, states)
        notes = [row["Note"] for row in rows.values() if row["Status"] == "not comparable"]
        harness.check(all(name.rpartition("/")[2] + ": No such file" in note for note in notes), notes)


def deepspeed_folders_are_read(msprobe, wild, scratch):
    """Held to what DeepSpeed's own zero_to_fp32 makes of them, which leaves out what was frozen at stage 1."""
    names = {"cube", "embedding.weight", "head.weight", "table"}
    frozen = {"frozen.weight", "frozen.bias"}
    for first in ("zero3", "zero3/global_step1", "zero3/global_step1/zero_pp_rank_1_mp_rank_00_model_states.pt"):
        result, rows = compare(msprobe, scratch, wild / first, wild / "zero3_whole.pt", "--fail-on", "unequal")
        harness.check_equal(result.stderr, (result.returncode, set(rows)), (0, names | frozen))
    for first in ("zero1", "zero1/global_step1/mp_rank_00_model_states.pt"):
        result, rows = compare(msprobe, scratch, wild / first, wild / "zero1_whole.pt", "--fail-on", "different")
        alone = {name for name, row in rows.items() if row["Status"] == "only in the first"}
        harness.check_equal(result.stderr, (result.returncode, alone), (1, frozen))
        # The model is in bfloat16, what zero_to_fp32 gives in float32.
        states = {name: row["Status"] for name, row in rows.items() if name not in frozen}
        harness.check_equal("states", states, {name: "equal after rounding" if name != "table" else "equal" for name in names})
    result, rows = compare(msprobe, scratch, wild / "zero3", wild / "zero1_whole.pt")
    harness.check_equal("place", rows["cube"]["Shape 1"], "[3, 2, 5]")


def what_one_side_alone_has(msprobe, scratch):
    """It is a difference, unless it is a table that every model computes anew."""
    weights = {"a.weight": [1.0, 2.0], "b.weight": [3.0]}
    tensor_files.save_lists(scratch / "a.safetensors", weights)
    for name, expected in (
        ("c.weight", (1, 1)),
        ("layers.0.rotary_emb.inv_freq", (0, 1)),
        ("embeddings.position_ids", (0, 1)),
        ("h.0.attn.masked_bias", (0, 1)),
        ("h.0.attn.bias", (0, 1)),
        ("h.0.mlp.bias", (1, 1)),
    ):
        tensor_files.save_lists(scratch / "b.safetensors", {**weights, name: [0.5]})
        for pair in (("a", "b"), ("b", "a")):
            found = []
            for level in ("different", "missing"):
                paths = [scratch / f"{side}.safetensors" for side in pair]
                found.append(compare(msprobe, scratch, *paths, "--fail-on", level)[0].returncode)
            harness.check_equal(f"{name} {pair}", tuple(found), expected)


def megatron_fsdp_dtensor_is_megatron(msprobe, wild, scratch):
    """Its gates lie apart, and its names begin with those of two wrappers."""
    result, rows = compare(msprobe, scratch, wild / "fsdp_dtensor", wild / "fsdp_whole.safetensors", "--fail-on", "missing")
    harness.check_equal(result.stderr, (result.returncode, {row["Status"] for row in rows.values()}), (0, {"equal"}))
    harness.check("decoder.layers.0.mlp.linear_fc1.weight" in rows, list(rows))


def deepspeed_folders_that_lack_something_are_told(msprobe, wild, scratch):
    def broken(action, *reasons):
        shutil.rmtree(scratch / "z", ignore_errors=True)
        shutil.copytree(wild / "zero3", scratch / "z")
        action(scratch / "z" / "global_step1")
        result, _ = compare(msprobe, scratch, "z", wild / "zero3_whole.pt")
        harness.check_equal(f"{reasons}: {result.stderr}", result.returncode, 2)
        harness.check(all(reason in result.stderr for reason in reasons), (reasons, result.stderr))

    name = "zero_pp_rank_{}_mp_rank_00_{}_states.pt"
    broken(lambda f: (f / name.format(1, "optim")).unlink(), "ZeRO stage 3", "there are 1 of them for 2 ranks")
    broken(lambda f: (f / name.format(0, "model")).unlink(), "rank 0 is missing")
    broken(lambda f: [(f / name.format(1, kind)).unlink() for kind in ("model", "optim")],
           "written by 2 ranks, but there are files of 1")
    broken(lambda f: shutil.copy(f / name.format(0, "model"), f / "zero_pp_rank_0_mp_rank_01_model_states.pt"),
           "tensor-parallel ranks is not supported")
    broken(lambda f: shutil.copy(f / name.format(0, "model"), f / "layer_01-model_00-model_states.pt"),
           "split by layers")


def a_lying_note_of_places_is_refused(msprobe, wild, scratch):
    path = scratch / "shard-00001-model-00001-of-00001.safetensors"
    for note in ('{"w": {"saved_offsets": [0.5]}}', '{"w": {"saved_offsets": [[0]]}}', "[]", '{"w": {"other": [0]}}', "{",
                 '{"w": {"saved_offsets": [9223372036854775807]}}', '{"w": {"saved_offsets": [0, 0]}}',
                 '{"w": {"saved_offsets": [-1]}}'):
        header = {"__metadata__": {"DCP_SHARDING_INFO": note},
                  "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
        result, rows = compare(msprobe, scratch, path.name, path.name)
        harness.check_equal(note + result.stderr, result.returncode, 2)
        harness.check(path.name in result.stderr or "another number of dim" in rows["w"]["Note"], result.stderr)


def mindspore_in_inspect_and_parse(msprobe, data, scratch):
    for name in ("mindspore.ckpt", "mindspore_crc.ckpt"):
        shutil.copy(data / "ckpt" / name, scratch / name)
        result = harness.run(msprobe, ["inspect", "--json", "--statistics", name], scratch, status=0)
        file = json.loads(result.stdout)["file"]
        harness.check_equal("container", file["container"], "MindSpore checkpoint")
        shapes = {tensor["name"]: (tensor["dtype"], tensor["shape"]) for tensor in file["tensors"]}
        harness.check_equal("weight", shapes["backbone.weight"], ("float32", [3, 4]))
        harness.check_equal("cut", shapes["backbone.cut"], ("float32", [10]))
        result = harness.run(msprobe, ["parse", "-d", name, "-t", "safetensors", "-o", "out"], scratch, status=0)
        result, rows = compare(msprobe, scratch, name, f"out/{name}.safetensors", "--optimizer", "--fail-on", "unequal")
        harness.check_equal(result.stderr, (result.returncode, len(rows)), (0, len(shapes)))
    whole = (data / "ckpt" / "mindspore.ckpt").read_bytes()
    (scratch / "cut.ckpt").write_bytes(whole[:-20])
    for words in (["inspect", "cut.ckpt"], ["parse", "-d", "cut.ckpt", "-o", "broken"]):
        result = harness.run(msprobe, words, scratch, status=2)
        harness.check("not a complete MindSpore checkpoint: truncated" in result.stderr, result.stderr)


def make_tests(msprobe, data):
    data = pathlib.Path(data).resolve()
    wild = data / "ckpt" / "wild"
    tests = [
        (f"{first} is {second}", lambda scratch, pair=(first, second): equal(msprobe, wild, *pair, scratch))
        for first, second in itertools.combinations(LAYOUTS, 2)
    ]
    return tests + harness.tests_of_script(msprobe=msprobe, wild=wild, data=data)


harness.main(make_tests)
