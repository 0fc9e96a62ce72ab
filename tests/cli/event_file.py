# SPDX-License-Identifier: Apache-2.0
"""A small reader of TensorBoard's event files, from the formats' descriptions alone: records with masked CRC-32C, events
as protocol buffers."""

import struct


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        head = data[at : at + 8]
        (length,) = struct.unpack("<Q", head)
        (check,) = struct.unpack_from("<I", data, at + 8)
        assert check == masked_crc(head), "checksum of a length"
        body = data[at + 12 : at + 12 + length]
        assert len(body) == length, "a record is cut off"
        (check,) = struct.unpack_from("<I", data, at + 12 + length)
        assert check == masked_crc(body), "checksum of a record"
        yield body
        at += 16 + length


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field: an integer, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
        else:
            if kind == 2:
                size, at = _varint(data, at)
            else:
                size = {1: 8, 5: 4}[kind]
            value = data[at : at + size]
            assert len(value) == size, "a field is cut off"
            at += size
        yield key >> 3, value


def scalars(path):
    """tag -> [(step, value)], in the order of the file."""
    found = {}
    version = None
    for number, record in enumerate(records(path.read_bytes())):
        event = dict(fields(record))
        if number == 0:
            version = event.get(3)
            continue
        for field, summary in fields(event[5]):
            assert field == 1
            value = dict(fields(summary))
            found.setdefault(value[1].decode("utf-8"), []).append((event.get(2, 0), struct.unpack("<f", value[2])[0]))
    assert version == b"brain.Event:2", version
    return found
