# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the reader targets beside this script: python make_seeds.py [TARGET...]. Needs the standard
library only.

Real files are taken from tests/data/formats; the rest is what such files seldom hold but readers must expect.
"""
import argparse
import collections
import io
import json
import pathlib
import pickle
import shutil
import struct
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cli"))
import harness
import weight_seeds
from seed_files import HERE, put, safetensors
from tensor_files import field, varint

DATA = harness.data(HERE.parents[1] / "data", "formats", "ckpt", "golden")
FIXTURES = DATA / "formats"
ANOMALY = DATA / "golden" / "anomaly"
GRAPHS = DATA / "golden" / "visualize" / "cases"
CONFIG = DATA / "golden" / "config_check"
CKPT = DATA / "ckpt"
REAL_CKPT = CKPT / "real"
GOLDEN_CKPT = DATA / "golden" / "ckpt" / "checkpoints"
GOLDEN = DATA / "golden" / "parse"


def packed(entries, method=zipfile.ZIP_STORED, force_zip64=False, comment=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.comment = comment
        for name, data in entries:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=force_zip64) as entry:
                entry.write(data)
    return out.getvalue()


def records(fixture):
    with zipfile.ZipFile(FIXTURES / fixture) as archive:
        return [(info.filename, archive.read(info)) for info in archive.infolist()]


def small(fixture, method=zipfile.ZIP_STORED):
    """The same file without what only takes room."""
    needed = [r for r in records(fixture) if r[0].split("/", 1)[1] in ("data.pkl", "byteorder", "data/0")]
    return packed(needed, method)


class Runs:
    """Would print if it were unpickled by Python; must only be named by us."""

    def __reduce__(self):
        return print, ("ran",)


def pickles():
    value = {
        "numbers": [0, 1, 255, 65535, -1, 1 << 40, -(1 << 70), 0.5, float("inf")],
        "text": ["", "short", "é😀", "x" * 300],
        "bytes": [b"", b"\0\xff", bytearray(b"mutable")],
        "nested": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {"a": {"b": []}}, {1, 2}, frozenset([3])),
        "none": [None, True, False],
        "ordered": collections.OrderedDict(a=1),
        "default": collections.defaultdict(list, {"k": []}),
        "args": argparse.Namespace(lr=0.1, name="n"),
        "call": Runs(),
    }
    value["shared"] = value["numbers"]
    for protocol in range(6):
        put("pickle", f"protocol_{protocol}.pkl", pickle.dumps(value, protocol))
    cycle = []
    cycle.append(cycle)
    put("pickle", "cycle.pkl", pickle.dumps(cycle, 2))
    put("pickle", "nested.pkl", b"]" * 300 + b"a" * 299 + b".")
    put("pickle", "laughs.pkl", b"N" + b"2\x86" * 60 + b".")
    put("pickle", "old_calls.pkl", b"(cm\nf\nI1\no(S'a\\x41'\nim\nf\nL5L\nF1.5\nV\\u00e9\np1\ng1\nt.")
    put("pickle", "odd_numbers.pkl", b"(I 5 \nI0x1_f\nL123456789012345678901234567890L\nI-0b1\0x\nNp1_0\ng+10\nh\x0at.")
    put("pickle", "memo_order.pkl", b"(Nq\x01q\x00q\x01]\x94h\x02\x8c\x02os\x94\x8c\x06system\x94\x93h\x03t.")
    put("pickle", "not_values.pkl", b"(U\x06modulecm\nf\nNNtQ)Rcm\nf\n(N}tb0\x82\x05N\x98S'\\160osix'\nVs\n\x93)R.")
    put("pickle", "two.pkl", b"K\x01.K\x02.")
    put("pickle", "lies.pkl", b"\x80\x04\x95\xff\x00\x00\x00\x00\x00\x00\x00\x8d\xff\xff\xff\xff\x34\x00\x00\x00hi.")
    for name in ["type_float32", "view_slice", "parameter_with_state", "type_float8_e4m3fn", "tensor_with_attribute"]:
        data = {n.split("/", 1)[1]: d for n, d in records(f"{name}.pt")}["data.pkl"]
        put("pickle", f"{name}.pkl", data)


def torch_files():
    for name in [
        "type_float32", "type_bfloat16", "type_float8_e5m2", "type_bool", "type_qint8", "type_uint16", "scalar", "empty",
        "view_slice", "view_permuted", "view_expanded", "conjugated", "negated", "parameter", "parameter_with_state",
        "subclass", "npu_format", "big_endian", "refused_dict",
    ]:
        put("torch_file", f"{name}.pt", small(f"{name}.pt"))
    put("torch_file", "deflated.pt", small("view_slice.pt", zipfile.ZIP_DEFLATED))
    for name in ["type_float64.pt", "legacy_view.pt", "legacy_float32.pt", "legacy_float8_e5m2.pt"]:
        put("torch_file", name, (FIXTURES / name).read_bytes())


def zips():
    two = [("a/data.pkl", b"\x80\x02N."), ("a/data/0", b"0123456789" * 20)]
    put("zip", "stored.zip", packed(two))
    put("zip", "deflated.zip", packed(two, zipfile.ZIP_DEFLATED))
    put("zip", "zip64.zip", packed(two, force_zip64=True))
    put("zip", "comment.zip", packed(two, comment=b"PK\x05\x06 a comment"))
    put("zip", "empty.zip", packed([]))
    put("zip", "many.zip", packed([(f"n{i}", b"") for i in range(12)]))
    put("zip", "bomb.zip", packed([("zeros", bytes(200_000))], zipfile.ZIP_DEFLATED))
    put("zip", "torch.zip", (FIXTURES / "type_int8.pt").read_bytes())


def npys():
    for name in ["f4", "big_c16", "fortran", "3_0", "scalar", "empty", "bfloat16", "python2", "b1"]:
        put("npy", f"{name}.npy", (FIXTURES / f"npy_{name}.npy").read_bytes())
    for name in ["object", "structured", "text"]:
        put("npy", f"{name}.npy", (FIXTURES / f"refused_{name}.npy").read_bytes())


def npzs():
    array = (FIXTURES / "npy_f4.npy").read_bytes()
    entries = [("a.npy", array), ("deep/b.npy", (FIXTURES / "npy_fortran.npy").read_bytes()), ("note", b"text")]
    put("npz", "stored.npz", packed(entries))
    put("npz", "deflated.npz", packed(entries, zipfile.ZIP_DEFLATED))
    put("npz", "zip64.npz", packed(entries[:1], force_zip64=True))
    put("npz", "object.npz", packed([("o.npy", (FIXTURES / "refused_object.npy").read_bytes())]))
    put("npz", "two_of_one_name.npz", packed([("a.npy", array), ("b.npy", array)]).replace(b"b.npy", b"a.npy"))
    put("npz", "empty_member.npz", packed([("a.npy", b""), ("b.npy", array[:20])]))
    put("npz", "none.npz", packed([]))
    put("npz", "bomb.npz", packed([("a.npy", array[:128] + bytes(1 << 16))], zipfile.ZIP_DEFLATED))


def safetensors_files():
    for name in ("every_type", "none"):
        shutil.copy(HERE.parents[1] / "data" / "tensor_sets" / f"{name}.safetensors", HERE / "safetensors")

    def entry(dtype, shape, begin, end):
        return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}

    two = {"a": entry("F32", [2], 0, 8), "b": entry("BF16", [1, 2], 8, 12)}
    cases = {
        "two": (two, bytes(12)),
        "metadata": ({"__metadata__": {"k": "v", "\u00e9": ""}, **two}, bytes(12)),
        "scalar_and_empty": ({"s": entry("I64", [], 0, 8), "e": entry("U8", [0, 7], 8, 8)}, bytes(8)),
        "narrow": ({"f": entry("F8_E4M3", [3], 0, 3), "n": entry("F4", [4], 3, 5)}, bytes(5)),
        "hole": ({"a": entry("U8", [1], 0, 1), "b": entry("U8", [1], 2, 3)}, bytes(3)),
        "overlap": ({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, bytes(3)),
        "overflow": ({"a": entry("F64", [1 << 62, 1 << 62], 0, 8)}, bytes(8)),
        "reversed": ({"a": entry("U8", [1], 1, 0)}, bytes(1)),
        "too_short": (two, bytes(11)),
        "too_long": (two, bytes(13)),
        "odd_numbers": (b'{"a":{"dtype":"U8","shape":[-1,1.5],"data_offsets":[0,18446744073709551616]}}', b"\0"),
        "two_of_one_name": (b'{"a":%s,"a":%s}' % ((json.dumps(entry("U8", [1], 0, 1)).encode(),) * 2), b"\0"),
        "nested": (b'{"a":' + b"[" * 400 + b"]" * 400 + b"}", b""),
    }
    for name, (header, data) in cases.items():
        put("safetensors", f"{name}.safetensors", safetensors(header, data))
    put("safetensors", "long_header.safetensors", (1 << 62).to_bytes(8, "little") + b"{}")


def atb_bins():
    for path in sorted(GOLDEN.glob("atb/in/*/*")):
        put("atb_bin", path.stem.split("_")[0], path.read_bytes())
    put("atb_bin", "link", b"dtype=0\ndims=2\ndata=other.bin\n$End=1\n")
    put("atb_bin", "twice", b"$Version=1.0\ndims=1\n$End=1\nabcd" * 2)


def adumps():
    for path in sorted(GOLDEN.glob("adump/in/*")):
        if path.name != "Npy.input.48.5.npy":
            put("adump", ".".join(path.name.split(".")[:2]), path.read_bytes())
    slices = (
        b'{"threadMode": 1, "slice_instance_num": 2, "input_tensor_slice": [[[]], '
        b'[[{"lower": 0, "higher": 2}, {"lower": 1, "higher": 4}]]], "output_tensor_slice": [[], []]}'
    )
    tensor = field(1, 4) + field(2, 2) + field(3, field(1, varint(2) + varint(3))) + field(5, 6)
    header = field(1, b"2.0") + field(4, tensor) + field(7, field(1, b"slices") + field(2, slices))
    put("adump", "slices", len(header).to_bytes(8, "little") + header + b"abcdef")
    record = field(3, field(1, 4) + field(3, field(1, 2048)) + field(6, 2048))
    put("adump", "old_op_debug", len(record).to_bytes(8, "little") + record + bytes(range(256)) * 8)


class Metadata:
    def __init__(self, **members):
        self.__dict__.update(members)


def dcps():
    put("dcp", "torch_dist", (GOLDEN_CKPT / "torch_dist_synthetic" / "iter_0000005" / ".metadata").read_bytes())
    put("dcp", "four_ranks", (REAL_CKPT / "dcp4" / ".metadata").read_bytes())

    def chunk(offsets, sizes):
        return Metadata(offsets=offsets, sizes=sizes)

    properties = Metadata()
    properties.dtype = Metadata
    tensors = {
        "w": Metadata(properties=properties, size=(4, 6), chunks=[chunk((0, 0), (4, 2)), chunk((0, 2), (4, 4))]),
        "gap": Metadata(properties=properties, size=(9,), chunks=[chunk((0,), (4,)), chunk((5,), (4,))]),
        "object": Metadata(),
    }
    places = {
        Metadata(fqn="w", offset=(0, 0)): Metadata(relative_path="a", offset=0, length=9, transform_descriptors=None),
        Metadata(fqn="object", offset=None): Metadata(relative_path="../a", offset=9, length=9),
    }
    text = pickle.dumps(Metadata(state_dict_metadata=tensors, storage_data=places), protocol=2)
    put("dcp", "small", text.replace(b"c__main__\nMetadata\nq", b"ctorch\nfloat32\nq"))


def marked(paths):
    """Files of PyTorch's as fuzz_checkpoint.hpp takes them: sizes of storages and the pickle, a mark in between."""
    texts = []
    for path in paths:
        with zipfile.ZipFile(path) as archive:
            files = {info.filename.split("/", 1)[1]: info for info in archive.infolist()}
            sizes = [files[f"data/{i}"].file_size if f"data/{i}" in files else 0 for i in range(8)]
            texts.append(struct.pack("<8H", *sizes) + archive.read(files["data.pkl"]))
    return b"\xff\xfemark".join(texts)


