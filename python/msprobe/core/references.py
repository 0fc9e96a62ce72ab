# SPDX-License-Identifier: Apache-2.0
"""Functions that a program imported before they were wrapped: `from torch.nn.functional import relu`, or an attribute
of a module, `self.act = F.silu`. Their calls are recorded, too, and `self.act is F.silu` stays true whether or not
recording is on: while the wrapper is in the function's own module, it is also in these places."""

import gc
import sys
import weakref

# How often all objects of Python are searched; each search takes as long as a garbage collection.
_MOST_SEARCHES = 8


class _Counts:
    """Finds objects that have more references than at the last count."""

    def __init__(self):
        self._searches = 0
        self._counts = ()

    def note(self, objects):
        self._counts = list(map(sys.getrefcount, objects))

    def grown(self, objects):
        """Returns their positions; all if they were never counted, and none after too many searches."""
        counts = list(map(sys.getrefcount, objects))
        if counts == self._counts or self._searches == _MOST_SEARCHES:
            return []
        if len(counts) == len(self._counts):
            grown = [at for at, count in enumerate(counts) if count > self._counts[at]]
        else:
            grown = list(range(len(counts)))
        self._searches += bool(grown)
        return grown


class References:
    """module_type: the type of the framework's modules. frameworks: its packages, whose own Python modules are not
    changed."""

    def __init__(self, module_type, frameworks):
        self._module_type = module_type
        self._packages = tuple(frameworks) + ("msprobe",)
        self._seen = {}        # name of a Python module -> the module, after its names were searched
        self._newest = None
        self._models = {}      # id(model) -> weak reference, for models that were searched
        self._holders = []     # (weak reference to an object with __dict__, name, function)
        self._installed = []   # (__dict__, name, function, wrapper) while functions are wrapped
        self._functions = ()
        self._wrappers = ()
        self._wrapper_of = {}  # id(function) -> wrapper
        self._functions_held = _Counts()
        self._wrappers_held = _Counts()

    def prepare(self, functions, wrappers):
        """Takes the wrapped functions and their wrappers; no program holds a wrapper yet. If another library replaces a
        function later, a program that holds the old function still calls it, so the old function keeps its wrapper
        there."""
        known = set(map(id, functions))
        former = {id(function): (function, self._wrapper_of[id(function)]) for _, _, function in self._holders
                  if id(function) not in known and id(function) in self._wrapper_of}
        functions += tuple(function for function, _ in former.values())
        wrappers += tuple(wrapper for _, wrapper in former.values())
        self._functions = functions
        self._wrappers = wrappers
        # A function may be in several places, with different entry names; the first name counts.
        self._wrapper_of = {id(function): wrapper for function, wrapper in zip(reversed(functions), reversed(wrappers))}
        self._wrappers_held.note(wrappers)

    def install(self):
        """Called when the wrappers are installed in the functions' own modules."""
        if self._functions_held.grown(self._functions):
            for module in gc.get_objects():
                if issubclass(type(module), self._module_type):
                    self._look_into(module)
        self._look_into_new_modules()
        self._holders = [holder for holder in self._holders if self._put(*holder)]

    def _look_into_new_modules(self):
        newest = (len(sys.modules), list(sys.modules)[-1])
        if newest == self._newest:
            return
        self._newest = newest
        for name, module in list(sys.modules.items()):
            if self._seen.get(name) is not module:
                self._seen[name] = module
                if name.split(".")[0] not in self._packages and type(module) is type(sys):
                    self._look(module)

    def look_into_model(self, model):
        """Searches a model once, because it may have been created after the last search."""
        known = self._models.get(id(model))
        if known is not None and known() is model:
            return
        self._models[id(model)] = weakref.ref(model)
        for module in model.modules():
            for holder in self._look_into(module):
                self._put(*holder)

    def _look_into(self, module):
        # The default arguments of PyTorch's own modules stay the unwrapped functions.
        kind = type(module)
        defaults = ()
        if (kind.__module__ or "").split(".")[0] in self._packages:
            defaults = getattr(kind.__init__, "__defaults__", None) or ()
        return self._look(module, defaults)

    def _look(self, owner, left_alone=()):
        found = [(weakref.ref(owner), name, value) for name, value in list(vars(owner).items())
                 if id(value) in self._wrapper_of and not any(value is other for other in left_alone)]
        self._holders += found
        return found

    def _put(self, reference, name, function):
        """Whether the function is still in its place; if it is, installs the wrapper there."""
        owner = reference()
        space = vars(owner) if owner is not None else {}
        wrapper = self._wrapper_of.get(id(function))
        if space.get(name) is not function or wrapper is None:
            return False
        space[name] = wrapper
        self._installed.append((space, name, function, wrapper))
        return True

    def remove(self):
        for space, name, function, wrapper in self._installed:
            if space.get(name) is wrapper:
                space[name] = function
        self._installed.clear()
        self._functions_held.note(self._functions)

    def take_back(self):
        """Restores the function in places where a program imported a wrapper."""
        grown = self._wrappers_held.grown(self._wrappers)
        if not grown:
            return
        functions = {id(self._wrappers[at]): self._functions[at] for at in grown}
        for holder in gc.get_referrers(*[self._wrappers[at] for at in grown]):
            if holder is not self._wrapper_of:
                _replace_in(vars(holder) if issubclass(type(holder), self._module_type) else holder, functions)
        self._wrappers_held.note(self._wrappers)


def _replace_in(holder, functions):
    """Replaces wrappers by their functions in values and keys of a dict, in a list, or in a set. (msprobe keeps its own
    in tuples.)"""
    if type(holder) is dict:
        if any(id(key) in functions for key in holder):
            members = [(functions.get(id(key), key), value) for key, value in holder.items()]
            holder.clear()
            holder.update(members)
        for key, value in holder.items():
            holder[key] = functions.get(id(value), value)
    elif type(holder) is list:
        holder[:] = [functions.get(id(value), value) for value in holder]
    elif type(holder) is set:
        members = [functions.get(id(value), value) for value in holder]
        holder.clear()
        holder.update(members)
