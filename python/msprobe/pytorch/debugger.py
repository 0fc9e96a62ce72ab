# SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger for PyTorch, and module_dump beside it."""

from __future__ import annotations

import sys
import types

import torch

from msprobe import _native
from msprobe.core import arguments, closing, debugger, saving, session, torch_apis
from msprobe.core.describe import Record
from msprobe.core.module_dump import ModuleDump

from . import apis, compiled, compiling, describe, device, distributed, framework, free_benchmark, gpu, grad_probe
from . import gradients, kernel_dump, loading, megatron, modules, online_check, optimizers
from . import training, triton_kernels, versions


__path__ = []  # releases 8.x had a package of this name: see old_paths.py


def _follow_asynchronous(call, result, args, kwargs):
    return distributed.follow(call, result, args, kwargs)


_task = [free_benchmark.task]  # that makes the calls which the extension leaves to the front end


def _make_call(*arguments):
    return _task[0].call(*arguments)


def binding():
    """The framework objects that the extension needs."""
    base = torch._C._TensorBase
    return types.SimpleNamespace(
        dtypes=framework.dtype_table(),
        tensor_type=torch.Tensor,
        parameter_type=torch.nn.Parameter,
        data_ptr=base.data_ptr,
        stride=base.stride,
        storage_offset=base.storage_offset,
        is_neg=base.is_neg,
        is_conj=base.is_conj,
        strided=torch.strided,
        is_grad_enabled=framework.is_grad_enabled,
        tracing_state=torch._C._get_tracing_state,
        compile_context=framework.find_compile_context(),
        record_type=Record,
        describe=describe.describe,
        describe_named=describe.describe_named,
        has_override=getattr(torch._C, "_has_torch_function", None),
        call_unwrapped=apis.registry.call_unwrapped,
        plain_functions=describe.PlainFunctions,
        asynchronous=_follow_asynchronous,
        call_again=_make_call,
        node_of_change=gradients.node_of_change,
        get_device=base.get_device,
        is_capturing=gpu.is_capturing,
        current_stream=gpu.current_stream,
        gpu_failed=gpu.failed,
    )


