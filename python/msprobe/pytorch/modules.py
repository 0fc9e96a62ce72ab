# SPDX-License-Identifier: Apache-2.0
"""Hooks on modules: their calls, parameters and gradients.

What stays on the user's modules are hooks that neither a copy nor a pickle takes along: there they do nothing.
"""

import contextlib
import sys
import threading
import weakref

import torch

from msprobe import _native
from msprobe.core.common import log

from . import collector, framework
from .gradients import Backward

_switch = collector.forward_switch
_backward_switch = collector.backward_switch
_is_compiling = framework.is_compiling or (lambda: False)
_this_thread = threading.local()

# Checkpointing ends a recomputed forward with it when it has what it needs: no failure, only no output.
_EARLY_STOP = "_StopRecomputationError"


class _Hook:
    """Base of the hooks. A copy or a pickle of one is something of the standard library that does nothing."""

    __slots__ = ("hooked",)

    def __init__(self, hooked):
        self.hooked = hooked

    def __reduce__(self):
        return getattr, (contextlib.nullcontext(), "__exit__")


class _Before(_Hook):
    __slots__ = ()

    def __call__(self, module, args, kwargs=None):
        if not _switch[0] or _is_compiling():
            return None
        return self.hooked.before(args, kwargs)


class _After(_Hook):
    __slots__ = ()

    def __call__(self, module, args, *rest):
        # rest: (output,), or (kwargs, output) where hooks get keyword arguments.
        if _is_compiling():
            return None
        stack = getattr(_this_thread, "calls", None)
        if not stack:
            return None
        return self.hooked.after(stack, rest[-1])


class _Call:
    """A call of a module that has begun."""

    __slots__ = ("hooked", "native", "backward", "exception")

    def __init__(self, hooked, native, exception):
        self.hooked = hooked
        self.native = native
        self.backward = None
        self.exception = exception


class HookedModule:
    """A module with our hooks."""

    def __init__(self, name, module, with_backward, main_gradients):
        self.name = name
        self.number = _native.intern(name)
        self.module = weakref.ref(module)
        self.with_backward = with_backward
        self.parameters = _Parameters(self.number, module, main_gradients)
        self._handles = []
        before, after = _Before(self), _After(self)
        if framework.HAS_HOOKS_WITH_KWARGS:
            more = {"always_call": True} if framework.HAS_ALWAYS_CALL else {}
            self._handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
            # In front of the user's hooks: what these change is not what the module computed.
            self._handles.append(module.register_forward_hook(after, prepend=True, with_kwargs=True, **more))
        else:
            self._handles.append(module.register_forward_pre_hook(before))
            handle = module.register_forward_hook(after)
            module._forward_hooks.move_to_end(handle.id, last=False)
            self._handles.append(handle)

    def remove(self):
        for handle in self._handles:
            handle.remove()
        self.parameters.remove()

    def before(self, args, kwargs):
        try:
            native = _native.enter_module(self.number, args, kwargs if kwargs is not None else {})
            if native is None:
                return None
            call = _Call(self, native, sys.exc_info()[1])
            stack = getattr(_this_thread, "calls", None)
            if stack is None:
                stack = _this_thread.calls = []
            stack.append(call)
            if not (self.with_backward and native.wants_backward()):
                return None
            try:
                self.parameters.hook()
            except Exception:
                collector.guard("hooking parameters")
            call.backward = Backward(native)
            hooked_args = call.backward.hook_inputs(args)
        except Exception:
            collector.guard("entering a module")
            return None
        if hooked_args is args:
            return None
        return hooked_args if kwargs is None else (hooked_args, kwargs)

    def after(self, stack, output):
        if not any(call.hooked is self for call in stack):
            return None
        # An exception that came since: this hook is called for cleaning up.
        call = stack.pop()
        while call.hooked is not self:  # left without its hook being called
            call.native.leave(None, None, True)
            call = stack.pop()
        try:
            error = sys.exc_info()[1]
            failed = (output is None and error is not None and error is not call.exception
                      and type(error).__name__ != _EARLY_STOP)
            module = self.module()
            call.native.leave(output, self.parameters.named(module), failed)
            if failed or output is None or call.backward is None:
                return None
            hooked_output = call.backward.hook_outputs(output)
        except Exception:
            collector.guard("leaving a module")
            return None
        return None if hooked_output is output else hooked_output