def rank_shards():
    for name in ("dtensor", "sharded_tensor"):
        put("rank_shards", name, marked(sorted((CKPT / "wild" / name).glob("*.pt"))))


def deepspeeds():
    for name, stage in (("zero1", b"\0"), ("zero3", b"\1")):
        folder = CKPT / "wild" / name / "global_step1"
        paths = [path for kind in ("model", "optim") for path in sorted(folder.glob(f"*{kind}_states.pt"))]
        put("deepspeed", name, stage + marked(paths))


def mindspore_ckpts():
    put("mindspore_ckpt", "whole", (CKPT / "mindspore.ckpt").read_bytes())
    put("mindspore_ckpt", "checksum", (CKPT / "mindspore_crc.ckpt").read_bytes())

    def value(name, dims, kind, content):
        tensor = b"".join(field(1, n) for n in dims) + field(2, kind) + field(3, content)
        return field(1, field(1, name) + field(2, tensor))

    packed_dims = field(1, field(1, b"p") + field(2, field(1, b"\2\1") + field(2, b"Int8") + field(3, b"ab")))
    put("mindspore_ckpt", "odd", value(b"w", [1 << 62, 0, 4], b"Float32", b"") + packed_dims + field(9, 3))
    put("mindspore_ckpt", "map", field(1, field(1, b"m") + field(3, b"\x0a\0")) + value(b"b", [2], b"Bool", b"\0\1"))


