# SPDX-License-Identifier: Apache-2.0
"""Each operation that runs while kernels are dumped leaves a file, named and placed as the vendor's runtime does it."""

import json
import os

from torch.utils._python_dispatch import TorchDispatchMode

calls = []      # in order
settings = []   # that were given
failing = None  # the name of a function that raises
silent = False  # nothing is written
_mode = None


class _Dump(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kind = function.__name__.split(".")[0]
        folder = os.path.join(settings[-1]["dump"]["dump_path"], "20261124101010", "0")
        if not silent:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "%s.aclnn.%d.1.161243956333802" % (kind, len(os.listdir(folder)))), "w"):
                pass
        return function(*args, **(kwargs or {}))


def _note(name):
    calls.append(name)
    if name == failing:
        raise RuntimeError(name + " failed: error 107001")


def synchronize():
    _note("synchronize")


def init_dump():
    _note("init_dump")


def set_dump(path):
    global _mode
    _note("set_dump")
    with open(path, encoding="utf-8") as file:
        settings.append(json.load(file))
    _mode = _Dump()
    _mode.__enter__()


def finalize_dump():
    global _mode
    mode, _mode = _mode, None
    if mode is not None:
        mode.__exit__(None, None, None)
    _note("finalize_dump")
