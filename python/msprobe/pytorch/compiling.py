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
        torch.compile = _warning(compile_function)


def _with_originals(script):
    @functools.wraps(script)
    def wrapper(*args, **kwargs):
        with apis.originals():
            return script(*args, **kwargs)
    return wrapper


def _warning(compile_function):
    @functools.wraps(compile_function)
    def wrapper(*args, **kwargs):
        options = kwargs.get("options") or {}
        if torch.cuda.is_available() and (kwargs.get("mode") in ("reduce-overhead", "max-autotune")
                                          or options.get("triton.cudagraphs")):
            compiled.refuse("CUDA graphs replay it without calling the recorder")
        reason = compiled.reason_against()
        if reason is not None:
            log.warn_once("code compiled by torch.compile() is not recorded: " + reason)
        return compile_function(*args, **kwargs)
    return wrapper
