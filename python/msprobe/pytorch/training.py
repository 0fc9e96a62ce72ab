# SPDX-License-Identifier: Apache-2.0
"""Collects the facts about a step that dump.json has besides its calls: optimizers and their settings, tied parameters,
the inputs of the models, and settings of PyTorch."""

import itertools
import json
import math
import weakref

import torch

from msprobe import _native
from msprobe.core import session, torch_flags
from msprobe.core.hooks import Hook

from . import compiled, device, framework

# The parts of a parameter's name that come from wrappers and say nothing about the model.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module")

_NORM_DTYPES = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float32,
                torch.float64: torch.float64}

_models = []      # weak references to the models of start()
_names = {}       # of the current step: see _parameter_names()
_optimizers = []  # descriptions of optimizers in this step
_loss_scale = {}  # in this step
_flags = {}       # settings of PyTorch at the beginning of the step
_changed = [False]  # whether there is something new since write()
_devices = []     # as written in this step
_inputs = []      # in this step: the tensors of each call of a model
_hooked = weakref.WeakSet()  # models whose calls are observed
_MOST_CALLS = 64
_MOST_TENSORS = 64


def begin(models):
    """Called when recording with these models begins or continues."""
    known = [reference() for reference in _models]
    if len(models) != len(known) or any(one is not two for one, two in zip(models, known)):
        _models[:] = [weakref.ref(model) for model in models]
        _names.clear()
        for model in models:
            _watch(model)
    if not _flags:
        _flags.update(torch_flags.read())
        _changed[0] = True
    if not _names:
        _names.update(_parameter_names())
        if _names:
            _changed[0] = True


def note(optimizer):
    """Called before an optimizer makes a step."""
    _optimizers.append(_described(optimizer))
    _changed[0] = True


def note_scaler(scaler):
    """Called before a torch.amp.GradScaler updates its scale by its findings in the gradients of this step."""
    scale = getattr(scaler, "_scale", None)
    if scale is None or not scaler.is_enabled():
        return
    found = [value for state in scaler._per_optimizer_states.values()
             for value in state["found_inf_per_device"].values()]
    _loss_scale.update(scale=_plain(scale.cpu()), skipped=any(value.item() > 0 for value in found))
    _changed[0] = True


def _watch(model):
    """Observes the calls of the model as a whole, for which there is no entry."""
    # In inference, such a layer uses another code path if it has a hook.
    if model in _hooked or isinstance(model, (torch.jit.ScriptModule, torch.nn.TransformerEncoderLayer)):
        return
    _hooked.add(model)
    more = {"with_kwargs": True} if framework.HAS_HOOKS_WITH_KWARGS else {}
    model.register_forward_pre_hook(_Taken(None, model), **more)


class _Taken(Hook):
    """Called with the arguments of a model."""

    __slots__ = ()

    @compiled.leave_alone
    def __call__(self, model, args, kwargs=None):
        # This test comes first: otherwise a compiler would take the switch for part of the model, and compile anew when it
        # changes.
        if framework.is_compiling():
            return
        if not session.forward_switch[0] or len(_inputs) >= _MOST_CALLS or torch._C._get_tracing_state() is not None:
            return
        try:
            _native.call_quietly(_note_inputs, args, kwargs)
        except Exception:
            session.guard("describing the inputs of the model")


def _note_inputs(args, kwargs):
    _inputs.append([_numbers(tensor) for tensor in itertools.islice(_tensors((args, kwargs)), _MOST_TENSORS)])
    _changed[0] = True


def _tensors(value):
    """Yields the tensors in lists, tuples and dictionaries, in order."""
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)


def _numbers(tensor):
    described = {"dtype": str(tensor.dtype), "shape": list(tensor.shape)}
    if tensor.layout != torch.strided or tensor.device.type == "meta" or device.is_captured(tensor):
        return described
    if not framework.has_storage(tensor):
        return described
    try:
        measured = device.measure(tensor.detach())
        wide = measured[2].dtype if measured is not None else None
        numbers = torch.stack([part.to(wide) for part in measured]).tolist() if measured is not None else []
    except RuntimeError:  # inside a transformation, such as torch.func.vmap: there are no numbers yet
        numbers = []
    described.update(zip(("Max", "Min", "Mean", "Norm"), (_plain(number) for number in numbers)))
    return described


def forget():
    """Called when the step is over."""
    _changed[0] = False
    _optimizers.clear()
    _loss_scale.clear()
    _inputs.clear()
    _flags.clear()
    _names.clear()
    _devices.clear()
    device.types.clear()


