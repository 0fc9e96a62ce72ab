# SPDX-License-Identifier: Apache-2.0
"""The framework-independent part of TrainerMon: records statistics of a running training, one row per step."""

from __future__ import annotations

import atexit
import os
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from msprobe.core import session
from msprobe.core.common import log

from .engine import Engine, guard, guarded

_trainers = weakref.WeakSet()


class Training:
    """Collects the arguments of set_monitor(): the stages of the models, and the optimizers."""

    def __init__(self):
        self.models = []
        self.micro_batches = []  # for each model
        self.optimizers = []
        self.tp_group = None
        self.dp_group = None

    def add(self, models, optimizers, micro_batches):
        """Adds new optimizers and returns them."""
        for model in models:
            if not any(model is known for known in self.models):
                self.models.append(model)
                self.micro_batches.append(micro_batches)
        new = [one for one in optimizers if not any(one is known for known in self.optimizers)]
        self.optimizers += new
        return new


class Trainer:
    """Records statistics of a training at each step of its optimizer. Construct it as early as possible if communication is
    watched. Call set_monitor() when model and optimizer exist.

    Args:
        config_file_path: the JSON file of the configuration (docs/monitor.md).
        process_group: the group of pipeline stages, for alerts; by default all ranks.
        params_have_main_grad: read gradients from `main_grad` where a parameter has it, as in Megatron-LM.
        opt_ty: not used.

    The constructor raises ValueError, TypeError, KeyError or AttributeError if the configuration is invalid, OSError if it cannot
    be read. The methods raise nothing but what they name: a failure to record is reported in one line.
    """

    # A front end supplies its name, and the framework-specific methods below.

    framework: Optional[str] = None

    def __init__(self, config_file_path: str, process_group: Any = None, params_have_main_grad: bool = True,
                 opt_ty: Optional[str] = None) -> None:
        session.bind(self._binding())
        known = self._rank_of_process()
        self.rank = known or 0
        self._main_gradients = params_have_main_grad
        self._dynamic = os.environ.get("DYNAMIC_MONITOR", "").lower() == "true"
        self._engine = Engine(config_file_path, dict(
            self._place(process_group), layout=1, framework=self.framework, rank=self.rank, dynamic=self._dynamic,
            distributed=known is not None))
        self._training = Training()
        self._step_hooks = []
        self._stepped = set()  # the optimizers that have stepped since the last row
        self._alert_callback = None
        self._wrapped_optimizer = None
        self._attachment = None
        self._communication = None
        self._engine.tell_warnings()
        _trainers.add(self)
        if not self._dynamic:
            self._watch_communication()

    # ------------------------------------------------------------------ what a framework adds

    def _binding(self):
        """Returns the objects of the framework that the extension needs."""
        raise NotImplementedError

    def _rank_of_process(self):
        """Returns the rank; None without communication."""
        raise NotImplementedError

    def _place(self, group):
        """Returns the pipeline stage and the ranks of its group, for alerts."""
        return {"pp_stage": 0, "group_mates": "[%d]" % self.rank}

    def _check_models(self, models):
        """Raises an exception for a model that cannot be watched."""

    def _hook_steps(self, optimizer, before, after):
        """Returns an object with remove(). It calls before(...) and after() around each step; further arguments of
        before() are passed to the attachment."""
        raise NotImplementedError

    def _make_attachment(self):
        raise NotImplementedError

    def _make_communication(self, settings):
        """Returns None by default: calls of communication are not watched."""

    def _number(self, value):
        """Returns the value in the form that scripts expect for a statistic."""
        return value

    # ------------------------------------------------------------------ as scripts call it

    def set_monitor(self, model: Any, optimizer: Any, grad_acc_steps: int = 1, tp_group: Any = None, dp_group: Any = None,
                    start_iteration: int = 0) -> None:
        """Watches a model. Further calls add more.

        Args:
            model: the model, or a list of pipeline stages.
            optimizer: the optimizer, or a list; a step ends when all of them have stepped.
            grad_acc_steps: the number of micro-batches in a step, 1 or more.
            tp_group, dp_group: the process groups of tensor and data parallelism; if given, one rank of a group reports
                gradients that all ranks of it have.
            start_iteration: the number of the first step, 0 or more.

        Raises ValueError for FSDP 1 without use_orig_params.
        """
        models = list(model) if isinstance(model, (list, tuple)) else [model]
        optimizers = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
        self._check_models(models)
        self._know_rank()
        if not self._training.models:
            self._engine.set_step(_checked("start_iteration", start_iteration, 0, 0))
        training = self._training
        training.tp_group, training.dp_group = tp_group, dp_group
        first = len(training.optimizers)
        for number, one in enumerate(training.add(models, optimizers,
                                                  _checked("grad_acc_steps", grad_acc_steps, 1, 1)), first):
            self._step_hooks.append(self._hook_steps(one, *self._told_by(number)))
        if not self._dynamic or self._attachment is not None:
            self._attach()

    def monitor_gnorm_with_ad(self, model: Any, optimizer: Any = None, grad_acc_steps: int = 1, tp_group: Any = None,
                              dp_group: Any = None, start_iteration: int = 0) -> None:
        """The old name of set_monitor(), with the same arguments model, optimizer, grad_acc_steps, tp_group, dp_group and
        start_iteration. Without optimizer it takes that of set_wrapped_optimizer()."""
        optimizer = optimizer if optimizer is not None else self._wrapped_optimizer
        if optimizer is None:
            log.warn("monitor: nothing is monitored: pass an optimizer, or give it to set_wrapped_optimizer()")
            return
        self.set_monitor(model, optimizer, grad_acc_steps, tp_group, dp_group, start_iteration)

    def set_wrapped_optimizer(self, optimizer: Any) -> None:
        """Sets the optimizer for later calls of monitor_gnorm_with_ad()."""
        self._wrapped_optimizer = optimizer

    def set_alert_callback(self, function: Optional[Callable[[List[Any]], Any]]) -> None:
        """Has function(list of alerts) called after each step that has alerts; None: no function. Its exceptions are reported."""
        self._alert_callback = function

    @property
    def ops(self) -> List[str]:
        """The statistics that are recorded, such as "norm" and "mean"; may be set."""
        return self._engine.setting("ops")

    @ops.setter
    def ops(self, value: List[str]) -> None:
        self._engine.set("ops", value)
        self._engine.tell_warnings()

    @property
    def monitoring(self) -> bool:
        """Whether hooks are attached."""
        return self._attachment is not None

    @property
    def config(self) -> Dict[str, Dict[str, Any]]:
        """The targets of the configuration: {"targets": {name: {}}}."""
        return {"targets": {key: {} for key in self._engine.setting("targets")}}

    @property
    def param2name(self) -> Dict[Any, str]:
        """The watched parameters: {parameter: "<stage>:<name>"}; empty before set_monitor()."""
        if self._attachment is None:
            return {}
        return {tensor: "%d:%s" % (one.stage, one.name) for tensor, one in self._attachment.parameters.items()}

    def generate_xy_metrics(self) -> Tuple[Dict[str, Dict[str, Any]], Dict[str, Dict[str, Any]]]:
        """Returns activations and their gradients in the current step, each as {tag: {statistic: tensor}}."""
        return self._held("actv"), self._held("actv_grad")

    def generate_wgrad_metrics(self, post_grad_dict: Any = None) -> Tuple[Dict[str, Dict[str, Any]], Dict[str, Dict[str, Any]]]:
        """Returns the gradients in the current step after and before reduction, each as {tag: {statistic: tensor}}.
        post_grad_dict is not used."""
        return self._held("grad_reduced"), self._held("grad_unreduced")

    def reload_xy(self, xy_distribution: bool = False) -> None:
        """Attaches all hooks again. Deprecated; xy_distribution is not used."""
        log.warn("monitor: reload_xy() is deprecated")
        if self._attachment is not None:
            self._attach()

    def adhoc_check(self, target_tensor: Any, module_name: str, tensor_name: str, rank_list: Optional[Sequence[int]],
                    ops_list: Optional[Sequence[str]]) -> None:
        """Writes statistics of one tensor to the file `other` of the current step.

        Args:
            target_tensor: the tensor, of any shape and a real dtype.
            module_name, tensor_name: its name is "<module_name>.<tensor_name>".
            rank_list: the ranks that write it; all if it is empty.
            ops_list: not used: the statistics are those of the configuration.
        """
        if self._attachment is not None and (not rank_list or self.rank in rank_list) and self._engine.collecting():
            guarded("adhoc_check", self._attachment.observe, 0, "%s.%s" % (module_name, tensor_name), target_tensor)

    def stop(self) -> None:
        """Removes all hooks and closes the files."""
        self.end_open_step()
        self._detach()
        for hooks in self._step_hooks:
            hooks.remove()
        self._step_hooks = []
        guarded("closing the files", self._engine.close)

    # ------------------------------------------------------------------ what happens at a step

    def _told_by(self, number):
        """Returns before() and after() for the hooks of an optimizer."""
        return (lambda *more: self._before_step(number, *more)), (lambda: self._after_step(number))

    def _before_step(self, number, *more):
        if number in self._stepped:
            self._end_step()  # another optimizer has skipped this step
        if self._attachment is None:
            return
        if self._attachment.structure is not None:
            self._attachment.structure.write_and_leave(self._engine, self.rank)
        if self._communication is not None:
            self._communication.log_and_leave(self._engine.setting("step"), self.rank)
        if self._engine.collecting():
            guarded("the statistics before a step", self._attachment.before_step, number, *more)

    def _after_step(self, number):
        if self._attachment is not None and self._engine.collecting():
            guarded("the statistics after a step", self._attachment.after_step, number)
        self._stepped.add(number)
        if len(self._stepped) == len(self._training.optimizers):
            self._end_step()

    def end_open_step(self) -> None:
        """Ends the step if only some of several optimizers have stepped and the others will not."""
        if self._stepped:
            self._end_step()

    def _end_step(self):
        self._stepped.clear()
        if not self._engine.is_open():
            return
        try:
            if self._attachment is not None:
                guarded("fetching statistics", self._attachment.fetch)
            if self._communication is not None:
                guarded("fetching statistics", self._communication.fetch)
            result = self._engine.step_end()
            if self._attachment is not None:
                self._attachment.step_ends()
            if self._communication is not None:
                self._communication.step_ends()
            self._follow(result)
        except Exception:
            guard("ending a step")

    def _follow(self, result):
        if result["alerts"] and self._alert_callback is not None:
            guarded("the callback of alerts", self._alert_callback, self._engine.alerts())
        if result["finished"]:
            log.info("monitor: the last requested step is over")
            self._detach()
        if self._dynamic:
            changed = self._engine.reload()
            if changed:
                self._detach()
            if changed == 1:
                self._watch_communication()
                self._attach()
        self._engine.tell_warnings()

    # ------------------------------------------------------------------

    def _attach(self):
        if self._attachment is not None:
            self._attachment.remove()
            self._attachment = None
        self._attachment = guarded("hooking the model", self._make_attachment)

    def _detach(self):
        if self._attachment is not None:
            self._attachment.remove()
            self._attachment = None
        if self._communication is not None:
            self._communication.remove()
            self._communication = None

    def _watch_communication(self):
        settings = self._engine.setting("cc_distribution")
        if settings.get("enable"):
            self._communication = guarded("watching communication", self._make_communication, settings)

    def _know_rank(self):
        rank = self._rank_of_process()
        if rank is not None and rank != self.rank:  # processes may have found each other in the meantime
            self.rank = rank
            guarded("getting the rank", self._engine.set_rank, rank)

    def _held(self, quantity):
        return {tag: {key: self._number(value) for key, value in figures.items() if isinstance(value, (int, float))}
                for tag, figures in self._engine.held(quantity, self.rank)}


def _at_exit():
    for trainer in list(_trainers):
        trainer.end_open_step()


atexit.register(_at_exit)


def _checked(name, value, least, default):
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    log.warn("monitor: %s is not an integer of at least %d: it is %d" % (name, least, default))
    return default
