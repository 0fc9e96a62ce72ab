# SPDX-License-Identifier: Apache-2.0
"""The functions of PyTorch whose calls are recorded: rules over the names of the installed one, and api_names.json."""

import os
import sys

import torch

from msprobe import _native
from msprobe.core import lists, references, wrapping
from msprobe.core.common import log

from . import framework, free_benchmark, versions

_find = wrapping.find
_public_functions = wrapping.public_functions

_DROPOUTS = ("dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout")

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_names = wrapping.Names(os.path.join(_FOLDER, "api_names.json"))
# Groups as support_wrap_ops.yaml calls them.
_LISTED = {"functional": "functional", "tensor": "tensor", "torch": "torch", "_VF": "vf", "distributed": "distributed",
           "torch_npu": "npu"}
_of_modules = {}  # name of a Python module -> names of its functions that are still to be found


# ---------------------------------------------------------------------- which functions


def _torch_candidates():
    generated = set(dir(torch._C._VariableFunctions))
    written = set(dir(torch.functional))
    names = [name for name in _public_functions(torch) if name in generated or name in written]
    return names + ["linalg." + name for name in _public_functions(torch.linalg)]


def find_functions():
    """{group: sorted names} of what is wrapped in the installed PyTorch."""
    return _names.choose({
        "functional": _public_functions(torch.nn.functional),
        "tensor": _public_functions(torch.Tensor),
        "torch": _torch_candidates(),
        "vf": [],
        "distributed": [],
        "npu": _npu_candidates(),
    }, _namespaces)


def use_list(path=None):
    """Takes the user's list: the one in the package, or another one."""
    groups = lists.read_lists(path or os.path.join(_FOLDER, "support_wrap_ops.yaml"))
    for group, names in groups.items():
        if group in _LISTED:
            _names.extend(_LISTED[group], names)
        else:
            _of_modules.setdefault(group, []).extend(names)


def find_listed():
    """Wraps the listed functions of Python modules that are imported by now."""
    for module, names in list(_of_modules.items()):
        found = sys.modules.get(module)
        if found is None:
            continue
        del _of_modules[module]
        for name in names:
            place = _find(found, name)
            if place is None:
                log.warn("%s has no function %s: it is not recorded" % (module, name))
            else:
                registry.add_found(place[0], place[1], module)


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


_PREFIXES = {"functional": "Functional", "tensor": "Tensor", "torch": "Torch", "vf": "VF",
             "distributed": "Distributed", "npu": "NPU"}


# ---------------------------------------------------------------------- how they are wrapped


def wrap(original, name, prefix, owner=None):
    """A function that records calls of `original` as `<prefix>.<name>.<n>`."""
    rules = _names.group("masked").get("%s.%s" % (prefix, name), {})
    number = _native.add_api(
        "%s.%s" % (prefix, name), prefix == "Distributed", prefix == "Functional" and name in _DROPOUTS,
        sum(1 << position for position in rules.get("input", [])),
        sum(1 << position for position in rules.get("output", [])), rules.get("keyword"))
    free_benchmark.task.name(number, prefix, name)
    wrapper = wrapping.make_wrapper(number, original, framework.is_compiling)
    if (prefix, name) == ("Tensor", "view_as"):
        wrapper = _unless_of_autograd(wrapper, original)
    return wrapping.dress(wrapper, original, owner, name, "torch")


def _unless_of_autograd(wrapper, original):
    """A torch.autograd.Function that returns its argument, as that of full backward hooks does, gets a view of it from
    PyTorch, in newer versions by Tensor.view_as: nobody wrote that call."""
    apply = getattr(getattr(torch.autograd.Function.apply, "__func__", None), "__code__", None)
    if apply is None:
        return wrapper
    get_frame = sys._getframe

    def view_as(*args, **kwargs):
        if len(args) == 2 and args[0] is args[1] and get_frame(1).f_code is apply:
            return original(*args)
        return wrapper(*args, **kwargs)
    return view_as


def _wrap_of_group(function, name, group, owner):
    return wrap(function, name, _PREFIXES[group], owner)


registry = wrapping.Registry(find_functions, _namespaces, _wrap_of_group, wrap,
                             references.References(torch.nn.Module, ["torch"]))


class originals:
    """Within it the functions are what they were: compilers that look at functions by identity need that."""

    def __enter__(self):
        self._again = registry.installed
        registry.remove()
        self._versions_again = versions.remove()

    def __exit__(self, *error):
        if self._versions_again:
            versions.install()
        if self._again:
            registry.install()


def print_listed():
    """As support_wrap_ops.yaml lists them."""
    for listed, group in _LISTED.items():
        print("%s:" % listed)
        for function in find_functions().get(group, ()):
            print("  - " + function)
