# SPDX-License-Identifier: Apache-2.0
"""Names of modules and parameters in the monitor's files, and the ones that the targets select."""

import fnmatch
import re

# The first pattern that matches decides; the text before its group is cut off.
_CUTS = [re.compile(pattern) for pattern in (r".*\.(layers?\..*)", r".*\.(embeddings?\..*)", r".*\.(final.*)",
                                             r".*\.(output.*)", r".*\.(norm.*)")]


def squash(name):
    """The name without the wrappers around the layers."""
    for cut in _CUTS:
        match = cut.fullmatch(name)
        if match:
            return match.group(1)
    return name


class Names:
    """Gives each object its name; if a squashed name is already taken, the full one is kept."""

    def __init__(self, squashes):
        self._squashes = squashes
        self._taken = set()

    def of(self, stage, name):
        short = squash(name) if self._squashes else name
        if (stage, short) in self._taken:
            short = name
        self._taken.add((stage, short))
        return short


class Targets:
    """The keys of `targets`: whole names or shell patterns, optionally with the stage and a colon in front."""

    def __init__(self, keys, squashes):
        self._keys = [key for key in keys if key]
        self._squashes = squashes

    def __bool__(self):
        return bool(self._keys)

    def _names(self, stage, name):
        names = [name, squash(name)] if self._squashes else [name]
        return names + ["%d:%s" % (stage, one) for one in names]

    def has_module(self, stage, name):
        """Without keys: every module."""
        if not self._keys:
            return True
        names = self._names(stage, name)
        return any(_fits(one, key) for key in self._keys for one in names)

    def has_parameter(self, stage, name):
        """Parameters inside a module that a key selects, or whose own name matches."""
        if not self._keys:
            return True
        names = self._names(stage, name)
        return any(_fits(one, key) or _fits(one, key + ".*") or one.startswith(key + ".")
                   for key in self._keys for one in names)


def _fits(name, key):
    return name == key or fnmatch.fnmatchcase(name, key)


def numbered(name, index, count):
    """`name`, or `name_3` if there are several."""
    return name if count == 1 else "%s_%d" % (name, index)