def construct_jsons():
    chain = {f"n{i}": f"n{i + 1}" for i in range(40)} | {"Torch.exp.0.forward": "n0", "n40": "n7"}
    put("construct_json", "circle.json", json.dumps(chain).encode())
    value = {"Torch.exp.0.forward": ["Module.a.A.forward.0", 3], "Module.a.A.forward.0": None, "x": "", "y": [None, 0]}
    put("construct_json", "micro_steps.json", json.dumps({**value, "megatron_micro_step_number": 3}, indent=1).encode())
    odd = b'{"Torch.exp.0.forward": [["a"], {"b": "c"}], "\\u00e9": true, "d": 1.5e3, "e": "\\ud800"}'
    put("construct_json", "odd.json", odd)
    put("construct_json", "deep.json", b'{"a":' + b"[" * 500)


def graphs():
    def put_ranks(name, rules, *folders):
        """Without blanks, because a mutated seed is cut off at 16 KiB."""
        files = [json.loads((folder / f"{file}.json").read_text()) for folder in folders for file in ("construct", "dump", "stack")]
        put("graph", name, rules + b"\xff\xfemark".join(json.dumps(file, separators=(",", ":")).encode() for file in files))

    for case in ("megatron", "odd_names", "recompute_root", "rules", "tree"):
        put_ranks(case, b"\0", GRAPHS / case / "target")
    put_ranks("tree_python", b"\1", GRAPHS / "tree" / "target")
    put_ranks("comm", b"\0", *(GRAPHS / "comm" / "target" / f"rank{rank}" for rank in range(2)))
    put_ranks("merged_python", b"\3", *(GRAPHS / "tp_merge" / "target" / f"rank{rank}" for rank in range(2)))
    put_ranks("stages", b"\4", *(GRAPHS / "pp_merge" / "target" / f"rank{rank}" for rank in range(2)))
    put("graph", "split", split_ranks())


