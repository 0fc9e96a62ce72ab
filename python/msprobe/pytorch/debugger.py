# SPDX-License-Identifier: Apache-2.0
"""PrecisionDebugger, and module_dump beside it."""

import functools
import json
import sys
import threading

import torch

from msprobe import _native
from msprobe.core.common import log
from msprobe.core.common.exceptions import FileCheckException, MsprobeException

from . import apis, collector, compiling, device, distributed, megatron, modules, optimizers, saving, triton_kernels, versions

_TASKS = ("tensor", "statistics", "overflow_check", "acc_check", "structure", "diff_check", "exception_dump",
          "nan_check")


def _invalid(text):
    return MsprobeException(MsprobeException.INVALID_PARAM_ERROR, text)


def _verb(method):
    """One of these at a time. In a child of the process with the session they do nothing."""
    @functools.wraps(method)
    def serialised(*args, **kwargs):
        if collector.in_child():
            return None
        with collector.lock:
            return method(*args, **kwargs)
    return serialised


class PrecisionDebugger:
    """Records a training run. There is one in a process; its verbs find it by themselves."""

    _instance = None
    _creation = threading.Lock()

    def __new__(cls, config_path=None, task=None, dump_path=None, level=None, step=None):
        with cls._creation:
            if cls._instance is None:
                made = super().__new__(cls)
                made._create(config_path, task, dump_path, level, step)
                cls._instance = made
            return cls._instance

    def __init__(self, config_path=None, task=None, dump_path=None, level=None, step=None):
        pass  # what is given to a second construction does not count

    def _create(self, config_path, task, dump_path, level, step):
        _check_constructor(config_path, task, dump_path, level, step)
        text = None
        if config_path is None:
            text = json.dumps({"dump_path": "./dump_path"} if not dump_path else {})
        collector.open_session(config_path, text, {"task": task, "dump_path": dump_path, "level": level, "step": step})
        self._first_start = True
        self._token_range = None
        self._models = None
        self._custom_operators = _CustomOperators()
        collector.at_end(_drain)
        self._apply_settings()

    def _apply_settings(self):
        """Wraps what the settings ask for; also after they have changed."""
        self._info = _native.info()
        if self._info["enabled"] and self._info["records_apis"]:
            apis.registry.install()
            triton_kernels.install()
            self._custom_operators.register()
        else:
            apis.registry.remove()
            triton_kernels.remove()
        if self._info["enabled"]:
            compiling.install()
            versions.install()
            distributed.install()
            if collector.LEVELS[self._info["level"]] == "mix":
                optimizers.install()
        if not self._info["records_modules"]:
            modules.detach_all()

    @classmethod
    def _get_instance(cls):
        if cls._instance is None:
            raise Exception("PrecisionDebugger instance is not created.")
        return cls._instance

    # ------------------------------------------------------------------ verbs

    @classmethod
    @_verb
    def start(cls, model=None, token_range=None, rank_id=None, scheduled_tokens=None):
        self = cls._get_instance()
        self._reload()
        _check_token_range(token_range)
        _check_rank(rank_id)
        self._check_model(model, token_range)
        if not self._info["enabled"]:
            collector.update_switches(False)
            return
        if collector.LEVELS[self._info["level"]] == "debug":
            return
        if self._info["records_apis"]:
            self._custom_operators.register()
        if rank_id is not None:
            collector.know_rank(rank_id)
        collector.discover_rank()
        if self._info["records_modules"] and model is not None:
            modules.attach(model)
            megatron.install()
        self._set_tokens(scheduled_tokens)
        decision, first_time = collector.attempted(_native.start) or (1, 0)
        if decision == 2 and first_time:
            log.info("all steps that were asked for are recorded")
        if decision == 0:
            self._install_token_range(model, token_range)
            self._announce()
        collector.update_switches(backward=decision == 0)

    @classmethod
    @_verb
    def stop(cls):
        self = cls._get_instance()
        collector.discover_rank()
        collector.forward_switch[0] = False
        _drain()
        collector.attempted(_native.stop)
        collector.update_switches()
        self._reload()

    @classmethod
    def forward_backward_dump_end(cls):
        """The former name of stop()."""
        cls.stop()

    @classmethod
    @_verb
    def step(cls):
        self = cls._get_instance()
        collector.discover_rank()
        distributed.forget_pending()
        _drain()
        collector.attempted(_native.step)
        modules.forget_calls()
        megatron.forget()
        optimizers.forget()
        # Late gradients of this step belong to the next one.
        collector.update_switches(backward=collector.backward_switch[0])
        self._reload()

    @classmethod
    @_verb
    def save(cls, variable, name, save_backward=True):
        self = cls._get_instance()
        self._reload()
        if self._info["enabled"] and collector.LEVELS[self._info["level"]] == "debug":
            if collector.TASKS[self._info["task"]] in ("tensor", "statistics"):
                saving.save(variable, name, save_backward)

    @classmethod
    @_verb
    def set_init_step(cls, step):
        cls._get_instance()
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise _invalid("set_init_step: the step must be a whole number, 0 or more")
        collector.checked(_native.set_init_step, step)

    @classmethod
    @_verb
    def register_custom_api(cls, module, api, api_prefix=None):
        self = cls._get_instance()
        if not hasattr(module, str(api)):
            raise _invalid("register_custom_api: %r has no attribute %r" % (module, api))
        if api_prefix is None:
            api_prefix = getattr(module, "__name__", "Custom")
        if not isinstance(api_prefix, str):
            raise _invalid("register_custom_api: api_prefix must be a string")
        if self._info["enabled"]:
            apis.registry.add_custom(module, api, api_prefix)

    @classmethod
    @_verb
    def restore_custom_api(cls, module, api):
        cls._get_instance()
        if not hasattr(module, str(api)):
            raise _invalid("restore_custom_api: %r has no attribute %r" % (module, api))
        apis.registry.remove_custom(module, api)

    # ------------------------------------------------------------------ parts of start()

    def _reload(self):
        if not self._info["reloads"]:
            return
        status, changed, text = collector.checked(_native.reload)
        if not changed:
            return
        if status < 0:
            log.warn("the changed configuration cannot be used, nothing is recorded: " + text)
        self._apply_settings()
        collector.update_switches(backward=collector.backward_switch[0] and bool(self._info["enabled"]))

    def _check_model(self, model, token_range):
        needs_model = self._info["records_modules"] or token_range is not None
        if model is None:
            if needs_model:
                raise _invalid("start: a model is needed for level L0 or mix, and for token_range")
            return
        for one in model if isinstance(model, (list, tuple)) else [model]:
            if not modules.is_supported(one):
                raise _invalid("start: the model must be a torch.nn.Module or a list of them, not %s" % type(one))
        if isinstance(model, (list, tuple)) and not model and needs_model:
            raise _invalid("start: the list of models is empty")

    def _set_tokens(self, scheduled_tokens):
        if scheduled_tokens is None:
            return
        wanted = collector.setting("section.request_id")
        if not wanted:
            return
        begin = 0
        for request, count in scheduled_tokens.items():
            if str(request) == wanted:
                collector.checked(_native.set_tokens, begin, begin + int(count))
                return
            begin += int(count)
        collector.checked(_native.set_tokens, -1, -1)

    def _install_token_range(self, model, token_range):
        if token_range is None or self._token_range is not None:
            return
        if isinstance(model, (list, tuple)):
            if len(model) > 1:
                log.warn("token_range counts the calls of the first model only")
            model = model[0]
        self._token_range = _TokenRange(model, token_range)
        _native.set_recording(0)

    def _announce(self):
        if self._first_start:
            self._first_start = False
            log.info("recording %s at level %s to %s" % (
                collector.TASKS[self._info["task"]], collector.LEVELS[self._info["level"]],
                collector.setting("dump_path")))


