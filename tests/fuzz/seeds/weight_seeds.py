# SPDX-License-Identifier: Apache-2.0
"""Seeds of weights: quantized ones, and those in the files of other programs than PyTorch. Used by make_seeds.py."""

import json
import struct

from seed_files import put, safetensors
from tensor_files import field


def quantized():
    """One weight in each form, with scales of all ones and codes in turn."""
    sizes = {"I32": 4, "F16": 2, "F32": 4, "U8": 1, "I8": 1, "F8_E4M3": 1, "I64": 8}
    state = json.dumps({"blocksize": 64, "shape": [8, 16], "nested_blocksize": 256, "nested_offset": 0.5}).encode()
    forms = {
        "gptq": {"w.qweight": ("I32", [2, 8]), "w.qzeros": ("I32", [2, 1]), "w.scales": ("F16", [2, 8]), "w.g_idx": ("I32", [16])},
        "gptq_3_bits": {"w.qweight": ("I32", [3, 32]), "w.qzeros": ("I32", [2, 3]), "w.scales": ("F16", [2, 32])},
        "awq": {"w.qweight": ("I32", [16, 1]), "w.qzeros": ("I32", [2, 1]), "w.scales": ("F16", [2, 8])},
        "packed": {"w.weight_packed": ("I32", [8, 2]), "w.weight_scale": ("F32", [8, 2]), "w.weight_shape": ("I64", [2]),
                   "w.weight_zero_point": ("I32", [1, 2])},
        "blocks": {"w.weight": ("F8_E4M3", [8, 16]), "w.weight_scale_inv": ("F32", [1, 1])},
        "rows": {"w.weight": ("I8", [8, 16]), "w.SCB": ("F32", [8])},
        "nvfp4": {"w.weight": ("U8", [8, 16]), "w.weight_scale": ("F8_E4M3", [8, 2]), "w.weight_scale_2": ("F32", [])},
        "mxfp4": {"w_blocks": ("U8", [2, 4, 1, 16]), "w_scales": ("U8", [2, 4, 1])},
        "nf4": {"w.weight": ("U8", [64, 1]), "w.weight.absmax": ("U8", [2]), "w.weight.quant_map": ("F32", [16]),
                "w.weight.nested_absmax": ("F32", [1]), "w.weight.nested_quant_map": ("F32", [256]),
                "w.weight.quant_state.bitsandbytes__nf4": ("U8", [len(state)])},
    }
    for form, tensors in forms.items():
        header, data = {}, b""
        for name, (dtype, shape) in tensors.items():
            count = 1
            for length in shape:
                count *= length
            raw = {"F32": b"\0\0\x80?", "F16": b"\0<"}.get(dtype, b"") * count or bytes(i % 120 for i in range(count * sizes[dtype]))
            if name == "w.g_idx":
                raw = b"".join(struct.pack("<i", i // 8) for i in range(16))
            if name == "w.weight_shape":
                raw = struct.pack("<2q", 8, 16)
            if "quant_state" in name:
                raw = state
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
        put("quantized", form, safetensors(header, data))


def flax_files():
    def text(value):
        return bytes([0xD9, len(value)]) + value

    def mapped(pairs):
        return bytes([0x80 | len(pairs)]) + b"".join(text(key) + value for key, value in pairs)

    def array(shape, raw, dtype=b"float32"):
        body = b"\x93" + bytes([0x90 | len(shape), *shape]) + text(dtype) + b"\xc4" + bytes([len(raw)]) + raw
        return b"\xc7" + bytes([len(body), 1]) + body

    one = array([2], bytes(8))
    flag = (b"__msgpack_chunked_array__", b"\xc3")
    pieces = [flag, (b"shape", mapped([(b"0", b"\x02"), (b"1", b"\x02")])), (b"chunks", mapped([(b"0", one), (b"1", one)]))]
    put("flax", "tree.msgpack", mapped([(b"params", mapped([(b"a", one), (b"b", mapped([(b"kernel", array([1, 2], bytes(4), b"bfloat16"))]))]))]))
    put("flax", "pieces.msgpack", mapped([(b"a", mapped(pieces))]))
    put("flax", "no_pieces.msgpack", mapped([(b"a", mapped(pieces[:2]))]))
    put("flax", "others.msgpack", mapped([(b"a", one), (b"b", b"\x93\xc0\xcb" + bytes(8) + b"\xd3" + bytes(8)), (b"c", b"\xd4\x03x"), (b"d", b"\x92" + one + one)]))
    put("flax", "odd.msgpack", mapped([(b"a", array([3], bytes(8))), (b"b", array([2], bytes(8), b"object")), (b"c", array([0], b""))]))
    deep = one
    for _ in range(80):
        deep = mapped([(b"a", deep)])
    put("flax", "deep.msgpack", mapped([(b"b", one), (b"a", deep)]))
    put("flax", "cut.msgpack", mapped([(b"a", one), (b"b", one)])[:-3])


def gguf_files():
    def text(value):
        return struct.pack("<Q", len(value)) + value

    def tensor(name, lengths, kind, offset):
        return text(name) + struct.pack(f"<I{len(lengths)}QIQ", len(lengths), *lengths, kind, offset)

    def file(values, tensors, data, version=3, count=None):
        head = b"GGUF" + struct.pack("<IQQ", version, count or len(tensors), len(values)) + b"".join(values + tensors)
        return head + bytes(-len(head) % 32) + data

    values = [
        text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama"),
        text(b"llama.attention.head_count") + struct.pack("<II", 4, 4),
        text(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text(b"a") + text(b"b"),
        text(b"tokenizer.chat_template") + struct.pack("<I", 8) + text(b"{{ messages }}"),
        text(b"general.scale") + struct.pack("<If", 6, 0.5),
    ]
    plain = tensor(b"token_embd.weight", [4, 2], 0, 0)
    put("gguf", "plain.gguf", file(values, [plain], bytes(32)))
    sizes = {2: 18, 3: 20, 6: 22, 7: 24, 8: 34, 10: 84, 11: 110, 12: 144, 13: 176, 14: 210, 20: 18, 23: 136, 39: 17}
    packed, data = [], b""
    for kind, size in sizes.items():
        packed.append(tensor(b"t%d" % kind, [32 if size < 40 else 256], kind, len(data)))
        data += bytes((i * 37 + kind) % 256 for i in range(size)) + bytes(-size % 32)
    put("gguf", "packed.gguf", file([], packed, data))
    put("gguf", "other_types.gguf", file([], [tensor(b"a", [256], 16, 0), tensor(b"b", [3], 99, 96)], bytes(128)))
    put("gguf", "alignment.gguf", file([text(b"general.alignment") + struct.pack("<II", 4, 8)], [plain], bytes(32), 2))
    put("gguf", "no_alignment.gguf", file([text(b"general.alignment") + struct.pack("<II", 4, 0)], [plain], bytes(32)))
    put("gguf", "experts.gguf", file([], [tensor(b"blk.0.ffn_up_exps.weight", [2, 2, 2], 0, 0)], bytes(32)))
    put("gguf", "twice.gguf", file([], [plain, plain], bytes(32)))
    put("gguf", "overflow.gguf", file([], [tensor(b"a", [1 << 62, 1 << 62], 0, 0)], b""))
    put("gguf", "beyond.gguf", file([], [tensor(b"a", [8], 0, 1 << 63)], bytes(32)))
    put("gguf", "rows.gguf", file([], [tensor(b"a", [33], 8, 0)], bytes(64)))
    put("gguf", "many.gguf", file([], [plain], bytes(32), count=1 << 60))
    lists = text(b"deep") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 20
    put("gguf", "lists.gguf", file([lists], [], b""))
    put("gguf", "long_list.gguf", file([text(b"l") + struct.pack("<IIQ", 9, 10, 1 << 61)], [], b""))
    put("gguf", "big_endian.gguf", b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + bytes(32))


def onnx_files():
    def file(*tensors):
        return field(1, 8) + field(7, field(2, b"g") + b"".join(field(5, t) for t in tensors)) + field(8, field(2, 17))

    def tensor(name, kind, shape, *rest):
        return b"".join(field(1, length) for length in shape) + field(2, kind) + field(8, name) + b"".join(rest)

    put("onnx", "raw.onnx", file(tensor(b"a", 1, [2], field(9, bytes(8))), tensor(b"b", 16, [], field(9, b"\x80\x3f"))))
    put("onnx", "listed.onnx", file(tensor(b"a", 7, [3], field(7, b"\x01\xff\x01\x02")), tensor(b"b", 10, [2], field(5, b"\x80\x78\x00"))))
    put("onnx", "floats.onnx", file(tensor(b"a", 1, [1, 2], field(4, bytes(8))), tensor(b"b", 11, [1], field(10, bytes(8)))))
    put("onnx", "packed_shape.onnx", file(field(1, b"\x02\x03") + field(2, 2) + field(8, b"a") + field(9, bytes(6))))
    place = field(13, field(1, b"location") + field(2, b"w")) + field(13, field(1, b"offset") + field(2, b"4")) + field(14, 1)
    put("onnx", "external.onnx", file(tensor(b"a", 1, [2], place)))
    put("onnx", "several.onnx", file(tensor(b"a", 1, [2], field(4, bytes(4)), field(4, bytes(4)))))
    put("onnx", "huge.onnx", file(tensor(b"a", 7, [1 << 40], field(7, b"1")), tensor(b"b", 1, [1 << 40, 1 << 40], field(9, b"1"))))
    put("onnx", "cut.onnx", file(tensor(b"a", 1, [2], field(9, bytes(8))))[:-9])
