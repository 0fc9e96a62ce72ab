# SPDX-License-Identifier: Apache-2.0
"""Task grad_probe: the gradients that an optimizer is called with."""

import weakref

from msprobe.core.common import log
from msprobe.core.grad_probe.probe import Probe

from . import describe, framework

_probe = Probe()


def watch(optimizer, steps):
    _probe.record_steps(steps)
    watched = weakref.ref(optimizer)

    def before(cell, inputs):
        if watched() is cell:  # not a copy, which shares the hook
            _probe.before_step(lambda: _gradients(cell, inputs))

    optimizer.register_forward_pre_hook(before)


def _gradients(optimizer, inputs):
    # If parameters are flattened, the gradients belong to `_parameters`.
    parameters = getattr(optimizer, "_parameters", None) or optimizer.parameters
    for parameter, gradient in zip(parameters, gradients_in(inputs)):
        elements = describe.elements_of(gradient) if isinstance(gradient, framework.Tensor) else None
        if elements is None:
            log.warn_once("task grad_probe cannot record the gradient of %s: it is not a tensor of numbers" % parameter.name)
        else:
            yield parameter.name, elements


def gradients_in(inputs):
    """The gradients among the arguments of an optimizer: a tuple, or each by itself."""
    if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)):
        return inputs[0]
    return inputs
