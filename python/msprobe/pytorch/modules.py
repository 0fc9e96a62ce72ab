# SPDX-License-Identifier: Apache-2.0
"""Hooks on the modules of PyTorch: their calls, parameters and gradients."""

import sys
import weakref

import torch

from msprobe import _native
from msprobe.core import session
from msprobe.core.common import log
from msprobe.core.hooks import Hooked, Hooks, open_calls, own_parameters

from . import compiled, framework
from .gradients import Backward, accumulation_of

_backward_switch = session.backward_switch


class HookedModule(Hooked):
    Backward = Backward
    # Checkpointing raises it when a recomputed forward has all that it needs; the call did not fail, it only has no output.
    early_stop = "_StopRecomputationError"

    is_compiling = staticmethod(framework.is_compiling)

    def trace_inputs(self, args, kwargs):
        return None if framework.is_exporting() else compiled.trace_inputs(self, args, kwargs)

    def trace_output(self, output):
        return None if framework.is_exporting() else compiled.trace_output(self, output)

    def __init__(self, name, module, main_gradients=False):
        patch_calls()
        with_backward = not (len(module._backward_hooks) > 0 and module._is_full_backward_hook is False)
        if not with_backward:
            log.warn("%s has a hook of register_backward_hook(): its backward is not recorded" % name)
        super().__init__(name, module, with_backward)
        self.parameters = _Parameters(self.number, module, main_gradients)
        compiled.know(self)

    def buffers(self):
        module = self.module()
        own = module._buffers if module is not None else None
        return {name: buffer for name, buffer in own.items() if buffer is not None} if own else None

    def register(self, module, before, after):
        if framework.HAS_HOOKS_WITH_KWARGS:
            more = {"always_call": True} if framework.HAS_ALWAYS_CALL else {}
            return [module.register_forward_pre_hook(before, with_kwargs=True),
                    # Before the user's hooks, because these may change the module's result.
                    module.register_forward_hook(after, prepend=True, with_kwargs=True, **more)]
        handles = [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
        module._forward_hooks.move_to_end(handles[1].id, last=False)
        return handles


class _Parameters:
    """The own parameters of a module and the hooks on their gradients."""

    def __init__(self, number, module, main_gradients):
        self._number = number
        self._module = weakref.ref(module)
        self._main_gradients = main_gradients
        self._hooked = {}  # name -> (weak reference to the parameter, handle, node)

    def named(self):
        module = self._module()
        return {} if module is None else own_parameters(module)

    def hook(self):
        module = self._module()
        if module is None or not module._parameters:
            return
        # A parameter that is not a leaf is a view that a wrapper made for this call (FSDP); it gets no gradient.
        wanted = {name: parameter for name, parameter in own_parameters(module).items()
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
                session.guard("recording the gradient of a parameter")

        if framework.HAS_POST_ACCUMULATE_HOOKS:
            return reference, parameter.register_post_accumulate_grad_hook(arrived), None
        node = accumulation_of(parameter)
        return reference, node.register_hook(arrived), node

    def remove(self):
        for _, handle, _ in self._hooked.values():
            handle.remove()
        self._hooked.clear()


# ---------------------------------------------------------------------- all modules of a model


class _Hooks(Hooks):
    kind = "torch.nn.Module"

    def __init__(self, hooked_type):
        super().__init__(hooked_type)
        # Layers that use their fast path in inference only if no module inside has a hook.
        self._picky = weakref.WeakSet()

    def is_supported(self, module):
        return isinstance(module, torch.nn.Module) and not isinstance(module, torch.jit.ScriptModule)

    def attach_one(self, model, prefix, models):
        main_gradients = any("megatron" in (type(one).__module__ or "") for one in models)
        named = _named_modules(model)
        skips_ends = "verl" in sys.modules
        picky = {id(part) for _, module in named if isinstance(module, torch.nn.TransformerEncoderLayer)
                 for part in module.modules()}
        for position, (path, module) in enumerate(named):
            if not path or self.is_hooked(module):
                continue
            if not self.is_supported(module):
                log.warn_once("modules of type %s are not recorded" % type(module).__name__)
                continue
            if type(module).__name__ == "FullyShardedDataParallel":
                continue
            if skips_ends and position in (1, len(named) - 1):
                log.warn_once("the first and the last module inside a model are not recorded while verl is loaded")
                continue
            hooked = self.hook(module, "%s%s.%s" % (prefix, path, type(module).__name__), main_gradients)
            if id(module) in picky:
                self._picky.add(hooked)
        compiled.compile_anew()

    def forget_calls(self):
        super().forget_calls()
        compiled.forget_calls()

    def pause(self):
        for hooked in self._picky:
            # Compiled modules keep the hooks, because the compiler does not notice changes.
            if not compiled.is_traced(hooked):
                hooked.pause()

    def resume(self):
        for hooked in self._picky:
            hooked.resume()


hooks = _Hooks(HookedModule)
detach_all = hooks.detach_all


def _named_modules(model):
    """Returns (path, module) of all modules, without the wrappers of torch.compile(), which entries' names do not
    contain."""
    named = []
    for path, module in model.named_modules():
        if type(module).__name__ != "OptimizedModule":
            named.append((".".join(part for part in path.split(".") if part != "_orig_mod"), module))
    return named


# ---------------------------------------------------------------------- exceptions, where hooks do not see them

_original_call = None


def patch_calls():
    """Before PyTorch 2.1 no hook is called when a module raises: this patches the call to do so."""
    global _original_call
    if framework.HAS_ALWAYS_CALL or _original_call is not None:
        return
    _original_call = original = torch.nn.Module.__call__

    def __call__(self, *args, **kwargs):
        try:
            return original(self, *args, **kwargs)
        except BaseException:
            stack = open_calls()
            if stack:
                hooked = hooks.known(self)
                if hooked is not None:
                    hooked.after(stack, None)
            raise

    torch.nn.Module.__call__ = __call__
