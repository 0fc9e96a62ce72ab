# SPDX-License-Identifier: Apache-2.0
"""PyTorch's compilers inspect functions and modules themselves: give them the originals, and say what is not recorded."""

import functools

import torch

from msprobe.core.common import log

from . import apis, compiled


@functools.lru_cache(maxsize=None)  # once
def install():
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


def tell(models, records_modules):
    """What is not recorded of models that are compiled."""
    if not any(_is_compiled(module) for model in models for module in model.modules()):
        return
    reason = compiled.reason_against()
    if reason is not None:
        log.warn_once("compiled code is not recorded: " + reason)
    elif not records_modules:
        log.warn_once("operations inside of compiled code are not recorded; level L0 records the modules there")


def _is_compiled(module):
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


def _seeing(compile_function):
    @functools.wraps(compile_function)
    def wrapper(*args, **kwargs):
        options = kwargs.get("options") or {}
        if torch.cuda.is_available() and (kwargs.get("mode") in ("reduce-overhead", "max-autotune")
                                          or options.get("triton.cudagraphs")):
            compiled.refuse("CUDA graphs replay it without calling the recorder")
        made = compile_function(*args, **kwargs)
        compiled.leave_all_alone()
        return made
    return wrapper
