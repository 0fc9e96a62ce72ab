# SPDX-License-Identifier: Apache-2.0
"""Modules, as those of PyTorch were written down once more: no hooks on backwards."""

from .._tensor import Parameter
from . import functional


class _Handle:
    def __init__(self, table):
        self.table, self.id = table, object()

    def remove(self):
        self.table.pop(self.id, None)


class Module:
    def __init__(self):
        for name in ("_parameters", "_modules", "_forward_pre_hooks", "_forward_hooks", "_forward_hooks_always_called"):
            object.__setattr__(self, name, {})

    def __setattr__(self, name, value):
        table = self._parameters if isinstance(value, Parameter) else self._modules if isinstance(value, Module) else vars(self)
        table[name] = value

    def __getattr__(self, name):
        for table in ("_parameters", "_modules"):
            if name in vars(self).get(table, ()):
                return vars(self)[table][name]
        raise AttributeError(name)

    def named_modules(self, prefix="", seen=None):
        seen = set() if seen is None else seen
        if self not in seen:
            seen.add(self)
            yield prefix, self
            for name, module in self._modules.items():
                yield from module.named_modules(prefix + "." + name if prefix else name, seen)

    def modules(self):
        return [module for _, module in self.named_modules()]

    def parameters(self):
        return [parameter for module in self.modules() for parameter in module._parameters.values()]

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        handle = _Handle(self._forward_pre_hooks)
        self._forward_pre_hooks[handle.id] = hook, with_kwargs
        return handle

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False):
        handle = _Handle(self._forward_hooks)
        self._forward_hooks[handle.id] = hook, with_kwargs
        return handle

    def __call__(self, *args, **kwargs):
        try:
            for hook, with_kwargs in list(self._forward_pre_hooks.values()):
                changed = hook(self, args, kwargs) if with_kwargs else hook(self, args)
                if changed is not None:
                    args, kwargs = changed if with_kwargs else (changed, kwargs)
            result = self.forward(*args, **kwargs)
            for hook, with_kwargs in list(self._forward_hooks.values()):
                changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
                result = result if changed is None else changed
            return result
        except Exception:
            for number, (hook, with_kwargs) in list(self._forward_hooks.items()):
                if number in self._forward_hooks_always_called:
                    hook(self, args, kwargs, None) if with_kwargs else hook(self, args, None)
            raise


class Linear(Module):
    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = Parameter(weight), Parameter(bias)

    def forward(self, x):
        return functional.linear(x, self.weight, self.bias)


class ReLU(Module):
    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, x):
        return functional.relu(x, self.inplace)


class Identity(Module):
    def forward(self, x):
        return x