def split_ranks():
    """Two ranks and the whole: shards, terms of a sum, copies, placements."""

    def tensor(shape, value, *placement):
        numbers = dict.fromkeys(("Max", "Min", "Mean", "Norm"), value)
        more = {"placements": list(placement)} if placement else {}
        return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape, **numbers, "requires_grad": False, **more}

    module = "Module.m.M.forward.0"
    files = []
    for rank in range(3):
        width = 8 if rank == 2 else 4
        entry = {
            "input_args": [tensor([2, width], 1.0 + rank, {"Shard": {"dim": 1}}), tensor([3], 2.0, {"Replicate": {}})],
            "input_kwargs": {"x": tensor([width, 2], 0.5)},
            "output": [tensor([2, 2], 1.5 + rank), tensor([2], 3.0 + rank, {"Partial": {"reduce_op": "sum"}})],
        }
        data = {"Torch.f.0.forward": entry, module: {**entry, "parameters": {"w": tensor([width], 1.0)}}}
        files.append(json.dumps({"Torch.f.0.forward": module, module: None}).encode())
        files.append(json.dumps({"task": "statistics", "level": "mix", "framework": "pytorch", "data": data}).encode())
        files.append(b"{}")
    return b"\x0a" + b"\xff\xfemark".join(files[:8])


