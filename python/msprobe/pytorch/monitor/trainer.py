# SPDX-License-Identifier: Apache-2.0
"""TrainerMon for PyTorch."""

import torch

from msprobe.core.monitor.engine import guard
from msprobe.core.monitor.trainer import Trainer
from msprobe.pytorch import debugger, framework

from . import fsdp
from .attachment import Attachment
from .communication import Communication
from .steps import StepHooks


class TrainerMon(Trainer):
    framework = "pytorch"

    def _binding(self):
        return debugger.binding()

    def _rank_of_process(self):
        return framework.rank_of_process()

    def _place(self, group):
        if framework.rank_of_process() is None:
            return super()._place(group)
        distributed = torch.distributed
        try:
            if not isinstance(group, distributed.ProcessGroup):
                group = distributed.group.WORLD
            return {"pp_stage": distributed.get_rank(group),
                    "group_mates": str(distributed.get_process_group_ranks(group))}
        except Exception:
            guard("getting the rank in a process group")
            return super()._place(group)

    def _check_models(self, models):
        fsdp.check(models)

    def _hook_steps(self, optimizer, before, after):
        return StepHooks(optimizer, before, after)

    def _make_attachment(self):
        return Attachment(self._engine, self._training, self._main_gradients)

    def _make_communication(self, settings):
        return Communication(self._engine, settings,
                             lambda name, place: self._engine.series("comm", 0, name, -1, place))

    def _number(self, value):
        return torch.tensor(value)
