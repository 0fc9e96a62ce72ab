# SPDX-License-Identifier: Apache-2.0
"""Tensors on a device (CUDA, NPU, ...): they are measured there without synchronizing, by kernels of the framework, or
by the collector's own kernel if the user asks for it (gpu.py).

Results stay on the device. They are fetched when there are many, and when a step is stopped or ends; until then the
extension keeps the records open. Elements are copied to the host only for a file, and, if the collector's kernel is not
used, for a checksum or a part that is cut out.
"""

import collections
import math
import threading

import torch

from msprobe import _native

from . import framework, gpu
from .record import record

_MOST_THERE = 4096  # tensors of one type; each takes 512 bytes of a GPU's memory
_MOST_LOCKED = 256 << 20  # bytes of copies in progress
_LONGEST_WAIT = 60  # seconds to wait for a tensor that another thread handles
_results = {}  # device -> _Results
types = set()  # of the devices with tensors that were recorded in this step; empty: all were on the host


def describe(tensor, kind=None, requires_grad=None, extra=None):
    """Returns a Record of a tensor on a device."""
    types.add(tensor.device.type)
    if requires_grad is None:
        requires_grad = tensor.requires_grad
    plain = framework.detach(tensor)
    if is_captured(tensor) or not framework.has_storage(plain):
        return record(None, kind, tensor.dtype, tensor.shape, requires_grad, extra)
    if not _native.wants_files() and gpu.use(tensor.device) and _native.gpu_takes(plain):
        return record(plain, kind, tensor.dtype, tensor.shape, requires_grad, extra)
    if _native.wants_elements():
        copy = _copies.begin(plain) if _native.elements_may_come_later() else None
        if copy is not None:
            return record(None, kind, tensor.dtype, tensor.shape, requires_grad, extra,
                          deferred=lambda slot: _copies.add(slot, *copy), source=tensor, later=True)
        return record(_to_host(plain), kind, tensor.dtype, tensor.shape, requires_grad, extra, source=tensor)
    try:
        measured = measure(plain)
    except (RuntimeError, TypeError):  # no kernel for it there, or no such type: Apple's GPUs have no float64
        return record(_to_host(plain), kind, tensor.dtype, tensor.shape, requires_grad, extra, source=tensor)
    if measured is None:
        return record(None, kind, tensor.dtype, tensor.shape, requires_grad, extra)
    where = tensor.device
    results = _results.get(where) or _results.setdefault(where, _Results(where))
    return record(None, kind, tensor.dtype, tensor.shape, requires_grad, extra,
                  deferred=lambda slot: results.add(slot, measured, tensor.numel()))


def is_captured(tensor):
    return tensor.device.type == "cuda" and gpu.is_capturing()


class _Copies:
    """Copies of tensors to page-locked host memory that are in progress. Each copy runs on the stream of the training,
    before later changes of the tensor. The training does not wait for it, unless there are too many copies."""

    def __init__(self):
        self._under_way = collections.deque()  # (slot, copy, event after the copy)
        self._bytes = 0      # page-locked memory of these copies
        self._in_hand = 0    # number of copies being passed to the extension
        self._changed = threading.Condition()

    def begin(self, tensor):
        """Starts a copy and returns (copy, event); None if that is impossible. PyTorch reuses page-locked memory."""
        size = _locked_bytes(tensor)
        if not tensor.is_cuda or tensor.numel() == 0 or size > _MOST_LOCKED:
            return None
        while self._bytes + size > _MOST_LOCKED and self._finish_one(True):
            pass
        try:
            # Resolve signs on the device, because PyTorch would do it on the host, before the elements arrive.
            there = tensor.resolve_conj().resolve_neg()
            copy = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
            copy.copy_(there, non_blocking=True)
        except RuntimeError:  # there is no memory on the device or on the host
            return None
        return copy, gpu.event_now(tensor.device)

    def add(self, slot, copy, event):
        with self._changed:
            self._under_way.append((slot, copy, event))
            self._bytes += _locked_bytes(copy)
        while self._finish_one(False):
            pass

    def finish(self):
        """Passes all copies to the extension. Raises the first error after it has tried all of them."""
        failure = None
        going_on = True
        while going_on:
            try:
                going_on = self._finish_one(True)
            except Exception as error:
                failure = failure or error
        with self._changed:
            self._changed.wait_for(lambda: self._in_hand == 0, _LONGEST_WAIT)
        if failure is not None:
            raise failure

    def _finish_one(self, wait):
        """Passes the oldest copy to the extension. False if there is no copy, or it is not complete and wait is False."""
        with self._changed:
            if not self._under_way or not (wait or self._under_way[0][2].query()):
                return False
            slot, copy, event = self._under_way.popleft()
            self._in_hand += 1
        try:
            event.synchronize()
            _native.fill_tensor(slot, copy)
        finally:
            with self._changed:
                self._bytes -= _locked_bytes(copy)
                self._in_hand -= 1
                self._changed.notify_all()
        return True


