# SPDX-License-Identifier: Apache-2.0
"""Import paths of the Python tool's releases 8.x and 26.x, listed in old_paths.json.

The table is read on first use, so that importing msprobe stays fast. An unsupported name can be imported, because
programs import more than they use; it reports that it is unsupported when used.
"""

import functools
import importlib
import importlib.machinery
import json
import os
import sys
import types
from typing import Any, Callable


@functools.lru_cache(None)
def _table():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "old_paths.json")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def names_of(module: str) -> Callable[[str], Any]:
    """The __getattr__ of a module: looks names up in the table."""
    def find(name):
        found = _table().get(module, {}).get(name)
        if found is None:
            raise AttributeError("module %r has no attribute %r" % (module, name))
        return _made(name, found)
    return find


def _made(name, found):
    if isinstance(found, str):
        module, _, path = found.partition(":")
        return functools.reduce(getattr, path.split("."), importlib.import_module(module))
    if "refuses" in found:
        return _refusing(name, found["refuses"])
    return types.SimpleNamespace(**found["attributes"]) if "attributes" in found else found["value"]


def _refusing(name, reason):
    def refuse(self=None, *args, **kwargs):
        raise NotImplementedError("%s is not there: %s" % (name, reason))
    return type(name, (), {"__init__": refuse})


class _Paths:
    """Finds, as the last one, modules that only the table knows."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("msprobe."):
            return None
        if not any(known == name or known.startswith(name + ".") for known in _table()):
            return None
        return importlib.machinery.ModuleSpec(name, _Paths, is_package=True)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        module.__getattr__ = names_of(module.__name__)
        module.__dir__ = lambda: sorted(_table().get(module.__name__, ()))


def install():
    sys.meta_path.append(_Paths)
