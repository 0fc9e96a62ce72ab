#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`ckpt_compare` of quantized weights against what they were made from: each format is packed here by its definition,
its weights are within half a step of their originals, and one that is not is named with its place.

usage: ckpt_quantized.py MSPROBE    (run by a Python that has NumPy)
"""

import json
import struct
import sys
import types

import harness
from ckpt_runs import compare

ROWS, COLUMNS = 64, 256
CODES = {"float32": "F32", "float16": "F16", "uint8": "U8", "int8": "I8", "int32": "I32", "int64": "I64"}


def save(folder, tensors, config=None):
    """Arrays; pairs of a name of a type and bytes for types that NumPy does not have."""
    folder.mkdir(parents=True, exist_ok=True)
    header, data, end = {}, [], 0
    for name, value in tensors.items():
        dtype, value = value if isinstance(value, tuple) else (CODES[str(value.dtype)], value)
        raw = value.tobytes()
        header[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [end, end + len(raw)]}
        data.append(raw)
        end += len(raw)
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))
    (folder / "config.json").write_text(json.dumps(config or {}), encoding="utf-8")


def e4m3_values():
    """All numbers of float8_e4m3fn by their bytes (Micikevicius et al. 2022)."""
    values = []
    for code in range(256):
        sign = -1.0 if code & 128 else 1.0
        exponent, fraction = code >> 3 & 15, code & 7
        value = (8 + fraction) * 2.0 ** (exponent - 10) if exponent else fraction * 2.0**-9
        values.append(float("nan") if code & 127 == 127 else sign * value)
    return values


def nearest(table, values):
    """The codes of the nearest numbers of a table."""
    import numpy as np

    table = np.asarray(table, dtype="f8")
    usable = np.nonzero(np.isfinite(table))[0]
    order = usable[np.argsort(table[usable], kind="stable")]
    middles = (table[order][1:] + table[order][:-1]) / 2
    return order[np.searchsorted(middles, values)].astype("u1")


def across_words(codes, bits):
    """Along the last axis, from one word into the next."""
    import numpy as np

    places = np.asarray(codes).astype("u4")[..., None] >> np.arange(bits, dtype="u4") & 1
    stream = places.reshape(len(codes), -1).astype("u1")
    return np.packbits(stream, axis=-1, bitorder="little").view("<i4")


def along_words(codes, bits, order=None):
    """Codes (rows, n) as words of 32 bits (rows, n * bits / 32)."""
    import numpy as np

    count = 32 // bits
    order = order or list(range(count))
    parts = codes.reshape(codes.shape[0], -1, count).astype("u4")
    words = np.zeros(parts.shape[:2], "u4")
    for place, index in enumerate(order):
        words |= parts[..., index] << np.uint32(bits * place)
    return words.view("i4")


def grouped(weight, group, levels):
    """The scale and the lowest value of each group along the columns, for this number of levels."""
    parts = weight.reshape(weight.shape[0], -1, group)
    low, high = parts.min(-1), parts.max(-1)
    return (high - low) / (levels - 1), low, parts


def float8_blocks(weight):
    import numpy as np

    blocks = weight.reshape(ROWS // 32, 32, COLUMNS // 128, 128)
    scale = (abs(blocks).max((1, 3)) / 448).astype("f4")
    codes = nearest(e4m3_values(), blocks / scale[:, None, :, None]).reshape(ROWS, COLUMNS)
    return {"weight": ("F8_E4M3", codes), "weight_scale_inv": scale, "input_scale": np.ones(1, "f4")}


def float8_rows(weight):
    scale = (abs(weight).max(1, keepdims=True) / 448).astype("f4")
    return {"weight": ("F8_E4M3", nearest(e4m3_values(), weight / scale)), "weight_scale": scale}


def int8_rows(weight):
    import numpy as np

    scale = (abs(weight).max(1, keepdims=True) / 127).astype("f4")
    return {"weight": np.rint(weight / scale).astype("i1"), "weight_scale": scale}


def torchao_float8(weight):
    rows = float8_rows(weight)
    return {"_weight_qdata": rows["weight"], "_weight_scale": rows["weight_scale"]}


def torchao_int8(weight):
    import numpy as np

    rows = int8_rows(weight)
    return {"_weight_qdata": rows["weight"], "_weight_scale": rows["weight_scale"], "_weight_zero_point": np.zeros((ROWS, 1), "i1")}


def bitsandbytes_int8(weight):
    import numpy as np

    largest = abs(weight).max(1).astype("f4")
    return {"weight": np.rint(weight * (127 / largest[:, None])).astype("i1"), "SCB": largest,
            "weight_format": np.zeros((), "u1")}


def packed_int4(weight):
    import numpy as np

    parts = weight.reshape(ROWS, -1, 32)
    scale = (abs(parts).max(-1) / 7.5).astype("f4")
    codes = np.clip(np.rint(parts / scale[..., None]), -8, 7).reshape(ROWS, COLUMNS) + 8
    return {"weight_packed": along_words(codes, 4), "weight_scale": scale,
            "weight_shape": np.array([ROWS, COLUMNS], "i8")}


def packed_int4_with_zeros(weight):
    import numpy as np

    scale, low, parts = grouped(weight, 64, 16)
    scale = scale.astype("f4")
    zero = np.rint(-low / scale)
    codes = np.clip(np.rint(parts / scale[..., None]) + zero[..., None], 0, 15).reshape(ROWS, COLUMNS)
    return {"weight_packed": along_words(codes, 4), "weight_scale": scale,
            "weight_zero_point": along_words(zero.T.copy(), 4).T.copy(),
            "weight_shape": np.array([ROWS, COLUMNS], "i8")}


def gptq(weight, order=None, bits=4, less=1):
    import numpy as np

    columns = np.arange(COLUMNS) if order is None else np.argsort(order, kind="stable")
    scale, low, parts = grouped(weight[:, columns], 64, 2**bits)
    scale = scale.astype("f2").astype("f4")
    zero = np.clip(np.rint(-low / scale), 1, 2**bits - 1)
    sorted_codes = np.clip(np.rint(parts / scale[..., None]) + zero[..., None], 0, 2**bits - 1)
    codes = np.empty((ROWS, COLUMNS))
    codes[:, columns] = sorted_codes.reshape(ROWS, COLUMNS)
    groups = np.arange(COLUMNS) // 64 if order is None else order
    pack = along_words if 32 % bits == 0 else across_words
    return {"qweight": pack(codes, bits).T.copy(), "scales": scale.T.astype("f2").copy(),
            "qzeros": pack(zero.T - less, bits), "g_idx": groups.astype("i4")}


def gptq_in_order_of_activations(weight):
    import numpy as np

    return gptq(weight, np.random.default_rng(5).permutation(COLUMNS) // 64)


def gptq_3_bits(weight):
    return gptq(weight, bits=3)


def gptq_8_bits(weight):
    return gptq(weight, bits=8)


def second_gptq(weight):
    return gptq(weight, less=0)


def awq(weight):
    import numpy as np

    scale, low, parts = grouped(weight, 64, 16)
    scale = scale.astype("f2").astype("f4")
    zero = np.clip(np.rint(-low / scale), 0, 15)
    codes = np.clip(np.rint(parts / scale[..., None]) + zero[..., None], 0, 15).reshape(ROWS, COLUMNS)
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    return {"qweight": along_words(codes.T.copy(), 4, order), "scales": scale.T.astype("f2").copy(),
            "qzeros": along_words(zero.T.copy(), 4, order)}


# The 16 numbers of NF4 (Dettmers et al. 2023), as bitsandbytes stores them.
NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]


def nf4(weight, nested=False):
    import numpy as np

    parts = weight.reshape(-1, 64)
    largest = abs(parts).max(-1).astype("f4")
    codes = nearest(NF4, parts / largest[:, None]).reshape(-1, 2)
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": [ROWS, COLUMNS]}
    tensors = {"weight": (codes[:, 0] << 4 | codes[:, 1]).reshape(-1, 1), "weight.absmax": largest,
               "weight.quant_map": np.array(NF4, "f4")}
    if nested:
        offset = largest.mean()
        table = np.linspace(-1, 1, 256).astype("f4")
        outer = abs(largest - offset).max(keepdims=True).astype("f4")
        tensors["weight.absmax"] = nearest(table, (largest - offset) / outer)
        tensors["weight.nested_absmax"], tensors["weight.nested_quant_map"] = outer, table
        state.update(nested_blocksize=256, nested_dtype="float32", nested_offset=float(offset))
    tensors["weight.quant_state.bitsandbytes__nf4"] = np.frombuffer(json.dumps(state).encode(), "u1")
    return tensors


def nested_nf4(weight):
    return nf4(weight, nested=True)


E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def pairs_of_float4(values):
    codes = nearest(E2M1, values).reshape(*values.shape[:-1], -1, 2)
    return codes[..., 0] | codes[..., 1] << 4


def nvfp4(weight):
    parts = weight.reshape(ROWS, -1, 16)
    whole = abs(weight).max(keepdims=True).reshape(1) / (6 * 448)
    scale = nearest(e4m3_values(), abs(parts).max(-1) / 6 / whole)
    import numpy as np

    exact = np.asarray(e4m3_values())[scale] * whole
    codes = pairs_of_float4((parts / exact[..., None]).reshape(ROWS, COLUMNS))
    return {"weight": codes, "weight_scale": ("F8_E4M3", scale), "weight_scale_2": whole.astype("f4")}


FORMATS = [float8_blocks, float8_rows, int8_rows, torchao_float8, torchao_int8, bitsandbytes_int8, packed_int4, packed_int4_with_zeros, gptq,
           gptq_in_order_of_activations, gptq_3_bits, gptq_8_bits, second_gptq, awq, nf4, nested_nf4, nvfp4]


def original():
    import numpy as np

    return np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype("f4")


def gated(msprobe, scratch, first, second):
    return compare(msprobe, scratch, first, second, "--fail-on", "different")


def each_format_is_within_half_a_step(msprobe, scratch):
    weight = original()
    name = "model.layers.0.mlp.up_proj."
    save(scratch / "original", {name + "weight": weight, "model.norm.weight": weight[0]})
    for row, column in ((0, 0), (37, 201), (63, 255)):
        changed = weight.copy()
        changed[row, column] = 0 if abs(weight[row, column]) > 1 else 3
        save(scratch / f"changed{row}", {name + "weight": changed, "model.norm.weight": weight[0]})
    for make in FORMATS:
        folder = make.__name__
        config = {"quantization_config": {"quant_method": "gptq", "checkpoint_format": "gptq_v2"}}
        tensors = {name + part: value for part, value in make(weight).items()}
        save(scratch / folder, {**tensors, "model.norm.weight": weight[0]}, config if make is second_gptq else None)
        for pair in ((folder, "original"), ("original", folder)):
            result, rows = gated(msprobe, scratch, *pair)
            told = f"{pair}\n{result.stderr}"
            harness.check(result.returncode == 0, told)
            harness.check(rows[name + "weight"]["Status"] == "equal within half a step", told)
            harness.check(len(rows) == 2 and "1 equal within half a step of the format" in result.stderr, told)
            harness.check("1 weight is dequantized" in result.stderr and "not dequantized" not in result.stderr, told)
        for row, column in ((0, 0), (37, 201), (63, 255)):
            result, rows = gated(msprobe, scratch, folder, f"changed{row}")
            told = f"{folder} changed at {row}\n{result.stderr}"
            harness.check(result.returncode == 1, told)
            harness.check(rows[name + "weight"]["Status"] == "different", told)
            note = rows[name + "weight"]["Note"]
            harness.check(note.startswith("1 of ") and f"the first at [{row}, {column}]" in note, told + note)
        # The same tensors on both sides are compared as they are stored.
        result, rows = gated(msprobe, scratch, folder, folder)
        harness.check(result.returncode == 0 and "dequantized" not in result.stderr, result.stderr)
        harness.check(all(row["Status"] == "equal" for row in rows.values()), result.stderr)


def how_they_differ(result):
    """The lines of the relations."""
    lines = result.stderr.split("  how they differ:\n")
    return [line.strip() for line in lines[1].split("  worst ")[0].splitlines()] if len(lines) > 1 else []


def relations_to_the_original_are_named(msprobe, scratch):
    """In each format, the relation between a quantized weight and the weight that it is compared with is named."""
    import numpy as np

    weight = original()
    rng = np.random.default_rng(9)
    interleaved = weight.reshape(ROWS // 16, 2, 8, COLUMNS).swapaxes(1, 2).reshape(ROWS, COLUMNS)
    factors = np.where(np.arange(ROWS) % 2 == 0, 1.5, 0.5).astype("f4")[:, None]
    tuned = (weight + rng.standard_normal(weight.shape) * 0.8).astype("f4")
    changes = {
        "rows": (interleaved, "rows permuted: halves -> interleaved, 16 per head"),
        "any_order": (weight[rng.permutation(ROWS)], "rows permuted"),
        "columns": (weight[:, ::-1].copy(), "columns reversed"),
        "twice": (weight * 2, "scaled by 2"),
        "negated": (-weight, "negated"),
        "each_row": (weight * factors, "each row scaled by its own factor"),
        "transposed": (weight.T.copy(), "transposed"),
        "tuned": (tuned, None),
        "other": (rng.standard_normal(weight.shape).astype("f4"), None),
    }
    name = "model.layers.0.self_attn.q_proj."
    for change, (changed, _) in changes.items():
        save(scratch / change, {name + "weight": changed, "model.norm.weight": weight[0]})
    for make in FORMATS:
        folder = make.__name__
        config = {"quantization_config": {"quant_method": "gptq", "checkpoint_format": "gptq_v2"}}
        tensors = {name + part: value for part, value in make(weight).items()}
        save(scratch / folder, {**tensors, "model.norm.weight": weight[0]}, config if make is second_gptq else None)
        for change, (_, text) in changes.items():
            result, _rows = gated(msprobe, scratch, folder, change)
            told = f"{folder} against {change}\n{result.stderr}"
            harness.check(result.returncode == 1, told)
            harness.check_equal(told, how_they_differ(result), [f"{name}weight: {text}"] if text else [])


def nothing_is_told_by_steps_that_are_too_wide(msprobe, scratch):
    """One scale for all, made for an outlier or by mistake, leaves 0 of the rest; scales that are not numbers; zeros."""
    import numpy as np

    weight = original()
    outlier = weight.copy()
    outlier[5, 7] = 5000
    other = np.random.default_rng(11).standard_normal(weight.shape).astype("f4")
    other[5, 7] = 5000

    def int8(values, scale):
        return {"weight": np.clip(np.rint(values / scale), -127, 127).astype("i1"), "weight_scale": np.full((1, 1), scale, "f4")}

    zeros = np.zeros_like(weight)
    large = np.zeros(weight.shape, "i1")
    large[:, ::13] = 1  # all that is left of a weight, and multiples of it on the other side
    rows = np.linspace(200, 400, ROWS, dtype="f4")[:, None]
    cases = (
        ("wide", int8(zeros, 8), weight, "half a step of the format is larger than nearly all of its elements"),
        ("outlier", int8(other, 40), outlier, "half a step of the format is larger than nearly all of its elements"),
        ("large ones", {"weight": large, "weight_scale": np.full((1, 1), 100, "f4")}, weight + 300 * large, "of 16,384 elements are further"),
        ("large ones of rows", {"weight": large, "weight_scale": np.full((1, 1), 100, "f4")}, weight + rows * large, "of 16,384 elements are further"),
        ("zeros", int8(zeros, 0.01), weight, "w.weight: the first is 0 throughout"),
        ("zeros of float8", {**float8_rows(weight), "weight": ("F8_E4M3", zeros.astype("u1"))}, weight, "w.weight: the first is 0 throughout"),
        ("no number", {**int8(weight, 0.03), "weight_scale": np.full((1, 1), np.nan, "f4")}, weight, "w.weight: the first is NaN throughout"),
    )
    for case, tensors, against, text in cases:
        save(scratch / case, {f"w.{part}": value for part, value in tensors.items()})
        save(scratch / "against", {"w.weight": against})
        result, rows = gated(msprobe, scratch, case, "against")
        harness.check(result.returncode == 1 and rows["w.weight"]["Status"] == "different", f"{case}: {result.stderr}")
        harness.check(text in result.stderr and "scaled" not in result.stderr, f"{case}: {result.stderr}")


def a_zero_point_that_is_off_by_one(msprobe, scratch):
    """The second format of GPTQ, read as the first."""
    weight = original()
    save(scratch / "original", {"up_proj.weight": weight})
    save(scratch / "packed", {f"up_proj.{part}": value for part, value in second_gptq(weight).items()})
    result, _ = gated(msprobe, scratch, "original", "packed")
    text = "up_proj.weight: the second is 1 step of the format lower throughout, as with another zero point"
    harness.check_equal(result.stderr, how_they_differ(result), [text])


def contents_under_other_names(msprobe, scratch):
    import numpy as np

    weights = np.random.default_rng(6).standard_normal((4, ROWS, COLUMNS)).astype("f4")
    name = "model.layers.{}.mlp.up_proj."
    save(scratch / "exchanged", {name.format(i) + "weight": weights[k] for i, k in enumerate((0, 3, 2, 1))})
    save(scratch / "copied", {name.format(i) + "weight": weights[k] for i, k in enumerate((0, 1, 1, 3))})
    for make in FORMATS:
        config = {"quantization_config": {"quant_method": "gptq", "checkpoint_format": "gptq_v2"}}
        save(scratch / "packed", {name.format(i) + part: value for i, weight in enumerate(weights)
                                  for part, value in make(weight).items()}, config if make is second_gptq else None)
        result, _ = gated(msprobe, scratch, "packed", "exchanged")
        harness.check_equal(f"{make}\n{result.stderr}", how_they_differ(result),
                            ["layers 1 and 3 are exchanged: 1 parameter"])
        result, _ = gated(msprobe, scratch, "packed", "copied")
        harness.check_equal(
            f"{make}\n{result.stderr}", how_they_differ(result),
            [f"{name.format(2)}weight: the same as {name.format(1)}weight in the second, not in the first"])


def experts_in_microscaling_format(msprobe, scratch):
    """gpt-oss: (experts, outputs, blocks, 16) against (experts, inputs, outputs)."""
    import numpy as np

    weight = np.random.default_rng(2).standard_normal((3, 48, 4, 32)).astype("f4")
    exponent = np.floor(np.log2(abs(weight).max(-1))).astype("i4") - 2
    codes = pairs_of_float4(weight / np.exp2(exponent)[..., None])
    name = "model.layers.0.mlp.experts.gate_up_proj"
    save(scratch / "packed", {name + "_blocks": codes, name + "_scales": (exponent + 127).astype("u1")})
    plain = weight.reshape(3, 48, 128).transpose(0, 2, 1).copy()
    save(scratch / "plain", {name: plain})
    result, rows = gated(msprobe, scratch, "packed", "plain")
    harness.check(result.returncode == 0 and rows[name]["Status"] == "equal within half a step", result.stderr)
    plain[2, 77, 31] += 20
    save(scratch / "plain", {name: plain})
    result, rows = gated(msprobe, scratch, "packed", "plain")
    harness.check("1 of 18,432 elements" in rows[name]["Note"] and "first at [2, 77, 31]" in rows[name]["Note"],
                  result.stderr)


def two_formats_of_one_model(msprobe, scratch):
    weight = original()
    save(scratch / "one", {f"proj.{part}": value for part, value in float8_blocks(weight).items()})
    save(scratch / "other", {f"proj.{part}": value for part, value in gptq(weight).items()})
    result, rows = gated(msprobe, scratch, "one", "other")
    harness.check(result.returncode == 0 and rows["proj.weight"]["Status"] == "equal within half a step", result.stderr)
    harness.check(result.stderr.count("is dequantized") == 2, result.stderr)


def parts_are_joined(msprobe, scratch):
    """Quantized queries, keys and values against one fused projection."""
    import numpy as np

    weight = original()
    parts = np.split(weight, 4)
    head = "model.layers.0.self_attn."
    tensors = {}
    for name, rows in (("q", np.concatenate(parts[:2])), ("k", parts[2]), ("v", parts[3])):
        tensors.update({f"{head}{name}_proj.{part}": value for part, value in float8_rows(rows).items()})
    save(scratch / "apart", tensors)
    save(scratch / "fused", {head + "qkv_proj.weight": weight})
    result, rows = gated(msprobe, scratch, "apart", "fused")
    harness.check(result.returncode == 0, result.stderr)
    harness.check([row["Status"] for row in rows.values()] == ["equal within half a step"], result.stderr)


def what_does_not_fit_is_refused(msprobe, scratch):
    """Scales and orders that contradict the codes: the weight cannot be compared, for a reason, and the status is 2."""
    import numpy as np

    weight = original()
    save(scratch / "original", {"w.weight": weight})
    hostile = {
        "a group too far": ({**gptq(weight), "g_idx": np.full(COLUMNS, 99, "i4")}, "its scales do not fit its codes"),
        "a negative group": ({**gptq(weight), "g_idx": np.full(COLUMNS, -7, "i4")}, "its scales do not fit its codes"),
        "zero points of another type": ({**gptq(weight), "qzeros": np.zeros((4, 8), "i8")},
                                        "int64 where words of 32 bits are expected"),
    }
    for kind, (tensors, reason) in hostile.items():
        save(scratch / kind, {f"w.{part}": value for part, value in tensors.items()})
        result, rows = gated(msprobe, scratch, kind, "original")
        harness.check_equal(f"{kind}: {result.stderr}", result.returncode, 2)
        harness.check(reason in rows["w.weight"]["Note"], f"{kind}: {result.stderr}")


def what_is_no_quantized_weight_stays_as_it_is(msprobe, scratch):
    """States, shapes and grids that make no sense: the stored tensors are compared."""
    import numpy as np

    weight = original()
    save(scratch / "original", {"w.weight": weight})
    hostile = {
        "grid": {**float8_rows(weight), "weight_scale": np.ones((65, 7), "f4")},
        "state": {**nf4(weight), "weight.quant_state.bitsandbytes__nf4": np.frombuffer(b'{"shape": [1e999', "u1")},
        "shape": {**packed_int4(weight), "weight_shape": np.array([-1, 2**62], "i8")},
        "scales without elements": {**awq(weight), "scales": np.ones((0, 64), "f2")},
    }
    for kind, tensors in hostile.items():
        save(scratch / kind, {f"w.{part}": value for part, value in tensors.items()})
        result, _ = gated(msprobe, scratch, kind, "original")
        harness.check("weight is dequantized" not in result.stderr, f"{kind}: {result.stderr}")
        expected = 1 if "w.weight" in {f"w.{part}" for part in tensors} else 2  # 2: nothing in common
        harness.check_equal(f"{kind}: {result.stderr}", result.returncode, expected)


def why_a_weight_is_not_dequantized(msprobe, scratch):
    """The message names the part that is missing or does not fit; two equal files get no message."""

    weight = original()
    without = lambda tensors, part: {name: value for name, value in tensors.items() if name != part}
    blocks = {"quantization_config": {"weight_block_size": [32, 128]}}
    turned = {"quantization_config": {"weight_block_size": [128, 32]}}
    asymmetric = {"quantization_config": {"config_groups": {"group_0": {"weights": {"symmetric": False}}}}}
    save(scratch / "original", {"w.weight": weight})
    cases = {
        "no scales": (without(float8_rows(weight), "weight_scale"), None, "w.weight (its scales are missing)"),
        "other blocks": (float8_blocks(weight), turned, "w.weight (its shape [64, 256] and the shape"),
        "no zero points": (without(packed_int4_with_zeros(weight), "weight_zero_point"), asymmetric,
                           "w.weight_packed (w.weight_zero_point is missing)"),
        "no scales of words": (without(gptq(weight), "scales"), None, "w.qweight (w.scales is missing)"),
        "the right blocks": (float8_blocks(weight), blocks, None),
        "zero points": (packed_int4_with_zeros(weight), asymmetric, None),
    }
    for case, (tensors, config, text) in cases.items():
        save(scratch / case, {f"w.{part}": value for part, value in tensors.items()}, config)
        result, rows = gated(msprobe, scratch, case, "original")
        if text is None:
            harness.check(rows["w.weight"]["Status"] == "equal within half a step", f"{case}: {result.stderr}")
        else:
            told = f"{case}: not dequantized, but left as stored: {text}"
            harness.check(result.returncode != 0 and told in result.stderr, f"{case}: {result.stderr}")
        result, _ = gated(msprobe, scratch, case, case)
        harness.check(result.returncode == 0 and "dequantized" not in result.stderr, f"{case}: {result.stderr}")


def tensors_of_other_classes_are_read_by_what_they_keep(msprobe, scratch):
    """As torch.save() writes torchao's Int8Tensor."""
    try:
        import torch
    except ImportError:
        print("# no torch: nothing is pickled")
        return
    module = types.ModuleType("torchao.quantization")

    class Int8Tensor:
        def __init__(self, state):
            self.state = state

        def __reduce_ex__(self, protocol):
            inner = (Int8Tensor, torch.float32, (ROWS, COLUMNS), (COLUMNS, 1), 0, torch.strided, torch.device("cpu"), False)
            return torch._tensor._rebuild_from_type_v2, (torch._utils._rebuild_wrapper_subclass, Int8Tensor, inner, self.state)

    Int8Tensor.__module__, Int8Tensor.__qualname__, module.Int8Tensor = module.__name__, "Int8Tensor", Int8Tensor
    sys.modules["torchao"], sys.modules[module.__name__] = types.ModuleType("torchao"), module
    weight = original()
    rows = int8_rows(weight)
    state = {"qdata": torch.from_numpy(rows["weight"]), "scale": torch.from_numpy(rows["weight_scale"]), "block_size": [1, COLUMNS]}
    torch.save({"w.weight": Int8Tensor(state)}, scratch / "kept.pt")
    torch.save({"w.weight": Int8Tensor({"block_size": [1, COLUMNS]})}, scratch / "nothing.pt")
    torch.save({"w.weight": torch.from_numpy(weight)}, scratch / "plain.pt")
    weight[3, 5] += 3
    torch.save({"w.weight": torch.from_numpy(weight)}, scratch / "changed.pt")
    for other, status, text in (("plain.pt", 0, "1 equal within half a step"), ("changed.pt", 1, "the first at [3, 5]")):
        result, _ = gated(msprobe, scratch, "kept.pt", other)
        harness.check(result.returncode == status and text in result.stderr, f"{other}: {result.stderr}")
    result, _ = gated(msprobe, scratch, "nothing.pt", "plain.pt")
    harness.check_equal("status", result.returncode, 2)
    harness.check("a tensor of the class torchao.quantization.Int8Tensor, which is not supported" in result.stderr, result.stderr)


harness.main_of_script("numpy")
