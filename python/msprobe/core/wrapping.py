# SPDX-License-Identifier: Apache-2.0
"""Finds functions by rules and wraps them, for any framework."""

import contextlib
import fnmatch
import functools
import itertools
import json
import types

from msprobe import _native

from . import session

_call_api = _native.call_api
_switch = session.forward_switch


# ---------------------------------------------------------------------- which functions


class Names:
    """The file api_names.json, which the build makes of data/operations.yaml. For each group it has patterns to leave
    out, names that no rule finds, and functions whose calls are recorded under another name."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self._groups = json.load(file)
        self._never = {}  # group -> names that the user excluded

    def group(self, name):
        return self._groups.get(name, {})

    def add(self, group):
        return self.group(group).get("add", [])

    def extend(self, group, names):
        """Adds names to find; names that begin with "-" are left out."""
        there = self._groups.setdefault(group, {})
        there["add"] = there.get("add", []) + [name for name in names if not name.startswith("-")]
        self._never.setdefault(group, set()).update(name[1:] for name in names if name.startswith("-"))

    def recorded_as(self, group, name):
        """Returns the name of its calls: the last part of the function's name without the namespace, unless the file
        has another name."""
        return self.group(group).get("recorded_as", {}).get(name) or name.split(".")[-1]

    def without_left_out(self, group, candidates):
        patterns = self.group(group).get("leave_out", [])
        exact = {pattern for pattern in patterns if not set(pattern) & set("*?[")}
        globs = [pattern for pattern in patterns if pattern not in exact]
        return [name for name in candidates
                if name not in exact and not any(fnmatch.fnmatchcase(name, glob) for glob in globs)]

    def choose(self, candidates, namespaces):
        """{group: sorted names} from {group: names that the rules find}, restricted to names in namespaces(group);
        all of them without namespaces."""
        found = {}
        for group, listed in candidates.items():
            kept = (set(self.without_left_out(group, listed)) | set(self.add(group))) - self._never.get(group, set())
            found[group] = sorted(name for name in kept
                                  if namespaces is None or any(find(space, name) for space in namespaces(group)))
        return found


def find(namespace, name):
    """(owner, last part of the name, function) or None."""
    *path, last = name.split(".")
    owner = namespace
    for part in path:
        owner = getattr(owner, part, None)
        if owner is None:
            return None
    function = getattr(owner, last, None)
    return (owner, last, function) if callable(function) else None


def public_functions(namespace):
    return [name for name in dir(namespace)
            if name[0].islower() and callable(getattr(namespace, name, None))
            and not isinstance(getattr(namespace, name), type)]


# ---------------------------------------------------------------------- how they are wrapped


def add_api(names, prefix, name, distributed=False, dropout=False):
    """Registers a function with the extension and returns its number. distributed: its arguments are its output;
    dropout: it is a dropout (see the extension)."""
    rules = names.group("masked").get("%s.%s" % (prefix, name), {})
    return _native.add_api("%s.%s" % (prefix, name), distributed, dropout, _bits(rules.get("input", [])),
                           _bits(rules.get("output", [])), rules.get("keyword"))


def _bits(positions):
    return sum(1 << position for position in positions)


def make_wrapper(number, original, is_compiling=None):
    """Returns the function that replaces `original`. While nothing is recorded, a call costs one additional test."""
    switch = _switch
    call_api = _call_api

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


def dress(wrapper, original, owner, name, library):
    """Copies the metadata of the wrapped function to its wrapper."""
    functools.update_wrapper(wrapper, original)
    if not hasattr(original, "__code__"):  # a builtin: pickle, too, finds it in the place where it is wrapped
        if isinstance(owner, type):
            wrapper.__module__, wrapper.__qualname__ = owner.__module__, "%s.%s" % (owner.__qualname__, name)
        else:
            wrapper.__module__, wrapper.__qualname__ = getattr(owner, "__name__", library), name
    return wrapper


_ABSENT = object()  # marks a name that is missing in a dictionary


class Patch:
    """One attribute that is replaced while functions are wrapped."""

    __slots__ = ("owner", "name", "space", "found", "function", "wrapper", "make")

    def __init__(self, owner, name, function, make, wrapper=None):
        self.owner = owner
        self.name = name
        self.space = getattr(owner, "__dict__", {})
        # A staticmethod must stay one. _ABSENT: a class may inherit the name, a module may create it on demand.
        self.found = self.space.get(name, _ABSENT)
        self.make = make
        self.function = function
        self.wrapper = wrapper if wrapper is not None else make(function)

    def install(self):
        if self.space.get(self.name, _ABSENT) is not self.found:
            if self.space.get(self.name) is self.wrapper:
                return
            # Another library has replaced it since, so this wraps the new function.
            self.found = self.space.get(self.name, _ABSENT)
            self.function = getattr(self.owner, self.name, None)
            # If there is nothing to call, as after del, it is left alone.
            self.wrapper = self.make(self.function) if callable(self.function) else self.found
        if self.wraps():
            setattr(self.owner, self.name, self.wrapper)

    def wraps(self):
        return self.wrapper is not self.found

    def is_installed(self):
        return self.space.get(self.name) is self.wrapper

    def remove(self):
        if not self.wraps() or not self.is_installed():
            return  # another library has replaced it since
        if self.found is _ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.found)


class _Space:
    """All patches of one owner. They are installed and removed together, because this happens at every recorded step."""

    def __init__(self, owner, patches):
        self._owner = owner
        self._patches = patches
        self._space = patches[0].space
        self._names = [patch.name for patch in patches]
        self._arrange()

    def _arrange(self):
        self._found = tuple(patch.found for patch in self._patches)
        self._wrappers = tuple(patch.wrapper for patch in self._patches)
        # A module has its names in its dictionary, and nowhere else.
        self._is_module = type(self._owner) is types.ModuleType and not any(one is _ABSENT for one in self._found)

    def _present(self):
        return tuple(map(self._space.get, self._names, itertools.repeat(_ABSENT)))

    def install(self):
        """Whether every place still has the value that this object left there."""
        if self._present() != self._found:
            for patch in self._patches:
                patch.install()
            self._arrange()
            return False
        self._put(self._wrappers)
        return True

    def remove(self):
        if self._present() != self._wrappers:
            for patch in self._patches:
                patch.remove()
        else:
            self._put(self._found)

    def _put(self, values):
        if self._is_module:
            self._space.update(zip(self._names, values))
            return
        owner = self._owner
        for name, value in zip(self._names, values):
            if value is not _ABSENT:
                setattr(owner, name, value)
            elif name in self._space:
                delattr(owner, name)


class Registry:
    """All wrapped functions of the process. They are wrapped only while something is recorded, because programs and
    frameworks check the identity of functions.

    find_functions() -> {group: names}; namespaces(group) -> those that export its functions; wrap(function, name,
    group, owner) and wrap_custom(function, name, prefix, owner) -> wrapper; references: see references.py.
    """

    def __init__(self, find_functions, namespaces, wrap, wrap_custom, references=None):
        self._find_functions = find_functions
        self.namespaces = namespaces
        self._wrap = wrap
        self._wrap_custom = wrap_custom
        self._references = references
        self._patches = None
        self._spaces = None  # the patches by owner
        self._custom = {}
        self._places = None  # id(function) -> its patches; made on first use
        self.installed = False

    def _make_patches(self):
        patches = []
        for group, functions in self._find_functions().items():
            for name in functions:
                made = []  # one wrapper per function, even if several namespaces show it
                for space in self.namespaces(group):
                    found = find(space, name)
                    if found is None:
                        continue
                    owner, last, function = found
                    make = functools.partial(self._wrap, name=name, group=group, owner=owner)
                    wrapper = next((wrapper for known, wrapper in made if known is function), None)
                    if wrapper is None:
                        wrapper = make(function)
                        made.append((function, wrapper))
                    patches.append(Patch(owner, last, function, make, wrapper))
        return patches

    def prepare(self):
        """Makes the wrappers in advance, so that the first install() is fast."""
        if self._patches is None:
            self._patches = self._make_patches()
            self._forget_places()

    def install(self):
        if self.installed:
            return
        self.prepare()
        if self._spaces is None:
            by_owner = {}
            for patch in self._patches:
                by_owner.setdefault(id(patch.owner), []).append(patch)
            self._spaces = [_Space(patches[0].owner, patches) for patches in by_owner.values()]
        if not all([space.install() for space in self._spaces]):
            self._forget_places()
        self.installed = True
        if self._references is not None:
            self._references.install()

    def look_into(self, model):
        """Also wraps functions that this model holds."""
        if self.installed and self._references is not None:
            self._references.look_into_model(model)

    def remove(self):
        if not self.installed:
            return
        if self._references is not None:
            self._references.remove()
        for space in self._spaces:
            space.remove()
        self.installed = False
        if self._references is not None:
            self._references.take_back()

    @contextlib.contextmanager
    def originals(self):
        """A context in which the original functions are in place, for compilers, which inspect them."""
        again = self.installed
        self.remove()
        try:
            yield
        finally:
            if again:
                self.install()

    def call_unwrapped(self, function, args, kwargs):
        """Calls a wrapped function while the original is in its own module, because observers of the call check which
        function it is."""
        if self._places is None:
            self._places = {}
            for patch in self._patches:
                self._places.setdefault(id(patch.function), []).append(patch)
        patches = [patch for patch in self._places.get(id(function), ()) if patch.is_installed()]
        for patch in patches:
            patch.remove()
        try:
            return function(*args, **kwargs or {})
        finally:
            for patch in patches:
                if self.installed:
                    patch.install()

    def _forget_places(self):
        self._places = None
        if self._references is not None:
            wrapping = [patch for patch in self._patches if patch.wraps()]
            self._references.prepare(tuple(patch.function for patch in wrapping),
                                     tuple(patch.wrapper for patch in wrapping))

    def count(self):
        return len(self._patches or ())

    # -- functions that the user names, or a library brings along

    def add_custom(self, module, name, prefix):
        """Wraps a function until remove_custom(); if the function is wrapped anyway, its calls get this prefix."""
        key = (id(module), name)
        if key in self._custom:
            return
        patch = self._custom_patch(module, name, prefix)
        self.prepare()
        known = next((one for one in self._patches if one.owner is module and one.name == name), None)
        if known is None:
            patch.install()
            self._custom[key] = patch.remove
        else:
            self._custom[key] = functools.partial(self._remake, known, known.make)
            self._remake(known, patch.make)

    def remove_custom(self, module, name):
        self._custom.pop((id(module), name), lambda: None)()

    def _remake(self, patch, make):
        with self.originals():
            patch.make = make
            patch.wrapper = make(patch.function)
            self._spaces = None
            self._forget_places()

    def add_found(self, owner, name, prefix):
        """Wraps a function while something is recorded, as those of the framework."""
        self.prepare()
        patch = self._custom_patch(owner, name, prefix)
        self._patches.append(patch)
        if self._spaces is not None:
            self._spaces.append(_Space(owner, [patch]))
        self._forget_places()
        if self.installed:
            patch.install()

    def _custom_patch(self, owner, name, prefix):
        make = functools.partial(self._wrap_custom, name=name.split(".")[-1], prefix=prefix, owner=owner)
        return Patch(owner, name, getattr(owner, name), make)
