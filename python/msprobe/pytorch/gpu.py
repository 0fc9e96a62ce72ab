# SPDX-License-Identifier: Apache-2.0
"""Tensors on a CUDA device, measured there by the collector's own kernel: one launch for all tensors of a call, one
fetch for all results of a step. Where it cannot be used, device.py measures by kernels of the framework."""

import glob
import os
import threading
import warnings

import torch

from msprobe import _native

from . import framework

DRIVER = None  # the driver's own name
_kernels = {}  # torch.device -> Kernel, or None: it cannot be used there


class _Waiting(threading.local):
    """What is to be measured before this thread goes on with the training: no other thread may start it, it could be
    late."""

    def __init__(self):
        self.batches = {}  # by (Kernel, stream)


_waiting = _Waiting()


class Kernel:
    """One device's."""

    def __init__(self, handle, ordinal):
        self._handle = handle
        self._ordinal = ordinal
        self.usable = True

    def prepare(self, tensor):
        """What measure() takes; None if the kernel does not measure such a tensor."""
        try:
            described = (tensor.data_ptr(), framework.dtype_number(tensor.dtype), tuple(tensor.shape),
                         tensor.stride(), tensor.is_neg())
        except RuntimeError:  # another tensor inside, without memory of its own
            return None
        return described if _native.gpu_takes(*described) else None

    def add(self, slot, described, tensor):
        """To be measured on the current stream, after what is there now: once flush() is called."""
        _waiting.batches.setdefault((self, current_stream(self._ordinal)), []).append((slot, described, tensor))

    def measure(self, stream, jobs):
        self._guarded(_native.gpu_measure, self._handle, stream, jobs)

    def drain(self):
        if self.usable:
            self._guarded(_native.gpu_drain, self._handle)

    def _guarded(self, function, *arguments):
        try:
            function(*arguments)
        except RuntimeError as error:
            self.usable = False
            warnings.warn("msprobe: tensors without numbers follow, and later ones are measured by PyTorch's kernels: "
                          "%s" % error.args[-1])


def kernel_for(tensor):
    """The kernel that measures on the tensor's device; None: there is none."""
    device = tensor.device
    if device not in _kernels:
        _kernels[device] = None  # for whoever asks meanwhile
        if is_gpu(device):
            _kernels[device] = _open(device)
    kernel = _kernels[device]
    return kernel if kernel is not None and kernel.usable else None


def flush():
    """Starts what is to be measured. The extension calls it when the values of a call are recorded."""
    while _waiting.batches:
        (kernel, stream), jobs = _waiting.batches.popitem()
        if kernel.usable:
            kernel.measure(stream, jobs)


def drain():
    flush()
    for kernel in list(_kernels.values()):
        if kernel is not None:
            kernel.drain()


def is_gpu(device):
    # Asked for until it has been run on real devices: a fault in it would end the training that is recorded.
    return device.type == "cuda" and torch.version.cuda is not None and os.environ.get("MSPROBE_GPU_KERNEL") == "1"


def ordinal_of(device):
    return device.index if device.index is not None else torch.cuda.current_device()


def current_stream(ordinal):
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return raw(ordinal) if raw is not None else torch.cuda.current_stream(ordinal).cuda_stream


def _open(device):
    ordinal = ordinal_of(device)
    try:
        return Kernel(_native.gpu_open(DRIVER, find_compiler(), ordinal), ordinal)
    except RuntimeError as error:
        warnings.warn("msprobe: tensors on %s are measured by PyTorch's kernels, which costs more: %s"
                      % (device, error.args[-1]))
        return None


def find_compiler():
    """The path of NVRTC: the one that is loaded, or that comes with this PyTorch, or the system's."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        loaded = {line.split(None, 5)[5].strip() for line in maps if "libnvrtc" in line}
    folder = os.path.dirname(os.path.abspath(torch.__file__))
    packages = os.path.dirname(folder)
    candidates = sorted(loaded) + sorted(glob.glob(os.path.join(folder, "lib", "libnvrtc*.so*"))) + sorted(
        glob.glob(os.path.join(packages, "nvidia", "*", "lib", "libnvrtc.so*")))
    plain = [path for path in candidates if "builtins" not in os.path.basename(path) and ".alt." not in path]
    return plain[0] if plain else "libnvrtc.so"
