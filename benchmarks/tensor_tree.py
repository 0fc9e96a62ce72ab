# SPDX-License-Identifier: Apache-2.0
"""Two tensor dump trees of any size: `.pt` files as PyTorch writes them, and the dump.json that names them.

Blocks of random numbers are drawn once and reused at different rotations, so that gigabytes are written as
fast as the disk takes them. Every tensor differs from every other, and target from golden in every element.

A pair with a fault is a chain of relu on positive numbers, so that what goes in comes out. The target differs from golden
in the last bit of every other element, and the entry in the middle puts out a part that is wrong, which all others take on.
"""

import array
import json
import math
import random
import struct
import zlib

# sign, two low exponent bits and the mantissa stay random: numbers of either sign from 0.125 to 2
RANDOM_BITS, FIXED_BITS = 0x81FFFFFF, 0x3E000000
# Bits in which the target may differ: 3e-5 relative at most, or 0.8 % (below and above one thousandth).
ERRORS = {"near": 0x000000FF, "far": 0x0000FFFF}
POSITIVE_BITS, ROUNDING = 0x01FFFFFF, 0x00000001
FAULT_PART = 16  # one of so many parts is wrong
ALIGNMENT = 64


def zip_record(name, payload, crc, offset):
    """(local header, data descriptor) of one stored record whose payload starts at a multiple of 64."""
    encoded = name.encode("ascii")
    start = offset + 30 + len(encoded) + 4
    padding = ALIGNMENT - start % ALIGNMENT
    header = struct.pack("<IHHHIIIIHH", 0x04034B50, 0, 0x0808, 0, 0, 0, 0, 0, len(encoded), padding + 4)
    extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
    return header + encoded + extra, struct.pack("<IIII", 0x08074B50, crc, len(payload), len(payload))


def write_pt(path, payload, crc, shape, serial):
    """The container of torch.save since 2.6: stored records, sizes only in descriptors and directory."""
    root = path.name.rsplit(".", 1)[0]
    records = [
        ("data.pkl", tensor_pickle(shape)),
        (".format_version", b"1"),
        (".storage_alignment", b"64"),
        ("byteorder", b"little"),
        ("data/0", payload),
        ("version", b"3\n"),
        (".data/serialization_id", b"%040d" % serial),
    ]
    offset, directory = 0, []
    with open(path, "wb", buffering=0) as stream:
        for name, content in records:
            full = f"{root}/{name}"
            checksum = crc if content is payload else zlib.crc32(content)
            header, descriptor = zip_record(full, content, checksum, offset)
            directory.append(
                struct.pack(
                    "<IHHHHIIIIHHHHHII",
                    0x02014B50,
                    0,
                    0,
                    0x0808,
                    0,
                    0,
                    checksum,
                    len(content),
                    len(content),
                    len(full),
                    0,
                    0,
                    0,
                    0,
                    0,
                    offset,
                )
                + full.encode("ascii")
            )
            stream.write(header)
            stream.write(content)
            stream.write(descriptor)
            offset += len(header) + len(content) + len(descriptor)
        central = b"".join(directory)
        count, end = len(records), offset + len(central)
        stream.write(
            central
            + struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 0x031E, 45, 0, 0, count, count, len(central), offset)
            + struct.pack("<IIQI", 0x07064B50, 0, end, 1)
            + struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, len(central), offset, 0)
        )


def unicode_text(text):
    return b"X" + struct.pack("<I", len(text)) + text.encode("ascii")


def small_int(value):
    """BININT1, BININT2 or BININT, the opcodes PyTorch's pickler uses."""
    if value < 0x100:
        return b"K" + struct.pack("<B", value)
    if value < 0x10000:
        return b"M" + struct.pack("<H", value)
    return b"J" + struct.pack("<i", value)


def int_tuple(values):
    body = b"".join(map(small_int, values))
    closing = {1: b"\x85", 2: b"\x86", 3: b"\x87"}
    return body + closing[len(values)] if len(values) in closing else b"(" + body + b"t"


