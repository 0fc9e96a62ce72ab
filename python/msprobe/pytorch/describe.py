# SPDX-License-Identifier: Apache-2.0
"""What becomes of values that are neither plain numbers, texts, containers nor plain tensors.

describe(value) gives None (null), JSON text (a leaf), a Record (a tensor of a special kind), or something simpler to
go on with: a plain container or a plain tensor.
"""

import dataclasses
import json
import sys
import zlib

import torch

from . import framework


class Record(tuple):
    """(elements, type, dtype text, dtype number, shape, requires_grad, extra JSON, statistics, deferred)

    elements: a plain tensor on the host that has them, or None, and then dtype number and shape count.
    deferred: called with the slot that the statistics go into later; None if they are known or there are none.
    """

    __slots__ = ()


class Json(str):
    """A leaf that is JSON already, inside a container that describe() gives."""

    __slots__ = ()


def record(elements, kind, dtype, shape, requires_grad, extra=None, statistics=None, deferred=None, number=None):
    if number is None:
        number = framework.dtype_number(dtype)
    return Record((elements, kind, str(dtype), number, tuple(int(size) for size in shape), requires_grad, extra,
                   statistics, deferred))


def describe(value):
    for kind, function in _BY_TYPE:
        if isinstance(value, kind):
            return function(value)
    return _other(value)


def describe_named(key, value):
    """JSON of an argument called dtype, output_dtype or device; None if it is nothing of that kind."""
    if isinstance(value, (torch.Tensor, list, tuple, dict)):
        return None
    if key == "device":
        if isinstance(value, torch.device):
            value = _device_text(value)
        elif not (isinstance(value, (str, int)) or value is None):
            value = str(value)
        return json.dumps({"type": "torch.device", "value": value})
    return json.dumps({"type": "torch.dtype", "value": str(value)})


def _device_text(device):
    return "%s:%s" % (device.type, device.index)


# ---------------------------------------------------------------------- numbers and containers


def _leaf(value, plain):
    return json.dumps({"type": type(value).__name__, "value": plain})


def _number_or_null(value):
    if value is None:
        return None
    if isinstance(value, torch.Tensor):
        return value.item() if value.numel() == 1 else None
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _slice(value):
    return json.dumps({"type": "slice", "value": [_number_or_null(part) for part in
                                                  (value.start, value.stop, value.step)]})


def _size(value):
    return json.dumps({"type": "torch.Size", "value": [int(part) for part in value]})


def _tuple(value):
    fields = getattr(value, "_fields", None)
    if isinstance(fields, tuple):  # a namedtuple
        return {str(name): part for name, part in zip(fields, value)}
    return tuple(value) if type(value) is not tuple else value


def _dict(value):
    if dataclasses.is_dataclass(value):
        return _dataclass(value)
    return dict(value.items())


def _dataclass(value):
    return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}


def _memory_format(value):
    return json.dumps({"type": "torch.memory_format", "format": str(value).split(".")[-1]})


# ---------------------------------------------------------------------- tensors


def _tensor(value):
    """Tensors that could not be read as they are, by what is special about them."""
    with _as_plain_functions():
        kind = type(value)
        name = kind.__name__
        module = kind.__module__ or ""
        if name == "FakeTensor":
            return record(None, "torch._subclasses.fake_tensor.FakeTensor", value.dtype, value.shape,
                          value.requires_grad)
        if name == "AsyncCollectiveTensor":
            return record(None, "torch.distributed._functional_collectives.AsyncCollectiveTensor", value.dtype,
                          value.shape, value.requires_grad)
        if name == "DTensor" and module.startswith("torch.distributed"):
            return _dtensor(value)
        wrapped = _functorch(value)
        if wrapped is not None:
            return wrapped
        if value.is_nested:
            packed = value.values() if hasattr(value, "values") else None
            return record(_readable(packed), "torch.nested._internal.nested_tensor.NestedTensor", value.dtype,
                          packed.shape if packed is not None else (), value.requires_grad)
        if value.is_sparse or value.layout != torch.strided or value.is_meta:
            return record(None, None, value.dtype, value.shape, value.requires_grad)
        if not value.is_cpu:
            from . import device
            return device.describe(value)
        # A subclass over plain memory (a buffer, a tensor of a library), or one whose memory was given back.
        return record(_readable(value), None, value.dtype, value.shape, value.requires_grad)


def _readable(tensor):
    """The same elements as a plain tensor on the host; None if there are none to read."""
    if tensor is None:
        return None
    if type(tensor) is not torch.Tensor:
        try:
            tensor = torch.Tensor._make_subclass(torch.Tensor, framework.detach(tensor))
        except Exception:  # a subclass that holds no memory of its own
            return None
    try:
        readable = tensor.is_cpu and (tensor.numel() == 0 or tensor.data_ptr() != 0)
    except RuntimeError:  # another wrapper inside
        readable = False
    return tensor if readable else None


