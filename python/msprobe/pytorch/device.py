# SPDX-License-Identifier: Apache-2.0
"""Tensors on a device (CUDA, NPU, ...): measured there without synchronizing, by the collector's kernel where there is
one (gpu.py), else by kernels of the framework.

The results of many tensors share one buffer on the device. It is fetched when it is full, and when a step is stopped
or ends; the extension keeps the records open until then. Elements are copied to the host for a file; and for a checksum
or a part that is cut out, where the collector's kernel is not used.
"""

import math

import torch

from msprobe import _native

from . import framework, gpu
from .record import record

_ROWS = 4096
_MOST_LOCKED = 256 << 20  # bytes of one tensor
_rings = {}  # device -> _Ring


def describe(tensor, kind=None, requires_grad=None, extra=None):
    """A Record of a tensor on a device."""
    if requires_grad is None:
        requires_grad = tensor.requires_grad
    plain = framework.detach(tensor)
    if is_captured(tensor):
        return record(None, kind, tensor.dtype, tensor.shape, requires_grad, extra)
    if gpu.use(tensor.device) and _native.gpu_takes(plain):
        return record(plain, kind, tensor.dtype, tensor.shape, requires_grad, extra)
    if _native.wants_elements():
        return record(_to_host(plain), kind, tensor.dtype, tensor.shape, requires_grad, extra, source=tensor)
    measured = measure(plain)
    if measured is None:
        return record(None, kind, tensor.dtype, tensor.shape, requires_grad, extra)
    ring = _ring(tensor.device)
    return record(None, kind, tensor.dtype, tensor.shape, requires_grad, extra,
                  deferred=lambda slot: ring.add(slot, measured, tensor.numel()))


def is_captured(tensor):
    return tensor.device.type == "cuda" and gpu.is_capturing()


def _to_host(tensor):
    """A copy on the host. Locked memory takes it without a detour; PyTorch keeps such memory for the next one."""
    if tensor.device.type == "cuda" and tensor.numel() * tensor.element_size() <= _MOST_LOCKED:
        try:
            return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor)
        except RuntimeError:  # no more can be locked
            pass
    return tensor.cpu()


def measure(tensor):
    """(four numbers, max and min as int64 or None), on the tensor's device; None if there are none."""
    dtype = tensor.dtype
    if tensor.numel() == 0 or (dtype.is_floating_point and tensor.element_size() == 1):
        return None  # nothing to measure, or no kernels for it
    with torch.no_grad():
        if dtype == torch.bool:
            high, low = tensor.any(), tensor.all()
            whole = tensor.to(torch.float32)
        elif dtype.is_complex:
            whole = tensor.abs()
            low, high = torch.aminmax(whole)
        else:
            whole = tensor
            try:
                low, high = torch.aminmax(whole)
            except RuntimeError:  # no kernel for this dtype here
                whole = tensor.to(torch.float32)
                low, high = torch.aminmax(whole)
        # Sums of half precision overflow; those of whole numbers are exact in double only.
        wide = torch.float32 if whole.dtype.is_floating_point and whole.dtype != torch.float64 else torch.float64
        if whole.dtype != wide and not whole.dtype.is_floating_point:
            whole = whole.to(wide)
        mean = whole.mean(dtype=wide)
        norm = torch.linalg.vector_norm(whole, dtype=wide)
        # Of one type they are put together by one kernel; the ring makes float64 of them.
        numbers = torch.stack([part.to(wide) for part in (high, low, mean, norm)])
        exact = None
        if not (dtype.is_floating_point or dtype.is_complex):
            exact = torch.stack([high.to(torch.int64), low.to(torch.int64)])
        return numbers, exact


def drain():
    """Fetches all results. Waits for the devices."""
    _native.gpu_drain()
    for ring in list(_rings.values()):
        ring.drain()


def _ring(device):
    ring = _rings.get(device)
    if ring is None:
        ring = _rings[device] = _Ring(device)
    return ring


class _Ring:
    def __init__(self, device, rows=_ROWS):
        self._device = device
        self._numbers = torch.empty((rows, 4), dtype=torch.float64, device=device)
        self._exact = torch.empty((rows, 2), dtype=torch.int64, device=device)
        self._slots = []  # (slot, number of elements, whether the exact ones count)

    def add(self, slot, measured, count):
        numbers, exact = measured
        row = len(self._slots)
        self._numbers[row].copy_(numbers)
        if exact is not None:
            self._exact[row].copy_(exact)
        self._slots.append((slot, count, exact is not None))
        if len(self._slots) == self._numbers.shape[0]:
            self.drain()

    def drain(self):
        slots, self._slots = self._slots, []
        if not slots:
            return
        synchronise(self._device)  # results may have been written from several streams
        numbers = self._numbers[:len(slots)].cpu().tolist()
        exact = self._exact[:len(slots)].cpu().tolist() if any(has for _, _, has in slots) else None
        for row, (slot, count, has_exact) in enumerate(slots):
            high, low, mean, norm = numbers[row]
            whole_high, whole_low = exact[row] if has_exact else (0, 0)
            nan = 1 if math.isnan(high) or math.isnan(low) else 0
            inf = 1 if math.isinf(high) or math.isinf(low) else 0
            _native.fill_statistics(slot, high, low, mean, norm, whole_high, whole_low, count, 0, nan, inf)


def synchronise(device):
    module = getattr(torch, device.type, None)
    synchronize = getattr(module, "synchronize", None)
    if synchronize is not None and device.type != "cpu":
        synchronize(device)
