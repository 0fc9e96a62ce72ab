# SPDX-License-Identifier: Apache-2.0
"""The recorder that `import msprobe` finds: this project's collector, or a release of the Python tool."""

import importlib.metadata
import importlib.util
import pathlib
import threading

import numpy

# Releases of the Python tool before 26 use these names, which NumPy 2 no longer has.
for _name, _type in (("unicode_", numpy.str_), ("float_", numpy.float64)):
    if not hasattr(numpy, _name):
        setattr(numpy, _name, _type)

import msprobe.pytorch  # noqa: E402,F401

IS_OURS = importlib.util.find_spec("msprobe._native") is not None
TAKES_RANK = IS_OURS or int(importlib.metadata.version("mindstudio-probe").partition(".")[0]) >= 26


def version():
    """The text by which a folder of recordings names its recorder."""
    if IS_OURS:
        return "ours"
    return f"python_tool {importlib.metadata.version('mindstudio-probe')}"


def claim(folder):
    """A folder holds recordings of one recorder: raises if it has those of another."""
    mark = pathlib.Path(folder) / "recorder"
    mark.parent.mkdir(parents=True, exist_ok=True)
    if not mark.exists():
        mark.write_text(version() + "\n", encoding="utf-8")
    found = mark.read_text(encoding="utf-8").strip()
    if found != version():
        raise SystemExit(f"{folder}: made by {found}, and msprobe is now {version()}")


def quietly(function, *args):
    """Between recorded calls: without leaving an entry."""
    if IS_OURS:
        from msprobe import _native

        return _native.call_quietly(function, *args)
    switch, thread = _hooks().inner_switch, threading.get_ident()
    before = switch[thread]
    switch[thread] = True
    try:
        return function(*args)
    finally:
        switch[thread] = before


def _hooks():
    try:
        from msprobe.core.dump.hook_manager import BaseHookManager
    except ImportError:
        from msprobe.core.hook_manager import BaseHookManager  # before 26
    return BaseHookManager


def flush():
    """At the end of a process that skips what Python does there."""
    if IS_OURS:
        from msprobe.core import session

        session.end()
