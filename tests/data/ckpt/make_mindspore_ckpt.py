#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MindSpore's .ckpt files, encoded by Google's protobuf library from the published message definition.

usage: make_mindspore_ckpt.py     (writes mindspore.ckpt and mindspore_crc.ckpt beside itself; needs protobuf, numpy)
"""

import pathlib

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto


def messages():
    file = descriptor_pb2.FileDescriptorProto(name="checkpoint.proto", package="m", syntax="proto2")
    tensor = file.message_type.add(name="TensorProto")
    tensor.field.add(name="dims", number=1, label=FIELD.LABEL_REPEATED, type=FIELD.TYPE_INT64)
    tensor.field.add(name="tensor_type", number=2, label=FIELD.LABEL_REQUIRED, type=FIELD.TYPE_STRING)
    tensor.field.add(name="tensor_content", number=3, label=FIELD.LABEL_REQUIRED, type=FIELD.TYPE_BYTES)
    checkpoint = file.message_type.add(name="Checkpoint")
    value = checkpoint.nested_type.add(name="Value")
    value.field.add(name="tag", number=1, label=FIELD.LABEL_REQUIRED, type=FIELD.TYPE_STRING)
    value.field.add(
        name="tensor", number=2, label=FIELD.LABEL_OPTIONAL, type=FIELD.TYPE_MESSAGE, type_name=".m.TensorProto"
    )
    checkpoint.field.add(
        name="value", number=1, label=FIELD.LABEL_REPEATED, type=FIELD.TYPE_MESSAGE, type_name=".m.Checkpoint.Value"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("m.Checkpoint"))


def main():
    checkpoint = messages()()

    def add(name, dims, kind, content):
        value = checkpoint.value.add(tag=name)
        value.tensor.dims.extend(dims)
        value.tensor.tensor_type = kind
        value.tensor.tensor_content = content

    numbers = np.arange(12, dtype="<f4").reshape(3, 4) - 5.5
    add("backbone.weight", [3, 4], "Float32", numbers.tobytes())
    # A tensor too large for one value is written as several of the same name.
    long = np.arange(10, dtype="<f4")
    for part in (long[:4], long[4:8], long[8:]):
        add("backbone.cut", [10], "Float32", part.tobytes())
    add("half", [2], "BFloat16", bytes([0x80, 0x3F, 0x00, 0xC0]))  # 1, -2
    add("step", [0], "Int32", np.int32(7).tobytes())  # how it spells a scalar
    add("note", [0], "str", b"no tensor")
    add("adam_m.backbone.weight", [1], "Float32", np.float32(1).tobytes())
    here = pathlib.Path(__file__).resolve().parent
    content = checkpoint.SerializeToString()
    (here / "mindspore.ckpt").write_bytes(content)
    # With crc_check the checksum of the message follows it: the letters, then ten bytes, big-endian.
    (here / "mindspore_crc.ckpt").write_bytes(content + b"crc_num" + (123456789).to_bytes(10, "big"))


if __name__ == "__main__":
    main()
