# SPDX-License-Identifier: Apache-2.0
"""Decides when and with which inputs a call is repeated, and how the repeated call's result is used.

It never affects the training: it works on tensors detached from its graph, starts from the same random state as the
first call and restores the state that call left, and writes its exceptions to dump_error_info.log.
"""

import functools

import torch

from msprobe.core.free_benchmark import task

from .. import gradients
from . import consistency, perturbing, preheat, structures, surroundings

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_GROUPS = ("Functional", "Tensor", "Torch", "VF", "NPU")
# Functions whose results have undefined elements, and functions that do more than compute.
_NEVER = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "backward",
          "register_hook", "retain_grad", "pin_memory", "record_stream", "__deepcopy__", "__reduce_ex__", "__setitem__")
_IN_PLACE = ("__iadd__", "__isub__", "__imul__", "__imatmul__", "__itruediv__", "__idiv__", "__ifloordiv__", "__imod__",
             "__ipow__", "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__")
# They change statistics in their arguments.
_CHANGING = ("batch_norm", "instance_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "embedding",
             "embedding_bag", "rrelu")


def _is_called_once(prefix, name):
    return prefix not in _GROUPS or name in _NEVER or name in _IN_PLACE or (
        name.endswith("_") and not name.endswith("__"))


def _versions(tensors):
    return [tensor._version for tensor in tensors]


def _bytes_behind(tensor):
    """Returns the size of the tensor's memory in bytes; 0 while a library has released a parameter until it is needed
    again."""
    untyped = getattr(tensor, "untyped_storage", None)
    return untyped().nbytes() if untyped is not None else tensor.storage().nbytes()


