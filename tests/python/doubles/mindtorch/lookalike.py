# SPDX-License-Identifier: Apache-2.0
"""A package under a second name: its modules pass on what is asked of them, and show nothing themselves."""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types


class _Lookalike(types.ModuleType):
    def __getattr__(self, name):
        return getattr(importlib.import_module(self.__spec__.loader.real), name)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name):
        self.name = name

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] != self.name:
            return None
        return importlib.machinery.ModuleSpec(name, _Loader("mindtorch" + name[len(self.name):]), is_package=True)


class _Loader(importlib.abc.Loader):
    def __init__(self, real):
        self.real = real

    def create_module(self, spec):
        importlib.import_module(self.real)
        return _Lookalike(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def show_as(name):
    sys.meta_path.insert(0, _Finder(name))
