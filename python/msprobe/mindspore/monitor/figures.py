# SPDX-License-Identifier: Apache-2.0
"""Statistics recorded when an optimizer steps: the gradients passed to it, moments and parameters before the step,
parameters after it."""

import numpy

from msprobe.core.common import log
from msprobe.core.monitor.engine import guarded

from .. import describe
from ..grad_probe import gradients_in

# Attributes with the first and the second moments, in the order of the optimizer's parameters.
_MOMENTS = (("exp_avg", "exp_avg_sq"), ("moment1", "moment2"), ("moments1", "moments2"))


class StepFigures:
    """For the parameters of one optimizer."""

    def __init__(self, watch, optimizer, parameters):
        self._watch = watch
        self._optimizer = optimizer
        self._parameters = parameters

    def before_step(self, inputs):
        """`inputs`: the arguments of the optimizer's call."""
        settings = self._watch.settings
        own = [parameter.name for parameter in getattr(self._optimizer, "parameters", ())]
        gradients = dict(zip(own, gradients_in(inputs)))
        moments = self._moments(own) if settings.mv_distribution or settings.mg_direction else {}
        for name, parameter in self._parameters.items():
            guarded("the statistics of " + parameter.name, self._measure, parameter, gradients.get(name), moments.get(name))

    def after_step(self):
        if self._watch.settings.param_distribution:
            for parameter in self._parameters.values():
                guarded("the statistics of " + parameter.name, self._observe, "param_updated", parameter, parameter.tensor)

    def _measure(self, parameter, gradient, moments):
        settings = self._watch.settings
        if settings.wg_distribution:
            if gradient is None:
                log.warn_once("monitor: the optimizer receives no gradient of %s" % parameter.name)
            else:
                self._observe("grad_reduced", parameter, gradient)
        if settings.mv_distribution and moments is not None:
            self._observe("exp_avg", parameter, moments[0])
            self._observe("exp_avg_sq", parameter, moments[1])
        if settings.mg_direction and gradient is not None and moments is not None:
            first = self._watch.engine.setting("step") == 0
            share = 1.0 if first else _agreement(describe.elements_of(gradient), describe.elements_of(moments[0]))
            self._watch.engine.observe(self._series("mg_direction", parameter), numpy.array(share, numpy.float32),
                                       "Float32")
        if settings.param_distribution:
            self._observe("param_origin", parameter, parameter.tensor)

    def _moments(self, own):
        for first, second in _MOMENTS:
            pairs = getattr(self._optimizer, first, None), getattr(self._optimizer, second, None)
            if None not in pairs and len(pairs[0]) == len(pairs[1]) == len(own):
                return dict(zip(own, zip(*pairs)))
        log.warn_once("monitor: %s has no moments" % type(self._optimizer).__name__)
        return {}

    def _series(self, quantity, parameter):
        return self._watch.engine.series(quantity, parameter.stage, parameter.name)

    def _observe(self, quantity, parameter, value):
        self._watch.observer.observe(self._series(quantity, parameter), value)


def _agreement(gradient, moment):
    """The share of elements where both have the same sign, half for those where one is zero."""
    if gradient is None or moment is None or gradient.shape != moment.shape:
        return 0.0
    total = float((numpy.sign(gradient) * numpy.sign(moment)).sum(dtype=numpy.float64))
    return (total / max(gradient.size, 1) + 1) / 2