def _drain():
    try:
        device.drain()
    except Exception:
        collector.guard("fetching results from a device")


# ---------------------------------------------------------------------- checks of arguments


def _check_constructor(config_path, task, dump_path, level, step):
    if config_path is not None:
        if not isinstance(config_path, str):
            raise FileCheckException(FileCheckException.INVALID_FILE_ERROR, "config_path must be a string")
        if not config_path.endswith(".json"):
            raise FileCheckException(FileCheckException.INVALID_FILE_ERROR,
                                     "config_path must name a .json file: " + config_path)
    if task is not None and task not in _TASKS:
        raise _invalid("task must be one of %s" % ", ".join(_TASKS))
    if dump_path is not None and not isinstance(dump_path, str):
        raise _invalid("dump_path must be a string")
    if level is not None and level not in collector.LEVELS:
        raise _invalid("level must be one of %s" % ", ".join(collector.LEVELS))
    if step is not None and not isinstance(step, list):
        raise _invalid("step must be a list")


def _check_token_range(token_range):
    if token_range is None:
        return
    if not isinstance(token_range, (list, tuple)) or len(token_range) != 2:
        raise _invalid("token_range must be a list or tuple of two numbers")
    begin, end = token_range
    if any(isinstance(number, bool) or not isinstance(number, int) for number in token_range):
        raise _invalid("token_range must hold whole numbers")
    if not 0 <= begin <= end:
        raise _invalid("token_range must be [begin, end] with 0 <= begin <= end")


