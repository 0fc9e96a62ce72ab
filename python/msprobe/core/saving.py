# SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger.save(): single values at level debug, and their gradients."""

from msprobe import _native
from msprobe.core.common import log

from . import session


class _Gradient:
    """A hook on a tensor. Copies of the tensor do not take it along."""

    def __init__(self, entry, path, detach):
        self._entry = entry
        self._path = path
        self._detach = detach

    def __call__(self, gradient):
        try:
            _native.fill_gradient(self._entry, self._path, self._detach(gradient))
        except Exception:
            session.guard("save")


class Saved:
    """What a framework's save() takes: tensors of a type, some of which get a gradient, that is detached first.
    register_hook(tensor, hook): tells the gradient; default: the tensor's own method."""

    def __init__(self, tensor_type, gets_gradient, detach, register_hook=None):
        self._tensor_type = tensor_type
        self._gets_gradient = gets_gradient
        self._detach = detach
        self._register_hook = register_hook or (lambda tensor, hook: tensor.register_hook(hook))

    def save(self, variable, name, save_backward):
        """Never raises: what cannot be saved is told and left out."""
        wrong = self._what_is_wrong(variable, name, save_backward)
        if wrong:
            log.warn("save: " + wrong)
            return
        try:
            session.discover_rank()
            entry = _native.save(variable, name, save_backward)
            if entry and save_backward:
                for path, tensor in self._leaves(variable, ""):
                    if self._gets_gradient(tensor):
                        self._register_hook(tensor, _Gradient(entry, path, self._detach))
        except Exception:
            session.guard("save")

    def _what_is_wrong(self, variable, name, save_backward):
        if not isinstance(name, str):
            return "the name must be a string"
        if not isinstance(save_backward, bool):
            return "save_backward must be a bool"
        return self._unsupported(variable, 0)

    def _unsupported(self, value, depth):
        if depth > 400:
            return "the value is nested too deeply"
        if isinstance(value, dict):
            for key, part in value.items():
                if not isinstance(key, str):
                    return "keys of a dict must be strings"
                wrong = self._unsupported(part, depth + 1)
                if wrong:
                    return wrong
            return None
        if isinstance(value, (list, tuple)):
            return next(filter(None, (self._unsupported(part, depth + 1) for part in value)), None)
        if isinstance(value, (self._tensor_type, int, float, str)):
            return None
        return "a value of type %s cannot be saved" % type(value).__name__

    def _leaves(self, value, path):
        if isinstance(value, self._tensor_type):
            yield path, value
        elif isinstance(value, dict):
            for key, part in value.items():
                yield from self._leaves(part, "%s.%s" % (path, key) if path else key)
        elif isinstance(value, (list, tuple)):
            for position, part in enumerate(value):
                yield from self._leaves(part, "%s.%d" % (path, position) if path else str(position))
