# SPDX-License-Identifier: Apache-2.0
"""Finds the functions of MindSpore whose calls are recorded: by rules over the names of the installed version, and by
api_names.json."""

import functools
import importlib
import os

import mindspore

from msprobe import _native
from msprobe.core import session, wrapping

from . import free_benchmark

_PREFIXES = {"ops": "Functional", "tensor": "Tensor", "mint": "Mint", "mint_functional": "MintFunctional",
             "distributed": "Distributed", "mint_distributed": "MintDistributed"}
_MODULES = {"ops": "mindspore.ops", "mint": "mindspore.mint", "mint_functional": "mindspore.mint.nn.functional",
            "distributed": "mindspore.communication.comm_func", "mint_distributed": "mindspore.mint.distributed"}

_names = wrapping.Names(os.path.join(os.path.dirname(os.path.abspath(__file__)), "api_names.json"))


def _stub_tensor():
    """Returns the type of pending results: before 2.6 the result of a function has a separate type until it is
    computed."""
    try:
        return importlib.import_module("mindspore.common._stub_tensor").StubTensor
    except (ImportError, AttributeError):
        return None


def _namespaces(group):
    if group == "tensor":
        return [kind for kind in (mindspore.Tensor, _stub_tensor()) if kind is not None]
    try:
        return [importlib.import_module(_MODULES[group])]
    except ImportError:
        return []


def find_functions():
    """{group: sorted names} of the functions to wrap in the installed MindSpore."""
    by_list = ("distributed", "mint_distributed")
    return _names.choose({group: [] if group in by_list else
                          [name for space in _namespaces(group) for name in wrapping.public_functions(space)]
                          for group in _PREFIXES}, _namespaces)


def wrap(original, name, prefix, owner=None):
    """A function that records calls of `original` as `<prefix>.<name>.<n>`."""
    number = wrapping.add_api(_names, prefix, name, prefix == "MintDistributed")
    free_benchmark.task.name(number, prefix, name)
    return wrapping.dress(wrapping.make_wrapper(number, original), original, owner, name, "mindspore")


def _wrap_of_group(function, name, group, owner):
    return wrap(function, name.split(".")[-1], _PREFIXES[group], owner)


registry = wrapping.Registry(find_functions, _namespaces, _wrap_of_group, wrap)


# ---------------------------------------------------------------------- primitives


class Primitives:
    """Operators that cells hold as attributes: `Primitive.<attribute>.<class>.<n>`."""

    def __init__(self):
        self._recorded = []  # (primitive, its class)

    def record(self, cells):
        for cell in cells:
            for attribute, value in list(vars(cell).items()):
                if isinstance(value, mindspore.ops.Primitive) and not getattr(type(value), "_msprobe_records", False):
                    self._record_one(attribute, value)

    def _record_one(self, attribute, primitive):
        kind = type(primitive)
        number = _native.add_api("Primitive.%s.%s" % (attribute, kind.__name__), False, False, 0, 0, None, True)
        members = {"__call__": _recording(kind.__call__, number), "_msprobe_records": True,
                   "__module__": kind.__module__}
        try:
            primitive.__class__ = type(kind.__name__, (kind,), members)
        except TypeError:  # a class whose objects cannot change theirs
            return
        self._recorded.append((primitive, kind))

    def restore(self):
        for primitive, kind in self._recorded:
            primitive.__class__ = kind
        self._recorded.clear()


def _recording(call, number):
    @functools.wraps(call)
    def __call__(self, *args, **kwargs):
        if session.forward_switch[0]:
            return _native.call_api(number, functools.partial(call, self), args, kwargs)
        return call(self, *args, **kwargs)
    return __call__


primitives = Primitives()
