# SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger for MindSpore's dynamic graph (PyNative)."""

import types

from msprobe.core import debugger, saving, session
from msprobe.core.common import log

from . import apis, cells, compiling, describe, framework, gradients


def _wait(call, result, args, kwargs):
    """Transfers still under way are waited for: what they leave behind is recorded at once."""
    for handle in result if isinstance(result, (list, tuple)) else (result,):
        if callable(getattr(handle, "wait", None)):
            handle.wait()
    return False


def _nothing():
    return None


def binding():
    """The objects that the extension needs. Tensors are read by describe()."""
    return types.SimpleNamespace(
        dtypes=[],
        tensor_type=framework.Tensor,
        parameter_type=framework.Parameter,
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
        make_backward=gradients.backward_of,
        asynchronous=_wait,
    )


class PrecisionDebugger(debugger.Debugger):
    """Records a training run of MindSpore. There is one in a process; its verbs find it by themselves."""

    hooks = cells.hooks
    registry = apis.registry
    saved = saving.Saved(framework.Tensor, lambda tensor: framework.requires_grad(), lambda gradient: gradient)

    def _open_session(self, config_path, text, overrides):
        session.open_session(config_path, text, overrides, "mindspore", binding(), framework.rank_of_process, "npy")

    def _follow_settings(self):
        if self._info["enabled"]:
            compiling.install()
        if not (self._info["enabled"] and self._info["records_apis"]):
            apis.primitives.restore()

    def _starting(self, model):
        if framework.is_graph_mode():
            log.warn_once("the graph mode of MindSpore is not recorded, only its dynamic graph (PYNATIVE_MODE) is")

    def _begins_recording(self, model):
        if self.registry.installed and model is not None:
            models = model if isinstance(model, (list, tuple)) else [model]
            apis.primitives.record(cell for one in models for _, cell in cells.named_cells(one))
