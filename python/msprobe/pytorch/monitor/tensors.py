# SPDX-License-Identifier: Apache-2.0
"""Passes tensors to the engine: tensors on the host are measured there, others by kernels on their device, whose
results are fetched together when the step ends."""

import math

import torch

from msprobe.pytorch import device, framework


def plain_of(tensor):
    """The strided tensor whose elements this process holds: the local part of a DTensor, all of a sparse tensor."""
    tensor = getattr(tensor, "_local_tensor", tensor)
    wait = getattr(tensor, "trigger_wait", None)
    if wait is not None:
        tensor = wait()
    if tensor.layout is not torch.strided:
        tensor = tensor.detach().to_dense()
    if type(tensor) is not torch.Tensor and tensor.is_cpu:
        tensor = torch.Tensor._make_subclass(torch.Tensor, tensor.detach())
    return tensor


class Observer:
    def __init__(self, engine, eps):
        self._engine = engine
        self._eps = eps
        self._packs = {}   # device -> _Pack
        self._values = {}  # device -> [(series, tensor)]

    def observe(self, series, value):
        """Records a tensor; any other value in its place counts as absent."""
        if not isinstance(value, torch.Tensor):
            self._engine.absent(series)
            return
        if self._engine.observe(series, value):
            return
        tensor = plain_of(value)  # the engine reads plain tensors of the host
        if tensor.is_cpu:
            self._engine.observe(series, tensor)
        elif not device.is_captured(tensor) and framework.has_storage(tensor):
            pack = self._packs.get(tensor.device)
            if pack is None:
                pack = self._packs[tensor.device] = _Pack(tensor.device)
            pack.add(series, tensor.detach(), self._eps)

    def values(self, series, numbers):
        """The columns of a row, as a tensor."""
        if numbers.is_cpu:
            self._engine.observe_values(series, numbers.tolist())
        else:
            self._values.setdefault(numbers.device, []).append((series, numbers))

    def fetch(self):
        """Passes on the results measured on devices."""
        values, self._values = self._values, {}
        for rows in values.values():
            fetched = torch.cat([numbers for _, numbers in rows]).tolist()
            for series, numbers in rows:
                self._engine.observe_values(series, fetched[:len(numbers)])
                del fetched[:len(numbers)]
        for pack in self._packs.values():
            for row in pack.fetch():
                self._engine.observe_statistics(*row)


class _Pack:
    """The figures of one step's tensors on one device."""

    def __init__(self, where):
        self._where = where
        self._parts = device.Parts(where)
        self._rows = []  # (series, number of elements, shape, dtype)

    def add(self, series, tensor, eps):
        self._parts.add(measure(tensor, eps))
        self._rows.append((series, tensor.numel(), tuple(tensor.shape), str(tensor.dtype)))
        self._parts.bring()

    def fetch(self):
        rows, self._rows = self._rows, []
        parts, self._parts = self._parts, device.Parts(self._where)
        if not rows:
            return
        for (series, count, shape, dtype), figures in zip(rows, parts.fetch()):
            high, low, mean, norm, nans, infs, below = figures
            known = () if dtype == "torch.bool" else (below,)
            yield series, (high, low, mean, norm, nans, 0, infs, count) + known, shape, dtype


def measure(tensor, eps):
    """max, min, mean, norm, how many are NaN, infinite, and below eps: tensors without axes, on the tensor's device."""
    with torch.no_grad():
        if tensor.is_complex():
            tensor = tensor.real  # as norm and mean are defined
        elif not tensor.is_floating_point() or tensor.element_size() == 1:
            tensor = tensor.to(torch.float64)
        if tensor.numel() == 0:
            nan = torch.full((), math.nan, dtype=torch.float64, device=tensor.device)
            zero = torch.zeros_like(nan)
            return nan, nan, nan, zero, zero, zero, zero
        try:
            low, high = torch.aminmax(tensor)
        except RuntimeError:  # no kernel for this type here
            tensor = tensor.to(torch.float32)
            low, high = torch.aminmax(tensor)
        wide = tensor.to(torch.float32) if tensor.element_size() == 2 else tensor  # eps is not zero there
        return (high, low, tensor.mean(dtype=torch.float64), torch.linalg.vector_norm(tensor, dtype=torch.float64),
                torch.isnan(tensor).sum(), torch.isinf(tensor).sum(), (wide.abs() < eps).sum())
