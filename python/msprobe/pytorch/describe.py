# SPDX-License-Identifier: Apache-2.0
"""Describes PyTorch values other than plain numbers, strings, containers and plain tensors."""

import json
import zlib

import torch

from msprobe.core.describe import CONTAINER_TYPES, PLAIN_TYPES, Json, Record, numpy_types, other, slice_leaf

from . import device, framework
from .gradients import Noted
from .record import record


def describe(value):
    for kind, function in _BY_TYPE:
        if isinstance(value, kind):
            return function(value)
    return _other(value)


def describe_named(key, value):
    """Returns an argument named dtype, output_dtype or device as JSON; None for any other value."""
    if value is None or isinstance(value, (torch.Tensor, list, tuple, dict)):
        return None
    if key == "device":
        if isinstance(value, torch.device):
            value = _device_text(value)
        elif not isinstance(value, (str, int)):
            value = str(value)
        return json.dumps({"type": "torch.device", "value": value})
    return json.dumps({"type": "torch.dtype", "value": str(value)})


def _device_text(device):
    return "%s:%s" % (device.type, device.index)


# ---------------------------------------------------------------------- numbers and sizes


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
    return slice_leaf(value, _number_or_null)


def _size(value):
    return json.dumps({"type": "torch.Size", "value": [int(part) for part in value]})


def _memory_format(value):
    return json.dumps({"type": "torch.memory_format", "format": str(value).split(".")[-1]})


# ---------------------------------------------------------------------- tensors


def _tensor(value):
    """Describes tensors that cannot be read directly, depending on their kind."""
    with PlainFunctions():
        kind = type(value)
        name = kind.__name__
        module = kind.__module__ or ""
        if name == "FakeTensor":
            return record(None, "torch._subclasses.fake_tensor.FakeTensor", value.dtype, value.shape,
                          value.requires_grad)
        if name == "AsyncCollectiveTensor":
            return _collective(value)
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
            return device.describe(value)
        # A subclass over plain memory (a buffer, a tensor of a library), or a tensor whose memory was released.
        return record(_readable(value), None, value.dtype, value.shape, value.requires_grad)


def _noted(gradient):
    """Describes a gradient that has a note."""
    elements, kind, dtype, number, shape, requires_grad, extra, *rest = _tensor(gradient.tensor)
    extra = json.dumps({**json.loads(extra or "{}"), "gradient_of": gradient.note})
    return Record((elements, kind, dtype, number, shape, requires_grad, extra, *rest))


def _collective(value):
    """Waits for the result of a communication that may still be in progress, as its first use would."""
    kind = "torch.distributed._functional_collectives.AsyncCollectiveTensor"
    try:
        arrived = value.trigger_wait()
    except Exception:  # another version of PyTorch
        return record(None, kind, value.dtype, value.shape, value.requires_grad)
    if arrived.is_cpu:
        return record(_readable(arrived), kind, value.dtype, value.shape, value.requires_grad)
    return device.describe(arrived, kind, value.requires_grad)


def _readable(tensor):
    """Returns the elements as a plain tensor on the host; None if they cannot be read."""
    if tensor is None:
        return None
    if type(tensor) is not torch.Tensor:
        try:
            tensor = torch.Tensor._make_subclass(torch.Tensor, framework.detach(tensor))
        except Exception:  # a subclass without memory
            return None
    try:
        readable = tensor.is_cpu and (tensor.numel() == 0 or tensor.data_ptr() != 0) and framework.has_storage(tensor)
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
    """Returns a jagged or keyed tensor as a list or dict of dense ones."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "to_dense"):
        return list(value.to_dense())
    return None


class PlainFunctions:
    """Disables __torch_function__ of subclasses and modes while we inspect a tensor."""

    def __enter__(self):
        self._guard = torch._C.DisableTorchFunction()
        enter = getattr(self._guard, "__enter__", None)
        if enter is not None:
            enter()
        # In 1.13 the base class does not disable modes.
        self._modes = [torch.overrides._pop_mode() for _ in range(_count_modes())]
        return self

    def __exit__(self, *error):
        for mode in reversed(self._modes):
            torch.overrides._push_mode(mode)
        leave = getattr(self._guard, "__exit__", None)
        if leave is not None:
            leave(*error)
        self._guard = None


def _count_modes():
    if framework.VERSION != (1, 13):
        return 0
    return torch._C._len_torch_function_stack()


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
    described = other(value)
    if described is None and type(value).__module__.startswith("torchrec."):
        return _torchrec(value)
    return described


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


# The order matters: the first class that fits a value is used.
_BY_TYPE = [
    (torch.Tensor, _tensor),
    (Noted, _noted),
    (Json, str.__str__),
    (torch.Size, _size),
    (torch.dtype, lambda value: json.dumps({"type": "torch.dtype", "value": str(value)})),
    (torch.device, lambda value: json.dumps({"type": "torch.device", "value": _device_text(value)})),
    (torch.memory_format, _memory_format),
] + numpy_types() + PLAIN_TYPES + [(slice, _slice)] + CONTAINER_TYPES + _distributed_types()
