#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""config_check and ckpt_compare on files that mean harm, made here byte by byte. Of each: the message names the file and
the reason, the status is 2, an earlier result stays as it was, and nothing appears in the folder of the result or
anywhere around it. (tests/unit/ holds the readers to every length and offset; this is what the commands make of them.)

usage: hostile_checks.py MSPROBE
"""

import csv
import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import zipfile
import zlib

import harness
import sheets
from tensor_files import field, varint

OLD = b"an earlier result"


def snapshot(folder):
    """Everything below the folder: names, and what files and links hold."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(folder))] = content
    return found


def refused(msprobe, scratch, words, *reasons):
    """The command stops with one line that has all the reasons, and touches nothing."""
    work = scratch / "work"
    (work / "out").mkdir(parents=True, exist_ok=True)
    for name in ("out/result.xlsx", "out/hyper_params_compare.csv", "ckpt_similarity.json"):
        (work / name).write_bytes(OLD)
    before = snapshot(scratch)
    result = harness.run(msprobe, words, work, status=2)
    errors = [line for line in result.stderr.splitlines() if line.startswith("msprobe: error: ")]
    harness.check_equal(f"errors in {result.stderr}", len(errors), 1)
    for reason in reasons:
        harness.check(reason in errors[0], f"{reason!r} is not in {errors[0]!r}")
    harness.check("\x1b" not in result.stderr, repr(result.stderr))
    after = snapshot(scratch)
    harness.check_equal("changed", sorted(n for n in {*before, *after} if before.get(n, 0) != after.get(n, 0)), [])


def refuses_pack(msprobe, scratch, *reasons):
    good = scratch / "good.zip"
    with zipfile.ZipFile(good, "w") as archive:
        archive.writestr("env", "{}")
    for pair in (["../bad.zip", "../good.zip"], ["../good.zip", "../bad.zip"]):
        refused(msprobe, scratch, ["config_check", "-c", *pair, "-o", "out"], "bad.zip", *reasons)


def refuses_checkpoint(msprobe, scratch, bad, *reasons):
    (scratch / "good.safetensors").write_bytes(safetensors({"w": ("F32", [2], bytes(8))}))
    words = ["ckpt_compare", "--overwrite"]
    refused(msprobe, scratch, [*words, bad, "../good.safetensors"], *reasons)
    refused(msprobe, scratch, [*words, "../good.safetensors", bad], *reasons)
    refused(msprobe, scratch, ["config_check", "-c", bad, "../good.safetensors", "-o", "similarity.json"], *reasons)


def zip_of(entries, claims=None):
    """A zip archive of (name, data, declared size, declared start or None); `claims`: entries that the end record has."""
    out, directory = b"", b""
    for name, data, size, start in entries:
        raw = name.encode()
        head = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, zlib.crc32(data), len(data), size, len(raw), 0)
        at = len(out) if start is None else start
        directory += b"PK\1\2" + struct.pack("<H", 20) + head + struct.pack("<HHHII", 0, 0, 0, 0, at) + raw
        if start is None:
            out += b"PK\3\4" + head + raw + data
    count = len(entries) if claims is None else claims
    at = len(out)
    end = struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, len(directory), at)
    locator = b"PK\6\7" + struct.pack("<IQI", 0, at + len(directory), 1)
    last = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return out + directory + b"PK\6\6" + end + locator + last


def deflated(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def safetensors(tensors, **changes):
    header, at, body = {}, 0, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)], **changes}
        at += len(data)
        body += data
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value):
    size = value.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


