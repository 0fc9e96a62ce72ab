# SPDX-License-Identifier: Apache-2.0
"""Calls in the form of a dump, for the judge: entries as JSON, the elements of their tensors in a file without a name."""

import json
import mmap
import os
import tempfile

import torch

from .. import describe, op_runner

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_DEEPEST = 32
_KINDS = ((bool, "bool"), (int, "int"), (float, "float"), (str, "str"))


class NotSent(Exception):
    """The reason why a call cannot be sent."""


def is_plain(tensor):
    return type(tensor) in _PLAIN and tensor.layout == torch.strided and tensor.device.type != "meta" and (
        not tensor.is_quantized)


class TensorFile:
    """A file for tensors that both processes have open. The judge releases the parts that it has read."""

    def __init__(self):
        self._file = None
        if hasattr(os, "memfd_create"):
            self.descriptor = os.memfd_create("msprobe", os.MFD_CLOEXEC)
        else:
            self._file = tempfile.TemporaryFile()
            self.descriptor = self._file.fileno()
        self.end = 0

    def begin_page(self):
        """Moves the end to a page boundary, because the judge releases whole pages."""
        self.end = (self.end + mmap.PAGESIZE - 1) // mmap.PAGESIZE * mmap.PAGESIZE

    def write(self, tensor):
        begin, self.end = op_runner.write_elements(tensor.detach(), self.descriptor, self.end)
        return begin

    def close(self):
        if self._file is not None:
            self._file.close()
        elif self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


class Part:
    """The entry of one direction of a call, while it is built. Its tensors are written at once."""

    def __init__(self, file, name):
        self.file = file
        self._name = name     # "Functional.linear.0.forward"
        self._written = {}    # id(tensor) -> (the tensor, the place of its elements)
        self.entry = {}
        self.tensors = {}     # name of a file -> [type, shape, place]
        self.blocks = []      # [begin, size] of each block written between begin() and end()

    def begin(self):
        """Begins a block: everything up to end() is written into it."""
        self.file.begin_page()
        self._is_open = True
        self.blocks.append([self.file.end, 0])

    def end(self):
        """Ends the block. From now on the tensors may change or be freed."""
        if self._is_open:
            self.blocks[-1][1] = self.file.end - self.blocks[-1][0]
        self._is_open = False
        self._written.clear()

    @property
    def size(self):
        return sum(size for _, size in self.blocks)

    def add_list(self, member, values, stem):
        """Adds a list to the entry; the names of its tensors begin with the stem."""
        self.entry[member] = [self._value(value, "%s.%d" % (stem, index)) for index, value in enumerate(values)]

    def add_mapping(self, member, values, stem):
        self.entry[member] = {str(key): self._named(str(key), value, "%s.%s" % (stem, key))
                              for key, value in values.items()}

    def add_result(self, result):
        fields = getattr(result, "_fields", None)
        if isinstance(fields, tuple) and isinstance(result, tuple):
            self.add_mapping("output", dict(zip(fields, result)), "output")
        elif type(result) is tuple or isinstance(result, tuple):
            self.add_list("output", result, "output")
        else:
            self.add_list("output", (result,), "output")

    def _named(self, key, value, stem):
        if key in ("dtype", "device", "output_dtype"):
            text = describe.describe_named(key, value)
            if text is not None:
                return json.loads(text)
        return self._value(value, stem)

    def _value(self, value, stem, depth=0):
        if value is None:
            return None
        if isinstance(value, torch.Tensor):
            return self._tensor(value, stem)
        for kind, name in _KINDS:
            if type(value) is kind:
                return {"type": name, "value": value}
        if depth > _DEEPEST:
            raise NotSent("its arguments are nested too deeply")
        if type(value) in (tuple, list):
            return [self._value(one, "%s.%d" % (stem, index), depth + 1) for index, one in enumerate(value)]
        if type(value) is dict:
            return {str(key): self._value(one, "%s.%s" % (stem, key), depth + 1) for key, one in value.items()}
        described = describe.describe(value)
        if isinstance(described, str):
            return json.loads(described)
        if isinstance(described, (dict, list, tuple, torch.Tensor)) and described is not value and (
                not isinstance(described, describe.Record)):
            return self._value(described, stem, depth + 1)
        return None

    def _tensor(self, tensor, stem):
        if not is_plain(tensor):
            raise NotSent("a %s among its arguments or results is not sent" % type(tensor).__name__)
        known = self._written.get(id(tensor))
        place = known[1] if known is not None else self.file.write(tensor)
        self._written[id(tensor)] = tensor, place
        name = "%s.%s.pt" % (self._name, stem.replace("/", "_"))
        dtype, shape = str(tensor.dtype), list(tensor.shape)
        self.tensors[name] = [dtype, shape, place]
        return {"type": "torch.Tensor", "dtype": dtype, "shape": shape, "requires_grad": tensor.requires_grad,
                "data_name": name}