class _Attempt:
    """One call, beginning before it is made."""

    def __init__(self, task, prefix, api, number, function, args, kwargs, tensors):
        self.task = task
        self.api = "%s.%s" % (prefix, api)
        self.name = "%s.%d" % (self.api, number)
        self.function = function
        self.kwargs_keys = tuple(kwargs)
        self.values = (tuple(args), dict(kwargs))
        self.tensors = tensors
        self.devices = list({tensor.device: None for tensor in tensors})
        self.sampled = False
        given = structures.others_in(list(args) + list(kwargs.values()), torch.Generator)
        self.generators = surroundings.Generators(self.devices, given)
        self.random = self.generators.states()
        self.draws = False
        self.autocasts = surroundings.autocasts(self.devices)
        self.differentiable = torch.is_grad_enabled()
        inference = any(tensor.is_inference() for tensor in tensors)
        self.versions = None if inference else _versions(tensors)
        self.copied = inference or task.copies_arguments(api, kwargs)
        if self.copied:
            copies = {}
            self.values = structures.changed(
                self.values, lambda tensor: copies.setdefault(id(tensor), tensor.detach().clone().requires_grad_(
                    tensor.requires_grad and self.differentiable)))

    def finish(self, result):
        """Called after the call. Returns its result, or the result that replaces it."""
        task = self.task
        outputs = structures.tensors_in(result)
        if not any(perturbing.can_be_perturbed(tensor) for tensor in outputs):
            return result
        unchanged = self.versions is None or _versions(self.tensors) == self.versions
        if not unchanged and not self.copied:
            task.learn_to_copy(self.api)
            return result
        if unchanged and any(output is tensor for output in outputs for tensor in self.tensors):
            return result  # nothing was computed
        self.draws = not surroundings.same_states(self.generators.states(), self.random)
        if self.draws and task.mode == "to_cpu" and any(device.type != "cpu" for device in self.devices):
            return result  # the host draws other numbers
        if task.fixes:
            return self._fixed(result)
        if task.backward:
            self._follow_backward(result)
        else:
            self._check(outputs)
        return result

    # ------------------------------------------------------------------ calls

    def repeat(self, values, mode):
        """Repeats the call with the same random numbers, and restores the generators afterwards."""
        args, kwargs = values
        if mode == "to_cpu":
            args = perturbing.device_to_host(args)
            kwargs = dict(zip(kwargs, perturbing.device_to_host(kwargs.values())))
        if kwargs.get("inplace") is True:
            kwargs = dict(kwargs, inplace=False)
        now = self.generators.states()
        try:
            self.generators.restore(self.random)
            with surroundings.casting(self.autocasts, on=not perturbing.of_all(mode)):
                return self.function(*args, **kwargs)
        finally:
            self.generators.restore(now)

    def own_values(self, values=None):
        """Returns copies of the arguments that share their elements but belong to no graph of the training."""
        known = {}

        def cut(tensor):
            if id(tensor) not in known:
                own = tensor.detach()
                if tensor.requires_grad and self.differentiable:
                    own.requires_grad_(True)
                known[id(tensor)] = own
            return known[id(tensor)]
        return structures.changed(self.values if values is None else values, cut)

    def _again(self, mode):
        """Returns results of the call with perturbed inputs; None if there is nothing to perturb."""
        values = perturbing.perturbed(mode, structures.changed(self.values, lambda tensor: tensor.detach()))
        if values is None:
            return None
        with surroundings.without_saved_tensors():
            return structures.tensors_in(self.repeat(self.own_values(self._as_before(values)), mode))

    def _as_before(self, values):
        """Returns perturbed values. A value needs a gradient if its original did, because some kernels are chosen by that."""
        needed = iter([tensor.requires_grad for tensor in structures.tensors_in(self.values)])
        own = {}

        def marked(tensor):
            needs = next(needed)
            if id(tensor) not in own:
                own[id(tensor)] = tensor.detach().requires_grad_(needs and self.differentiable)
            return own[id(tensor)]
        return structures.changed(values, marked)

    # ------------------------------------------------------------------ forward

    def _check(self, outputs):
        task = self.task
        again = self._again(task.mode)
        if again is None or len(again) != len(outputs):
            return
        if self.sampled:
            host = self._again("to_cpu")
            ratios = [consistency.as_number(consistency.ratio(one, other, consistency.floor_of(other.dtype, False)))
                      for one, other in _pairs(outputs, again)]
            agrees = all(consistency.agrees_with_host(one, other) for one, other in _pairs(outputs, host))
            task.sample(self.api, max(ratios, default=1.0), agrees)
            return
        task.judge(self.api, self.name, outputs, again, backward=False)

    def _fixed(self, result):
        """Returns the result of the call with better inputs, in the graph of the training and with the first result's
        dtypes."""
        values = perturbing.perturbed(self.task.mode, self.values)
        if values is None:
            return result
        better = self.repeat(values, self.task.mode)
        first, second = structures.tensors_in(result), structures.tensors_in(better)
        if [tensor.shape for tensor in first] != [tensor.shape for tensor in second]:
            return result
        replaced = iter([new.to(device=old.device, dtype=old.dtype) for old, new in zip(first, second)])
        self.task.count_fixed()
        return structures.changed(result, lambda tensor: next(replaced))

    # ------------------------------------------------------------------ backward

    def _follow_backward(self, result):
        outputs = structures.tensors_in(result)
        node = next((tensor.grad_fn for tensor in outputs if tensor.requires_grad and tensor.grad_fn is not None), None)
        if node is None or not self.differentiable:
            return
        # Output number at the node -> position among the outputs, for outputs of this node.
        places = {tensor.output_nr: at for at, tensor in enumerate(outputs) if tensor.grad_fn is node}
        if not self.copied:
            self.values = structures.changed(self.values, self._named_again())
        self.tensors = structures.tensors_in(self.values)
        self.versions = None if self.copied else _versions(self.tensors)
        node.register_hook(gradients.OnceHook(functools.partial(self.check_backward, places, self.task.step()),
                                              "calling %s.backward again" % self.api))

    def _named_again(self):
        known = {}

        def cut(tensor):
            if id(tensor) not in known:
                known[id(tensor)] = tensor.detach().requires_grad_(tensor.requires_grad)
            return known[id(tensor)]
        return cut

    def check_backward(self, places, step, _grad_inputs, grad_outputs):
        task = self.task
        if task.step() != step or not self._is_as_it_was():
            return
        wanted = [(at, grad_outputs[number]) for number, at in places.items()
                  if number < len(grad_outputs) and grad_outputs[number] is not None]
        if not wanted:
            return
        incoming = [gradient.detach() for _, gradient in wanted]
        changed = [incoming, self.values] if perturbing.of_all(task.mode) else incoming
        perturbed = perturbing.perturbed(task.mode, changed)
        if perturbed is None:
            return
        positions = [at for at, _ in wanted]
        with torch.enable_grad(), surroundings.own_saved_tensors():
            if perturbing.of_all(task.mode):
                first, = self._gradients(self.values, None, positions, incoming)
                second, = self._gradients(perturbed[1], task.mode, positions, perturbed[0])
            else:
                first, second = self._gradients(self.values, None, positions, incoming, perturbed)
        both = [(one, other) for one, other in zip(first, second) if one is not None and other is not None]
        task.judge(self.api, self.name, [one for one, _ in both], [other for _, other in both], backward=True)

    def _gradients(self, values, mode, positions, *incoming):
        """Returns the gradients of the inputs that need one, for each list of incoming gradients."""
        values = self._as_before(values)
        inputs = list({id(tensor): tensor for tensor in structures.tensors_in(values) if tensor.requires_grad}.values())
        outputs = structures.tensors_in(self.repeat(values, mode))
        outputs = [outputs[at] for at in positions]
        found = []
        for number, given in enumerate(incoming):
            fitting = [gradient.to(device=output.device, dtype=output.dtype)
                       for gradient, output in zip(given, outputs)]
            found.append(torch.autograd.grad(outputs, inputs, fitting, retain_graph=number + 1 < len(incoming),
                                             allow_unused=True))
        return found

    def _is_as_it_was(self):
        """Whether the inputs are unchanged since the forward."""
        if self.versions is not None and _versions(self.tensors) != self.versions:
            return False
        return all(tensor.numel() == 0 or _bytes_behind(tensor) > 0 for tensor in self.tensors)