def rank_scans():
    names = [
        "a04_spellings/step0/rank0", "a06_nested_list_missed/step0/rank0", "a13_send_recv_source_compute/step0/rank1",
        "a15_broadcast_group/step0/rank0", "a27_scatter_positional_list/step0/rank1", "a32_batch_isend_irecv/step0/rank0",
        "a34_short_comm_name/step0/rank0", "a09_backward_and_module/step0/rank0",
    ]
    for name in names:
        data = json.loads((ANOMALY / "cases" / name / "dump.json").read_text())
        put("rank_scan", name.split("/")[0] + ".json", json.dumps(data, separators=(",", ":")).encode())
    twice = b'{"data": {"Distributed.send.0.forward": {"input_kwargs": {"dst": {"value": 1}, "dst": null}, "output":'
    put("rank_scan", "twice.json", twice + b'[{"Max": "nan\\t", "Max": 1e999}]}}, "task": "x"}')


def packs():
    for path in sorted((CONFIG / "zip_security").glob("*.zip")) + sorted((CONFIG / "packs").glob("*.zip")):
        put("pack", path.name, path.read_bytes())


def pack_contents():
    def sides(bench, cmp):
        def side(members):
            parts = []
            for name, content in members.items():
                text = content if isinstance(content, str) else json.dumps(content, separators=(",", ":"))
                parts.append(name.encode() + b"\0" + text.encode() + b"\0")
            return b"".join(parts)

        return side(bench) + b"--\0\0" + side(cmp)

    for name, case in json.loads((CONFIG / "edge_packs" / "cases.json").read_text(encoding="utf-8")).items():
        put("pack_contents", name, sides(case["bench"], case["cmp"]))
    cases = json.loads((CONFIG / "hyper_compare" / "compare_param_cases.json").read_text(encoding="utf-8"))
    member = "hyperparameters/hyperparameters_static.json"
    for name in ("mapping", "dup_value", "fuzzy_pair", "dotted_collision", "case"):
        put("pack_contents", f"hyper_{name}", sides({member: cases[name]["bench"]}, {member: cases[name]["cmp"]}))
    whole = []
    for side in ("bench", "cmp"):
        with zipfile.ZipFile(CONFIG / "packs" / f"{side}.zip") as archive:
            names = [n for n in archive.namelist() if "step1" not in n and "rank1" not in n]
            whole.append({n: archive.read(n).decode() if n == "pip" else json.loads(archive.read(n)) for n in names})
    put("pack_contents", "whole", sides(*whole))


