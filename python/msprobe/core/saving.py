# SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger.save(): single values at level debug, and their gradients."""

from msprobe import _native
from msprobe.core.common import log

from . import session


class _Gradient:
    """A hook on a tensor. Copies of the tensor do not inherit it."""

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
    """Describes what a framework's save() accepts: tensors of a type, some of which can have a gradient and are
    detached first. register_hook(tensor, hook) reports the gradient; by default it is the tensor's own method."""

    def __init__(self, tensor_type, gets_gradient, detach, register_hook=None):
        self._tensor_type = tensor_type
        self._gets_gradient = gets_gradient
        self._detach = detach
        self._register_hook = register_hook or (lambda tensor, hook: tensor.register_hook(hook))

    def save(self, variable, name, save_backward):
        """Never raises: values that cannot be saved are reported and left out."""
        if not isinstance(name, str) or not isinstance(save_backward, bool):
            log.warn("save: the name must be a string, and save_backward a bool")
            return
        left_out = []
        supported = self._supported(variable, "", 0, left_out)
        if left_out:
            variable = supported
            kept = _holds_something(supported)
            more = " and %d more" % (len(left_out) - 5) if len(left_out) > 5 else ""
            log.warn("save(%r): %s cannot be saved%s" % (
                name, ", ".join(left_out[:5]) + more, "; the rest is" if kept else ""))
            if not kept:
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

    def _supported(self, value, path, depth, left_out):
        """Returns the value without parts that cannot be saved: dicts lose such members, lists have None in their
        place."""
        if isinstance(value, (dict, list, tuple)) and depth <= 400:
            if not isinstance(value, dict):
                return [self._supported(part, _below(path, position), depth + 1, left_out)
                        for position, part in enumerate(value)]
            kept = {}
            for key, part in value.items():
                before = len(left_out)
                if not isinstance(key, str):
                    left_out.append("%s (a key that is not a string)" % _below(path, repr(key)))
                    continue
                part = self._supported(part, _below(path, key), depth + 1, left_out)
                if part is not None or before == len(left_out):
                    kept[key] = part
            return kept
        if isinstance(value, (self._tensor_type, int, float, str)):
            return value
        reason = "nested too deeply" if depth > 400 else type(value).__name__
        left_out.append("%s (%s)" % (path, reason) if path else "a value of type %s" % reason)
        return None

    def _leaves(self, value, path):
        """Yields the tensors with their paths."""
        if isinstance(value, self._tensor_type):
            yield path, value
        elif isinstance(value, (dict, list, tuple)):
            for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                yield from self._leaves(part, _below(path, key))


def _holds_something(value):
    if isinstance(value, (dict, list)):
        return any(map(_holds_something, value.values() if isinstance(value, dict) else value))
    return value is not None


def _below(path, key):
    return "%s.%s" % (path, key) if path else str(key)
