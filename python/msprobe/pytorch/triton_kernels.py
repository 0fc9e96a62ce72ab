# SPDX-License-Identifier: Apache-2.0
"""Launches of Triton kernels, recorded as Triton.<kernel>.<n>.forward; the output are the arguments afterwards."""

import functools
import sys

from msprobe import _native

from . import collector

_patched = []  # (class, original run)


def install():
    """Does nothing unless Triton is loaded: it can be used only if it is."""
    if _patched or "triton" not in sys.modules:
        return
    for path, name in (("triton.runtime.jit", "JITFunction"), ("triton.runtime.autotuner", "Autotuner"),
                       ("triton.runtime.autotuner", "Heuristics")):
        kind = getattr(sys.modules.get(path), name, None)
        run = getattr(kind, "run", None)
        if callable(run):
            _patched.append((kind, run))
            kind.run = _recording(run)


def remove():
    while _patched:
        kind, run = _patched.pop()
        kind.run = run


def _kernel_name(kernel):
    while not hasattr(kernel, "__name__") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return getattr(kernel, "__name__", type(kernel).__name__)


def _recording(run):
    @functools.wraps(run)
    def wrapper(self, *args, **kwargs):
        if not collector.forward_switch[0]:
            return run(self, *args, **kwargs)
        result = run(self, *args, **kwargs)
        try:
            number = _native.intern("Triton.%s" % _kernel_name(self))
            _native.record_event(number, args, kwargs, args + tuple(kwargs.values()))
        except Exception:
            collector.guard("recording a kernel")
        return result
    return wrapper
