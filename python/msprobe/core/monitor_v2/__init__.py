# SPDX-License-Identifier: Apache-2.0
"""TrainerMonitorV2: five monitors, each with its own file, for any framework."""

from __future__ import annotations

import importlib
from typing import Any, Dict, Optional

from msprobe.core.common import log
from msprobe.core.monitor.engine import Engine, guard, guarded

__all__ = ["TrainerMonitorV2"]

_FRONT_ENDS = {"pytorch": "msprobe.pytorch.monitor.v2"}


class TrainerMonitorV2:
    """Records statistics of a training with up to five monitors. Call start() when model and optimizer exist; then each step
    of the optimizer, or each call of step(), is a step.

    Args:
        config_path: the JSON file of the configuration.
        fr: the framework, "pytorch"; by default that of the configuration.

    Raises ValueError for a framework without support. The methods raise nothing: failures are reported.
    """

    def __init__(self, config_path: str, fr: Optional[str] = None) -> None:
        self._engine = Engine(config_path, {"layout": 2, "framework": fr or "", "rank": 0})
        self.framework = self._engine.setting("framework")
        name = _FRONT_ENDS.get(self.framework)
        if name is None:
            raise ValueError("[monitor_v2] Unsupported framework '%s'" % self.framework)
        self._front_end = importlib.import_module(name)
        self._hooks: Any = None
        self._follows_optimizer = False
        self._engine.tell_warnings()

    def start(self, model: Any = None, optimizer: Any = None, **context: Any) -> None:
        """Attaches the hooks to model, which may be a list, and to optimizer. context: grad_acc_steps or micro_batch_number, the
        number of micro-batches in a step."""
        is_list = isinstance(model, (list, tuple))
        models = list(model) if is_list else [] if model is None else [model]
        rank = self._front_end.rank_of_process()
        if rank is not None:
            self._engine.set_rank(rank)
        monitors = self._engine.setting("monitors")
        self._follows_optimizer = optimizer is not None and self._engine.setting("patch_optimizer_step")
        self._remove_hooks()
        self._hooks = guarded("hooking the model", self._front_end.Hooks, self._engine, monitors, models, is_list,
                              optimizer, _micro_batches(monitors, context), self._optimizer_stepped)

    def step(self) -> None:
        """Ends a step, unless the optimizer's steps do so."""
        if self._follows_optimizer:
            log.warn_once("monitor: step() does nothing: each step of the optimizer ends a step of the monitor")
            return
        if self._hooks is not None:
            self._hooks.without_optimizer()
        self._end_step()

    def stop(self) -> None:
        """Removes the hooks and closes the files."""
        self._remove_hooks()
        guarded("closing the files", self._engine.close)

    def _optimizer_stepped(self) -> None:
        if self._follows_optimizer:
            self._end_step()

    def _end_step(self) -> None:
        if not self._engine.is_open():
            return
        try:
            if self._hooks is not None:
                guarded("fetching statistics", self._hooks.fetch)
            result = self._engine.step_end()
            if self._hooks is not None:
                self._hooks.step_ends()
            if result["finished"]:
                self._remove_hooks()
            self._engine.tell_warnings()
        except Exception:
            guard("ending a step")

    def _remove_hooks(self) -> None:
        if self._hooks is not None:
            self._hooks.remove()
            self._hooks = None


def _micro_batches(monitors: Dict[str, Dict[str, Any]], context: Dict[str, Any]) -> int:
    """The first positive number that the configuration or the caller gives."""
    settings: Dict[str, Any] = next((one for name, one in monitors.items() if name.lower() == "weight_grad"), {})
    values = [source.get(key) for source in (settings, context) for key in ("micro_batch_number", "grad_acc_steps")]
    return next((one for one in values if isinstance(one, int) and not isinstance(one, bool) and one > 0), 1)
