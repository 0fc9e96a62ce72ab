# SPDX-License-Identifier: Apache-2.0
"""Counts calls for random numbers by call stack."""

import functools
import linecache
import os
import random
import sys
import threading

import numpy

_OWN_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PYTHON = ("random", "randint", "uniform", "choice")
_NUMPY = ("rand", "randint", "choice", "normal")

_calls = {}  # operation -> {stack: count}
_lock = threading.Lock()


def patch(of_framework):
    """Starts counting Python's, NumPy's and a framework's functions. A second call has no effect.
    of_framework: (namespace, prefix, names), ..."""
    for namespace, prefix, names in ((random, "random", _PYTHON), (numpy.random, "np.random", _NUMPY)) + of_framework:
        for name in names:
            function = getattr(namespace, name, None)
            if callable(function) and not getattr(function, "_msprobe_counts", False):
                setattr(namespace, name, _counting("%s.%s" % (prefix, name), function))


def _counting(operation, function):
    def wrapper(*args, **kwargs):
        try:
            stack = _stack(sys._getframe(1))
            with _lock:
                stacks = _calls.setdefault(operation, {})
                stacks[stack] = stacks.get(stack, 0) + 1
        except Exception:  # counting must not disturb
            pass
        return function(*args, **kwargs)

    functools.update_wrapper(wrapper, function)
    wrapper._msprobe_counts = True
    return wrapper


def _stack(frame):
    """Frames from the outermost to the caller."""
    texts = []
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_OWN_FOLDER):
            line = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
            texts.append("File %s, line %d, in %s, %s" % (os.path.abspath(code.co_filename), frame.f_lineno,
                                                          code.co_name, line))
        frame = frame.f_back
    return tuple(reversed(texts))


def calls():
    """{operation: [{"count": n, "stack": [...]}]}"""
    with _lock:
        return {operation: [{"count": count, "stack": list(stack)} for stack, count in stacks.items()]
                for operation, stacks in _calls.items()}
