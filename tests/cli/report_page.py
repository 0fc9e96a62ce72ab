# SPDX-License-Identifier: Apache-2.0
"""Reads the HTML report the way its own script does, with Python's base64, zlib and struct."""

import array
import base64
import json
import re
import struct
import zlib

NO_ENTRY = 0xFFFFFFFF
WHOLE_NAME = 0x80000000


def inflate(page, name):
    found = re.search(rf'<script type="application/octet-stream" id="{name}">([A-Za-z0-9+/=]*)</script>', page)
    stream = zlib.decompressobj(-15)
    raw = stream.decompress(base64.b64decode(found[1], validate=True)) + stream.flush()
    if not stream.eof:
        raise AssertionError(f"{name} is not whole")
    return raw


def take(raw, at, kind, count):
    values = array.array(kind)
    size = values.itemsize * count
    values.frombytes(raw[at : at + size])
    return values, at + (size + 7) // 8 * 8


def overview(page):
    return json.loads(inflate(page, "overview"))


def names(page, rank):
    return json.loads(inflate(page, f"rank-{rank}-names"))


def rows(page, rank):
    """Every row of a rank as a dictionary of cells: numbers where the page has numbers, else texts."""
    known = names(page, rank)
    entries, columns = known["entries"], known["columns"]
    result = []
    for chunk, count in enumerate(overview(page)["ranks"][rank]["chunks"]):
        raw = inflate(page, f"rank-{rank}-rows-{chunk}")
        verdicts, at = take(raw, 0, "B", count)
        sides = []
        for _ in ("NPU Name", "Bench Name"):
            codes, at = take(raw, at, "I", count)
            sides.append(codes)
        explained = None
        if known["explained"]:
            explained, at = take(raw, at, "H", count)
        cells = []
        for column in columns:
            codes, at = take(raw, at, "I", count)
            numbers = None
            if column["numbers"][chunk]:
                numbers, at = take(raw, at, "d", count)
            cells.append((column, codes, numbers))
        if at != len(raw):
            raise AssertionError(f"{len(raw) - at} bytes are left over in chunk {chunk}")
        for i in range(count):
            row = {"verdict": verdicts[i]}
            if explained is not None:
                row["explained"] = struct.unpack("<f", struct.pack("<I", explained[i] << 16))[0]
            for column, codes, numbers in cells:
                code = codes[i]
                row[column["name"]] = numbers[i] if code == 0 else column["texts"][code - 1]
            for name, codes in zip(("NPU Name", "Bench Name"), sides):
                if not codes[i] & WHOLE_NAME:
                    row[name] = entries[codes[i]] + row[name]
            result.append(row)
    return result