class PrecisionDebugger(debugger.Debugger):
    """Records a PyTorch training run. There is one per process; its class methods find it themselves.

    start(model) begins to record, stop() ends that, and step() ends a step. The methods raise an Exception if no debugger was
    made.

    Args:
        config_path: a JSON file with the configuration; by default the config.json of this package.
        task, dump_path, level, step: replace these settings of the configuration; step is a list such as [0, "5-7"].

    Raises MsprobeException if an argument or a setting is invalid; FileCheckException for config_path.
    """

    _framework = "pytorch"
    hooks = modules.hooks
    registry = apis.registry
    free_benchmark = free_benchmark.task
    saved = saving.Saved(torch.Tensor, lambda tensor: tensor.requires_grad, framework.detach)

    def _open_session(self, config_path, text, overrides):
        self._custom_operators = _CustomOperators()
        session.open_session(config_path, text, overrides, "pytorch", binding(), framework.rank_of_process,
                             dumps_kernels=kernel_dump.is_there())
        kernel_dump.task.reset()
        if session.dumps_kernels():
            kernel_dump.task.load()
        torch_apis.use_lists()
        self._loading = None
        _task[0] = online_check.task if self._is_online_check() else free_benchmark.task

    @classmethod
    @debugger.verb
    def monitor(cls, model: torch.nn.Module) -> None:
        """Task grad_probe: from now on each step of an optimizer is a recorded step, with the gradients of model. Other tasks:
        no effect. Raises MsprobeException if model is not a torch.nn.Module."""
        cls._get_instance()._watch_steps(model, torch.nn.Module, "the model must be a torch.nn.Module", grad_probe.watch)

    @classmethod
    def _is_online_check(cls):
        return cls._is_task("acc_check")

    def _outcome(self, info, steps):
        if session.dumps_kernels():
            return kernel_dump.task.outcome(steps)
        server = online_check.task.server() if self._is_online_check() else None
        if server is None:
            return super()._outcome(info, steps)
        return "sent %s of %s to %s" % (closing.counted(online_check.task.judged, "call", "calls"), steps, server)

    def _recorded(self, info):
        if self._is_online_check():
            return closing.counted(online_check.task.judged, "judged call", "judged calls")
        return super()._recorded(info)

    def _follow_settings(self):
        self._loading = loading.followed(self._loading)
        if self._is_online_check() and self._info["enabled"]:
            online_check.task.configure()
        if session.dumps_kernels():
            kernel_dump.task.configure()
            _task[0] = kernel_dump.task
        if self._info["enabled"] and self._info["records_apis"]:
            self._custom_operators.register()
        if self._info["enabled"]:
            compiling.install(self._info["records_apis"])
            distributed.install()
            self._install_for_optimizers()

    def _install_for_optimizers(self):
        if session.LEVELS[self._info["level"]] in ("L0", "L1", "mix"):
            optimizers.install()

    def _before_start(self, model):
        if self._loading is not None:
            self._loading.start(model)

    def _stopping(self):
        if self._loading is not None:
            self._loading.stop()

    def _why_nothing(self):
        return compiling.why_nothing()

    def _told_at_end(self):
        told = self._loading.told() if self._loading is not None else []
        unknown = torch_apis.without_effect(self.registry.namespaces) if self._info["records_apis"] else []
        missing = kernel_dump.task.missing() if session.dumps_kernels() else []
        return told[:1], told[1:] + unknown + missing

    def _starting(self, model):
        if self._info["records_apis"]:
            self._custom_operators.register()
        if self._info["records_modules"] and model is not None:
            megatron.install()
        if model is not None:
            compiling.tell(arguments.models_in(model))
        self._install_for_optimizers()

    def _end(self):
        if self._is_online_check():
            online_check.task.finish()
        super()._end()

    def _count_processes(self):
        return framework.count_of_processes()

    def _prepare(self):
        framework.make_tables()
        versions.install()
        torch_apis.find_listed(apis.registry)

    def _begins_recording(self, model):
        if self._is_online_check():
            online_check.task.know(arguments.models_in(model))
            online_check.task.begin_step()
        if self.registry.installed:
            triton_kernels.install()
            for one in arguments.models_in(model):
                self.registry.look_into(one)
        try:
            _native.call_quietly(training.begin, arguments.models_in(model))
        except Exception:
            session.guard("describing a model")

    def _dumps_module(self):
        return _module_dump.active()

    def _pauses_recording(self):
        triton_kernels.remove()

    def _finish_pending(self):
        compiled.finish()
        device.drain()
        training.write()

    def _ending_step(self):
        if self._is_online_check():
            online_check.task.end_step(_native.info()["step"])
        distributed.forget_pending()

    def _step_ended(self):
        super()._step_ended()
        if self._loading is not None:
            self._loading.end_step()
        megatron.forget()
        optimizers.forget()


# ---------------------------------------------------------------------- operators of libraries


class _CustomOperators:
    """Operators of the namespaces of torch.ops that the configuration names."""

    def __init__(self):
        self._known = set()
        self._seen = None

    def register(self):
        # Asking for all operators takes long; new ones come with modules and libraries.
        seen = (len(sys.modules), len(getattr(torch.ops, "loaded_libraries", ())),
                _native.setting("custom_op_namespaces"))
        if seen == self._seen:
            return
        self._seen = seen
        spaces = session.setting("custom_op_namespaces")
        if spaces is None:
            spaces = ["_C_ascend"]
        for space in spaces:
            if not hasattr(torch.ops, space):
                continue
            for name in self._operators(space):
                if (space, name) in self._known:
                    continue
                self._known.add((space, name))
                owner = getattr(torch.ops, space)
                if hasattr(owner, name):
                    apis.registry.add_found(owner, name, space)

    @staticmethod
    def _operators(space):
        try:
            schemas = torch._C._jit_get_all_schemas()
        except (AttributeError, RuntimeError):
            return []
        prefix = space + "::"
        return sorted({schema.name[len(prefix):] for schema in schemas if schema.name.startswith(prefix)})


# ---------------------------------------------------------------------- module_dump

_module_dump = ModuleDump(PrecisionDebugger, "Module")


@debugger.verb
def module_dump(module: torch.nn.Module, dump_name: str) -> None:
    """Records only this module from now on, under the name dump_name, until module_dump_end(). Raises MsprobeException if an
    argument is invalid or no PrecisionDebugger was made."""
    _module_dump.begin(module, dump_name)


@debugger.verb
def module_dump_end() -> None:
    """Ends module_dump(): all modules and operations are recorded again. Raises MsprobeException if no PrecisionDebugger was
    made."""
    _module_dump.end()