def numbers(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(shape, stride, elements, offset=0):
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(elements) + b"tQ"
    ends = b"\x89ccollections\nOrderedDict\n)RtR"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + numbers(shape) + numbers(stride) + ends


def state_dict(items):
    return b"\x80\x02}" + b"".join(text(name) + value + b"s" for name, value in items) + b"."


def torch_file(path, data, storage=bytes(8)):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", data)
        archive.writestr("a/version", "3\n")
        archive.writestr("a/data/0", storage)


def call(path):
    """A pickled call that leaves a file."""
    return b"cposix\nsystem\n(" + text(f"touch '{path}'") + b"tR"


def metadata(chunk_file="x.distcp", offset=0, length=8, size=(2,), chunk=(2,), extra=b""):
    def record(name, fields):
        body = b"".join(text(key) + value + b"s" for key, value in fields)
        return b"c" + name + b"\n)\x81}" + body + b"b"

    def dictionary(items):
        return b"}" + b"".join(key + value + b"s" for key, value in items)

    zeros = numbers([0] * len(size))
    properties = record(b"torch.distributed.checkpoint.metadata\nTensorProperties", [("dtype", b"ctorch\nfloat32\n")])
    chunks = b"(" + record(b"m\nC", [("offsets", zeros), ("sizes", numbers(chunk))]) + b"l"
    stored = record(b"m\nT", [("properties", properties), ("size", numbers(size)), ("chunks", chunks)])
    key = record(b"m\nI", [("fqn", text("w")), ("offset", zeros)])
    place = record(b"m\nS", [("relative_path", text(chunk_file)), ("offset", number(offset)), ("length", number(length))])
    fields = [(text("state_dict_metadata"), dictionary([(text("w"), stored)])), (text("storage_data"), dictionary([(key, place)]))]
    if extra:
        fields.append((text("planner_data"), extra))
    return b"\x80\x02" + dictionary(fields) + b"."


def pack_that_leads_out(msprobe, scratch):
    for name in ("../x", "a/../../x", "/tmp/x", "..\\x", "C:x", "weights/step0/../../../x"):
        with zipfile.ZipFile(scratch / "bad.zip", "w") as archive:
            archive.writestr("env", "{}")
            archive.writestr(name, "{}")
        refuses_pack(msprobe, scratch, "refused: member ")
    link = zipfile.ZipInfo("env")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(scratch / "bad.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    refuses_pack(msprobe, scratch, "member env: it is a symbolic link")


def pack_that_is_a_bomb(msprobe, scratch):
    bad = scratch / "bad.zip"
    bad.write_bytes(zip_of([(f"weights/step{i}/rank0/w.json", bytes(1 << 20), 1 << 30, None) for i in range(11)]))
    refuses_pack(msprobe, scratch, "refused: it unpacks to more than 10.7 GB")
    bad.write_bytes(zip_of([("env", deflated(b"{}"), 2, None)], claims=2_000_001))
    refuses_pack(msprobe, scratch, "too many entries")
    # Entries that share their bytes would unpack to any size.
    shared = deflated(bytes(1 << 20))
    bad.write_bytes(zip_of([("env", shared, 1 << 20, None), ("env", shared, 1 << 20, 0)]))
    refuses_pack(msprobe, scratch, "overlap")
    # An entry that unpacks to more than its declared size, whatever that is, is found while it unpacks.
    bad.write_bytes(zip_of([("env", deflated(b" " * (64 << 20)), 2, None)]))
    refuses_pack(msprobe, scratch, "zip entry env: broken")


def pack_that_is_damaged(msprobe, scratch):
    whole = zip_of([("env", deflated(b'{"A": "1"}'), 10, None)])
    for cut in (1, 10, 40, len(whole) - 1):
        (scratch / "bad.zip").write_bytes(whole[:cut])
        refuses_pack(msprobe, scratch)
    broken = bytearray(whole)
    broken[14] ^= 1  # of the checksum in the local header
    (scratch / "bad.zip").write_bytes(broken)
    refuses_pack(msprobe, scratch)


def members_of_hostile_json(msprobe, scratch):
    """They spoil their own section, in which they are named; the others are compared."""
    deep = "[" * 200_000
    members = {
        "env": deep,
        "hyperparameters/hyperparameters_static.json": '{"a": ' + '{"b": ' * 100_000,
        "dataset/step0/rank0/dataset.json": '{"args": ' + deep,
        "weights/step0/rank0/weight.json": "{",
        "random/rank0.json": '{"torch.rand": [{"count": 1, "stack": ' + deep,
        "pip": "torch=1\n",
    }
    for name in ("a.zip", "b.zip"):
        with zipfile.ZipFile(scratch / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in members.items():
                archive.writestr(member, content)
    result = harness.run(msprobe, ["config_check", "-c", "a.zip", "b.zip", "-o", "out"], scratch, status=2)
    for member in members:
        if member != "pip":
            harness.check(f".zip: {member}: " in result.stderr, f"{member} is not named: {result.stderr}")
    summary = dict(row[:2] for row in sheets.read(scratch / "out" / "result.xlsx")["summary"][1:])
    harness.check_equal("pip", summary.pop("pip"), "pass")
    harness.check("pass" not in summary.values(), str(summary))


def result_behind_a_link(msprobe, scratch):
    """The name gets the result, not what it points to."""
    with zipfile.ZipFile(scratch / "a.zip", "w") as archive:
        archive.writestr("env", "{}")
    (scratch / "secret").write_bytes(OLD)
    (scratch / "out").mkdir()
    (scratch / "out" / "result.xlsx").symlink_to(scratch / "secret")
    harness.run(msprobe, ["config_check", "-c", "a.zip", "a.zip", "-o", "out"], scratch, status=0)
    harness.check((scratch / "secret").read_bytes() == OLD, "the file behind the link was written")
    sheets.read(scratch / "out" / "result.xlsx")


def hostile_names_in_messages(msprobe, scratch):
    """A name can neither color the terminal nor add a line to the output."""
    name = "x\x1b[31m\nmsprobe: done"
    with zipfile.ZipFile(scratch / "bad.zip", "w") as archive:
        archive.writestr("../" + name, "{}")
    refuses_pack(msprobe, scratch, "leads outside the folder")
    for side, value in (("a", 1.0), ("b", 2.0)):
        data = struct.pack("<2f", value, 3.0)
        (scratch / f"{side}.safetensors").write_bytes(safetensors({name: ("F32", [2], data), side + name: ("F32", [2], data)}))
    result = harness.run(msprobe, ["ckpt_compare", "a.safetensors", "b.safetensors"], scratch, status=0)
    harness.check("\x1b" not in result.stderr, repr(result.stderr))
    harness.check(not any(line.startswith("msprobe: done") for line in result.stderr.splitlines()), result.stderr)
    written = json.loads((scratch / "ckpt_similarity.json").read_text(encoding="ascii"))
    harness.check_equal("names", list(written), [name])


def formulas(msprobe, scratch):
    """Names of parameters and values of logs that a spreadsheet would compute."""
    name = '=HYPERLINK("http://x","y")'
    (scratch / "a.safetensors").write_bytes(safetensors({name: ("F32", [2], bytes(8)), "@b": ("F32", [1], bytes(4))}))
    for suffix in ("csv", "xlsx"):
        words = ["ckpt_compare", "a.safetensors", "a.safetensors", "-o", f"{suffix}.json", "--details", "d." + suffix]
        harness.check_equal("exit status", harness.run(msprobe, words, scratch).returncode, 0)
    with open(scratch / "d.csv", encoding="utf-8", newline="") as file:
        names = [row["Name"] for row in csv.DictReader(file)]
    harness.check_equal("csv", sorted(names), sorted(["'" + name, "'@b"]))
    rows = sheets.read(scratch / "d.xlsx")  # refuses formulas
    cells = [row[0].lstrip("'") for row in list(rows.values())[0][1:]]
    harness.check_equal("xlsx", sorted(cells), sorted([name, "@b"]))
    log = "{'actor_rollout_ref': {'=1+1': 2, 'b': 3}}\n"
    (scratch / "a.log").write_text(log, encoding="utf-8")
    (scratch / "e.yaml").write_text("'=1+1': 2\n'-x': 1\n", encoding="utf-8")
    harness.run(msprobe, ["config_check", "-vv", "e.yaml", "a.log", "-o", "vv"], scratch)
    lines = (scratch / "vv" / "hyper_params_verify.csv").read_text(encoding="utf-8-sig").splitlines()
    harness.check_equal("verl", lines[1:], ["'=1+1,2,NA,否", "'-x,1,NA,否"])


def scripts_and_yaml(msprobe, scratch):
    files = {
        "aliases.yaml": "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60)),
        "deep.yaml": "[" * 100_000,
        "open.yaml": "a: 'b",
        "long.yaml": "a: " + "x" * (65 << 20),
        "growth.sh": "A=xxxxxxxxxx\n" + "A=$A$A$A$A$A$A$A$A\n" * 40 + "torchrun t.py --a $A\n",
        "launches.sh": "torchrun t.py --a 1\n" * 2000,
    }
    for name, content in files.items():
        (scratch / name).write_text(content, encoding="utf-8")
        result = harness.run(msprobe, ["config_check", "-d", name, "-o", "pack.zip"], scratch, status=2)
        harness.check(f"msprobe: error: {name}" in result.stderr, result.stderr)
        with zipfile.ZipFile(scratch / "pack.zip") as archive:
            harness.check_equal(f"{name}: members", archive.namelist(), ["env", "pip"])
            harness.check_equal(f"{name}: whole", archive.testzip(), None)
        (scratch / "pack.zip").unlink()
    harness.check_equal("left", sorted(path.name for path in scratch.iterdir()), sorted(files))


def verl_logs(msprobe, scratch):
    (scratch / "good.log").write_text("{'actor_rollout_ref': {'a': 1}}\n", encoding="utf-8")
    for content, reason in (
        ("{'actor_rollout_ref': " + "{'a': " * 100_000, "bracket"),
        ("{'actor_rollout_ref': {'a': 1", "bracket"),
        ("nothing", "actor_rollout_ref"),
        ("", "actor_rollout_ref"),
    ):
        (scratch / "bad.log").write_text(content, encoding="utf-8")
        words = ["config_check", "-vc", "../good.log", "../bad.log", "-o", "out"]
        refused(msprobe, scratch, words, "bad.log", reason)
    # One line full of starts, and a text of a million pieces, took time that grows with the square of their size.
    (scratch / "bad.log").write_text("{'actor_rollout_ref':" * 300_000, encoding="utf-8")
    refused(msprobe, scratch, ["config_check", "-vv", "../bad.log", "-o", "out"], "bad.log", "bracket")
    (scratch / "long.log").write_text("{'actor_rollout_ref': " + "'a' " * 1_000_000 + "}", encoding="utf-8")
    harness.run(msprobe, ["config_check", "-vv", "long.log", "-o", "long"], scratch, status=0)


def pickles_that_call(msprobe, scratch):
    """Nothing in a pickle that calls a shell runs, wherever in a checkpoint the pickle is; the message names the call."""
    trace = scratch / "it_ran"
    control = b"\x80\x02" + call(trace) + b"."
    subprocess.run([sys.executable, "-c", f"import pickle; pickle.loads({control!r})"], check=True)
    harness.check(trace.exists(), "the control did not run")
    trace.unlink()
    data = state_dict([("w", tensor([2], [1], 2)), ("x", call(trace))])
    pickle_only = b"\x80\x02}" + text("x") + call(trace) + b"s."
    plain, ranked, legacy, distributed = (scratch / n for n in ("a.pt", "ranks", "legacy.pt", "dist"))
    torch_file(plain, data)
    (ranked / "mp_rank_00").mkdir(parents=True)
    torch_file(ranked / "mp_rank_00" / "model_optim_rng.pt", state_dict([("model", data[2:-1])]))
    magic = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2)
    storage = pickle.dumps(["0"], 2) + struct.pack("<q2f", 2, 0, 0)
    legacy.write_bytes(magic + pickle.dumps({"little_endian": True}, 2) + data + storage)
    distributed.mkdir()
    torch_file(distributed / "x.distcp", b"\x80\x02" + tensor([2], [1], 2) + b".")
    length = (distributed / "x.distcp").stat().st_size
    (distributed / ".metadata").write_bytes(metadata(length=length, extra=call(trace)))
    torch_file(distributed / "common.pt", pickle_only)
    for bad in (plain, ranked, legacy, distributed):
        result = harness.run(msprobe, ["ckpt_compare", str(bad), "a.pt", "-o", "-"], scratch, status=0)
        harness.check_equal("compared", [e["l2"] for e in json.loads(result.stdout).values()], [0.0])
        named = [line for line in result.stderr.splitlines() if bad.name in line and "posix.system" in line]
        harness.check(named and "msprobe ran none of it" in named[0], result.stderr)
        harness.check(not trace.exists(), f"{bad.name}: the call was made")


def torch_files(msprobe, scratch):
    bad = scratch / "bad.pt"
    for shape, stride, elements, offset in (
        ([3], [1], 2, 0),
        ([2], [1], 2, 1),
        ([2], [1 << 62], 2, 0),
        ([1 << 62, 4], [4, 1], 2, 0),
        ([2], [1], 1 << 61, 0),
        ([2], [1], 2, -1),
        ([-2], [1], 2, 0),
    ):
        torch_file(bad, state_dict([("w", tensor(shape, stride, elements, offset))]))
        result = harness.run(msprobe, ["ckpt_compare", "bad.pt", "bad.pt", "-o", "-"], scratch)
        what = f"{shape} {stride} {elements} {offset}"
        harness.check_equal(f"{what}: exit status ({result.stderr})", result.returncode, 2)
        harness.check("bad.pt" in result.stderr, f"{what}: {result.stderr}")
    nested = b"\x80\x02" + b"(" * 200_000 + b"t" * 200_000 + b"."
    torch_file(bad, nested)
    refuses_checkpoint(msprobe, scratch, "../bad.pt", "bad.pt")
    torch_file(bad, b"\x80\x02X\xff\xff\xff\x7fabc.")
    refuses_checkpoint(msprobe, scratch, "../bad.pt", "bad.pt")
    # A list that is copied into itself over and over: a few bytes, any amount of memory.
    torch_file(bad, b"\x80\x02]q\0" + b"(h\0h\0h\0h\0e" * 1_000_000 + b".")
    refuses_checkpoint(msprobe, scratch, "../bad.pt", "bad.pt")


def safetensors_files(msprobe, scratch):
    bad = scratch / "bad.safetensors"
    honest = {"w": ("F32", [2], bytes(8))}
    for content in (
        struct.pack("<Q", 1 << 62) + b"{}",
        struct.pack("<Q", 0xFFFFFFFFFFFFFFFF) + b"{}",
        safetensors(honest, data_offsets=[0, 1 << 62]),
        safetensors(honest, data_offsets=[8, 0]),
        safetensors(honest, shape=[1 << 62, 1 << 62]),
        safetensors(honest, shape=[3]),
        safetensors(honest)[:-1],
        b"",
    ):
        bad.write_bytes(content)
        refuses_checkpoint(msprobe, scratch, "../bad.safetensors", "bad.safetensors")
    folder = scratch / "folder"
    folder.mkdir()
    (scratch / "outside.safetensors").write_bytes(safetensors(honest))
    for name in ("../outside.safetensors", str(scratch / "outside.safetensors"), "..", ""):
        (folder / "m.index.json").write_text(json.dumps({"weight_map": {"w": name}}), encoding="utf-8")
        refuses_checkpoint(msprobe, scratch, "../folder", "")
    (folder / "m.index.json").write_text("[" * 200_000, encoding="utf-8")
    refuses_checkpoint(msprobe, scratch, "../folder", "m.index.json")


def distributed_checkpoints(msprobe, scratch):
    folder = scratch / "dist"
    folder.mkdir()
    torch_file(scratch / "outside.distcp", b"\x80\x02" + tensor([2], [1], 2) + b".")
    torch_file(folder / "x.distcp", b"\x80\x02" + tensor([2], [1], 2) + b".")
    whole = (folder / "x.distcp").stat().st_size

    def run(**changes):
        (folder / ".metadata").write_bytes(metadata(**{"length": whole, **changes}))
        return harness.run(msprobe, ["ckpt_compare", "dist", "dist", "-o", "-"], scratch)

    harness.check_equal("honest", run().returncode, 0)
    for changes in (
        {"chunk_file": "../outside.distcp"},
        {"chunk_file": str(scratch / "outside.distcp")},
        {"offset": 1 << 62},
        {"offset": -1},
        {"length": 1 << 62},
        {"length": (1 << 63) - 1, "offset": 16},
        {"size": (1 << 40, 1 << 40), "chunk": (2, 1)},
        {"size": (3,)},
        {"chunk": (1 << 62,)},
    ):
        result = run(**changes)
        harness.check_equal(f"{changes}: exit status ({result.stderr})", result.returncode, 2)
        harness.check("dist/" in result.stderr or "note: w: " in result.stderr, result.stderr)
    (folder / ".metadata").write_bytes(metadata()[:-20])
    refuses_checkpoint(msprobe, scratch, "../dist", ".metadata")
    (folder / ".metadata").write_bytes(b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"}.")
    refuses_checkpoint(msprobe, scratch, "../dist", ".metadata")


def mindspore_files(msprobe, scratch):
    bad = scratch / "bad.ckpt"

    def parameter(dims, content, size=None):
        inner = b"".join(b"\x08" + varint(d) for d in dims) + field(2, b"Float32") + field(3, content)
        whole = field(1, b"w") + field(2, inner)
        return b"\x0a" + varint(len(whole) if size is None else size) + whole

    bad.write_bytes(parameter([2], bytes(8)))
    words = ["ckpt_compare", "bad.ckpt", "bad.ckpt", "-o", "-"]
    harness.check_equal("honest", harness.run(msprobe, words, scratch).returncode, 0)
    for content in (parameter([2], bytes(8), size=1 << 62), parameter([2], bytes(8))[:-1]):
        bad.write_bytes(content)
        refuses_checkpoint(msprobe, scratch, "../bad.ckpt", "bad.ckpt")
    for dims in ([1 << 40, 1 << 40], [3], [(1 << 64) - 1]):
        bad.write_bytes(parameter(dims, bytes(8)))
        result = harness.run(msprobe, words, scratch, status=2)
        harness.check("bad.ckpt: w: " in result.stderr, result.stderr)


def empty_tensors(count, rank):
    entry = {"dtype": "U8", "shape": [0] * rank, "data_offsets": [0, 0]}
    header = json.dumps({str(i): entry for i in range(count)}, separators=(",", ":")).encode()
    return struct.pack("<Q", len(header)) + header


# The peak memory of a process counts from before its program began, so a small process starts it.
MEASURE = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
"""


def peak_of(msprobe, scratch, arguments):
    """Exit status and most memory of a run, in bytes."""
    result = harness.run(sys.executable, ["-c", MEASURE, msprobe, *arguments], scratch, status=0)
    status, peak = result.stdout.split()
    return int(status), int(peak)


def small_files_that_ask_for_much(msprobe, scratch):
    """The size of a file limits the memory of its reader, whatever its bytes say."""
    size = 2_000_000
    again = b"\x80\x02(" + tensor([0], [1], 0)
    units = {
        "nulls": (b"\x80\x02cfoo\nbar\n(", b"N", b"tR."),
        "lists": (b"\x80\x02(", b"]", b"t."),
        "objects": (b"\x80\x02cfoo\nbar\nq\x00(", b"h\x00)R", b"t."),
        "same_tensor": (again + b"q\x01", b"h\x01", b"t."),
    }
    files = ["empty.safetensors", "dimensions.safetensors", "many_packed.pt"]
    for name, (begin, unit, end) in units.items():
        data = begin + unit * (size // len(unit)) + end
        torch_file(scratch / f"{name}.pt", data)
        with zipfile.ZipFile(scratch / f"{name}_packed.pt", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/data.pkl", begin + unit * (20 * size // len(unit)) + end)
        files += [f"{name}.pt", f"{name}_packed.pt"]
    (scratch / "empty.safetensors").write_bytes(empty_tensors(40_000, 1))
    (scratch / "dimensions.safetensors").write_bytes(empty_tensors(10_000, 64))
    with zipfile.ZipFile(scratch / "many_packed.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(100):
            archive.writestr(f"a/{i}.pkl", b"\x80\x02" + b"N0" * 1_000_000 + b"N.")
    # Sanitizers keep what is freed.
    program = pathlib.Path(msprobe).read_bytes()
    measured = b"__asan_init" not in program and b"__tsan_init" not in program
    for name in files:
        length = (scratch / name).stat().st_size
        for arguments in (
            ["inspect", name],
            ["inspect", "--json", name],
            ["ckpt_compare", name, name, "-o", "-"],
            ["parse", "-d", name, "-t", "npz", "-o", "out"],
        ):
            status, peak = peak_of(msprobe, scratch, arguments)
            what = f"{' '.join(arguments)} of {length} bytes"
            harness.check(status in (0, 2), f"{what}: exit status {status}")
            files_read = 2 if arguments[0] == "ckpt_compare" else 1
            if measured:
                harness.check(peak < (64 << 20) + 10 * files_read * length, f"{what}: {peak} bytes of memory")


harness.main_of_script()
