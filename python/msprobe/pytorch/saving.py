# SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger.save(): single values at level debug, and their gradients."""

import torch

from msprobe import _native
from msprobe.core.common import log

from . import collector


def save(variable, name, save_backward):
    """Never raises: what cannot be saved is told and left out."""
    wrong = _what_is_wrong(variable, name, save_backward)
    if wrong:
        log.warn("save: " + wrong)
        return
    try:
        collector.discover_rank()
        entry = _native.save(variable, name, save_backward)
        if entry and save_backward:
            for path, tensor in _leaves(variable, ""):
                if tensor.requires_grad:
                    tensor.register_hook(_Gradient(entry, path))
    except Exception:
        collector.guard("save")


class _Gradient:
    """A hook on a tensor. Copies of the tensor do not take it along."""

    def __init__(self, entry, path):
        self._entry = entry
        self._path = path

    def __call__(self, gradient):
        try:
            _native.fill_gradient(self._entry, self._path, gradient.detach())
        except Exception:
            collector.guard("save")


def _what_is_wrong(variable, name, save_backward):
    if not isinstance(name, str):
        return "the name must be a string"
    if not isinstance(save_backward, bool):
        return "save_backward must be a bool"
    return _unsupported(variable, 0)


def _unsupported(value, depth):
    if depth > 400:
        return "the value is nested too deeply"
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                return "keys of a dict must be strings"
            wrong = _unsupported(part, depth + 1)
            if wrong:
                return wrong
        return None
    if isinstance(value, (list, tuple)):
        return next(filter(None, (_unsupported(part, depth + 1) for part in value)), None)
    if isinstance(value, (torch.Tensor, int, float, str)):
        return None
    return "a value of type %s cannot be saved" % type(value).__name__


def _leaves(value, path):
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, "%s.%s" % (path, key) if path else key)
    elif isinstance(value, (list, tuple)):
        for position, part in enumerate(value):
            yield from _leaves(part, "%s.%d" % (path, position) if path else str(position))
