# SPDX-License-Identifier: Apache-2.0
"""Calls before and after each step of an optimizer, which is a cell."""


class StepHooks:
    def __init__(self, optimizer, before, after):
        """Calls before(inputs) and after() around each call of the optimizer."""
        self._handles = [optimizer.register_forward_pre_hook(lambda cell, inputs: before(inputs)),
                         optimizer.register_forward_hook(lambda cell, inputs, output: after())]

    def remove(self):
        for handle in self._handles:
            handle.remove()
