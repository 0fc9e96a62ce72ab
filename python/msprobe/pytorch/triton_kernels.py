# SPDX-License-Identifier: Apache-2.0
"""Launches of Triton kernels, recorded as Triton.<kernel>.<n>.forward; the output is the arguments after the launch.
"""

import functools
import sys

from msprobe import _native
from msprobe.core import session

_patched = []  # (class, original run)
_numbers = {}  # kernel's name -> number of the wrapped function


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


def _kernel_number(kernel):
    while not hasattr(kernel, "__name__") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    name = getattr(kernel, "__name__", type(kernel).__name__)
    if name not in _numbers:
        # Like communication: it works in place, so its output are its arguments, and it has no backward.
        _numbers[name] = _native.add_api("Triton.%s" % name, True, False, 0, 0, None)
    return _numbers[name]


def _recording(run):
    @functools.wraps(run)
    def wrapper(self, *args, **kwargs):
        if not session.forward_switch[0]:
            return run(self, *args, **kwargs)
        return _native.call_api(_kernel_number(self), functools.partial(run, self), args, kwargs)
    return wrapper
