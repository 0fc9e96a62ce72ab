# SPDX-License-Identifier: Apache-2.0
"""Hooks on the modules of MSAdapter: their calls, parameters and gradients."""

from msprobe.core.hooks import Hooks, own_parameters
from msprobe.mindspore import cells

from . import framework
from .gradients import Backward


class _Parameters(cells.Parameters):
    own = staticmethod(own_parameters)


class HookedModule(cells.HookedCell):
    Backward = Backward
    Parameters = _Parameters

    def register(self, module, before, after):
        first = module.register_forward_pre_hook(before, with_kwargs=True)
        # Before the user's hooks, because these may change the module's result.
        last = module.register_forward_hook(after, prepend=True, with_kwargs=True)
        # Also after one that raised, which cannot be asked for otherwise.
        module._forward_hooks_always_called[last.id] = True
        return [first, last]


class _Hooks(Hooks):
    kind = "torch.nn.Module"

    def is_supported(self, module):
        return isinstance(module, framework.Module)

    def attach_one(self, model, prefix, models):
        for path, module in model.named_modules():
            if module is not model and not self.is_hooked(module):
                self.hook(module, "%s%s.%s" % (prefix, path, type(module).__name__))


hooks = _Hooks(HookedModule)
