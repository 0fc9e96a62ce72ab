# SPDX-License-Identifier: Apache-2.0
"""Gives functions called by an optimizer, or by gradient clipping, that as their parent in construct.json."""

import functools
import importlib
import sys

import torch

from msprobe import _native
from msprobe.core import session


_MEGATRON = "megatron.core.optimizer"


def install():
    """May be called again, because Megatron may be imported later."""
    _install_for_torch()
    megatron = getattr(sys.modules.get(_MEGATRON), "MegatronOptimizer", None)
    if megatron is not None:
        _install_for_megatron(megatron)


@functools.lru_cache(maxsize=None)  # once
def _install_for_megatron(optimizer):
    clip = getattr(optimizer, "clip_grad_norm", None)
    if callable(clip):
        optimizer.clip_grad_norm = _inside(clip)


@functools.lru_cache(maxsize=None)  # once
def _install_for_torch():
    optimizer = importlib.import_module("torch.optim.optimizer")  # some versions hide it as an attribute
    before = getattr(optimizer, "register_optimizer_step_pre_hook", None)
    after = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if before is not None and after is not None:
        before(_enter)
        after(_leave)
    utils = torch.nn.utils
    for name in ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_"):
        function = getattr(utils, name, None)
        if callable(function):
            setattr(utils, name, _inside(function))


def forget():
    _native.set_pseudo_parent(None)


def _enter(optimizer, args, kwargs):
    if session.forward_switch[0]:
        _native.set_pseudo_parent("optimizer")


def _leave(optimizer, args, kwargs):
    _native.set_pseudo_parent(None)
    # Fused and foreign optimizers write into parameters behind autograd's back.
    _native.changed_unseen()


def _inside(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if not session.forward_switch[0]:
            return function(*args, **kwargs)
        _native.set_pseudo_parent("clip_grad")
        try:
            return function(*args, **kwargs)
        finally:
            _native.set_pseudo_parent(None)
    return wrapper