def shell_scripts():
    for path in sorted((CONFIG / "static_parse").glob("*.sh")):
        put("shell_script", path.stem, path.read_bytes())
    put("shell_script", "odd", b"""A=(a "b c" $'d\\n')\nA+=(${A[@]})\ncat <<-'E' >f 2>&1\n\tx\n\tE
for i in 1; do if ! true; then export B="${A[1]:-x}" C=${D:+y}; fi; done
eval env X=1 torchrun "${A[@]}" ${B-$(date "+%s")} `ls` $((1+2)) --a=${#A} -m x y=1 <(z) &>w & ((1)); f() { :; }
""")


def verl_logs():
    for path in sorted((CONFIG / "verl").glob("*.*")):
        if path.suffix in (".log", ".txt"):
            put("verl_log", path.name, path.read_bytes())
    put("verl_log", "pretty", b'P {\nP   "actor_rollout_ref" : {"a": "\\ud83d\\ude00", "b": -Infinity},\nP   "c": [\n]\nP }')
    put("verl_log", "times", b"[10:01] {'actor_rollout_ref': {1: (1, 'a' 'b'), True: {}},\n[10:02]  'x': 0x, 'y': .5e-3}")


def graph_files():
    node = (b'  %1(CNode_3) = PrimFunc_MatMul(%para1_x, Tensor(shape=[2], dtype=Float32, value=\n[ 1.0 2.0]), Bool(1))\n'
            b"      : (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)\n      # Fullname with scope: (Default/fc-Dense/MatMul-op2)\n"
            b"      # In file net.py:8~10, 4~32/    def construct(self, x):/\n")
    put("code_mapping", "node", b"# IR entry: @1_net\nsubgraph @1_net() {\n" + node + b"}\n")
    put("code_mapping", "parts", node + node.replace(b"op2", b"op21") + b"Default_fc-Dense_MatMul-op2_Default_fc-Dense_MatMul-op21\n" * 9)


def yamls():
    for path in sorted((CONFIG / "static_parse").glob("*.yaml")):
        put("yaml", path.stem, path.read_bytes())
    laughs = b"a: &a [x,x]\n" + b"".join(b"%c: &%c [*%c,*%c]\n" % (c, c, c - 1, c - 1) for c in range(98, 123))
    put("yaml", "laughs", laughs)
    merges = b"a: &a {x: 1}\n" + b"".join(b"%c: &%c {<<: [*%c,*%c]}\n" % (c, c, c - 1, c - 1) for c in range(98, 123))
    put("yaml", "merges", merges)
    put("yaml", "styles", b"%YAML 1.1\n---\n? |\n  k\n: >-\n  v\n...\n")
    put("yaml", "tags", b"- !!float 1\n- !!timestamp 2024-01-02\n- ! x\n- !<tag:yaml.org,2002:int> 0x_f\n- 190:20:30.5\n")


def facts(choices, *changes):
    """As fuzz_facts.hpp takes it: a byte a choice, and of each change which fact, how, with what."""
    return bytes(choices) + b"".join(struct.pack("<HBB", *change) for change in changes)


def dcp_folders():
    # Megatron, safetensors, ranks, tensors, axes.
    put("dcp_folder", "plain", facts([0, 0, 1, 2, 1]))
    put("dcp_folder", "safetensors", facts([0, 1, 1, 2, 2]))
    put("dcp_folder", "stacked", facts([1, 0, 2, 2, 2]))
    put("dcp_folder", "one_file", facts([0, 0, 0, 0, 0]))
    put("dcp_folder", "wrong_numbers", facts([0, 0, 1, 2, 1], (5, 0, 11), (40, 2, 0), (90, 5, 0)))
    put("dcp_folder", "wrong_names", facts([1, 1, 2, 1, 2], (20, 1, 3), (60, 0, 3), (110, 2, 100)))
    put("dcp_folder", "cut", facts([1, 0, 1, 1, 0], (130, 0, 200), (131, 1, 90)))


