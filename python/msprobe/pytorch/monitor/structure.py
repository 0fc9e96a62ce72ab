# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of every module (print_struct): written at the first step, which ends the training."""

import json
import os

import torch

from msprobe.core.common import log
from msprobe.core.files import whole_file
from msprobe.core.monitor.engine import guarded

from .calls import HookedModule, can_have_backward, modules_of


class Structure:
    def __init__(self):
        self._modules = {}
        self._watched = []

    def attach(self, models):
        for stage, name, module in modules_of(models):
            watched = guarded("hooking a module", _Described, "%d:%s" % (stage, name), module, self._modules)
            self._watched += [watched] if watched is not None else []

    def write_and_leave(self, engine, rank):
        path = os.path.join(os.path.dirname(engine.setting("folder")), "module_struct", "rank%d" % rank,
                            "module_struct.json")
        guarded("writing " + path, self._write, path)
        self.remove()
        raise Exception("monitor: print_struct ends the training after the first step")

    def _write(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with whole_file(path, encoding="utf-8") as file:
            json.dump(self._modules, file, indent=2)
        log.info("monitor: the structure of the model is written to %s" % path)

    def remove(self):
        for watched in self._watched:
            watched.remove()
        self._watched = []


class _Described(HookedModule):
    """A module that is described instead of measured."""

    def __init__(self, name, module, modules):
        super().__init__(module, can_have_backward(module))
        self._name = name
        self._modules = modules

    def is_on(self, module):
        return module.training

    def call_done(self, inputs, output):
        self._tell(input=list(inputs), output=output)

    def backward_done(self, grad_inputs, grad_outputs):
        self._tell(input_grad=tuple(grad_inputs), output_grad=tuple(grad_outputs))

    def _tell(self, **values):
        entry = self._modules.setdefault(self._name, {})
        entry.update((key, _describe(value)) for key, value in values.items())


def _describe(value):
    if isinstance(value, torch.Tensor):
        return {"config": "tensor", "tensor": _describe_one(value)}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        described = {"config": "%s[%d]" % (kind, len(value))}
        described.update((str(index), _describe_one(one)) for index, one in enumerate(value))
        return described
    return {"config": str(type(value))}


def _describe_one(value):
    if isinstance(value, torch.Tensor):
        return "size=%s, dtype=%s" % (tuple(value.shape), value.dtype)
    return str(type(value))
