# SPDX-License-Identifier: Apache-2.0
"""The second call: when and with which inputs it is made, and how its result is used.

It never affects the training: it works on copies of the arguments, outside of what gradients are computed for. MindSpore's random
numbers cannot be drawn again, so functions that draw them are called once.
"""

import contextlib
import fnmatch
import functools

import mindspore

from msprobe.core import nested
from msprobe.core.arguments import invalid
from msprobe.core.common import log
from msprobe.core.free_benchmark import limits, task

from .. import describe, framework
from . import arrays

_Tensor = framework.Tensor
_FLOATS = {getattr(mindspore, name): name for name in limits.NOISE}
_HALVES = (mindspore.float16, mindspore.bfloat16)
_GROUPS = ("Functional", "Tensor", "Mint", "MintFunctional")
# Functions that draw random numbers, that change their arguments, whose results have no defined elements, or that do more than
# to compute.
_ONCE = ("*dropout*", "*rand*", "normal", "*_normal", "uniform", "*_uniform*", "*bernoulli*", "*multinomial*", "gamma",
         "*_gamma", "*poisson*", "*laplace*", "*sampler", "*shuffle*", "*exponential*", "*cauchy*", "*geometric*", "rrelu",
         "gumbel_softmax", "fractional_max_pool*", "choice_with_mask", "assign*", "*scatter_*update*", "scatter_*", "copy_*",
         "index_fill*", "*batch_norm*", "*instance_norm*", "apply_*", "empty*", "new_empty*", "*print*", "*dump*", "register_*",
         "backward", "asnumpy", "numpy", "item", "tolist", "__setitem__", "__deepcopy__", "__reduce*", "__i[a-z]*__", "*[!_]_")


@functools.lru_cache(maxsize=None)
def _is_called_once(name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _ONCE)


def _is_tensor(value, in_place):
    return isinstance(value, _Tensor)


def _tensors_in(value):
    found = []
    nested.collect(value, _is_tensor, found)
    return found


def _changed(value, change):
    """The same structure with change(tensor) in place of each tensor."""
    return nested.replace(value, _is_tensor, map(change, _tensors_in(value)))


def _copy(tensor):
    return _tensor(_elements(tensor), tensor.dtype)


def _elements(tensor):
    return describe.elements_of(tensor).copy()


def _tensor(elements, dtype):
    made = _Tensor(elements)
    return made if made.dtype == dtype else made.astype(dtype)


def _widened(tensor):
    return tensor.astype(mindspore.float32) if tensor.dtype in _HALVES else tensor


@contextlib.contextmanager
def _without_gradients():
    enabled = framework.executor.enable_grad()
    framework.executor.set_enable_grad(False)
    try:
        yield
    finally:
        framework.executor.set_enable_grad(enabled)


class _Attempt:
    """One call, from before it is made."""

    def __init__(self, task, prefix, api, number, function, args, kwargs):
        self.task = task
        self.api = "%s.%s" % (prefix, api)
        self.name = "%s.%d" % (self.api, number)
        self.function = function
        self.values = (tuple(args), dict(kwargs))
        self.copies = None if task.fixes else _changed(self.values, _copy)

    def finish(self, result):
        """After the call: its result, or the one that takes its place."""
        outputs = _tensors_in(result)
        given = set(map(id, _tensors_in(self.values)))
        if not any(tensor.dtype in _FLOATS for tensor in outputs) or any(id(tensor) in given for tensor in outputs):
            return result
        if self.task.fixes:
            return self._fixed(result)
        perturbed = self._perturbed()
        if perturbed is None:
            return result
        if self.task.backward:
            first, second = self._gradients(self.copies), self._gradients(perturbed)
        else:
            with _without_gradients():
                first, second = outputs, _tensors_in(self._call(perturbed))
        if len(first) == len(second):
            self.task.judge(self.api, self.name, first, second, self.task.backward)
        return result

    def _call(self, values):
        args, kwargs = values
        return self.function(*args, **kwargs)

    def _fixed(self, result):
        """The result of the call with better inputs, of which gradients are computed, in the first one's dtypes."""
        if not any(tensor.dtype in _HALVES for tensor in _tensors_in(self.values)):
            return result
        first, second = _tensors_in(result), _tensors_in(self._call(_changed(self.values, _widened)))
        if [tensor.shape for tensor in first] != [tensor.shape for tensor in second]:
            return result
        self.task.count_fixed()
        return nested.replace(result, _is_tensor, iter([new.astype(old.dtype) for old, new in zip(first, second)]))

    def _perturbed(self):
        """The copies with the perturbation; None if there is nothing to perturb."""
        tensors = _tensors_in(self.copies)
        if self.task.mode == "improve_precision":
            if not any(tensor.dtype in _HALVES for tensor in tensors):
                return None
            return _changed(self.copies, _widened)
        first = next((tensor for tensor in tensors if tensor.dtype in _FLOATS and tensor.size), None)
        if first is None:
            return None
        dtype = _FLOATS[first.dtype]
        other = _tensor(arrays.perturbed(self.task.mode, _elements(first), dtype), first.dtype)
        return _changed(self.copies, lambda tensor: other if tensor is first else tensor)

    def _gradients(self, values):
        """Gradients of the floating-point inputs, for gradients of 1 at all results."""
        tensors = _tensors_in(values)
        places = [at for at, tensor in enumerate(tensors) if tensor.dtype in _FLOATS]

        def function(*inputs):
            given = list(tensors)
            for at, tensor in zip(places, inputs):
                given[at] = tensor
            found = _tensors_in(self._call(nested.replace(values, _is_tensor, iter(given))))
            return tuple(tensor for tensor in found if tensor.dtype in _FLOATS)

        gradients = mindspore.grad(function, tuple(range(len(places))))(*[tensors[at] for at in places])
        return list(gradients) if isinstance(gradients, (list, tuple)) else [gradients]


class Task(task.Task):
    def configure(self):
        super().configure()
        if self.mode == "to_cpu":
            raise invalid("free_benchmark: pert_mode to_cpu is for PyTorch")
        if self._settings["preheat"]:
            log.warn_once("free_benchmark: if_preheat has no effect with MindSpore")

    def attempt(self, prefix, api, count, function, args, kwargs):
        if prefix not in _GROUPS or _is_called_once(api) or kwargs.get("inplace") is True:
            return None
        tensors = _tensors_in((args, kwargs))
        if not any(tensor.dtype in _FLOATS and tensor.size for tensor in tensors):
            return None
        if not all(type(tensor) in (_Tensor, framework.Parameter) for tensor in tensors):
            return None
        return _Attempt(self, prefix, api, count, function, args, kwargs)

    @staticmethod
    def comparable(one, other):
        return one.dtype in _FLOATS and other.dtype in _FLOATS

    @staticmethod
    def described(tensor):
        return describe.dtype_text(tensor.dtype), str(tuple(tensor.shape))

    def compare(self, api, one, other, backward):
        if one.shape != other.shape:
            return ""
        found = arrays.ratio(_elements(one), _elements(other), limits.floor_of(_FLOATS[other.dtype], backward))
        if found == limits.FLIPPED:
            return found
        return None if found <= limits.limit_of(self.mode, _FLOATS[one.dtype]) else repr(found - 1)
