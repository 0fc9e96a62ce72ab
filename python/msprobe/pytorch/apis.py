# SPDX-License-Identifier: Apache-2.0
"""The functions of PyTorch whose calls are recorded: rules over the names of the installed one, and api_names.json,
which the build makes of data/operations.yaml."""

import contextlib
import dis
import functools
import sys

import torch

from msprobe.core import references, torch_apis, wrapping

from . import framework, free_benchmark, kernel_dump, online_check, versions

_public_functions = wrapping.public_functions


# ---------------------------------------------------------------------- which functions


def _torch_candidates():
    generated = set(dir(torch._C._VariableFunctions))
    written = set(dir(torch.functional))
    names = [name for name in _public_functions(torch) if name in generated or name in written]
    return names + ["linalg." + name for name in _public_functions(torch.linalg)]


def find_functions():
    """{group: sorted names} of the functions to wrap in the installed PyTorch."""
    return torch_apis.names.choose({
        "functional": _public_functions(torch.nn.functional),
        "tensor": _public_functions(torch.Tensor),
        "torch": _torch_candidates(),
        "vf": [],
        "distributed": [],
        "npu": _npu_candidates(),
    }, _namespaces)


def _npu_candidates():
    npu = _torch_npu()
    return _public_functions(npu) if npu is not None else []


def _torch_npu():
    return sys.modules.get("torch_npu")


def _namespaces(group):
    if group == "functional":
        return [torch.nn.functional]
    if group == "tensor":
        return [torch.Tensor]
    if group == "torch":
        return [torch]
    if group == "vf":
        return [torch._VF]
    if group == "distributed":
        distributed = getattr(torch, "distributed", None)
        if distributed is None or not distributed.is_available():
            return []
        return [distributed, distributed.distributed_c10d]
    npu = _torch_npu()
    if npu is None:
        return []
    spaces = [npu]
    operators = getattr(torch.ops, "npu", None)
    return spaces + [operators] if operators is not None else spaces


# ---------------------------------------------------------------------- how they are wrapped


def wrap(original, name, prefix, owner=None, recorded=None):
    """A function that records calls of `original` as `<prefix>.<recorded, or name>.<n>`."""
    number = torch_apis.add(prefix, recorded or name)
    for task in (free_benchmark.task, online_check.task, kernel_dump.task):
        task.name(number, prefix, recorded or name)
    wrapper = wrapping.make_wrapper(number, original, framework.is_compiling if framework.CAN_COMPILE else None)
    if (prefix, name) == ("Tensor", "view_as"):
        wrapper = _unless_of_autograd(wrapper, original)
    return wrapping.dress(wrapper, original, owner, name, "torch")


def _unless_of_autograd(wrapper, original):
    """Wraps Tensor.view_as so that calls by autograd itself are not recorded. Newer versions call it for a
    torch.autograd.Function that returns its argument, such as that of full backward hooks; no program wrote that call."""
    apply = vars(torch.autograd.Function).get("apply")
    if apply is None:
        return wrapper
    code = getattr(getattr(apply, "__func__", None), "__code__", None)
    get_frame = sys._getframe

    def view_as(*args, **kwargs):
        if len(args) == 2 and args[0] is args[1]:
            frame = get_frame().f_back
            # From 2.14 on apply() is a builtin: who called it seems to make the call.
            if frame is not None and (frame.f_code is code if code is not None else
                                      not _says_view_as(frame.f_code, frame.f_lineno)):
                return original(*args)
        return wrapper(*args, **kwargs)
    return view_as


@functools.lru_cache(maxsize=1000)
def _says_view_as(code, line):
    """Whether this line of the code names the function."""
    if "view_as" not in code.co_names:
        return False
    offsets = [one.offset for one in dis.get_instructions(code) if one.argval == "view_as"]
    return any(start <= offset < end for start, end, at in code.co_lines() if at == line for offset in offsets)


def _wrap_of_group(function, name, group, owner):
    return wrap(function, name.split(".")[-1], torch_apis.PREFIXES[group], owner,
                torch_apis.names.recorded_as(group, name))


registry = wrapping.Registry(find_functions, _namespaces, _wrap_of_group, wrap,
                             references.References(torch.nn.Module, ["torch"]))


@contextlib.contextmanager
def originals():
    """Context in which the original functions are in place: compilers that check the identity of functions need this.
    """
    with registry.originals():
        versions_again = versions.remove()
        try:
            yield
        finally:
            if versions_again:
                versions.install()