def _check_rank(rank_id):
    if rank_id is not None and (isinstance(rank_id, bool) or not isinstance(rank_id, int) or rank_id < 0):
        raise _invalid("rank_id must be a whole number, 0 or more")


# ---------------------------------------------------------------------- token_range


class _TokenRange:
    """Counts the calls of a model: recording goes on only from one to another."""

    def __init__(self, model, token_range):
        self._begin, self._end = token_range
        self._count = 0
        self._handle = model.register_forward_pre_hook(_TokenHook(self))

    def next(self):
        if self._count == self._begin:
            _native.set_recording(1)
        elif self._count == self._end + 1:
            _native.set_recording(0)
        self._count += 1
        collector.update_switches()


class _TokenHook(modules._Hook):
    __slots__ = ()

    def __call__(self, module, args):
        try:
            self.hooked.next()
        except Exception:
            collector.guard("counting tokens")


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
        spaces = collector.setting("custom_op_namespaces")
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
                    apis.registry.add_custom(owner, name, space)

    @staticmethod
    def _operators(space):
        try:
            schemas = torch._C._jit_get_all_schemas()
        except (AttributeError, RuntimeError):
            return []
        prefix = space + "::"
        return sorted({schema.name[len(prefix):] for schema in schemas if schema.name.startswith(prefix)})


# ---------------------------------------------------------------------- module_dump


_dumped = []  # the module of module_dump(), and whether the functions were wrapped


@_verb
def module_dump(module, dump_name):
    """From now on only this module is recorded, under this name."""
    if not modules.is_supported(module):
        raise _invalid("module_dump: the module must be a torch.nn.Module, not %s" % type(module))
    if not isinstance(dump_name, str):
        raise _invalid("module_dump: the name must be a string")
    _debugger_for_modules()
    if modules.is_hooked(module):
        log.info("module_dump: the module is recorded already, since it was given to start()")
        return
    if not _dumped:
        _dumped.append(apis.registry.installed)
    apis.registry.remove()
    modules.hook(module, "Module.%s.%s" % (dump_name, type(module).__name__))
    _dumped.append(module)


@_verb
def module_dump_end():
    """Ends what module_dump() began."""
    _debugger_for_modules()
    if not _dumped:
        return
    wrapped = _dumped.pop(0)
    for module in _dumped:
        modules.unhook(module)
    _dumped.clear()
    if wrapped:
        apis.registry.install()


def _debugger_for_modules():
    if PrecisionDebugger._instance is None:
        raise MsprobeException(MsprobeException.INTERFACE_USAGE_ERROR,
                               "module_dump needs a PrecisionDebugger that was created before")


