# SPDX-License-Identifier: Apache-2.0
"""Files of tensors put together byte by byte, for tests that do without the libraries of their formats."""

import json
import struct


def npy(descr, shape, data):
    """Version 1.0 of NumPy's format; `data`: the elements as in the file."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def save_safetensors(path, tensors):
    """Float32 tensors, each a shape and its elements as in the file, by name."""
    header, data = {}, []
    end = 0
    for name, (shape, raw) in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [end, end + len(raw)]}
        data.append(raw)
        end += len(raw)
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def save_lists(path, tensors):
    """The same for lists of numbers."""
    save_safetensors(path, {name: ([len(values)], struct.pack(f"<{len(values)}f", *values)) for name, values in tensors.items()})


def save_torch_tensors(path, tensors):
    """The same for PyTorch's tensors."""
    raw = {name: tensor.contiguous().numpy().astype("<f4").tobytes() for name, tensor in tensors.items()}
    save_safetensors(path, {name: (tensor.shape, raw[name]) for name, tensor in tensors.items()})


def varint(value):
    """A number of protobuf's; a negative one is that of 64 bits."""
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """One field of a protobuf message: a number or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value
