# SPDX-License-Identifier: Apache-2.0
"""Level L2: the runtime of the NPU dumps the kernels of one call, through functions of torch_npu.npu. For a backward it
dumps the kernels of a second one: the call is repeated on copies of its inputs, and gets the gradient of the training.

This was not run on hardware; the tests have a stand-in for torch_npu.
"""

import functools
import importlib
import importlib.util
import json
import os
import sys

import torch

from msprobe import _native
from msprobe.core import kernels, session
from msprobe.core.arguments import invalid
from msprobe.core.common import log
from msprobe.core.files import whole_file

from . import gradients
from .free_benchmark import structures, surroundings

_FUNCTIONS = ("init_dump", "set_dump", "finalize_dump", "synchronize")


def is_there():
    """Whether there is a runtime, as far as that is visible without loading it."""
    return "torch_npu" in sys.modules or importlib.util.find_spec("torch_npu") is not None


class Task:
    def __init__(self):
        self._names = {}   # number of a function of the extension -> its prefix and name
        self.reset()

    def name(self, number, prefix, api):
        """Notes the API to which the extension's `number` belongs."""
        self._names[number] = prefix, api

    def reset(self):
        """A session begins."""
        self._wanted = None  # the call, as entries name it
        self._npu = None   # the module with the runtime's functions
        self._files = {}   # folder -> the names of the files written into it
        self._steps = 0    # in which kernels were dumped

    def load(self):
        """Finds the runtime. Raises if it cannot dump kernels."""
        try:
            npu = importlib.import_module("torch_npu").npu
        except Exception as error:
            raise invalid("level L2: torch_npu cannot be imported: %s" % error) from None
        missing = [name for name in _FUNCTIONS if not hasattr(npu, name)]
        if missing:
            raise invalid("level L2: this torch_npu has no npu.%s" % missing[0])
        self._npu = npu

    def configure(self):
        """Follows the settings. The level may be new in a configuration that has changed."""
        self._wanted, = session.setting("section.list")
        if self._npu is None:
            self._attempted(self.load)

    def outcome(self, steps):
        """The result of the session, in words."""
        if not self._steps:
            return "saw no kernels of %s in %s" % (self._wanted, steps)
        told = [files.told() for files in self._files.values()]
        return "had the kernels of %s dumped in %s: %s" % (
            self._wanted, "%d of %s" % (self._steps, steps), "; ".join(filter(None, told)) or "no files")

    def missing(self):
        """Lines on folders that got no files."""
        return [files.none() for files in self._files.values() if files.told() is None]

    # ------------------------------------------------------------------ calls

    def call(self, number, count, function, args, kwargs):
        """Called by the extension in place of a function that `list` names, or a part of whose name it is."""
        kwargs = kwargs or {}
        name = "%s.%s.%d" % (self._names.get(number, (None, None)) + (count,))
        if self._wanted == name + ".forward":
            return self._dumped(function, *args, **kwargs)
        again = self._attempted(_Again, function, args, kwargs) if self._wanted == name + ".backward" else None
        result = function(*args, **kwargs)
        if again is not None:
            self._attempted(again.follow, result, self._dumped)
        return result

    def _dumped(self, function, *args, **kwargs):
        """Makes the call while the runtime dumps kernels. Raises only what the function raises."""
        begun = self._attempted(self._begin)
        try:
            return function(*args, **kwargs)
        finally:
            if begun:
                self._attempted(self._end)

    def _attempted(self, work, *args):
        try:
            return work(*args)
        except Exception as error:
            log.warn_once("level L2: the kernels of %s cannot be dumped: %s" % (self._wanted, error), "level L2")
            session.guard("dumping kernels of " + self._wanted)
            return None

    def _begin(self):
        dump_path = os.path.abspath(session.setting("dump_path"))
        if dump_path not in self._files:
            self._files[dump_path] = kernels.Files(dump_path)
        folder = os.path.join(dump_path, "step%d" % _native.info()["step"])
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "kernel_config_%d.json" % os.getpid())
        with whole_file(path, encoding="utf-8") as file:
            json.dump({"dump": {"dump_list": [], "dump_path": folder, "dump_mode": "all", "dump_op_switch": "on"}}, file,
                      indent=4)
        self._npu.synchronize()
        self._npu.init_dump()
        try:
            self._npu.set_dump(path)
            self._npu.synchronize()
        except BaseException:
            self._npu.finalize_dump()
            raise
        return True

    def _end(self):
        try:
            self._npu.synchronize()
        finally:
            self._npu.finalize_dump()
        self._npu.synchronize()
        self._steps += 1


class _Again:
    """A second call, whose backward is made when the gradient of the first one's result arrives."""

    def __init__(self, function, args, kwargs):
        if surroundings.is_watched():
            raise RuntimeError("a mode intercepts operations, and would see a second call")
        tensors = structures.tensors_in((args, kwargs))
        generators = surroundings.Generators({tensor.device: None for tensor in tensors},
                                             structures.others_in(list(args) + list(kwargs.values()), torch.Generator))
        copies = {}

        def copied(tensor):
            if id(tensor) not in copies:
                copies[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
            return copies[id(tensor)]
        args, kwargs = structures.changed((tuple(args), dict(kwargs)), copied)
        self._inputs = [tensor for tensor in copies.values() if tensor.requires_grad]
        random = generators.states()
        try:
            with torch.enable_grad(), surroundings.own_saved_tensors():
                self._outputs = structures.tensors_in(function(*args, **kwargs))
        finally:
            generators.restore(random)

    def follow(self, result, dumped):
        """dumped(function, ...): calls it while kernels are dumped."""
        outputs = structures.tensors_in(result)
        node = next((tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None), None)
        if node is None:
            raise RuntimeError("its result requires no gradient")
        # Output number at the node -> position among the outputs, for outputs of this node.
        places = {tensor.output_nr: at for at, tensor in enumerate(outputs) if tensor.grad_fn is node}
        node.register_hook(gradients.OnceHook(functools.partial(self._backward, places, dumped), "dumping kernels"))

    def _backward(self, places, dumped, _grad_inputs, grad_outputs):
        pairs = [(self._outputs[at], grad_outputs[number].detach()) for number, at in places.items()
                 if number < len(grad_outputs) and grad_outputs[number] is not None]
        dumped(torch.autograd.grad, [output for output, _ in pairs], self._inputs,
               [gradient for _, gradient in pairs], allow_unused=True)


task = Task()
