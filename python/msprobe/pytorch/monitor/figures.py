# SPDX-License-Identifier: Apache-2.0
"""Statistics recorded when an optimizer steps: reduced gradients, moments, parameters; parameters again after the
step."""

import torch

from msprobe.core.common import log
from msprobe.core.monitor.engine import guarded

from .optimizers import reader_of
from .tensors import plain_of


class StepFigures:
    """For the parameters of one optimizer's model."""

    def __init__(self, watch, optimizer, parameters, skips_empty):
        self._watch = watch
        self._parameters = parameters
        self._is_first = False
        self._has_stepped = False
        self._skips_empty = skips_empty  # FSDP1: a parameter of which other ranks have everything
        self._reader = reader_of(optimizer, watch.gradient_of)
        settings = watch.settings
        self._of_gradient = settings.wg_distribution or settings.mg_direction
        self._of_moments = settings.mv_distribution or settings.mg_direction or settings.ur_distribution

    def before_step(self):
        self._is_first = self._watch.engine.setting("step") == 0
        guarded("reading the optimizer", self._reader.refresh)
        for parameter in self._parameters.values():
            guarded("the statistics of " + parameter.name, self._measure_before, parameter)

    def after_step(self):
        self._has_stepped = True
        if self._watch.settings.param_distribution:
            for parameter in self._parameters.values():
                guarded("the statistics of " + parameter.name, self._measure_parameter, parameter, "param_updated")

    def _measure_before(self, parameter):
        settings = self._watch.settings
        has = self._reader.has(parameter.tensor)
        gradient = self._gradient(parameter) if self._of_gradient and has else None
        if settings.wg_distribution and gradient is not None and not parameter.is_duplicate:
            self._observe("grad_reduced", parameter, gradient)
        if self._of_moments and has:
            self._measure_moments(parameter, gradient)
        if settings.param_distribution:
            self._measure_parameter(parameter, "param_origin")

    def _measure_parameter(self, parameter, quantity):
        if parameter.tensor.numel() > 0 or not self._skips_empty:
            self._observe(quantity, parameter, parameter.tensor)

    def _gradient(self, parameter):
        gradient = self._reader.gradient(parameter.tensor)
        if gradient is None and not self._skips_empty:
            log.warn_once("monitor: %s has no gradient (grad is None)" % parameter.name)
        return gradient

    def _measure_moments(self, parameter, gradient):
        settings = self._watch.settings
        state = self._reader.state(parameter.tensor)
        if settings.mg_direction and gradient is not None and self._is_first:
            self._observe("mg_direction", parameter, torch.ones((), dtype=torch.float32))
        if not state:
            # Ahead of its first step no optimizer has any.
            if settings.mv_distribution and self._has_stepped:
                log.warn_once("monitor: the optimizer has no state of %s, nor perhaps of others: no moments of it are recorded"
                              % parameter.name, "monitor state")
            return
        moments = [self._reader.moment(parameter.tensor, state, key) for key in ("exp_avg", "exp_avg_sq")]
        if settings.mv_distribution:
            self._observe("exp_avg", parameter, moments[0])
            self._observe("exp_avg_sq", parameter, moments[1])
        if moments[0] is None:
            return
        if settings.mg_direction and gradient is not None and not self._is_first:
            self._observe("mg_direction", parameter, _agreement(plain_of(gradient), plain_of(moments[0])))
        if settings.ur_distribution and moments[1] is not None:
            update, ratio = _direction(plain_of(moments[0]), plain_of(moments[1]), state,
                                       self._reader.group(parameter.tensor))
            self._observe("update", parameter, update)
            self._observe("ratio", parameter, ratio)

    def _observe(self, quantity, parameter, value):
        series = self._watch.engine.series(quantity, parameter.stage, parameter.name)
        self._watch.observer.observe(series, value)


def _agreement(gradient, moment):
    """Returns the share of elements with the same sign on both sides; an element that is zero on one side counts half."""
    if gradient.shape != moment.shape:
        return torch.zeros((), dtype=torch.float32)
    with torch.no_grad():
        total = (torch.sign(gradient) * torch.sign(moment)).sum(dtype=torch.float64)
        return ((total / max(gradient.numel(), 1) + 1) / 2).to(torch.float32)


def _direction(average, square, state, group):
    """Adam's step without the learning rate, and the same without eps below the line."""
    first, second = group.get("betas", (0.9, 0.999))
    count = float(state.get("step", group.get("step", 1)))
    with torch.no_grad():
        corrected = average.to(torch.float32) / (1 - first ** count)
        deviation = (square.to(torch.float32) / (1 - second ** count)).sqrt()
        return corrected / (deviation + group.get("eps", 1e-8)), corrected / deviation
