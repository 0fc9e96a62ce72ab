# SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger for MSAdapter: MindSpore's, with the functions and modules of PyTorch."""

from msprobe.core import session, torch_apis
from msprobe.core.arguments import models_in
from msprobe.mindspore import compiling, debugger, kernel_dump

from . import apis, framework, gradients, modules


class PrecisionDebugger(debugger.PrecisionDebugger):
    _is_of_msadapter = True
    hooks = modules.hooks
    registry = apis.registry

    def _open_session(self, config_path, text, overrides):
        session.open_session(config_path, text, overrides, "mindtorch",
                             debugger.binding(framework.Parameter, gradients.backward_of), framework.rank_of_process, "npy",
                             kernel_dump.is_there())
        self._kernels = kernel_dump.opened()
        compiling.use(apis.registry)
        torch_apis.use_lists()

    def _prepare(self):
        torch_apis.find_listed(self.registry)

    def _begins_recording(self, model):
        super()._begins_recording(model)
        gradients.writes.install()
        for one in models_in(model):
            self.registry.look_into(one)

    def _pauses_recording(self):
        gradients.writes.remove()

    def _holders_in(self, model):
        return model.modules()
