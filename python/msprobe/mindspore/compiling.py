# SPDX-License-Identifier: Apache-2.0
"""MindSpore's graph compiler reads the source of functions: give it the originals, and warn."""

import functools
import types

import mindspore

from msprobe.core.common import log

from . import apis

_depth = [0]  # compiled functions that are running
_registry = [apis.registry]  # of the functions that are wrapped


def is_compiling():
    return _depth[0] > 0


def use(registry):
    """Uses a registry other than that of MindSpore's functions."""
    _registry[0] = registry


@functools.lru_cache(maxsize=None)  # once
def install():
    executors = [getattr(space, name, None) for space in _spaces() for name in ("_JitExecutor",
                                                                              "_MindsporeFunctionExecutor")]
    for executor in {kind for kind in executors if isinstance(kind, type)}:
        executor.__call__ = _with_originals(executor.__call__)


def _spaces():
    graph = getattr(mindspore, "graph", None)
    return [space for space in (getattr(mindspore.common, "api", None), getattr(graph, "api", None)) if space]


def _with_originals(call):
    @functools.wraps(call)
    def wrapper(*args, **kwargs):
        log.warn_once("code compiled by jit is not recorded")
        _depth[0] += 1
        try:
            with _registry[0].originals():
                return call(*args, **kwargs)
        finally:
            _depth[0] -= 1
    return wrapper


def is_compiled(cell):
    """Whether the cell's construct is decorated with jit."""
    return _has_jit_inside(getattr(type(cell), "construct", None), 0) or _has_jit_inside(cell.construct, 0)


def _has_jit_inside(function, depth):
    for part in getattr(function, "__closure__", None) or ():
        try:
            content = part.cell_contents
        except ValueError:  # empty
            continue
        if type(content).__name__ == "JitConfig":
            return True
        if isinstance(content, types.FunctionType) and depth < 8 and _has_jit_inside(content, depth + 1):
            return True
    return False
