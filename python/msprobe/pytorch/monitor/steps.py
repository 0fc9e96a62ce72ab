# SPDX-License-Identifier: Apache-2.0
"""Calls before and after each step of an optimizer."""

from msprobe.core.monitor.replacing import Replaced


class StepHooks:
    """before() and after() around optimizer.step(), even if the method is replaced later."""

    def __init__(self, optimizer, before, after):
        self._handles = []
        if _has_hooks(optimizer):
            self._handles = [optimizer.register_step_pre_hook(lambda *unused: before()),
                             optimizer.register_step_post_hook(lambda *unused: after())]
        else:
            self._handles = [Replaced(optimizer, "step", lambda *unused, **more: before(),
                                      lambda *unused, **more: after())]

    def remove(self):
        for handle in self._handles:
            handle.remove()


def _has_hooks(optimizer):
    """Whether PyTorch calls the optimizer's hooks. It does for its own optimizers; a wrapper that only looks like one
    has no hooks."""
    return (hasattr(optimizer, "register_step_pre_hook") and "_optimizer_step_pre_hooks" in vars(optimizer)
            and getattr(getattr(type(optimizer), "step", None), "hooked", False))