class _Parameters:
    """The own parameters of a module and the hooks on their gradients."""

    def __init__(self, number, module, main_gradients):
        self._number = number
        self._module = weakref.ref(module)
        self._main_gradients = main_gradients
        self._hooked = {}  # name -> (weak reference to the parameter, handle, node)

    def named(self, module):
        return {} if module is None else _own_parameters(module)

    def hook(self):
        module = self._module()
        if module is None or not module._parameters:
            return
        # Others than leaves are views that a wrapper made for this call (FSDP); they get no gradient.
        wanted = {name: parameter for name, parameter in _own_parameters(module).items()
                  if parameter.requires_grad and parameter.is_leaf}
        for name, parameter in wanted.items():
            known = self._hooked.get(name)
            if known is not None and known[0]() is parameter:
                continue
            if known is not None:
                known[1].remove()
            self._hooked[name] = self._hook(name, parameter, len(wanted))

    def _hook(self, name, parameter, count):
        number = self._number
        main_gradients = self._main_gradients
        reference = weakref.ref(parameter)

        def arrived(*unused):
            if not _backward_switch[0]:
                return
            try:
                owner = reference()
                gradient = None
                if owner is not None:
                    gradient = getattr(owner, "main_grad", None) if main_gradients else None
                    if gradient is None:
                        gradient = owner.grad
                if gradient is not None:
                    _native.parameter_gradient(number, name, count, gradient)
            except Exception:
                collector.guard("recording the gradient of a parameter")

        if framework.HAS_POST_ACCUMULATE_HOOKS:
            return reference, parameter.register_post_accumulate_grad_hook(arrived), None
        with torch.enable_grad():
            node = framework.expand_as(parameter, parameter).grad_fn.next_functions[0][0]
        return reference, node.register_hook(arrived), node

    def remove(self):
        for _, handle, _ in self._hooked.values():
            handle.remove()
        self._hooked.clear()


def _own_parameters(module):
    named = {}
    seen = set()
    for name, parameter in module._parameters.items():
        if parameter is not None and id(parameter) not in seen:
            seen.add(id(parameter))
            named[name] = parameter
    return named


# ---------------------------------------------------------------------- all modules of a model

_hooked = {}  # id(module) -> HookedModule; one whose module is gone is replaced


def _known(module):
    hooked = _hooked.get(id(module))
    return hooked if hooked is not None and hooked.module() is module else None


def is_supported(module):
    return isinstance(module, torch.nn.Module) and not isinstance(module, torch.jit.ScriptModule)


_attached = {}  # id(model) -> weak reference: models whose modules have their hooks


def attach(models):
    """Hooks all modules inside a model, or inside each of a list of models; once."""
    listed = isinstance(models, (list, tuple))
    everything = list(models) if listed else [models]
    if all(id(model) in _attached and _attached[id(model)]() is model for model in everything):
        return
    for model in everything:
        _attached[id(model)] = weakref.ref(model)
    main_gradients = any("megatron" in (type(model).__module__ or "") for model in everything)
    for index, model in enumerate(everything):
        _attach_one(model, "Module.%d." % index if listed else "Module.", main_gradients)


def _attach_one(model, prefix, main_gradients):
    _warn_if_compiled(model)
    named = list(model.named_modules())
    skips_ends = "verl" in sys.modules
    for position, (path, module) in enumerate(named):
        if module is model or _known(module) is not None:
            continue
        if not is_supported(module):
            log.warn_once("modules of type %s are not recorded" % type(module).__name__)
            continue
        if type(module).__name__ == "FullyShardedDataParallel":
            continue
        if skips_ends and position in (1, len(named) - 1):
            log.warn_once("the first and the last module inside a model are not recorded while verl is loaded")
            continue
        hook(module, "%s%s.%s" % (prefix, path, type(module).__name__), main_gradients)


def hook(module, name, main_gradients=False):
    """Hooks one module; its entries are called `name`."""
    patch_calls()
    with_backward = not (len(module._backward_hooks) > 0 and module._is_full_backward_hook is False)
    if not with_backward:
        log.warn("%s has a hook of register_backward_hook(): its backward is not recorded" % name)
    hooked = HookedModule(name, module, with_backward, main_gradients)
    _hooked[id(module)] = hooked
    weakref.finalize(module, _forget, id(module), hooked).atexit = False
    return hooked


def _forget(key, hooked):
    if _hooked.get(key) is hooked:
        del _hooked[key]


def is_hooked(module):
    return _known(module) is not None


def unhook(module):
    hooked = _hooked.pop(id(module), None)
    if hooked is not None:
        hooked.remove()


def detach_all():
    for hooked in list(_hooked.values()):
        hooked.remove()
    _hooked.clear()
    _attached.clear()


def forget_calls():
    """A step ends: calls that began and never ended are over."""
    _this_thread.calls = []


def _warn_if_compiled(model):
    if type(model).__name__ == "OptimizedModule":
        log.warn_once("what torch.compile() has compiled is not recorded")


# ---------------------------------------------------------------------- exceptions, where hooks do not see them

_original_call = None


def patch_calls():
    """Before PyTorch 2.1 no hook is called when a module raises: its call does that here."""
    global _original_call
    if framework.HAS_ALWAYS_CALL or _original_call is not None:
        return
    _original_call = original = torch.nn.Module.__call__

    def __call__(self, *args, **kwargs):
        try:
            return original(self, *args, **kwargs)
        except BaseException:
            stack = getattr(_this_thread, "calls", None)
            if stack:
                hooked = _known(self)
                if hooked is not None:
                    hooked.after(stack, None)
            raise

    torch.nn.Module.__call__ = __call__