def tensor_pickle(shape):
    """data.pkl of a contiguous float32 tensor, opcode by opcode (protocol 2)."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.insert(0, step)
        step *= length
    return (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\x00(("
        + unicode_text("storage")
        + b"q\x01ctorch\nFloatStorage\nq\x02"
        + unicode_text("0")
        + b"q\x03"
        + unicode_text("cpu")
        + b"q\x04"
        + small_int(step)
        + b"tq\x05Q"
        + small_int(0)
        + int_tuple(shape)
        + b"q\x06"
        + int_tuple(strides)
        + b"q\x07"
        + b"\x89ccollections\nOrderedDict\nq\x08)Rq\ttq\nRq\x0b."
    )


class Block:
    """A golden block, its target variants, and the statistics that dump.json gives for them."""

    def __init__(self, seed, size):
        rng = random.Random(seed)
        golden = int.from_bytes(rng.randbytes(size), "little")
        words = size // 4

        def everywhere(mask):
            return int.from_bytes(struct.pack("<I", mask) * words, "little")

        golden = golden & everywhere(RANDOM_BITS) | everywhere(FIXED_BITS)
        noise = int.from_bytes(rng.randbytes(size), "little")
        self.bytes = {"golden": golden.to_bytes(size, "little")}
        for name, mask in ERRORS.items():
            self.bytes[name] = (golden ^ (noise & everywhere(mask) | everywhere(1))).to_bytes(size, "little")
        self.statistics = {name: statistics(data) for name, data in self.bytes.items()}

    @classmethod
    def of_chain(cls, seed, size):
        """Positive numbers; `near` differs by rounding, `faulty` by rounding and in one part."""
        self = cls.__new__(cls)
        rng = random.Random(seed)
        words = size // 4

        def drawn(mask):
            return int.from_bytes(rng.randbytes(size), "little") & int.from_bytes(struct.pack("<I", mask) * words, "little")

        golden = drawn(POSITIVE_BITS) | int.from_bytes(struct.pack("<I", FIXED_BITS) * words, "little")
        near = (golden ^ drawn(ROUNDING)).to_bytes(size, "little")
        cut = max(words // FAULT_PART, 1) * 4
        # The first part once more in place of the second: as if a tile had been computed twice.
        self.bytes = {"golden": golden.to_bytes(size, "little"), "near": near,
                      "faulty": near[:cut] + near[:cut] + near[2 * cut :]}
        self.statistics = {name: statistics(data) for name, data in self.bytes.items()}
        return self

    def rotated(self, name, start):
        data = self.bytes[name]
        return data[start:] + data[:start]


def statistics(data):
    values = array.array("f", data)
    numbers = {
        "Max": max(values),
        "Min": min(values),
        "Mean": math.fsum(values) / len(values),
        "Norm": math.sqrt(math.fsum(v * v for v in values)),
    }
    return {key: array.array("f", [value])[0] for key, value in numbers.items()}  # as float32 prints


def tensor_shape(words):
    """Rows of 1024 where they fit; a matrix is what a training dump mostly holds."""
    return (words // 1024, 1024) if words >= 1024 and words % 1024 == 0 else (words,)


def chain(size, apis, seed):
    """Entries of a pair with a fault."""
    block = Block.of_chain(seed, size)
    for api in range(apis):
        tensors = []
        for label, made_by in (("input.0", api - 1), ("output.0", api)):
            used = {"target": "near" if made_by < apis // 2 else "faulty", "golden": "golden"}
            tensors.append((label, {side: (block.bytes[name], block.statistics[name]) for side, name in used.items()}))
        yield f"Functional.relu.{api}.forward", tensors


def unrelated(size, apis, tensors, seed):
    """Entries whose outputs have nothing to do with their inputs."""
    block = Block(seed, size)
    rng = random.Random(seed + 1)
    for api in range(apis):
        made = []
        for index in range(tensors):
            is_output = index == tensors - 1
            label = "output.0" if is_output else f"input.{index}"
            start = rng.randrange(size // 64) * 64
            used = {"target": "far" if is_output and rng.random() < 0.1 else "near", "golden": "golden"}
            made.append((label, {side: (block.rotated(name, start), block.statistics[name]) for side, name in used.items()}))
        yield f"Functional.linear.{api}.forward", made


def write_rank(target_folder, golden_folder, entries, size):
    """Writes what they yield: a name and, by label, bytes and statistics of each side. Returns the rows per side."""
    if size % 4 or size < 64:
        raise ValueError("a tensor needs a multiple of 4 bytes, and at least 64")
    shape = tensor_shape(size // 4)
    folders = {"target": target_folder, "golden": golden_folder}
    data = {side: {} for side in folders}
    for folder in folders.values():
        (folder / "dump_tensor_data").mkdir(parents=True, exist_ok=True)
    serial = 0
    for name, tensors in entries:
        for side in folders:
            data[side][name] = {"input_args": [], "input_kwargs": {}, "output": []}
        for label, sides in tensors:
            for side, folder in folders.items():
                payload, recorded = sides[side]
                file_name = f"{name}.{label}.pt"
                serial += 1
                write_pt(folder / "dump_tensor_data" / file_name, payload, zlib.crc32(payload), shape, serial)
                data[side][name]["output" if label.startswith("output") else "input_args"].append(
                    {
                        "type": "torch.Tensor",
                        "dtype": "torch.float32",
                        "shape": list(shape),
                        **recorded,
                        "requires_grad": True,
                        "data_name": file_name,
                    }
                )
    for side, folder in folders.items():
        dump = {
            "task": "tensor",
            "level": "L1",
            "framework": "pytorch",
            "dump_data_dir": f"{side}/{folder.parent.name}/{folder.name}/dump_tensor_data",
            "data": data[side],
        }
        (folder / "dump.json").write_text(json.dumps(dump, indent=1), encoding="ascii")
        stack = {"0": [list(data[side]), ["File /srv/train/model.py, line 57, in forward, \n x = self.proj(x)"]]}
        (folder / "stack.json").write_text(json.dumps(stack, indent=1), encoding="ascii")
    return serial // 2