def graph_merges():
    # tp, pp, dp, vpp, layers, backward, rules (1 of Python, 2 JSON, 4 beside a run, 8 that is not tensor parallel).
    put("graph_merge", "shards", facts([1, 0, 0, 0, 1, 1, 0]))
    put("graph_merge", "stages", facts([0, 2, 0, 0, 1, 1, 0]))
    put("graph_merge", "chunks", facts([0, 1, 0, 1, 1, 1, 0]))
    put("graph_merge", "both", facts([1, 1, 0, 1, 0, 1, 12]))
    put("graph_merge", "copies", facts([1, 0, 1, 0, 0, 0, 4]))
    put("graph_merge", "python", facts([1, 1, 0, 1, 0, 1, 1]))
    put("graph_merge", "json", facts([1, 0, 0, 0, 0, 1, 2]))
    put("graph_merge", "wrong_names", facts([1, 1, 0, 0, 0, 0, 0], (30, 1, 4), (301, 1, 9), (700, 3, 80)))
    put("graph_merge", "wrong_numbers", facts([1, 1, 0, 1, 0, 1, 12], (12, 1, 3), (55, 1, 15), (400, 0, 0)))
    put("graph_merge", "no_utf8", bytes.fromhex("0002001b0000004f026c6576126c0000b505016100"))
    put("graph_merge", "cut", facts([1, 0, 0, 0, 0, 0, 4], (199, 0, 128), (230, 1, 50), (243, 3, 10)))


def monitor_trees():
    # Command (compare, analyze, alerts, csv2tb, data2db, report), ranks, steps, layout of the second monitor.
    for number, command in enumerate(("compare", "analyze", "alerts", "csv2tb", "data2db", "report")):
        put("monitor_tree", command, facts([number, 1, 3, number % 2]))
    put("monitor_tree", "wrong_names", facts([0, 1, 2, 0], (0, 1, 0), (3, 0, 4), (20, 0, 5), (200, 1, 7)))
    put("monitor_tree", "wrong_numbers", facts([5, 0, 3, 1], (13, 0, 13), (16, 1, 4), (300, 1, 7), (310, 1, 15)))
    put("monitor_tree", "quantity_alone", facts([5, 0, 1, 1], (1, 3, 1)))
    put("monitor_tree", "cut", facts([4, 0, 2, 0], (50, 0, 100), (51, 1, 90), (120, 0, 30)))


def packet_kinds():
    # A kind, three changes, and numbers for its members.
    for kind in range(13):
        put("packets", f"kind_{kind}", bytes([kind]) + bytes(9) + bytes(range(1, 120)))
    no_boolean = (
        "002d2e2f3031323334353637383b3a3b3c3d3e3f404142434c00000048494a4b4c4d4e4f505152535455565758595a5b5ca3"
        "a1a0a36162636465666768696a6b6c6d6e6f7071727374757677"
    )
    put("packets", "table", bytes([13]) + bytes((i * 29 + 7) % 251 for i in range(24)))
    put("packets", "no_boolean", bytes.fromhex(no_boolean))
    for kind in (0, 1, 10, 11):
        contents = bytes((i * 37 + kind) % 251 for i in range(90))
        put("packets", f"cut_{kind}", bytes([kind, 60, 0, 7, 20, 0, 13, 5, 0, 255]) + contents)