def _locked_bytes(tensor):
    """Returns the size of page-locked memory that PyTorch allocates: a power of two."""
    return 1 << (tensor.numel() * tensor.element_size() - 1).bit_length()


_copies = _Copies()


def _to_host(tensor):
    copy = _copies.begin(tensor)
    if copy is None:
        return tensor.cpu()
    elements, event = copy
    event.synchronize()
    return elements


def measure(tensor):
    """Measures a tensor of any shape and real, complex, integer or boolean dtype, on its device.

    Returns (max, min, mean, norm), tensors without axes on the same device; complex tensors are measured by their
    absolute values. Mean and norm are float32 for floating-point types below float64, otherwise float64. Returns None
    for a tensor without elements and for 8-bit floating-point types."""
    dtype = tensor.dtype
    if tensor.numel() == 0 or (dtype.is_floating_point and tensor.element_size() == 1):
        return None  # nothing to measure, or no kernels for it
    # Each call launches a kernel; most tensors need three.
    with torch.no_grad():
        whole = tensor.abs() if dtype.is_complex else tensor
        if dtype == torch.bool:
            high, low = tensor.any(), tensor.all()
            whole = tensor.to(torch.float32)
        else:
            try:
                low, high = torch.aminmax(whole)
            except RuntimeError:  # no kernel for this dtype here
                whole = tensor.to(torch.float32)
                low, high = torch.aminmax(whole)
        # Sums of half precision overflow. Sums of integers, and counts of True, are exact only in double.
        narrow = whole.dtype.is_floating_point and whole.dtype != torch.float64 and dtype != torch.bool
        wide = torch.float32 if narrow else torch.float64
        if not whole.dtype.is_floating_point:
            whole = whole.to(wide)
        return high, low, whole.mean(dtype=wide), torch.linalg.vector_norm(whole, dtype=wide)


def drain():
    """Waits for all results and fetches them. If one part raises an exception, the others are fetched nevertheless."""
    parts = [_copies.finish, _native.gpu_drain] + [results.fetch for results in list(_results.values())]
    failures = []
    for part in parts:
        try:
            part()
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]


class Parts:
    """Tuples of tensors without axes on one device, which stay there until they are fetched. The caller must make sure
    that only one thread at a time uses the object."""

    def __init__(self, device):
        self._device = device
        self._dtypes = []   # of each tuple
        self._there = {}    # dtype -> tensors that are not fetched yet, in the order of the tuples
        self._fetched = {}  # dtype -> fetched numbers, which precede those

    def add(self, parts):
        self._dtypes.append([part.dtype for part in parts])
        for part in parts:
            self._there.setdefault(part.dtype, []).append(part)

    def bring(self):
        """Fetches the numbers if there are many. If that fails, all are lost, and fetch() raises."""
        if self._there and max(map(len, self._there.values())) >= _MOST_THERE:
            self._bring()

    def fetch(self):
        """Returns all tuples as numbers. Waits for the device."""
        self._bring()
        dtypes_of_all, self._dtypes = self._dtypes, []
        fetched, self._fetched = self._fetched, {}
        numbers = {dtype: iter(those) for dtype, those in fetched.items()}
        return [tuple(next(numbers[dtype]) for dtype in dtypes) for dtypes in dtypes_of_all]

    def _bring(self):
        there, self._there = self._there, {}
        before, self._fetched = self._fetched, None
        if before is None:
            raise RuntimeError("the results of a device could not be fetched before")
        synchronise(self._device)  # several streams may have written them
        for dtype, tensors in there.items():
            before.setdefault(dtype, []).extend(torch.stack(tensors).tolist())
        self._fetched = before


class _Results:
    """The results of tensors on one device; several threads may record them."""

    def __init__(self, device, most=_MOST_THERE):
        self._device = device
        self._most = most  # fetched at this number, so that records do not wait for the end of the step
        self._adding = threading.Lock()
        self._fetching = threading.Lock()
        self._parts = Parts(device)
        self._slots = []  # (slot, number of elements)

    def add(self, slot, measured, count):
        with self._adding:
            self._parts.add(measured)
            self._slots.append((slot, count))
            is_full = len(self._slots) >= self._most
        if is_full:
            self.fetch()

    def fetch(self):
        """Fetches all results. When it returns, results that another thread is fetching are available, too."""
        with self._fetching:
            with self._adding:
                slots, self._slots = self._slots, []
                parts, self._parts = self._parts, Parts(self._device)
            if not slots:
                return
            for (slot, count), (high, low, mean, norm) in zip(slots, parts.fetch()):
                whole = (int(high), int(low)) if not isinstance(high, float) else (0, 0)
                nan = 1 if math.isnan(high) or math.isnan(low) else 0
                inf = 1 if math.isinf(high) or math.isinf(low) else 0
                _native.fill_statistics(slot, high, low, mean, norm, *whole, count, 0, nan, inf)


def synchronise(device):
    module = getattr(torch, device.type, None)
    synchronize = getattr(module, "synchronize", None)
    if synchronize is not None and device.type != "cpu":
        synchronize(device)
