# SPDX-License-Identifier: Apache-2.0
"""The functions whose calls are recorded: which they are, and how they are wrapped.

Which: rules over the names of the installed PyTorch, adjusted by api_names.json.
"""

import fnmatch
import functools
import json
import os

import torch

from msprobe import _native

from . import collector, framework, versions

_call_api = _native.call_api
_switch = collector.forward_switch
_is_compiling = framework.is_compiling

_DROPOUTS = ("dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout")


# ---------------------------------------------------------------------- which functions


class _Names:
    """api_names.json: per group patterns to leave out, and names that no rule finds."""

    def __init__(self, path=None):
        path = path or os.path.join(os.path.dirname(os.path.abspath(__file__)), "api_names.json")
        with open(path, encoding="utf-8") as file:
            self._groups = json.load(file)

    def group(self, name):
        return self._groups.get(name, {})

    def add(self, group):
        return self.group(group).get("add", [])

    def without_left_out(self, group, candidates):
        patterns = [pattern for patterns in self.group(group).get("leave_out", {}).values() for pattern in patterns]
        exact = {pattern for pattern in patterns if not set(pattern) & set("*?[")}
        globs = [pattern for pattern in patterns if pattern not in exact]
        return [name for name in candidates
                if name not in exact and not any(fnmatch.fnmatchcase(name, glob) for glob in globs)]


def _find(namespace, name):
    """(owner, last part of the name, function) or None."""
    *path, last = name.split(".")
    owner = namespace
    for part in path:
        owner = getattr(owner, part, None)
        if owner is None:
            return None
    function = getattr(owner, last, None)
    return (owner, last, function) if callable(function) else None


def _public_functions(namespace):
    return [name for name in dir(namespace)
            if name[0].islower() and callable(getattr(namespace, name, None))
            and not isinstance(getattr(namespace, name), type)]


def _torch_candidates():
    generated = set(dir(torch._C._VariableFunctions))
    written = set(dir(torch.functional))
    names = [name for name in _public_functions(torch) if name in generated or name in written]
    return names + ["linalg." + name for name in _public_functions(torch.linalg)]


def find_functions(names=None):
    """{group: sorted names} of what is wrapped in the installed PyTorch."""
    names = names or _Names()
    candidates = {
        "functional": _public_functions(torch.nn.functional),
        "tensor": _public_functions(torch.Tensor),
        "torch": _torch_candidates(),
        "vf": [],
        "distributed": [],
        "npu": _npu_candidates(),
    }
    found = {}
    for group, listed in candidates.items():
        kept = set(names.without_left_out(group, listed)) | set(names.add(group))
        found[group] = sorted(name for name in kept if any(_find(space, name) for space in _namespaces(group)))
    return found


def _npu_candidates():
    npu = _torch_npu()
    return _public_functions(npu) if npu is not None else []


def _torch_npu():
    import sys
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


def _make_wrapper(number, original):
    """The function that stands in for `original`. While nothing is recorded it costs one test."""
    switch = _switch
    call_api = _call_api
    is_compiling = _is_compiling

    if is_compiling is None:
        def wrapper(*args, **kwargs):
            if switch[0]:
                return call_api(number, original, args, kwargs)
            return original(*args, **kwargs)
    else:
        def wrapper(*args, **kwargs):
            if switch[0] and not is_compiling():
                return call_api(number, original, args, kwargs)
            return original(*args, **kwargs)
    return wrapper


def wrap(original, name, prefix, owner=None, rules=None):
    """A function that records calls of `original` as `<prefix>.<name>.<n>`."""
    rules = rules or {}
    inner = versions.giving_alias(original) if (prefix, name) == ("Tensor", "numpy") else original
    number = _native.add_api(
        "%s.%s" % (prefix, name), prefix == "Distributed", prefix == "Functional" and name in _DROPOUTS,
        sum(1 << position for position in rules.get("input", [])),
        sum(1 << position for position in rules.get("output", [])), rules.get("keyword"))
    wrapper = _make_wrapper(number, inner)
    functools.update_wrapper(wrapper, original)
    if not hasattr(original, "__code__"):  # a builtin: it is found, also by pickle, where it is wrapped
        if isinstance(owner, type):
            wrapper.__module__, wrapper.__qualname__ = owner.__module__, "%s.%s" % (owner.__qualname__, name)
        else:
            wrapper.__module__, wrapper.__qualname__ = getattr(owner, "__name__", "torch"), name
    return wrapper


class _Patch:
    """One attribute that is replaced while functions are wrapped."""

    __slots__ = ("owner", "name", "original", "wrapper", "own")

    def __init__(self, owner, name, original, wrapper):
        self.owner = owner
        self.name = name
        self.original = original
        self.wrapper = wrapper
        # Whether the owner itself has it (a class may inherit it, a module may make it up).
        self.own = name in getattr(owner, "__dict__", {})

    def install(self):
        setattr(self.owner, self.name, self.wrapper)

    def remove(self):
        if getattr(self.owner, "__dict__", {}).get(self.name) is not self.wrapper:
            return  # somebody else has replaced it since
        if self.own:
            setattr(self.owner, self.name, self.original)
        else:
            delattr(self.owner, self.name)


class Registry:
    """All wrapped functions of the process."""

    def __init__(self):
        self._patches = None
        self._custom = {}
        self.installed = False

    def _make_patches(self):
        names = _Names()
        rules = names.group("masked")
        patches = []
        for group, functions in find_functions(names).items():
            prefix = _PREFIXES[group]
            for name in functions:
                made = []  # one wrapper for one function, however many namespaces show it
                for space in _namespaces(group):
                    found = _find(space, name)
                    if found is None:
                        continue
                    owner, last, function = found
                    wrapper = next((wrapper for known, wrapper in made if known is function), None)
                    if wrapper is None:
                        wrapper = wrap(function, last, prefix, owner, rules.get("%s.%s" % (prefix, last)))
                        made.append((function, wrapper))
                    patches.append(_Patch(owner, last, _raw(owner, last, function), wrapper))
        return patches

    def install(self):
        if self.installed:
            return
        if self._patches is None:
            self._patches = self._make_patches()
        for patch in self._patches:
            patch.install()
        self.installed = True

    def remove(self):
        if not self.installed:
            return
        for patch in self._patches:
            patch.remove()
        self.installed = False

    def count(self):
        return len(self._patches or ())

    # -- functions that the user names

    def add_custom(self, module, name, prefix):
        key = (id(module), name)
        if key in self._custom:
            return
        original = getattr(module, name)
        wrapper = wrap(original, name.split(".")[-1], prefix, module)
        patch = _Patch(module, name, _raw(module, name, original), wrapper)
        patch.install()
        self._custom[key] = patch

    def remove_custom(self, module, name):
        patch = self._custom.pop((id(module), name), None)
        if patch is not None:
            patch.remove()


def _raw(owner, name, function):
    """What stands in the owner's dictionary: a staticmethod must stay one."""
    return getattr(owner, "__dict__", {}).get(name, function)


registry = Registry()


class originals:
    """Within it the functions are what they were: compilers that look at functions by identity need that."""

    def __enter__(self):
        self._again = registry.installed
        registry.remove()
        versions.remove()

    def __exit__(self, *error):
        versions.install()
        if self._again:
            registry.install()
