# SPDX-License-Identifier: Apache-2.0
"""Replaces functions of other packages to be notified before and after they run."""

import functools
import inspect
import types


class Replaced:
    """`owner.name` with a function called before it, with the same arguments, and one called after it, with its
    result and these arguments. Their exceptions reach the caller, so they must guard themselves."""

    def __init__(self, owner, name, before=None, after=None):
        self._owner = owner
        self._name = name
        self._was_own = name in vars(owner)
        self._active = True
        original = self._original = getattr(owner, name)
        bound = inspect.ismethod(original) and original.__self__ is owner

        @functools.wraps(original)
        def wrapper(*args, **kwargs):
            if bound:
                args = args[1:]
            if self._active and before is not None:
                before(*args, **kwargs)
            result = original(*args, **kwargs)
            if self._active and after is not None:
                after(result, *args, **kwargs)
            return result

        # A method stays a bound method: schedulers of learning rates look for its object.
        self._wrapper = types.MethodType(wrapper, owner) if bound else wrapper
        setattr(owner, name, self._wrapper)

    def remove(self):
        """Restores the original, unless another replacement has been installed on top; then ours only becomes
        inactive."""
        self._active = False
        if vars(self._owner).get(self._name) is not self._wrapper:
            return
        if self._was_own:
            setattr(self._owner, self._name, self._original)
        else:
            delattr(self._owner, self._name)
