# SPDX-License-Identifier: Apache-2.0
"""Compiles selected modules and compares each call of one with the original module on the same inputs, forward and
backward. The training continues with the compiled result."""

import contextlib
import copy
import os

import torch
from torch.utils import _pytree as trees

from msprobe.core.files import whole_file

from . import report


class _Call:
    """One call, until its gradients are there."""

    def __init__(self, name):
        self.name = name
        self.outputs = None        # TensorDiff of each
        self.inputs = []           # of the module itself, that need a gradient
        self.results = []          # of the module itself, that have one
        self.input_gradients = {}  # of the compiled module, by position
        self.result_gradients = {}


class PrecisionChecker:
    def __init__(self, backend="aot_eager", threshold=1e-4, dump_graphs=False, graph_dir="./graph_dump",
                 cast_dtype=None, capture_input=True, single_pass=True):
        """cast_dtype: the type in which the original modules compute. single_pass=False: compare() also computes the
        loss of the uncompiled model. capture_input has no effect: both sides have the same inputs."""
        if not hasattr(torch, "compile"):
            raise NotImplementedError(
                "PrecisionChecker needs torch.compile, which PyTorch %s does not have" % torch.__version__)
        self._backend = self._dumping(backend, graph_dir) if dump_graphs else backend
        self._threshold = threshold
        self._cast = cast_dtype
        self._two_passes = not single_pass
        self._chosen = {}     # id(module) -> (module, name)
        self._ignored = set()  # id(module)
        self._calls = []
        self._loss = None
        self._inside = False  # the module itself is called

    # ------------------------------------------------------------------ which modules

    def wrap(self, module, name=None):
        self._chosen[id(module)] = (module, name)
        return module

    def wrap_by_policy(self, model, module_types):
        """Selects all modules of these types, except those inside others of these types."""
        inside = ""
        for name, module in model.named_modules():
            if isinstance(module, module_types) and not (inside and name.startswith(inside)):
                self.wrap(module, name)
                inside = name + "."
        return model

    def wrap_all_children(self, model, depth=1):
        for name, module in model.named_modules():
            if name and name.count(".") == depth - 1:
                self.wrap(module, name)
        return model

    def ignore(self, module):
        """Neither compiled nor compared, overriding any other selection."""
        self._ignored.update(map(id, module.modules()))
        return module

    def ignore_by_policy(self, model, module_types):
        for module in model.modules():
            if isinstance(module, module_types):
                self.ignore(module)
        return model

    # ------------------------------------------------------------------ checking

    def install(self, model):
        """Compiles the selected modules of a model in place."""
        for path, module in model.named_modules():
            chosen = self._chosen.get(id(module))
            if chosen is not None and id(module) not in self._ignored:
                module.forward = self._checked(module, chosen[1] or path)
        return model

    def collect(self, loss=None):
        """Returns the results of the calls since the last collect(). Call it after the backward to include the gradients."""
        diffs = [self._judged(call) for call in self._calls]
        self._calls = []
        if loss is not None:
            self.record_loss(loss)
        value, self._loss = self._loss, None
        return report.CompareResult(all(map(report.passes, diffs)), diffs, value, cast_dtype=self._cast)

    def record_loss(self, loss):
        """Stores a loss for the next collect()."""
        self._loss = float(loss.detach())

    def compare(self, fn, model):
        """Returns the results for fn(model) on a copy of the model. fn returns the loss, a tensor with one element; the
        backward is included, whether or not fn runs it."""
        made = copy.deepcopy(model)
        for (name, own), module in zip(model.named_modules(), made.modules()):
            if id(own) in self._chosen and id(own) not in self._ignored:
                self.wrap(module, self._chosen[id(own)][1] or name)
        state = torch.random.get_rng_state()
        self.install(made)
        loss = fn(made)
        if loss.requires_grad and not any(call.result_gradients for call in self._calls):
            loss.backward()
        result = self.collect(loss)
        if self._two_passes:
            torch.random.set_rng_state(state)
            result.loss_eager = float(fn(copy.deepcopy(model)).detach())
            result.loss_diff = abs(result.loss_compiled - result.loss_eager)
        return result

    def report(self, result, csv_path=None):
        report.show(result, self._threshold)
        if csv_path:
            report.write(result, csv_path)

    # ------------------------------------------------------------------

    def _checked(self, module, name):
        own = module.forward
        compiled = torch.compile(own, backend=self._backend)

        def forward(*args, **kwargs):
            if self._inside or torch.compiler.is_compiling():
                return own(*args, **kwargs)
            buffers = [(one, key, value.clone()) for one in module.modules() for key, value in one._buffers.items()
                       if value is not None]
            random = torch.random.get_rng_state()
            call = _Call(name)
            values, form = trees.tree_flatten((args, kwargs))
            theirs = [self._detached(one) for one in values]
            call.inputs = [one for one in theirs if _has_gradient(one)]
            args, kwargs = trees.tree_unflatten(self._watched(values, call.input_gradients), form)
            made, made_form = trees.tree_flatten(compiled(*args, **kwargs))
            args, kwargs = trees.tree_unflatten(theirs, form)
            with self._as_it_was(module, buffers, random):
                expected = trees.tree_flatten(own(*args, **kwargs))[0]
            pairs = [(one, other) for one, other in zip(made, expected) if isinstance(one, torch.Tensor)]
            call.outputs = [report.diff_of(one, other, self._threshold) for one, other in pairs]
            call.results = [other for one, other in pairs if _has_gradient(one)]
            self._calls.append(call)
            return trees.tree_unflatten(self._watched(made, call.result_gradients), made_form)

        return forward

    def _detached(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        alone = value.detach().clone()
        if self._cast is not None and alone.is_floating_point():
            alone = alone.to(self._cast)
        return alone.requires_grad_(value.requires_grad)

    @staticmethod
    def _watched(values, gradients):
        """The values, whose gradients are noted when they come."""
        watched = []
        place = 0
        for value in values:
            if _has_gradient(value) and torch.is_grad_enabled():
                value = value.view_as(value)
                value.register_hook(lambda gradient, place=place: gradients.__setitem__(place, gradient))
                place += 1
            watched.append(value)
        return watched

    @contextlib.contextmanager
    def _as_it_was(self, module, buffers, random):
        """The module with the buffers and the random numbers of before the call, which it had meanwhile."""
        places = [(one, key, one._buffers[key]) for one, key, _ in buffers]
        parameters = [(one, key, value) for one in module.modules() for key, value in one._parameters.items()
                      if value is not None and self._cast is not None and value.is_floating_point()]
        later = torch.random.get_rng_state()
        try:
            for one, key, before in buffers:
                one._buffers[key] = before.to(self._cast) if self._cast and before.is_floating_point() else before
            for one, key, value in parameters:
                one._parameters[key] = torch.nn.Parameter(value.detach().to(self._cast), value.requires_grad)
            torch.random.set_rng_state(random)
            self._inside = True
            yield
        finally:
            self._inside = False
            torch.random.set_rng_state(later)
            for one, key, value in places:
                one._buffers[key] = value
            for one, key, value in parameters:
                one._parameters[key] = value

    def _judged(self, call):
        diff = report.ModuleDiff(call.name, fwd_output=call.outputs)
        results = [(one, call.result_gradients[place]) for place, one in enumerate(call.results)
                   if place in call.result_gradients and one.requires_grad]
        if not results or not call.inputs or not call.input_gradients:
            return diff
        expected = torch.autograd.grad([one for one, _ in results], call.inputs,
                                       [gradient.to(one.dtype) for one, gradient in results], allow_unused=True)
        diff.grad_input = [report.diff_of(call.input_gradients[place], gradient, self._threshold)
                           for place, gradient in enumerate(expected)
                           if gradient is not None and place in call.input_gradients]
        return diff

    @staticmethod
    def _dumping(backend, folder):
        """The backend, which writes each graph that it gets."""
        from torch._dynamo.backends.registry import lookup_backend

        count = [0]

        def compile_graph(graph, inputs):
            os.makedirs(folder, exist_ok=True)
            with whole_file(os.path.join(folder, "graph_%d.txt" % count[0]), encoding="utf-8") as file:
                file.write(graph.print_readable(print_output=False))
            count[0] += 1
            return lookup_backend(backend)(graph, inputs)

        return compile_graph


def _has_gradient(value):
    return isinstance(value, torch.Tensor) and value.requires_grad
