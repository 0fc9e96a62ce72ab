# SPDX-License-Identifier: Apache-2.0
"""How MindSpore values are recorded that are not plain numbers, strings or containers."""

import json
import zlib

import numpy

from msprobe.core import session
from msprobe.core.describe import (CONTAINER_TYPES, DTYPE_OTHER, NUMPY_DTYPES, PLAIN_TYPES, Json, Record, numpy_types,
                                   other, slice_leaf)

from . import framework

_asnumpy = framework.asnumpy


def describe(value):
    for kind, function in _BY_TYPE:
        if isinstance(value, kind):
            return function(value)
    return other(value)


def describe_named(key, value):
    """JSON of an argument named dtype; None for any other value."""
    if key != "dtype" or isinstance(value, (framework.Tensor, list, tuple, dict)):
        return None
    return _dtype(value)


def _dtype(value):
    return json.dumps({"type": "mindspore.dtype", "value": dtype_text(value)})


def dtype_text(dtype):
    """In MindSpore's spelling, `Float32`, even where MSAdapter makes it print `mindspore.float32`."""
    text = str(dtype)
    if session.python_compatible[0] or not text.startswith("mindspore."):
        return text
    name = text[len("mindspore."):].rstrip("_")
    return _TEXTS.get(name) or name.capitalize()


_TEXTS = {"bfloat16": "BFloat16", "uint8": "UInt8", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64"}


def _number_or_null(value):
    if isinstance(value, framework.Tensor):
        elements = _asnumpy(value)
        return elements.item() if elements.size == 1 else None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _slice(value):
    return slice_leaf(value, _number_or_null)


# ---------------------------------------------------------------------- tensors


def _tensor(value):
    """Returns the elements as MindSpore passes them to NumPy: on the host, from any device."""
    dtype = dtype_text(value.dtype)
    shape = tuple(int(size) for size in value.shape)
    elements = elements_of(value)
    number = DTYPE_OTHER if elements is None else NUMPY_DTYPES.get(str(elements.dtype), DTYPE_OTHER)
    return Record((elements, None, dtype, number, shape, None, _layout(value), None, None, value))


def elements_of(value):
    try:
        elements = _asnumpy(value)
    except (TypeError, RuntimeError):  # a type that NumPy does not have
        return None
    if elements.dtype.kind == "V" or str(elements.dtype) not in NUMPY_DTYPES:
        # Types of 16 and 8 bits that are added to NumPy: as the Python tool does, the checksum is of float32.
        try:
            return elements.astype(numpy.float32)
        except (TypeError, ValueError):
            return None
    return elements


def _layout(value):
    """JSON of how a tensor is spread over devices; None if it is not."""
    extra = {}
    layout = getattr(value, "layout", None)
    if layout is not None:
        rows = [("Device Matrix", "device_matrix"), ("Alias Name", "alias_name"), ("Partial", "partial"),
                ("Tensor Map", "tensor_map"), ("Rank List", "rank_list")]
        told = {}
        for name, attribute in rows:
            part = getattr(layout, attribute, None)
            if part is None:
                continue
            told[name] = part
            if attribute == "alias_name":
                told["Interleaved"] = "Yes" if "interleaved_parallel" in part else "No"
        extra["layout"] = told
    shards = getattr(value, "hsdp_effective_shard_size", None)
    if shards is not None:
        extra["hsdp_shard_size"] = shards
    return json.dumps(extra, default=str) if extra else None


# ---------------------------------------------------------------------- communication


def _p2p_op(value):
    from mindspore.mint import distributed
    group = None
    if value.group:
        ranks = distributed.get_process_group_ranks(value.group)
        group = "%08x" % zlib.crc32(str(ranks).encode())
    plain = {"op": value.op if isinstance(value.op, str) else getattr(value.op, "__name__", str(value.op)),
             "peer": value.peer, "tag": value.tag, "group_id": group}
    described = {"class_type": Json(json.dumps("mindspore.mint.distributed.P2POp")), "tensor": value.tensor}
    described.update((name, Json(json.dumps(part))) for name, part in plain.items())
    return described


def _distributed_types():
    try:
        from mindspore.mint import distributed
        return [(distributed.P2POp, _p2p_op)]
    except (ImportError, AttributeError):
        return []


# The order matters: the first class that fits a value is used.
_BY_TYPE = [
    (framework.Tensor, _tensor),
    (Json, str.__str__),
    (framework.Dtype, _dtype),
] + numpy_types() + PLAIN_TYPES + [(slice, _slice)] + CONTAINER_TYPES + _distributed_types()
