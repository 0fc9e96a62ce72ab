# SPDX-License-Identifier: Apache-2.0
"""Finds the functions of MSAdapter whose calls are recorded: those in PyTorch's list, and those in api_names.json,
which only MSAdapter has."""

import os
import sys

from msprobe.core import references, torch_apis, wrapping

from . import framework

_own = wrapping.Names(os.path.join(os.path.dirname(os.path.abspath(__file__)), "api_names.json"))
_PATHS = {"functional": [".nn.functional"], "torch": [""],
          "distributed": [".distributed", ".distributed.distributed_c10d"]}


def _written_in(space, package, names):
    """Returns the names that the package itself defines, since a namespace also shows names that it imports."""
    return [name for name in names if (getattr(getattr(space, name), "__module__", None) or "").startswith(package)]


def _candidates(group, path, package):
    space = framework.space(path)
    return _own.without_left_out(group, _written_in(space, framework.PACKAGE + package, wrapping.public_functions(space)))


def _tensor_candidates(functions):
    """Returns the methods that MSAdapter has added, and MindSpore's own methods that also exist as functions of
    `torch`."""
    names = wrapping.public_functions(framework.Tensor)
    put = set(_written_in(framework.Tensor, framework.PACKAGE, names))
    return _own.without_left_out("tensor", [name for name in names if name in put or name.rstrip("_") in functions])


def find_functions():
    """{group: sorted names} of the functions to wrap."""
    functions = _candidates("torch", "", ".ops")
    return torch_apis.names.choose({
        "functional": _candidates("functional", ".nn.functional", ".nn.functional"),
        "tensor": _tensor_candidates(set(functions)),
        "torch": functions + ["linalg." + name for name in _candidates("linalg", ".linalg", ".linalg")],
        "distributed": [],
        "npu": [name for space in _namespaces("npu") for name in wrapping.public_functions(space)],
    }, _namespaces)


def _namespaces(group):
    if group == "tensor":
        return [framework.Tensor]
    found = [sys.modules.get("torch_npu")] if group == "npu" else map(framework.space, _PATHS[group])
    return [space for space in found if space is not None]


def wrap(original, name, prefix, owner=None, recorded=None):
    """A function that records calls of `original` as `<prefix>.<recorded, or name>.<n>`."""
    wrapper = wrapping.make_wrapper(torch_apis.add(prefix, recorded or name), original)
    return wrapping.dress(wrapper, original, owner, name, "torch")


def _wrap_of_group(function, name, group, owner):
    return wrap(function, name.split(".")[-1], torch_apis.PREFIXES[group], owner,
                torch_apis.names.recorded_as(group, name))


registry = wrapping.Registry(find_functions, _namespaces, _wrap_of_group, wrap,
                             references.References(framework.Module, ["torch", framework.PACKAGE, "mindspore"]))