def _dtensor(value):
    local = value.to_local() if not hasattr(value, "_local_tensor") else value._local_tensor
    placements = []
    for placement in value.placements:
        name = type(placement).__name__
        if name in ("Shard", "_StridedShard"):
            placements.append({"Shard": {"dim": placement.dim}})
        elif name == "Replicate":
            placements.append({"Replicate": {}})
        elif name in ("Partial", "_Partial"):
            placements.append({"Partial": {"reduce_op": str(getattr(placement, "reduce_op", None))}})
        else:
            placements.append({name: {}})
    extra = json.dumps({"device_mesh": value.device_mesh.mesh.tolist(), "placements": placements})
    if local.is_cpu:
        return record(_readable(local), "torch.distributed.tensor.DTensor", value.dtype, local.shape,
                      value.requires_grad, extra)
    from . import device
    return device.describe(local, "torch.distributed.tensor.DTensor", value.requires_grad, extra)


def _functorch(value):
    functorch = getattr(torch._C, "_functorch", None)
    if functorch is None:
        return None
    if functorch.is_batchedtensor(value):
        inner = functorch.get_unwrapped(value)
        return record(None, "BatchedTensor", inner.dtype, inner.shape, value.requires_grad)
    if functorch.is_gradtrackingtensor(value):
        inner = functorch.get_unwrapped(value)
        return record(_readable(inner), "GradTrackingTensor", inner.dtype, inner.shape, value.requires_grad)
    return None


def _torchrec(value):
    """Jagged and keyed tensors: a list or dict of dense ones."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "to_dense"):
        return list(value.to_dense())
    return None


class _as_plain_functions:
    """No __torch_function__ of a subclass or mode while we look at a tensor."""

    def __enter__(self):
        self._guard = torch._C.DisableTorchFunction()
        enter = getattr(self._guard, "__enter__", None)
        if enter is not None:
            enter()
        return self

    def __exit__(self, *error):
        leave = getattr(self._guard, "__exit__", None)
        if leave is not None:
            leave(*error)
        self._guard = None


# ---------------------------------------------------------------------- NumPy


def _numpy_scalar(value):
    try:
        return _leaf(value, value.item())
    except TypeError:
        return None


def _numpy_array(value):
    name = str(value.dtype)
    number = framework.NUMPY_DTYPES.get(name, framework.DTYPE_OTHER)
    elements = None
    if number != framework.DTYPE_OTHER and value.size:
        try:
            elements = torch.from_numpy(value)
        except (TypeError, ValueError):  # another byte order, negative strides
            elements = torch.from_numpy(value.astype(value.dtype.newbyteorder("="), order="C"))
    return record(elements, "numpy.ndarray", name, value.shape, None, number=number)


# ---------------------------------------------------------------------- torch.distributed


def _group_members(group):
    ranks = torch.distributed.get_process_group_ranks(group) if hasattr(
        torch.distributed, "get_process_group_ranks") else list(range(group.size()))
    return ranks, "%08x" % zlib.crc32(str(ranks).encode())


def _process_group(value):
    ranks, name = _group_members(value)
    return json.dumps({"type": "torch.ProcessGroup", "group_ranks": ranks, "group_id": name})


def _reduce_op(value):
    return json.dumps({"type": "torch.distributed.ReduceOp", "value": str(value)})


def _p2p_op(value):
    group = value.group
    if group is None:
        group = torch.distributed.distributed_c10d._get_default_group()
    plain = {"op": value.op.__name__, "peer": value.peer, "tag": value.tag, "group_id": _group_members(group)[1]}
    described = {"class_type": Json(json.dumps("torch.distributed.P2POp")), "tensor": value.tensor}
    described.update((name, Json(json.dumps(part))) for name, part in plain.items())
    return described


# ---------------------------------------------------------------------- everything else


def _other(value):
    kind = type(value)
    if kind is type(Ellipsis):
        return json.dumps({"type": "ellipsis", "value": "..."})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dataclass(value)
    if kind.__module__.startswith("torchrec."):
        return _torchrec(value)
    return None


def _numpy_types():
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return []
    return [(numpy.ndarray, _numpy_array), (numpy.generic, _numpy_scalar)]


def _distributed_types():
    rows = []
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available():
        return rows
    c10d = distributed.distributed_c10d
    for owner, name, function in ((distributed, "ProcessGroup", _process_group), (c10d, "ProcessGroup", _process_group),
                                  (c10d, "P2POp", _p2p_op), (c10d, "ReduceOp", _reduce_op)):
        kind = getattr(owner, name, None)
        if isinstance(kind, type) and (kind, function) not in rows:
            rows.append((kind, function))
    operation = getattr(getattr(c10d, "ReduceOp", None), "RedOpType", None)
    if isinstance(operation, type):
        rows.append((operation, _reduce_op))
    return rows


# In this order: a class that fits several is what comes first.
_BY_TYPE = [
    (torch.Tensor, _tensor),
    (Json, str.__str__),
    (torch.Size, _size),
    (torch.dtype, lambda value: json.dumps({"type": "torch.dtype", "value": str(value)})),
    (torch.device, lambda value: json.dumps({"type": "torch.device", "value": _device_text(value)})),
    (torch.memory_format, _memory_format),
] + _numpy_types() + [
    (bool, lambda value: _leaf(value, bool(value))),
    (int, lambda value: _leaf(value, int(value))),
    (float, lambda value: _leaf(value, float(value))),
    (str, lambda value: _leaf(value, str.__str__(value))),
    (slice, _slice),
    (tuple, _tuple),
    (list, list),
    (dict, _dict),
] + _distributed_types()
