# SPDX-License-Identifier: Apache-2.0
"""The hooks of TrainerMonitorV2 for PyTorch: five monitors on the same engine as TrainerMon's."""

import torch

from msprobe.core import session
from msprobe.core.monitor.engine import guarded
from msprobe.pytorch import debugger, framework

from . import parameters
from .calls import HookedModule, can_have_backward, modules_of
from .communication import Communication
from .optimizers import reader_of
from .steps import StepHooks
from .tensors import Observer
from .watch import gradient_of

_MOMENTS = ("exp_avg", "exp_avg_sq")
rank_of_process = framework.rank_of_process


class Hooks:
    """All hooks of a started monitor."""

    def __init__(self, engine, monitors, models, is_list, optimizer, micro_batches, told):
        """`monitors`: name as spelled -> its settings; told(): called after the optimizer has stepped."""
        session.bind(debugger.binding())
        self._engine = engine
        self._observer = Observer(engine, 0.0)
        self._is_list = is_list
        self._names = {name.lower(): name for name in monitors}
        self._settings = {name.lower(): settings for name, settings in monitors.items()}
        self._models = models
        self._micro_batches = micro_batches
        self._parameters = self._find_parameters()
        self._told = told
        self._optimizer = optimizer
        self._reader = None if optimizer is None else reader_of(optimizer, lambda one: gradient_of(one, True))
        self._attach()

    def has(self, monitor):
        return self._settings.get(monitor, {}).get("enabled", False)

    # ------------------------------------------------------------------ attaching

    def _find_parameters(self):
        found = {}
        for stage, model in enumerate(self._models):
            for name, tensor in model.named_parameters():
                if tensor not in found:
                    found[tensor] = parameters.Parameter(tensor, self._stage(stage), self._name(stage, name), False,
                                                         self._micro_batches)
        return found

    def _stage(self, stage):
        return stage if self._is_list else -1

    def _name(self, stage, name):
        return "%d:%s" % (stage, name) if self._is_list else name

    def _attach(self):
        self._parts = []
        if self.has("module"):
            targets = self._settings["module"].get("targets") or [""]
            for stage, name, module in modules_of(self._models):
                if any(target in name for target in targets):
                    self._parts.append(_Module(self, self._stage(stage), self._name(stage, name), module))
        if self.has("weight_grad"):
            each = self._settings["weight_grad"].get("monitor_mbs_grad", False)
            watched = {tensor: one for tensor, one in self._parameters.items() if tensor.requires_grad}
            self._parts.append(parameters.Unreduced(watched, each, True, lambda: self._engine.collecting(),
                                                    self._observe_unreduced))
            self._parts[-1].attach(self._models, [self._optimizer])
        if self.has("cc"):
            self._parts.append(Communication(self._engine, self._settings["cc"], self._communication_series))
        if self._optimizer is not None:
            self._parts.append(StepHooks(self._optimizer, self._before_step, self._after_step))

    def remove(self):
        for part in self._parts:
            guarded("removing hooks", part.remove)
        self._parts = []

    # ------------------------------------------------------------------ values

    def observe(self, monitor, stage, name, scope, value, micro_step=-1):
        series = self._engine.series(self._names[monitor], stage, name, micro_step, scope)
        self._observer.observe(series, value)

    def is_on(self):
        return self._engine.collecting()

    def _communication_series(self, name, place):
        tag = "%s/rank%d/%s" % (name, rank_of_process() or 0, place)
        return self._engine.series(self._names["cc"], -1, tag, -1, "comm")

    def _observe_unreduced(self, parameter, gradient, number, task):
        each = self._settings["weight_grad"].get("monitor_mbs_grad", False)
        self.observe("weight_grad", parameter.stage, parameter.name, "unreduced", gradient,
                     number + 1 if each else self._micro_batches)

    def _before_step(self):
        if self.is_on():
            guarded("the statistics before a step", self._measure_before)

    def _after_step(self):
        if self.is_on():
            guarded("the statistics after a step", self._measure_after)
        self._told()

    def _measure_before(self):
        self._reader.refresh()
        self.measure_gradients()
        self._measure_parameters("param_origin")

    def _measure_after(self):
        if self.has("optimizer") and self._settings["optimizer"].get("mv_distribution", True):
            for key in _MOMENTS:
                for tensor, one in self._parameters.items():
                    state = self._reader.state(tensor) if self._reader.has(tensor) else None
                    moment = self._reader.moment(tensor, state, key) if state else None
                    if moment is not None:
                        self.observe("optimizer", one.stage, "%s.%s" % (one.name, key), key, moment)
        self._measure_parameters("param_updated")

    def measure_gradients(self):
        """Measures the reduced gradients."""
        if not self.has("weight_grad"):
            return
        for tensor, one in self._parameters.items():
            gradient = gradient_of(tensor, True)
            if self._reader is not None:
                gradient = self._reader.gradient(tensor) if self._reader.has(tensor) else None
            if gradient is not None:
                self.observe("weight_grad", one.stage, one.name, "reduced", gradient, self._micro_batches)

    def _measure_parameters(self, scope):
        if self.has("param") and self._settings["param"].get("param_distribution", True):
            for tensor, one in self._parameters.items():
                self.observe("param", one.stage, one.name, scope, tensor)

    # ------------------------------------------------------------------ steps

    def without_optimizer(self):
        """Ends a step that no optimizer reports: the available values are measured now."""
        if self._optimizer is None and self.is_on():
            guarded("the statistics of a step", self.measure_gradients)
            guarded("the statistics of a step", self._measure_parameters, "param_updated")

    def fetch(self):
        self._observer.fetch()
        for part in self._parts:
            if isinstance(part, Communication):
                part.fetch()

    def step_ends(self):
        for part in self._parts:
            end = getattr(part, "step_ends", None)
            if end is not None:
                end()


class _Module(HookedModule):
    """A module of the monitor `module`: every call is a row for each tensor."""

    def __init__(self, hooks, stage, name, module):
        super().__init__(module, can_have_backward(module), before=True)
        self._hooks = hooks
        self._stage = stage
        self._name = name

    def is_on(self, module):
        return self._hooks.is_on()

    def call_begins(self, inputs):
        self._observe("forward", "input", inputs)

    def call_done(self, inputs, output):
        outputs = output if isinstance(output, (list, tuple)) else [output]
        self._observe("forward", "output", outputs)

    def backward_done(self, grad_inputs, grad_outputs):
        if self._hooks.is_on():
            self._observe("backward", "grad_input", grad_inputs)
            self._observe("backward", "grad_output", grad_outputs)

    def _observe(self, scope, word, values):
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        for index, tensor in enumerate(tensors):
            self._hooks.observe("module", self._stage, "%s.%s.%d" % (self._name, word, index), scope, tensor)