def write():
    """Passes the new facts to the extension."""
    devices = sorted(device.types) or ["cpu"]
    if not _changed[0] and (not _devices or devices == _devices):
        return
    _changed[0] = False
    _devices[:] = devices
    description = {"optimizers": [{**one, "groups": [_named(group, _names) for group in one["groups"]]}
                                  for one in _optimizers]}
    description["devices"] = devices
    if _flags:
        description["torch_flags"] = _flags
    if _inputs:
        description["inputs"] = _inputs
    if _loss_scale:
        description["loss_scale"] = _loss_scale
    if _names:
        description["tied_parameters"] = [one for one in _names.values() if len(one) > 1]
    # Each member is on one line, because the fast part of Python's json does not write indented values.
    members = ",\n  ".join('"%s": %s' % (key, json.dumps(value)) for key, value in description.items())
    _native.describe_training("{\n  %s\n }" % members)


def _parameter_names():
    """Returns all names of each parameter of the models: {id(parameter): [name, ...]}."""
    models = [reference() for reference in _models]
    names = {}
    for index, model in enumerate(models):
        if model is None:
            continue
        for path, module in model.named_modules(remove_duplicate=False):
            for name, parameter in module._parameters.items():
                if parameter is None:
                    continue
                parts = [part for part in path.split(".") if part and part not in _WRAPPERS]
                parts = parts[1:] if parts[:1] == ["module"] else parts
                parts.append(name)
                full = ".".join([str(index)] * (len(models) > 1) + parts)
                known = names.setdefault(id(parameter), [])
                if full not in known:
                    known.append(full)
    return names


def _named(group, names):
    return {**group, "parameters": [names.get(identity, [None])[0] for identity in group["parameters"]]}


def _described(optimizer):
    kind = type(optimizer)
    groups = []
    for group in optimizer.param_groups:
        parameters = list(group.get("params", ()))
        groups.append({
            "settings": {key: value for key, value in ((key, _plain(value)) for key, value in group.items()
                                                        if key != "params") if value is not _UNKNOWN},
            "steps": _steps(optimizer, parameters),
            "parameters": [id(parameter) for parameter in parameters],
            "gradient_norms": _unscaled(optimizer, _norms([parameter.grad for parameter in parameters])),
        })
    return {"class": kind.__qualname__, "module": kind.__module__, "groups": groups}


def _norms(gradients):
    """Returns the norms of gradients as the optimizer uses them. None for a gradient that is not a plain tensor, since
    its norm may need other ranks, and while a graph is captured."""
    norms = [None] * len(gradients)
    alike = {}
    for index, gradient in enumerate(gradients):
        if (type(gradient) is torch.Tensor and gradient.layout == torch.strided and gradient.dtype in _NORM_DTYPES
                and not device.is_captured(gradient)):
            alike.setdefault((gradient.device, gradient.dtype), []).append((index, gradient.detach()))
    for (_, dtype), found in alike.items():
        # All norms use a single transfer.
        for (index, _), norm in zip(found, torch.stack(_norms_of([one for _, one in found], dtype)).tolist()):
            norms[index] = _plain(norm)
    return norms


def _norms_of(tensors, dtype):
    wide = _NORM_DTYPES[dtype]
    if wide == dtype:
        return torch._foreach_norm(tensors)
    return [torch.linalg.vector_norm(tensor, dtype=wide) for tensor in tensors]


def _unscaled(optimizer, norms):
    """Returns the norms of the unscaled gradients: torch.amp.GradScaler leaves it to fused optimizers to divide
    gradients by the loss scale."""
    scale = getattr(optimizer, "grad_scale", None)
    if not isinstance(scale, torch.Tensor) or scale.numel() != 1:
        return norms
    by = scale.item()
    return [norm / by if isinstance(norm, float) else norm for norm in norms]


_UNKNOWN = object()


def _plain(value):
    """Returns the value as JSON has it; _UNKNOWN for a value that JSON does not have. Does not wait for a tensor on a
    device."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, torch.Tensor):
        if value.numel() != 1 or value.device.type != "cpu":
            return _UNKNOWN
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (tuple, list)):
        parts = [_plain(part) for part in value]
        return _UNKNOWN if any(part is _UNKNOWN for part in parts) else parts
    return _UNKNOWN


def _steps(optimizer, parameters):
    """Returns the distinct numbers of steps that the optimizer has counted for the parameters of a group."""
    found = set()
    for parameter in parameters:
        state = optimizer.state.get(parameter)
        counted = _plain(state.get("step", _UNKNOWN)) if isinstance(state, dict) else _UNKNOWN
        if isinstance(counted, (int, float)):
            found.add(int(counted))
    return sorted(found)