def _pairs(first, second):
    """Returns the pairs that can be compared."""
    return [(one, other) for one, other in zip(first, second or ())
            if perturbing.can_be_perturbed(one) and one.shape == other.shape and other.dtype.is_floating_point]


class Task(task.Task):
    def __init__(self):
        super().__init__()
        self._preheat = None
        self._changing = set(_CHANGING)

    def configure(self):
        before = self._settings
        super().configure()
        if self._settings != before:
            self._begin_preheat()

    def begin(self, dump_path):
        super().begin(dump_path)
        self._settings = None

    def _begin_preheat(self):
        steps = self._settings["preheat"]
        self._preheat = preheat.Preheat(*steps) if steps else None

    def end_step(self):
        if self._preheat is not None:
            self._preheat.end_step()

    # ------------------------------------------------------------------ calls

    def attempt(self, prefix, api, count, function, args, kwargs):
        if _is_called_once(prefix, api) or kwargs.get("out") is not None:
            return None
        tensors = structures.tensors_in((args, kwargs))
        if not any(perturbing.can_be_perturbed(tensor) for tensor in tensors):
            return None
        if not all(type(tensor) in _PLAIN and tensor.layout == torch.strided and tensor.device.type != "meta"
                   for tensor in tensors):
            return None
        sampled = False
        if self._preheat is not None and not self._preheat.is_over():
            sampled = self._preheat.wants("%s.%s" % (prefix, api), count)
            if not sampled:
                return None
        if surroundings.is_watched() or surroundings.is_captured({tensor.device for tensor in tensors}):
            return None
        attempt = _Attempt(self, prefix, api, count, function, args, kwargs, tensors)
        attempt.sampled = sampled
        return attempt

    def copies_arguments(self, api, kwargs):
        return api in self._changing or kwargs.get("inplace") is True

    def learn_to_copy(self, api):
        """Notes that this API changed an argument: from now on its arguments are copied before the call."""
        self._changing.add(api.split(".", 1)[1])

    # ------------------------------------------------------------------ verdicts

    def sample(self, api, ratio, agrees):
        self._preheat.add(api, ratio, agrees)

    @staticmethod
    def comparable(one, other):
        return perturbing.can_be_perturbed(one) and other.dtype.is_floating_point

    @staticmethod
    def described(tensor):
        return str(tensor.dtype), "torch.Size(%s)" % list(tensor.shape)

    def compare(self, api, one, other, backward):
        if one.shape != other.shape:
            return ""
        if self.mode == "to_cpu":
            return None if consistency.agrees_with_host(one, other) else ""
        found = consistency.ratio(one, other, consistency.floor_of(other.dtype, backward))
        if found == consistency.FLIPPED:
            return found
        limit = consistency.limit_of(self.mode, one.dtype)
        if self._preheat is not None:
            limit = self._preheat.limit(api, limit)
        return None if found <= limit else repr(found - 1)
