# SPDX-License-Identifier: Apache-2.0
"""Gives PyTorch's compilers the original functions and modules, since they inspect them, and reports what is not
recorded."""

import functools
import os
import sys

import torch

from msprobe.core import session
from msprobe.core.common import log

from . import apis, compiled


_records_operations = [False]


def install(records_operations):
    _records_operations[0] = records_operations
    _install()


@functools.lru_cache(maxsize=None)  # once
def _install():
    torch.jit.script = _with_originals(torch.jit.script)
    compile_function = getattr(torch, "compile", None)
    if compile_function is not None:
        torch.compile = _seeing(compile_function)


def _with_originals(script):
    @functools.wraps(script)
    def wrapper(*args, **kwargs):
        with apis.originals():
            return script(*args, **kwargs)
    return wrapper


def tell(models):
    """Warns about the parts of compiled models that are not recorded."""
    if any(_is_compiled(module) for model in models for module in model.modules()):
        _tell_what_is_left_out()


_why_nothing = []


def why_nothing():
    """Returns the reason why no module in compiled code is recorded; None if they are recorded, or nothing is compiled."""
    return _why_nothing[0] if _why_nothing else None


_WITHOUT = "TORCH_COMPILE_DISABLE=1 in the environment runs, and records, the model without the compiler"


def _tell_what_is_left_out():
    if _is_disabled():
        return
    reason = compiled.reason_against()
    if reason is not None:
        _why_nothing[:] = ["compiled code is not recorded: %s. %s" % (reason, _WITHOUT)]
        log.warn_once(_why_nothing[0])
    elif _records_operations[0]:
        log.warn_once("operations inside of compiled code are not recorded; the levels L0 and mix record the modules there. "
                      + _WITHOUT)


def _is_disabled():
    """Whether torch.compile() returns its argument unchanged."""
    if os.environ.get("TORCHDYNAMO_DISABLE") == "1":
        return True
    config = sys.modules.get("torch._dynamo.config")
    if config is None:
        return os.environ.get("TORCH_COMPILE_DISABLE") == "1"
    return bool(getattr(config, "disable", False))


def _is_compiled(module):
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


def _seeing(compile_function):
    @functools.wraps(compile_function)
    def wrapper(*args, **kwargs):
        made = compile_function(*args, **kwargs)
        try:
            _look_at(kwargs.get("mode"), kwargs.get("options") or {})
        except Exception:
            session.guard("looking at torch.compile()")
        return made
    return wrapper


def _look_at(mode, options):
    if _is_disabled():
        return
    if torch.cuda.is_available() and (mode in ("reduce-overhead", "max-autotune") or options.get("triton.cudagraphs")):
        compiled.refuse('CUDA graphs replay it without calling the recorder; mode="default" of torch.compile() has none')
    compiled.leave_all_alone()
    _tell_what_is_left_out()