def online_messages():
    """The first message of a training and some that follow, a line each."""
    begin = {"folder": "f", "cases": "c", "python": "p", "device": "cpu", "timeout": 1, "tensors": 3, "replies": 4}
    call = {"call": 1, "type": "Torch", "name": "sin", "number": 0, "step": 2, "leaf": "rank0", "follows": True, "place": "a (B)", "where": "x.py:1", "frames": ["f"],
            "blocks": [[0, 8]], "tensors": {"Torch.sin.0.forward.input.0.pt": ["torch.float32", [2], 0]},
            "entry": {"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2]}], "input_kwargs": {}, "output": []}}
    backward = {"backward": 1, "blocks": [], "tensors": {}, "entry": {"input": [], "output": []}}
    skipped = {"skipped": 3, "type": "Functional", "name": "dropout", "number": 0, "step": 2, "leaf": "proc7", "reason": "its result is random"}

    def lines(*messages):
        return b"".join(json.dumps(message).encode() + b"\n" for message in messages)

    put("online_messages", "step", lines({"begin": begin}, call, backward, skipped, {"unused": 0, "blocks": [[0, 8]]}, {"step_ends": 2}, {"end": 0}))
    put("online_messages", "lists", lines({"begin": dict(begin, white_list=["sin"], black_list=["cos"], operations=[["Torch", "sin"]])}))
    put("online_messages", "folder", lines({"begin": begin}, dict(call, file=1), {"step_ends": 2, "file": 1}))
    put("online_messages", "odd", lines({"begin": dict(begin, operations=[[1]])}, dict(call, tensors={"../a": ["torch.int4", [-1], -1]}), dict(call, leaf="..")))


def runner_answers():
    # Type, kind of output, outputs, backward, bytes of the elements.
    put("runner_answer", "one", facts([0, 0, 0, 1, 0]))
    put("runner_answer", "list", facts([4, 1, 2, 0, 0]))
    put("runner_answer", "tuple", facts([2, 2, 2, 1, 1]))
    put("runner_answer", "mixed", facts([6, 3, 2, 0, 3]))
    put("runner_answer", "nan", facts([1, 0, 0, 1, 3]))
    put("runner_answer", "wrong_numbers", facts([3, 0, 0, 1, 0], (13, 0, 11), (16, 2, 1), (20, 0, 8)))
    put("runner_answer", "wrong_names", facts([0, 1, 1, 1, 0], (9, 1, 2), (12, 0, 10), (30, 1, 3)))
    put("runner_answer", "nowhere", facts([6, 0, 0, 1, 0], (36, 0, 13)))
    put("runner_answer", "error", facts([0, 0, 0, 0, 0], (26, 0, 0), (27, 0, 0)))


def vis_databases():
    # tp, calls, backward, how (1 overflow, 2 files of 8.x, 4 beside a run, 8 by the rules of Python).
    put("vis_database", "alone", facts([0, 1, 1, 1]))
    put("vis_database", "pair", facts([1, 0, 1, 5]))
    put("vis_database", "vis", facts([0, 0, 1, 6]))
    put("vis_database", "python", facts([1, 0, 0, 13]))
    put("vis_database", "wrong_names", facts([0, 0, 1, 4], (20, 1, 8), (160, 1, 3), (220, 0, 6)))
    put("vis_database", "wrong_numbers", facts([0, 1, 0, 5], (9, 1, 3), (41, 1, 14), (77, 1, 13)))


def main():
    for target, make in [
        ("adump", adumps),
        ("atb_bin", atb_bins),
        ("construct_json", construct_jsons),
        ("dcp", dcps),
        ("dcp_folder", dcp_folders),
        ("deepspeed", deepspeeds),
        ("flax", weight_seeds.flax_files),
        ("gguf", weight_seeds.gguf_files),
        ("graph", graphs),
        ("graph_merge", graph_merges),
        ("mindspore_ckpt", mindspore_ckpts),
        ("monitor_tree", monitor_trees),
        ("npy", npys),
        ("npz", npzs),
        ("online_messages", online_messages),
        ("onnx", weight_seeds.onnx_files),
        ("pack", packs),
        ("pack_contents", pack_contents),
        ("packets", packet_kinds),
        ("pickle", pickles),
        ("rank_scan", rank_scans),
        ("quantized", weight_seeds.quantized),
        ("rank_shards", rank_shards),
        ("runner_answer", runner_answers),
        ("safetensors", safetensors_files),
        ("shell_script", shell_scripts),
        ("torch_file", torch_files),
        ("code_mapping", graph_files),
        ("verl_log", verl_logs),
        ("vis_database", vis_databases),
        ("yaml", yamls),
        ("zip", zips),
    ]:
        if sys.argv[1:] and target not in sys.argv[1:]:
            continue
        shutil.rmtree(HERE / target, ignore_errors=True)
        (HERE / target).mkdir()
        make()


main()
