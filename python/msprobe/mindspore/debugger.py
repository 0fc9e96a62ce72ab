# SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger for MindSpore's dynamic graph (PyNative)."""

import types

from mindspore import nn

from msprobe.core import arguments, debugger, msadapter, saving, session
from msprobe.core.common import log

from . import apis, cells, compiling, describe, framework, free_benchmark, grad_probe, gradients, kernel_dump


__path__ = []  # releases 8.x had a package of this name: see old_paths.py


def _wait(call, result, args, kwargs):
    """Waits for transfers that are still in progress, so that their results are recorded at once."""
    for handle in result if isinstance(result, (list, tuple)) else (result,):
        if callable(getattr(handle, "wait", None)):
            handle.wait()
    return False


def _nothing():
    return None


def binding(parameter_type=framework.Parameter, make_backward=gradients.backward_of):
    """The framework objects that the extension needs. Tensors are read by describe()."""
    return types.SimpleNamespace(
        dtypes=[],
        tensor_type=framework.Tensor,
        parameter_type=parameter_type,
        data_ptr=_nothing,
        stride=_nothing,
        is_neg=_nothing,
        is_conj=_nothing,
        strided=object(),
        is_grad_enabled=framework.requires_grad,
        tracing_state=None,
        compile_context=None,
        record_type=describe.Record,
        describe=describe.describe,
        describe_named=describe.describe_named,
        make_backward=make_backward,
        asynchronous=_wait,
        call_again=free_benchmark.task.call,
    )


_TOO_LATE = ("torch is MSAdapter's, but was imported after the PrecisionDebugger was created, which records MindSpore's own "
             "functions and cells: import torch before")


class PrecisionDebugger(debugger.Debugger):
    """Records a MindSpore training run, or one of MSAdapter if `torch` is MSAdapter's. There is one per process; its
    class methods find it themselves, and raise an Exception if no debugger was made.

    Args:
        config_path: a JSON file with the configuration; by default the config.json of this package.
        task, dump_path, level, step: replace these settings of the configuration; step is a list such as [0, "5-7"].

    Raises MsprobeException if an argument or a setting is invalid; FileCheckException for config_path.
    """

    _is_of_msadapter = False
    _framework = "mindspore"
    hooks = cells.hooks
    registry = apis.registry
    free_benchmark = free_benchmark.task
    saved = saving.Saved(framework.Tensor, lambda tensor: framework.requires_grad(), lambda gradient: gradient,
                         framework.register_hook)

    @classmethod
    def _kind(cls):
        if not msadapter.is_torch():
            return cls
        from msprobe.mindtorch.debugger import PrecisionDebugger as OfMSAdapter
        return OfMSAdapter

    def _open_session(self, config_path, text, overrides):
        session.open_session(config_path, text, overrides, "mindspore", binding(), framework.rank_of_process, "npy",
                             kernel_dump.is_there())
        self._kernels = kernel_dump.opened()

    @classmethod
    @debugger.verb
    def monitor(cls, opt: nn.Cell) -> None:
        """Task grad_probe: from now on each step of the optimizer opt is a recorded step. Other tasks: no effect. Raises
        MsprobeException if opt is not a mindspore.nn.Cell."""
        cls._get_instance()._watch_steps(opt, nn.Cell, "the optimizer must be a mindspore.nn.Cell", grad_probe.watch)

    def _follow_settings(self):
        if session.dumps_kernels() and self._kernels is None:
            log.warn_once("level L2 has no effect: it must be in the configuration from the beginning, since MindSpore's runtime "
                          "reads its settings then")
        if self._info["enabled"]:
            compiling.install()
        if not (self._info["enabled"] and self._info["records_apis"]):
            apis.primitives.restore()

    def _before_start(self, model):
        if self._kernels is not None:
            self._kernels.start()

    def _stopping(self):
        if self._kernels is not None:
            self._kernels.stop()

    def _step_ended(self):
        super()._step_ended()
        if self._kernels is not None:
            self._kernels.step()

    def _told_at_end(self):
        return self._kernels.told() if self._kernels is not None else ([], [])

    def _check_model(self, model, token_range):
        if msadapter.is_torch() and not self._is_of_msadapter:
            if not all(map(self.hooks.is_supported, arguments.models_in(model))):
                raise arguments.invalid("start: " + _TOO_LATE)
            log.warn_once(_TOO_LATE)
        super()._check_model(model, token_range)

    def _starting(self, model):
        if framework.is_graph_mode():
            log.warn_once("only MindSpore's dynamic graph (PYNATIVE_MODE) is recorded, not its graph mode")

    def _begins_recording(self, model):
        if self.registry.installed:
            apis.primitives.record(cell for one in arguments.models_in(model) for cell in self._holders_in(one))

    def _holders_in(self, model):
        """The cells of a model, which may hold primitives."""
        return (cell for _, cell in cells.named_cells(model))
