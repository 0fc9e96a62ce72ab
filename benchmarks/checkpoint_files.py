# SPDX-License-Identifier: Apache-2.0
"""Two safetensors files of float32 parameters; every eighth parameter differs a little."""

import json
import pathlib
import random
import struct


def write(out, parameters, mib, seed):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    count = mib << 18
    header, offset = {}, 0
    for index in range(parameters):
        header[f"model.layers.{index}.weight"] = {
            "dtype": "F32",
            "shape": [count // 256, 256],
            "data_offsets": [offset, offset + 4 * count],
        }
        offset += 4 * count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    draw = random.Random(seed)
    block = [draw.gauss(0, 0.02) for _ in range(1 << 16)]
    plain = struct.pack(f"<{len(block)}f", *block) * (count >> 16)
    moved = struct.pack(f"<{len(block)}f", *(value * 1.001 for value in block)) * (count >> 16)
    for name, odd in (("first", plain), ("second", moved)):
        with open(out / f"{name}.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for index in range(parameters):
                file.write(odd if index % 8 == 7 else plain)
