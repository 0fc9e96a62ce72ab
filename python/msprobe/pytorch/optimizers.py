# SPDX-License-Identifier: Apache-2.0
"""Gives functions called by an optimizer, or by gradient clipping, their caller as parent in construct.json; and
describes optimizers."""

import functools
import gc
import importlib
import sys
import weakref

import torch

from msprobe import _native
from msprobe.core import session

from . import compiled, framework, training


_MEGATRON = "megatron.core.optimizer"
_optimizer = importlib.import_module("torch.optim.optimizer")  # some versions hide it as an attribute
_HAS_HOOKS = hasattr(_optimizer, "register_optimizer_step_post_hook")  # PyTorch 2.0


def install():
    """May be called again, because Megatron may be imported later."""
    _install_for_torch()
    if not _HAS_HOOKS:
        _wrap_steps(torch.optim.Optimizer)
        _wrap_described_steps()
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
    if _HAS_HOOKS:
        _optimizer.register_optimizer_step_pre_hook(_enter)
        _optimizer.register_optimizer_step_post_hook(_leave)
    _wrap_update(_grad_scaler())
    utils = torch.nn.utils
    for name in ("clip_grad_norm_", "clip_grad_norm", "clip_grad_value_"):
        function = getattr(utils, name, None)
        if callable(function):
            setattr(utils, name, _inside(function))


def _wrap_steps(kind):
    """Wraps step() of a class of optimizers and of all derived classes, once each. For these versions construct.json
    stays as the Python tool's, without "optimizer"."""
    step = kind.__dict__.get("step")
    if callable(step) and not hasattr(step, "_msprobe"):
        @functools.wraps(step)
        def wrapper(self, *args, **kwargs):
            changed = _with_closure_outside(self, args, kwargs, lambda: None)
            if changed is None:
                _describe(self)
            args, kwargs = changed or (args, kwargs)
            return step(self, *args, **kwargs)
        wrapper._msprobe = True
        kind.step = wrapper
    for derived in kind.__subclasses__():
        _wrap_steps(derived)


@functools.lru_cache(maxsize=None)  # once: what is made later finds the wrapped classes
def _wrap_described_steps():
    wrap_held_steps(_describe)


def wrap_held_steps(before):
    """Calls before(optimizer) at each step of the optimizers that hold a separate step(). Before PyTorch 2.0, which has hooks,
    a scheduler of the learning rate replaces step() of its optimizer by a function that calls the class's step() as it was
    then, so wrapping the class later has no effect."""
    for one in gc.get_objects():
        if issubclass(type(one), torch.optim.Optimizer) and "step" in vars(one):
            one.step = _with_call_before(one.step, weakref.ref(one), before)


def _with_call_before(step, optimizer, before):
    @functools.wraps(step)
    def wrapper(*args, **kwargs):
        before(optimizer())
        return step(*args, **kwargs)
    return wrapper


def _grad_scaler():
    """Returns the base class of all gradient scalers, or None: before PyTorch 2.3 it was in torch.cuda.amp."""
    for module in (getattr(torch, "amp", None), torch.cuda.amp):
        found = getattr(module, "GradScaler", None)
        if found is not None:
            return found
    return None


def _wrap_update(scaler):
    update = getattr(scaler, "update", None)
    if not callable(update):
        return

    @functools.wraps(update)
    def wrapper(self, *args, **kwargs):
        if not framework.is_compiling():
            _quietly(training.note_scaler, self)
        return update(self, *args, **kwargs)
    scaler.update = wrapper


def forget():
    _native.set_pseudo_parent(None)
    training.forget()


def _describe(optimizer):
    _quietly(training.note, optimizer)


def _quietly(note, what):
    # The switches stay on until step(), because an optimizer may also run after stop().
    if session.forward_switch[0] or session.backward_switch[0]:
        try:
            _native.call_quietly(note, what)
        except Exception:
            session.guard("describing an optimizer")


# The following functions are also called while a compiler traces an optimizer; they must not become part of the compiled
# code.


@compiled.leave_alone
def _enter(optimizer, args, kwargs):
    if framework.is_compiling():
        return None
    changed = _with_closure_outside(optimizer, args[1:], kwargs, _begin)
    if changed is None:
        _describe(optimizer)
    _begin()
    return changed and (args[:1] + changed[0], changed[1])


def _begin():
    if session.forward_switch[0]:
        _native.set_pseudo_parent("optimizer")


def _with_closure_outside(optimizer, args, kwargs, begin):
    """Returns the arguments of step() with a closure whose calls do not count as the optimizer's: it runs the forward and
    the backward, as training_step() does in Lightning. After it begin() is called. None without a closure. The optimizer is
    described after the closure has run once, since it takes these gradients."""
    closure = args[0] if args else kwargs.get("closure")
    if not callable(closure) or not (session.forward_switch[0] or session.backward_switch[0]):
        return None
    described = []

    @functools.wraps(closure)
    def outside(*its_args, **its_kwargs):
        _native.set_pseudo_parent(None)
        result = closure(*its_args, **its_kwargs)
        if not described:
            described.append(True)
            _describe(optimizer)
        begin()
        return result

    return ((outside,) + args[1:], kwargs) if args else (args, {**kwargs, "closure": outside})


@compiled.leave_alone
def _leave(optimizer, args, kwargs):
    if framework.is_compiling():
        return
    _native.set_pseudo_parent(None)
    # Fused and foreign optimizers write into parameters without autograd's knowledge.
    _native.changed_unseen()


def _inside(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if framework.is_compiling() or not session.forward_switch[0]:
            return function(*args, **kwargs)
        _native.set_pseudo_parent("clip_grad")
        try:
            return function(*args, **kwargs)
        finally:
            _native.set_pseudo_parent(None)
    return wrapper
