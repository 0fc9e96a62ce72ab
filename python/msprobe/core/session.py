# SPDX-License-Identifier: Apache-2.0
"""The single session of the process: opening it, its switches, the rank, closing at exit."""

import atexit
import functools
import json
import os
import sys
import threading

from msprobe import _native
from msprobe.core.common import log
from msprobe.core.common.exceptions import FileCheckException, MsprobeException, ScopeException

from . import stacks

TASKS = ("statistics", "tensor", "structure", "overflow_check", "free_benchmark", "grad_probe", "acc_check",
         "exception_dump", "nan_check")
LEVELS = ("L0", "L1", "mix", "debug", "L2")

# Serialises the verbs of the debugger. Hooks do not take it.
lock = threading.RLock()

# Wrapped functions and hooks look at these first. They are lists, because a closure reads their element fastest.
forward_switch = [False]   # calls are recorded
backward_switch = [False]  # gradients of recorded calls are: until step(), also after stop()

python_compatible = [False]  # the setting
failure = [None]             # why a verb of this session failed

_process = [None]  # that has opened the session


def open_session(config_path, config_text, overrides, framework, binding, rank_of_process, file_suffix="pt",
                 dumps_kernels=False):
    """Reads the configuration and raises on errors in it. `binding`: the framework objects that the extension needs.
    dumps_kernels: there is a runtime of an NPU for level L2."""
    end()
    _process[0] = os.getpid()
    _rank[0] = None
    _rank_of_process[0] = rank_of_process
    failure[0] = None
    bind(binding)
    step = overrides.get("step")
    checked(_native.open, config_path, config_text, overrides.get("task"), overrides.get("dump_path"),
            overrides.get("level"), None if step is None else json.dumps(step), framework, file_suffix, dumps_kernels)
    python_compatible[0] = bool(setting("python_compatible"))
    _native.set_compatible(python_compatible[0])
    _watch_process()


def bind(binding):
    """Passes the framework objects to the extension."""
    binding.format_stack = stacks.format_stack
    binding.format_exception = stacks.format_exception
    _native.bind(binding)


def checked(function, *args):
    """Calls the extension and translates its errors into the exceptions that users know."""
    try:
        return function(*args)
    except RuntimeError as error:
        if len(error.args) != 2:
            raise
        status, text = error.args
        if status == _native.INVALID_SCOPE:
            raise ScopeException(ScopeException.ARG_ERROR, text) from None
        if status == _native.INVALID_FILE:
            raise FileCheckException(FileCheckException.ILLEGAL_PATH_ERROR, text) from None
        if status == _native.FAILED:
            raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR, text) from None
        raise MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text) from None


def attempted(function, *args):
    """Calls the extension for a public call: a disk error is reported once and not raised into the training; returns
    None then."""
    if in_child():
        return None
    try:
        return function(*args)
    except RuntimeError as error:
        failure[0] = str(error.args[-1])
        log.warn_once("recording fails: " + failure[0], "recording fails")
        return None


def setting(key):
    if in_child():
        return None
    return json.loads(_native.setting(key))


def in_child():
    """Whether this process was forked from the one with the session."""
    return _process[0] not in (None, os.getpid())


def dumps_kernels():
    """Whether the level is L2."""
    return LEVELS[_native.info()["level"]] == "L2"


def update_switches(backward=None):
    forward_switch[0] = _native.running() and not in_child()
    if backward is not None:
        backward_switch[0] = backward and not in_child()


def guard(where):
    """Writes the current exception to the error log. The training continues."""
    error = sys.exc_info()[1]
    try:
        kind, text = stacks.format_exception(error)
        _native.log_error("%s: %s" % (where, kind), "%s: %s" % (where, text))
    except Exception:
        pass


# ---------------------------------------------------------------------- rank

_rank = [None]
_rank_of_process = [lambda: None]


def know_rank(rank):
    if rank is not None and rank != _rank[0]:
        _rank[0] = rank
        attempted(_native.set_rank, rank)


def discover_rank():
    """Asks the framework while the rank is unknown."""
    if _rank[0] is None:
        try:
            know_rank(_rank_of_process[0]())
        except Exception:
            guard("getting the rank")


# ---------------------------------------------------------------------- the end

_at_end = []


def at_end(function):
    """Registers a function to call before the session closes."""
    _at_end.append(function)


@functools.lru_cache(None)
def _watch_process():
    atexit.register(end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)


def end():
    """Closes the session if one is open: at exit, or before a new one."""
    if in_child():
        return
    forward_switch[0] = False
    backward_switch[0] = False
    for function in _at_end:
        try:
            function()
        except Exception:
            guard("ending")
    _at_end.clear()
    try:
        _native.close()
    except RuntimeError as error:
        log.warn("not everything could be written: %s" % error)


def _after_fork():
    forward_switch[0] = False
    backward_switch[0] = False
    _native.disown()
