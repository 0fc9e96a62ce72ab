# SPDX-License-Identifier: Apache-2.0
"""Hooks on modules: the framework-independent handling of their calls.

The user's modules only hold hooks that a copy does not carry along, and a pickle without effect.
"""

import contextlib
import sys
import threading
import weakref

from msprobe import _native

from . import session

_switch = session.forward_switch
_this_thread = threading.local()


class Hook:
    """Base of the hooks. A copy of the module has none; a pickle has a standard-library object that does nothing."""

    __slots__ = ("hooked", "module")

    def __init__(self, hooked, module):
        self.hooked = hooked
        self.module = weakref.ref(module)

    def __reduce__(self):
        return getattr, (contextlib.nullcontext(), "__exit__")

    def __deepcopy__(self, memo):
        module = self.module()
        twin = memo.get(id(module))
        if twin is not None:
            keys = {key for table in _hook_tables(module) for key, hook in table.items() if hook is self}
            memo.setdefault(_Twins, _Twins()).made.append((twin, keys))
        return contextlib.nullcontext().__exit__


class _Twins:
    """Copies of modules, from which hooks go as soon as they are whole: when copy.deepcopy() lets go of its memo, which
    holds this."""

    def __init__(self):
        self.made = []  # (copy, keys of the hooks)

    def __del__(self):
        for twin, keys in self.made:
            for table in _hook_tables(twin):
                for key in keys:
                    table.pop(key, None)


def _hook_tables(module):
    """The tables of a module: hooks by key, and their properties by the same key."""
    return [table for name, table in vars(module).items() if "hook" in name and isinstance(table, dict)]


class Before(Hook):
    """Called with the arguments when a call begins."""

    __slots__ = ()

    def __call__(self, module, args, kwargs=None):
        if self.hooked.is_compiling():
            return self.hooked.trace_inputs(args, kwargs)
        if not _switch[0]:
            return None
        return self.hooked.before(args, kwargs)


class After(Hook):
    """Called with the result of a call, or to clean up after a call that raised."""

    __slots__ = ()

    def __call__(self, module, args, *rest):
        # rest: (output,), or (kwargs, output) where hooks get keyword arguments.
        if self.hooked.is_compiling():
            return self.hooked.trace_output(rest[-1])
        stack = open_calls()
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


def open_calls():
    """The unfinished calls of this thread; None if there never was one."""
    return getattr(_this_thread, "calls", None)


class Hooked:
    """A module with our hooks. A front end supplies:

    Backward: the class whose hook_inputs(args, kwargs) and hook_outputs(output) hook the backward of a call; parameters: an
    object with named() -> the module's own parameters, hook() for their gradients, and remove(); register(module,
    before, after) -> handles of the hooks, each with remove().
    """

    Backward = None
    parameters = None
    # The exception that ends a call early without being a failure.
    early_stop = None

    def __init__(self, name, module, with_backward):
        self.name = name
        self.number = _native.intern(name)
        self.module = weakref.ref(module)
        self.with_backward = with_backward
        self._handles = []
        self.resume()

    @staticmethod
    def is_compiling():
        return False

    def trace_inputs(self, args, kwargs):
        """Called when a compiler traces a call: all operations in this method become part of the compiled code."""

    def trace_output(self, output):
        """The same. Returns what the call is to return instead, or None."""

    def register(self, module, before, after):
        raise NotImplementedError

    def buffers(self):
        """Returns the module's own tensors that are not parameters, {name: tensor}; None if it has no such tensors."""
        return None

    def resume(self):
        module = self.module()
        if not self._handles and module is not None:
            self._handles = self.register(module, Before(self, module), After(self, module))

    def pause(self):
        """Removes the hooks until resume(), for modules that behave differently when they have hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def remove(self):
        self.pause()
        self.parameters.remove()

    def before(self, args, kwargs):
        try:
            native = _native.enter_module(self.number, args, kwargs if kwargs is not None else {}, self.buffers())
            if native is None:
                return None
            call = _Call(self, native, sys.exc_info()[1])
            stack = open_calls()
            if stack is None:
                stack = _this_thread.calls = []
            stack.append(call)
            if not (self.with_backward and native.wants_backward()):
                return None
            try:
                self.parameters.hook()
            except Exception:
                session.guard("hooking parameters")
            call.backward = self.Backward(native)
            hooked_args = call.backward.hook_inputs(args, kwargs)
        except Exception:
            session.guard("entering a module")
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
                      and type(error).__name__ != self.early_stop)
            call.native.leave(output, self.parameters.named(), failed)
            if call.backward is None:
                return None
            hooked_output = call.backward.hook_outputs(output)
        except Exception:
            session.guard("leaving a module")
            return None
        return None if hooked_output is output else hooked_output


def own_parameters(module):
    """The parameters that a module of PyTorch, or a compatible one, owns itself: {name: parameter}, each once."""
    named = {}
    seen = set()
    for name, parameter in module._parameters.items():
        if parameter is not None and id(parameter) not in seen:
            seen.add(id(parameter))
            named[name] = parameter
    return named


# ---------------------------------------------------------------------- all modules of a model


class Hooks:
    """All hooked modules of the process. A front end supplies `kind`, is_supported() and attach_one()."""

    kind = "module"    # its name in messages
    prefix = "Module"  # of entries

    def __init__(self, hooked_type):
        self._hooked_type = hooked_type
        self._hooked = {}    # id(module) -> Hooked; one whose module is gone is replaced
        self._attached = {}  # id(model) -> weak reference: models whose modules have their hooks

    def is_supported(self, module):
        raise NotImplementedError

    def attach_one(self, model, prefix, models):
        """Hooks the modules inside one of the models."""
        raise NotImplementedError

    def known(self, module):
        hooked = self._hooked.get(id(module))
        return hooked if hooked is not None and hooked.module() is module else None

    def attach(self, models):
        """Hooks all modules inside a model, or inside each model of a list; once."""
        listed = isinstance(models, (list, tuple))
        everything = list(models) if listed else [models]
        if all(id(model) in self._attached and self._attached[id(model)]() is model for model in everything):
            return
        for model in everything:
            self._attached[id(model)] = weakref.ref(model)
        for index, model in enumerate(everything):
            self.attach_one(model, "%s.%d." % (self.prefix, index) if listed else self.prefix + ".", everything)

    def hook(self, module, name, *more):
        """Hooks one module; its entries are named `name`."""
        hooked = self._hooked_type(name, module, *more)
        self._hooked[id(module)] = hooked
        weakref.finalize(module, self._forget, id(module), hooked).atexit = False
        return hooked

    def _forget(self, key, hooked):
        if self._hooked.get(key) is hooked:
            del self._hooked[key]

    def pause(self):
        """Pauses recording until resume()."""

    def resume(self):
        """Resumes recording."""

    def is_hooked(self, module):
        return self.known(module) is not None

    def unhook(self, module):
        hooked = self._hooked.pop(id(module), None)
        if hooked is not None:
            hooked.remove()

    def detach_all(self):
        for hooked in list(self._hooked.values()):
            hooked.remove()
        self._hooked.clear()
        self._attached.clear()

    def forget_calls(self):
        """Discards calls that began in this step and never ended."""
        _this_thread.calls = []

    def count_calls(self, model, count):
        """Calls count() before every call of a model; returns the handle of that hook."""
        return model.register_forward_pre_hook(_Counting(count, model))


class _Counting(Hook):
    __slots__ = ()

    def __call__(self, module, args):
        self.hooked()
