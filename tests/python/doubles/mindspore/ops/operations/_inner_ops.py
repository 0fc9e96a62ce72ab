# SPDX-License-Identifier: Apache-2.0
import weakref

from mindspore import tape


class CellBackwardHook:
    """An identity. As MindSpore's it is passed twice, and tells the gradients behind its second passage together with
    those in front of its first one."""

    def __init__(self, cell_id="", cell=None, hook_dict=None):
        self.cell = cell
        self.hooks = weakref.ref(hook_dict)
        self.grad_outputs = None
        self.told = None

    def __call__(self, args):
        passed = [tape.Tensor(tensor) for tensor in args]
        tape.record(passed, args, self._gradients)
        return tuple(passed)

    def _gradients(self, arrived):
        self.told(tuple(map(tape.Tensor, arrived)))
        return arrived

    def register_backward_hook(self):
        def told(gradients):
            if self.grad_outputs is None:
                self.grad_outputs = gradients
                return
            for hook in self.hooks().values():
                hook(self.cell, gradients, self.grad_outputs)
        self.told = told

    def register_backward_pre_hook(self):
        def told(gradients):
            for hook in self.hooks().values():
                hook(self.cell, gradients)
        self.told = told
