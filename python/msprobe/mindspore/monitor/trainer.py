# SPDX-License-Identifier: Apache-2.0
"""TrainerMon for MindSpore's dynamic graph."""

from msprobe.core.common import log
from msprobe.core.monitor.trainer import Trainer
from msprobe.mindspore import debugger, framework

from .attachment import Attachment
from .steps import StepHooks


class TrainerMon(Trainer):
    framework = "mindspore"

    def _binding(self):
        return debugger.binding()

    def _rank_of_process(self):
        return framework.rank_of_process()

    def _check_models(self, models):
        if framework.is_graph_mode():
            log.warn_once("monitor: only MindSpore's dynamic graph (PYNATIVE_MODE) runs hooks, not its graph mode")

    def _hook_steps(self, optimizer, before, after):
        return StepHooks(optimizer, before, after)

    def _make_attachment(self):
        return Attachment(self._engine, self._training)

    def _make_communication(self, settings):
        log.warn_once("monitor: cc_distribution has no effect with MindSpore")
