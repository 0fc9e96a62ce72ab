# SPDX-License-Identifier: Apache-2.0
import types

from .. import tape


class _JitExecutor:
    """Runs a function as it is."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, *args, **kwargs):
        return self.fn(*args, **kwargs)


def jit(function):
    def compiled(*args, **kwargs):
        return _JitExecutor(function)(*args, **kwargs)
    return compiled


def _set_enable_grad(enabled):
    tape.enabled[0] = enabled


_pynative_executor = types.SimpleNamespace(requires_grad=lambda: tape.depth[0] > 0, enable_grad=lambda: tape.enabled[0],
                                           set_enable_grad=_set_enable_grad)
