# SPDX-License-Identifier: Apache-2.0
"""Code that jit compiles: one entry for each call, `Jit.<function or class of the cell>.<n>`.

MindSpore's graph compiler reads the source of functions: it is given the originals, and the arguments as they are.
"""

import functools
import types

import mindspore

from msprobe import _native
from msprobe.core import session
from msprobe.core.common import log

from . import apis

_depth = [0]  # compiled functions that are running
_registry = [apis.registry]  # of the functions that are wrapped
_switch = session.forward_switch


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
    def with_originals(*args, **kwargs):
        _depth[0] += 1
        try:
            with _registry[0].originals():
                return call(*args, **kwargs)
        finally:
            _depth[0] -= 1

    @functools.wraps(call)
    def wrapper(executor, *args, **kwargs):
        run = functools.partial(with_originals, executor)
        if _switch[0] and _registry[0].installed:
            warn()
            return _native.call_api(_number(_name(executor, args)), run, args, kwargs)
        return run(*args, **kwargs)
    return wrapper


def warn():
    log.warn_once("nothing inside code compiled by jit is recorded")


def _name(executor, args):
    name = executor.fn.__name__
    return type(args[0]).__name__ if name == "construct" and args else name


@functools.lru_cache(maxsize=None)  # once
def _number(name):
    return _native.add_api("Jit." + name, False, False, 0, 0, None, False, True)


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
