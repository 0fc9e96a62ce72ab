#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in the containers of other programs: GGUF, ONNX, Flax. Files are put together byte by byte here; where the format's own
package is installed, it writes some as well.

usage: ckpt_containers.py MSPROBE
"""

import json
import random
import struct
import subprocess
import sys

import harness
import tensor_files
from ckpt_runs import compare
from tensor_files import field, varint

F32, F16, Q4_0, Q8_0, IQ2_XXS = 0, 1, 2, 8, 16


def text(value):
    return struct.pack("<Q", len(value)) + value


def entry(key, value):
    """One entry of the metadata."""
    if isinstance(value, bytes):
        return text(key) + struct.pack("<I", 8) + text(value)
    return text(key) + struct.pack("<II", 4, value)


def gguf(path, tensors, values=(), alignment=32, version=3):
    """`tensors`: by name the type, the shape with the outermost axis first, and the bytes."""
    infos, data = [], b""
    for name, (kind, shape, raw) in tensors.items():
        data += bytes(-len(data) % alignment)
        infos.append(text(name.encode()) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data)))
        data += raw
    head = b"GGUF" + struct.pack("<IQQ", version, len(infos), len(values)) + b"".join(values) + b"".join(infos)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + bytes(-len(head) % alignment) + data)


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def elements(count, seed):
    chosen = random.Random(seed)
    return [struct.unpack("<f", struct.pack("<f", chosen.gauss(0, 0.1)))[0] for _ in range(count)]


def llama(shapes_of_experts=False):
    """The same parameters under the names of both, float32."""
    shapes = {
        "token_embd.weight": ("model.embed_tokens.weight", (10, 8)),
        "output_norm.weight": ("model.norm.weight", (8,)),
        "output.weight": ("lm_head.weight", (10, 8)),
        "blk.0.attn_norm.weight": ("model.layers.0.input_layernorm.weight", (8,)),
        "blk.0.attn_q.weight": ("model.layers.0.self_attn.q_proj.weight", (8, 8)),
        "blk.0.attn_k.bias": ("model.layers.0.self_attn.k_proj.bias", (4,)),
        "blk.0.attn_output.weight": ("model.layers.0.self_attn.o_proj.weight", (8, 8)),
        "blk.0.ffn_norm.weight": ("model.layers.0.post_attention_layernorm.weight", (8,)),
        "blk.0.ffn_down.weight": ("model.layers.0.mlp.down_proj.weight", (8, 12)),
    }
    mine, theirs = {}, {}
    for number, (name, (other, shape)) in enumerate(shapes.items()):
        count = 1
        for length in shape:
            count *= length
        mine[name] = (shape, elements(count, number))
        theirs[other] = (shape, floats(mine[name][1]))
    if shapes_of_experts:
        for part in ("gate", "up"):
            values = elements(3 * 6 * 8, len(part))
            mine[f"blk.0.ffn_{part}_exps.weight"] = ((3, 6, 8), values)
            for expert in range(3):
                one = floats(values[48 * expert : 48 * (expert + 1)])
                theirs[f"model.layers.0.mlp.experts.{expert}.{part}_proj.weight"] = ((6, 8), one)
    return mine, theirs


def plain(tensors):
    return {name: (F32, shape, floats(values)) for name, (shape, values) in tensors.items()}


def gguf_names_become_those_of_hugging_face(msprobe, scratch):
    for experts in (False, True):
        mine, theirs = llama(experts)
        for version, alignment, values in ((3, 32, []), (2, 8, [entry(b"general.alignment", 8)])):
            gguf(scratch / "a.gguf", plain(mine), values, alignment, version)
            tensor_files.save_safetensors(scratch / "b.safetensors", theirs)
            result, rows = compare(msprobe, scratch, "a.gguf", "b.safetensors", "--fail-on", "unequal")
            found = {name: row["Status"] for name, row in rows.items()}
            harness.check_equal("rows", found, dict.fromkeys(theirs, "equal"))
            harness.check_equal(f"status: {result.stderr}", result.returncode, 0)


def rotary_llama(path, heads, groups, packed=False):
    """Queries and keys of 4 heads and 2 groups of 8 rows each, as llama.cpp writes them: by `heads` and `groups` from halves into pairs."""
    theirs = {}
    mine = {}
    for name, other, rows, parts in (("q.weight", "q_proj.weight", 32, heads), ("k.weight", "k_proj.weight", 16, groups), ("q.bias", "q_proj.bias", 32, heads)):
        width = 1 if name.endswith("bias") else 32
        values = elements(rows * width, rows + width)
        half = rows // parts // 2
        order = [head * 2 * half + part * half + row for head in range(parts) for row in range(half) for part in range(2)]
        shape = (rows,) if width == 1 else (rows, width)
        theirs[f"model.layers.0.self_attn.{other}"] = (shape, floats(values))
        moved = [values[row * width + column] for row in order for column in range(width)]
        mine[f"blk.0.attn_{name}"] = (Q4_0, shape, q4_0(moved)) if packed and width > 1 else (F32, shape, floats(moved))
    gguf(path, mine, [entry(b"general.architecture", b"llama"), entry(b"llama.attention.head_count", 4), entry(b"llama.attention.head_count_kv", 2)])
    return theirs


def q4_0(values, keep=lambda scale: scale):
    """Blocks of 32: a float16 scale, by which the element that is furthest from 0 becomes -8, and what is as far on the other side is clipped to 7."""
    data = b""
    for begin in range(0, len(values), 32):
        block = values[begin : begin + 32]
        scale = struct.unpack("<e", struct.pack("<e", keep(max(block, key=abs) / -8)))[0]
        codes = [min(15, max(0, int(value / scale + 8.5))) for value in block]
        data += struct.pack("<e16B", scale, *(codes[i] | codes[i + 16] << 4 for i in range(16)))
    return data


def rows_of_queries_and_keys_are_put_back(msprobe, scratch):
    for packed in (False, True):
        tensor_files.save_safetensors(scratch / "b.safetensors", rotary_llama(scratch / "a.gguf", 4, 2, packed))
        result, rows = compare(msprobe, scratch, "a.gguf", "b.safetensors", "--fail-on", "different")
        harness.check_equal(f"{packed}: {result.stderr}", (result.returncode, len(rows)), (0, 3))
        harness.check("rows of 3 query and key tensors are reordered from interleaved pairs to halves of heads" in result.stderr, result.stderr)


def the_wrong_number_of_heads_is_named(msprobe, scratch):
    tensor_files.save_safetensors(scratch / "b.safetensors", rotary_llama(scratch / "a.gguf", 4, 4))
    for pair in (("b.safetensors", "a.gguf"), ("a.gguf", "b.safetensors")):
        result, rows = compare(msprobe, scratch, *pair, "--fail-on", "different")
        found = {name: row["Relation"] for name, row in rows.items() if row["Status"] != "equal"}
        harness.check_equal("relations", found, {"model.layers.0.self_attn.k_proj.weight": "rows permuted: interleaved with 4 per head against 8"})
        harness.check_equal("status", result.returncode, 1)


def what_a_search_for_scales_leaves_is_close(msprobe, scratch):
    values = elements(64 * 64, 5)
    tensor_files.save_safetensors(scratch / "b.safetensors", {"w": ((64, 64), floats(values))})
    changed = list(values)
    changed[5 * 64 + 9] += 0.5
    # Small against the step of other blocks.
    dead = [value * (1e-3 if i // 64 < 4 else 1) for i, value in enumerate(values)]
    tensor_files.save_safetensors(scratch / "small.safetensors", {"w": ((64, 64), floats(dead))})
    gguf(scratch / "dead.gguf", {"w": (Q4_0, (64, 64), q4_0([1e-6] * 256 + dead[256:]))})
    result, rows = compare(msprobe, scratch, "dead.gguf", "small.safetensors", "--fail-on", "different")
    harness.check_equal(f"dead: {result.stderr}", (rows["w"]["Status"], result.returncode), ("different", 1))
    for name, packed, status, text in (
        ("right", q4_0(values), "close", "as a quantizer that searches for scales leaves them"),
        ("changed", q4_0(changed), "different", "at [5, 9]"),
        ("coarse", q4_0(values, lambda scale: 0.8 * scale), "different", "the furthest"),
        ("other", q4_0(elements(64 * 64, 6)), "different", ""),
    ):
        gguf(scratch / f"{name}.gguf", {"w": (Q4_0, (64, 64), packed)})
        result, rows = compare(msprobe, scratch, f"{name}.gguf", "b.safetensors", "--fail-on", "different")
        harness.check_equal(f"{name}: {result.stderr}", (rows["w"]["Status"], result.returncode), (status, int(status != "close")))
        harness.check(text in rows["w"]["Note"], f"{name}: {rows['w']['Note']}")
        harness.check(("1 close, as a quantizer that searches for scales leaves them" in result.stderr) == (name == "right"), result.stderr)


def one_changed_element_is_named_at_its_place(msprobe, scratch):
    mine, theirs = llama(True)
    mine["blk.0.ffn_up_exps.weight"][1][48 + 8 * 2 + 5] += 1
    gguf(scratch / "a.gguf", plain(mine))
    tensor_files.save_safetensors(scratch / "b.safetensors", theirs)
    result, rows = compare(msprobe, scratch, "a.gguf", "b.safetensors", "--fail-on", "different")
    harness.check_equal("status", result.returncode, 1)
    changed = {name: row["First Unequal At"] for name, row in rows.items() if row["Status"] != "equal"}
    harness.check_equal("changed", changed, {"model.layers.0.mlp.experts.1.up_proj.weight": "[2, 5]"})


def packed_types_are_unpacked(msprobe, scratch):
    codes = [(7 * i) % 256 - 128 for i in range(96)]
    eight = b"".join(struct.pack("<e32b", 0.125 * (block + 1), *codes[32 * block : 32 * block + 32]) for block in range(3))
    low = [(5 * i) % 16 for i in range(32)]
    four = struct.pack("<e16B", -0.5, *(low[i] | low[i + 16] << 4 for i in range(16)))
    gguf(scratch / "a.gguf", {"eight": (Q8_0, (3, 32), eight), "four": (Q4_0, (32,), four)})
    expected = {
        "eight": ((3, 32), floats([code * 0.125 * (i // 32 + 1) for i, code in enumerate(codes)])),
        "four": ((32,), floats([-0.5 * (code - 8) for code in low])),
    }
    tensor_files.save_safetensors(scratch / "b.safetensors", expected)
    result, rows = compare(msprobe, scratch, "a.gguf", "b.safetensors")
    # A negative scale times 0 is -0, which the list above does not have.
    harness.check(all(row["Status"] in ("equal", "same values") for row in rows.values()), rows)
    harness.check_equal(f"rows: {result.stderr}", sorted(rows), ["eight", "four"])


def a_type_without_a_reader_ends_only_its_tensor(msprobe, scratch):
    gguf(scratch / "a.gguf", {"a": (IQ2_XXS, (256,), bytes(66)), "b": (99, (3,), b""), "c": (F32, (2,), floats([1, 2]))})
    tensor_files.save_safetensors(scratch / "b.safetensors", {"a": ((256,), bytes(1024)), "b": ((3,), bytes(12)), "c": ((2,), floats([1, 2]))})
    result, rows = compare(msprobe, scratch, "a.gguf", "b.safetensors")
    harness.check_equal("status", result.returncode, 2)
    harness.check_equal("c", rows["c"]["Status"], "equal")
    harness.check("a: type IQ2_XXS is not supported" in rows["a"]["Note"], rows["a"]["Note"])
    harness.check("b: type 99 of ggml is unknown" in rows["b"]["Note"], rows["b"]["Note"])


def broken_files_end_with_one_line(msprobe, scratch):
    mine, _ = llama()
    gguf(scratch / "good.gguf", plain(mine))
    good = (scratch / "good.gguf").read_bytes()
    one = text(b"a")
    cases = {
        "cut": (good[:-50], "the download is not complete"),
        "cut_header": (good[:300], "its header is longer than the file"),
        "big_endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + bytes(32), "a big-endian machine"),
        "version": (b"GGUF" + struct.pack("<IQQ", 1, 0, 0) + bytes(32), "GGUF version 1 is not supported"),
        "count": (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0) + bytes(99), "more tensors or metadata are announced"),
        "name": (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 1 << 40) + bytes(99), "refused: a name of"),
        "elements": (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + one + struct.pack("<IQQIQ", 2, 1 << 62, 1 << 62, 0, 0) + bytes(99), "more elements than memory can hold"),
        "offset": (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + one + struct.pack("<IQIQ", 1, 8, 0, 7) + bytes(99), "its offset is not a multiple of 32"),
        "blocks": (b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + one + struct.pack("<IQIQ", 1, 33, Q8_0, 0) + bytes(99), "not whole blocks of Q8_0"),
        "lists": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + one + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 30, "lists of lists"),
        "alignment": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + entry(b"general.alignment", 3) + bytes(99), "an alignment of 3 bytes"),
    }  # fmt: skip
    for name, (data, reason) in cases.items():
        (scratch / f"{name}.gguf").write_bytes(data)
        for words in (["ckpt_compare", f"{name}.gguf", "good.gguf", "-o", "r.json", "--overwrite"], ["inspect", f"{name}.gguf"]):
            result = harness.run(msprobe, words, scratch)
            harness.check_equal(f"{name}: {result.stderr}", (result.returncode, result.stderr.count("\n")), (2, 1))
            harness.check(reason in result.stderr, f"{name}: {result.stderr}")


def inspect_shows_the_types_and_rates_the_templates(msprobe, scratch):
    values = [entry(b"general.architecture", b"llama"), entry(b"general.file_type", 7), entry(b"llama.attention.head_count", 8)]
    tensors = {"w": (Q8_0, (2, 32), bytes(68)), "x": (IQ2_XXS, (256,), bytes(66))}
    ratings = {b"{{ messages[0]['content'] }}": 0, b"{{ ''.__class__.__mro__ }}": 1}
    for template, status in ratings.items():
        gguf(scratch / "a.gguf", tensors, [*values, entry(b"tokenizer.chat_template", template)])
        result = harness.run(msprobe, ["inspect", "a.gguf"], scratch)
        for shown in ("container  GGUF", "general.file_type = 7 (Q8_0)", "llama.attention.head_count = 8", "Q8_0", "IQ2_XXS"):
            harness.check(shown in result.stdout, f"{shown}: {result.stdout}")
        (scratch / "folder").mkdir(exist_ok=True)
        gguf(scratch / "folder/a.gguf", {"w": tensors["w"]}, [*values, entry(b"tokenizer.chat_template", template)])
        result = harness.run(msprobe, ["inspect", "folder", "--fail-on", "unknown", "--json"], scratch)
        harness.check_equal(f"rated: {result.stdout}", result.returncode, status)
        rated = json.loads(result.stdout)["rated"]
        harness.check_equal("dangerous", rated["dangerous"], status)
        if status:
            harness.check("leads to Python's internals" in rated["listed"][0]["reasons"][0], rated)


def in_a_folder_it_is_the_last_choice(msprobe, scratch):
    mine, theirs = llama()
    gguf(scratch / "alone/model.gguf", plain(mine))
    gguf(scratch / "beside/model.gguf", plain(mine))
    tensor_files.save_safetensors(scratch / "beside/model.safetensors", theirs)
    result, _rows = compare(msprobe, scratch, "alone", "beside", "--fail-on", "unequal")
    harness.check_equal(f"status: {result.stderr}", result.returncode, 2)
    harness.check("beside: model.gguf is here, too, and not compared" in result.stderr, result.stderr)


def initializer(name, kind, shape, *elements):
    return field(5, b"".join(field(1, length) for length in shape) + field(2, kind) + field(8, name.encode()) + b"".join(elements))


def external(location, **places):
    pairs = {"location": location, **places}
    return b"".join(field(13, field(1, key.encode()) + field(2, str(value).encode())) for key, value in pairs.items()) + field(14, 1)


def onnx(path, *initializers):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(field(1, 8) + field(2, b"pytorch") + field(7, field(2, b"graph") + b"".join(initializers)) + field(8, field(2, 17)))


def onnx_elements_in_every_place(msprobe, scratch):
    values = [1, -2, 3, 0, 127, -128]
    raw = floats(values)
    listed = b"".join(varint(value & (1 << 64) - 1) for value in values)
    halves = b"".join(varint(struct.unpack("<H", struct.pack("<e", value))[0]) for value in values)
    places = {
        "raw": initializer("raw", 1, (2, 3), field(9, raw)),
        "floats": initializer("floats", 1, (2, 3), field(4, raw)),
        "doubles": initializer("doubles", 11, (2, 3), field(10, struct.pack("<6d", *values))),
        "int32": initializer("int32", 6, (2, 3), field(5, listed)),
        "int8": initializer("int8", 3, (2, 3), field(5, listed)),
        "int64": initializer("int64", 7, (2, 3), field(7, listed)),
        "half": initializer("half", 10, (2, 3), field(5, halves)),
        "bfloat": initializer("bfloat", 16, (2, 3), field(9, b"".join(raw[4 * i + 2 : 4 * i + 4] for i in range(6)))),
        "beside": initializer("beside", 1, (2, 3), external("weights.data", offset=16, length=24)),
        "below": initializer("below", 1, (2, 3), external("deep/weights.data")),
    }
    for name in ("model/weights.data", "model/deep/weights.data"):
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
    (scratch / "model/weights.data").write_bytes(bytes(16) + raw + bytes(5))
    (scratch / "model/deep/weights.data").write_bytes(raw)
    onnx(scratch / "model/model.onnx", *places.values())
    tensor_files.save_safetensors(scratch / "b.safetensors", dict.fromkeys(places, ((2, 3), raw)))
    for path in ("model", "model/model.onnx"):
        result, rows = compare(msprobe, scratch, path, "b.safetensors", "--fail-on", "different")
        found = {name: row["Status"] for name, row in rows.items()}
        harness.check(set(found) == set(places) and set(found.values()) <= {"equal", "same values"}, f"{found} {result.stderr}")
        harness.check_equal(f"status: {result.stderr}", result.returncode, 0)
    (scratch / "model/deep/weights.data").write_bytes(raw[:20] + struct.pack("<f", 7))
    result, rows = compare(msprobe, scratch, "model", "b.safetensors", "--fail-on", "different")
    harness.check_equal("changed", (result.returncode, rows["below"]["First Unequal At"]), (1, "[1, 2]"))
    result = harness.run(msprobe, ["inspect", "model", "--fail-on", "unknown"], scratch)
    harness.check("deep/weights.data  not recognized" in result.stdout and result.returncode == 1, result.stdout)


def onnx_elements_out_of_reach_are_refused(msprobe, scratch):
    raw = floats([1, 2])
    (scratch / "outside.data").write_bytes(raw)
    (scratch / "model").mkdir()
    (scratch / "model/link.data").symlink_to("../outside.data")
    (scratch / "model/short.data").write_bytes(raw[:7])
    refused = {
        "up": (initializer("up", 1, (2,), external("../outside.data")), "outside.data"),
        "absolute": (initializer("absolute", 1, (2,), external(str(scratch / "outside.data"))), "outside.data"),
        "link": (initializer("link", 1, (2,), external("link.data")), "link.data"),
        "none": (initializer("none", 1, (2,), external("none.data")), "none.data"),
        "short": (initializer("short", 1, (2,), external("short.data")), "truncated: short.data has 7 bytes"),
        "far": (initializer("far", 1, (2,), external("short.data", offset=(1 << 64) - 1)), "truncated: short.data"),
        "length": (initializer("length", 1, (2,), external("short.data", length=4)), "4 bytes for elements that need 8"),
        "offset": (initializer("offset", 1, (2,), external("short.data", offset="x")), "its offset 'x' is not a number"),
        "huge": (initializer("huge", 1, (1 << 40, 1 << 40), field(9, raw)), "a shape larger than memory can hold"),
        "negative": (initializer("negative", 1, (-1,), field(9, raw)), "a shape larger than memory can hold"),
        "bytes": (initializer("bytes", 1, (3,), field(9, raw)), "8 bytes for elements that need 12"),
        "many": (initializer("many", 7, (1 << 40,), field(7, b"1")), "1099511627776 elements in a list of 1 bytes"),
        "more": (initializer("more", 7, (1,), field(7, b"11")), "more elements than its shape has"),
        "four": (initializer("four", 22, (2,), field(9, b"1")), "elements of type 22 are not supported"),
        "nothing": (initializer("nothing", 1, (2,)), "it has no elements of its type"),
    }
    onnx(scratch / "model/model.onnx", initializer("good", 1, (2,), field(9, raw)), *(one for one, _ in refused.values()))
    tensor_files.save_safetensors(scratch / "b.safetensors", dict.fromkeys(("good", *refused), ((2,), raw)))
    result, rows = compare(msprobe, scratch, "model/model.onnx", "b.safetensors")
    harness.check_equal("status", (result.returncode, rows["good"]["Status"]), (2, "equal"))
    for name, (_, reason) in refused.items():
        harness.check(rows[name]["Status"] == "not comparable" and reason in rows[name]["Note"], rows[name])


def a_mindspore_checkpoint_is_no_onnx(msprobe, scratch):
    (scratch / "folder").mkdir()
    value = field(1, b"w") + field(2, field(1, 2) + field(2, b"Float32") + field(3, floats([1, 2])))
    (scratch / "folder/a.ckpt").write_bytes(field(1, value))
    harness.run(msprobe, ["inspect", "folder", "--fail-on", "unknown"], scratch, status=0)


def packed_text(value, kind=0xD9):
    return bytes([kind, len(value)]) + value


def packed_map(pairs):
    return b"\xde" + struct.pack(">H", len(pairs)) + b"".join(packed_text(key.encode()) + value for key, value in pairs.items())


def ndarray(shape, raw, dtype=b"float32"):
    body = b"\x93" + bytes([0x90 | len(shape)]) + b"".join(b"\xce" + struct.pack(">I", length) for length in shape)
    body += packed_text(dtype) + b"\xc6" + struct.pack(">I", len(raw)) + raw
    return b"\xc9" + struct.pack(">IB", len(body), 1) + body


def flax_kernels_are_compared_transposed(msprobe, scratch):
    values = elements(6, 1)
    across = [values[3 * column + row] for row in range(3) for column in range(2)]
    dense = {"kernel": ndarray((2, 3), floats(values)), "bias": ndarray((3,), floats(values[:3]))}
    pieces = {
        "__msgpack_chunked_array__": b"\xc3",
        "shape": packed_map({"0": b"\x02", "1": b"\x03"}),
        "chunks": packed_map({"0": ndarray((4,), floats(values[:4])), "1": ndarray((2,), floats(values[4:]))}),
    }
    tree = {"dense": packed_map(dense), "norm": packed_map({"scale": ndarray((2,), floats([1, 2]))}), "words": packed_map({"embedding": packed_map(pieces)})}
    tree["conv"] = packed_map({"kernel": ndarray((1, 1, 6), floats(values)), "half": ndarray((1,), b"\x80\x3f", b"bfloat16")})
    (scratch / "model").mkdir()
    (scratch / "model/flax_model.msgpack").write_bytes(packed_map({"params": packed_map(tree)}))
    expected = {
        "dense.weight": ((3, 2), floats(across)),
        "dense.bias": ((3,), floats(values[:3])),
        "norm.weight": ((2,), floats([1, 2])),
        "words.weight": ((2, 3), floats(values)),
        "conv.weight": ((1, 1, 6), floats(values)),
        "conv.half": ((1,), floats([1])),
    }
    tensor_files.save_safetensors(scratch / "b.safetensors", expected)
    for path in ("model", "model/flax_model.msgpack"):
        result, rows = compare(msprobe, scratch, path, "b.safetensors", "--fail-on", "different")
        harness.check_equal(f"names: {result.stderr}", sorted(rows), sorted(expected))
        harness.check(all(row["Status"] in ("equal", "equal after rounding", "same values") for row in rows.values()), rows)
        harness.check_equal("status", result.returncode, 0)
        harness.check("flax_model.msgpack: 1 kernel of Flax compared transposed, as weights" in result.stderr, result.stderr)
    across[3] += 1
    tensor_files.save_safetensors(scratch / "b.safetensors", {**expected, "dense.weight": ((3, 2), floats(across))})
    result, rows = compare(msprobe, scratch, "model", "b.safetensors", "--fail-on", "different")
    harness.check_equal("changed", (result.returncode, rows["dense.weight"]["First Unequal At"]), (1, "[1, 1]"))
    result = harness.run(msprobe, ["inspect", "model", "--fail-on", "unknown"], scratch, status=0)


def broken_flax_files_end_with_one_line(msprobe, scratch):
    good = packed_map({"w": ndarray((2,), floats([1, 2]))})
    tensor_files.save_safetensors(scratch / "good.safetensors", {"w": ((2,), floats([1, 2]))})
    deep = ndarray((2,), floats([1, 2]))
    for _ in range(100):
        deep = packed_map({"a": deep})
    flag = {"__msgpack_chunked_array__": b"\xc3"}
    cases = {
        "cut": (good + good[:-3].replace(b"\xde\x00\x01", b"", 1), "bytes follow its end"),
        "second": (b"\xde\x00\x02" + good[3:] + packed_text(b"v") + b"\xc9\xff\xff\xff\xff\x01", "longer than the rest of the file"),
        "no_name": (b"\xde\x00\x02" + good[3:] + b"\x05\x05", "a name that is not text"),
        "deep": (b"\xde\x00\x02" + good[3:] + packed_text(b"v") + deep, "nested too deeply"),
        "array": (b"\xde\x00\x02" + good[3:] + packed_text(b"v") + b"\xc7\x01\x01\x93", "truncated"),
        "pieces": (b"\xde\x00\x02" + good[3:] + packed_text(b"v") + packed_map({**flag, "chunks": packed_map({"1": deep})}), "out of order"),
    }
    for name, (data, reason) in cases.items():
        (scratch / f"{name}.msgpack").write_bytes(data)
        result = harness.run(msprobe, ["ckpt_compare", f"{name}.msgpack", "good.safetensors", "-o", "r.json", "--overwrite"], scratch)
        harness.check_equal(f"{name}: {result.stderr}", (result.returncode, result.stderr.count("\n")), (2, 1))
        harness.check(reason in result.stderr, f"{name}: {result.stderr}")
    refused = {
        "huge": (ndarray((1 << 31, 1 << 31, 4), b""), "a shape larger than memory can hold"),
        "short": (ndarray((3,), floats([1])), "4 bytes for elements that need 12"),
        "object": (ndarray((1,), b"x", b"object"), "element type object is not supported"),
        "shape": (packed_map({**flag, "shape": packed_map({"0": b"\x03"}), "chunks": packed_map({"0": ndarray((2,), floats([1, 2]))})}), "its pieces do not make its shape"),
        "no_pieces": (packed_map({**flag, "shape": packed_map({"0": b"\x03"})}), "no axis to join tensors along"),
    }  # fmt: skip
    (scratch / "a.msgpack").write_bytes(packed_map({"w": ndarray((2,), floats([1, 2])), **{name: data for name, (data, _) in refused.items()}}))
    tensor_files.save_safetensors(scratch / "b.safetensors", {name: ((2,), floats([1, 2])) for name in ("w", *refused)})
    result, rows = compare(msprobe, scratch, "a.msgpack", "b.safetensors")
    harness.check_equal("status", (result.returncode, rows["w"]["Status"]), (2, "equal"))
    for name, (_, reason) in refused.items():
        harness.check(rows[name]["Status"] == "not comparable" and reason in rows[name]["Note"], rows[name])


# Two files in which the package gguf stores random bytes, packed and unpacked.
WITH_PACKAGE = """
import gguf, json, numpy as np, sys
from gguf import GGMLQuantizationType as T, quants
rng = np.random.default_rng(1)
scales = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2],
          T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0], T.IQ4_XS: [0], T.MXFP4: []}
