# SPDX-License-Identifier: Apache-2.0
"""The call stacks of each module (stack_info): a file for the first step that is written."""

import csv
import linecache
import os
import sys

from msprobe.core.files import whole_file
from msprobe.core.monitor import engine

from .calls import hook_calls, modules_of

_OURS = (os.path.dirname(os.path.abspath(__file__)) + os.sep,
         os.path.dirname(os.path.abspath(engine.__file__)) + os.sep)


def frames_above_hooks():
    """The frames of the program and the framework, innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_OURS):
            yield frame
        frame = frame.f_back


class Stacks:
    def __init__(self, watch):
        self._watch = watch
        self._called = []
        self._stacks = {}

    def attach(self, models):
        if not self._watch.settings.stack_info:
            return
        for stage, name, module in modules_of(models):
            self._called.append(_Called(self, "%d:%s" % (stage, name), module))

    def is_on(self, module):
        return self._watch.is_on(module)

    def add(self, name):
        self._stacks[name] = _format(frames_above_hooks())

    def step_ends(self):
        if not self._stacks:
            return
        engine.guarded("writing stack_info.csv", self._write)
        self.remove()

    def _write(self):
        folder = self._watch.engine.setting("folder")
        os.makedirs(folder, exist_ok=True)
        with whole_file(os.path.join(folder, "stack_info.csv"), encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["module_name", "stack_info"])
            writer.writerows(self._stacks.items())

    def remove(self):
        for called in self._called:
            called.remove()
        self._called = []
        self._stacks = {}


class _Called:
    def __init__(self, stacks, name, module):
        self._stacks = stacks
        self._name = name
        self._handles = hook_calls(module, self, before=False)

    def after(self, module, args, kwargs, output):
        if self._stacks.is_on(module):
            self._stacks.add(self._name)

    def remove(self):
        for handle in self._handles:
            handle.remove()


def _format(frames):
    texts = []
    for frame in frames:
        code = frame.f_code
        line = linecache.getline(code.co_filename, frame.f_lineno).strip()
        texts.append("File %s, line %d, in %s, \n %s \n" % (code.co_filename, frame.f_lineno, code.co_name, line))
    return "".join(texts)