packed, plain = gguf.GGUFWriter("packed.gguf", "llama"), gguf.GGUFWriter("plain.gguf", "llama")
for kind, places in scales.items():
    size = gguf.GGML_QUANT_SIZES[kind][1]
    raw = rng.integers(0, 256, (7, 3 * size), dtype=np.uint8)
    blocks = raw.reshape(-1, size)
    for place in places:
        blocks[:, place : place + 2] = rng.standard_normal(len(blocks)).astype(np.float16).view(np.uint8).reshape(-1, 2)
    if kind == T.MXFP4:
        blocks[:, 0] = rng.integers(0, 250, len(blocks))
    packed.add_tensor(kind.name, raw, raw_dtype=kind)
    plain.add_tensor(kind.name, np.ascontiguousarray(quants.dequantize(raw, kind)))
for writer in (packed, plain):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
"""


def packed_types_are_those_of_the_package(msprobe, scratch):
    try:
        import gguf  # noqa: F401
    except ImportError:
        print("# no package gguf: not compared with it")
        return
    subprocess.run([sys.executable, "-c", WITH_PACKAGE], cwd=scratch, check=True)
    result, rows = compare(msprobe, scratch, "packed.gguf", "plain.gguf", "--fail-on", "unequal")
    harness.check_equal(f"status: {result.stderr}", (result.returncode, len(rows)), (0, 13))


def onnx_files_of_the_package(msprobe, scratch):
    try:
        import numpy as np
        import onnx as package
    except ImportError:
        print("# no package onnx: not compared with it")
        return
    rng = np.random.default_rng(1)
    arrays = {kind: (rng.standard_normal((40, 30)) * 50).astype(kind) for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u4", "u8")}
    listed = [package.helper.make_tensor(f"list_{name}", package.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape, a.flatten().tolist()) for name, a in arrays.items()]
    graph = package.helper.make_graph([], "g", [], [], listed + [package.numpy_helper.from_array(a, name) for name, a in arrays.items()])
    package.save(package.helper.make_model(graph), scratch / "model.onnx")
    (scratch / "out").mkdir()
    package.save(package.helper.make_model(graph), scratch / "out/model.onnx", save_as_external_data=True, location="model.onnx.data", size_threshold=0)
    np.savez(scratch / "b.npz", **arrays, **{f"list_{name}": a for name, a in arrays.items()})
    for path in ("model.onnx", "out"):
        result, rows = compare(msprobe, scratch, path, "b.npz", "--fail-on", "unequal")
        harness.check_equal(f"{path}: {result.stderr}", (result.returncode, len(rows)), (0, 20))


def flax_files_of_the_package(msprobe, scratch):
    try:
        import numpy as np
        from flax import serialization
    except ImportError:
        print("# no package flax: not compared with it")
        return
    rng = np.random.default_rng(1)
    arrays = {kind: rng.standard_normal((40, 30)).astype(kind) for kind in ("float16", "float32", "float64", "int8", "uint32")}
    # Cut into pieces, as arrays of more than a gigabyte are.
    serialization.MAX_CHUNK_SIZE = 1000
    (scratch / "a.msgpack").write_bytes(serialization.msgpack_serialize({"layer": arrays, "kernel": arrays["float32"]}))
    np.savez(scratch / "b.npz", kernel=arrays["float32"], **{f"layer.{kind}": array for kind, array in arrays.items()})
    result, rows = compare(msprobe, scratch, "a.msgpack", "b.npz", "--fail-on", "unequal")
    harness.check_equal(result.stderr, (result.returncode, len(rows)), (0, 6))


harness.main_of_script()
