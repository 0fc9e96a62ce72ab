# SPDX-License-Identifier: Apache-2.0
"""MindSpore's side of a pack."""

import inspect
import weakref

import mindspore

Tensor = mindspore.Tensor
Model = mindspore.nn.Cell
MODEL = "mindspore.nn.Cell"

# (namespace, its name in packs, functions) whose calls for random numbers are counted.
RANDOM = ((mindspore.ops, "mindspore.ops", ("rand", "randint", "randn")),
          (mindspore, "mindspore", ("set_seed", "manual_seed")))

_HAS_KWARGS = "with_kwargs" in inspect.signature(Model.register_forward_pre_hook).parameters


def settings():
    return {}


def rank():
    """Returns the rank; None while there are no distributed processes."""
    communication = mindspore.communication
    return communication.get_rank() if communication.GlobalComm.INITED else None


def hook_forward(model, hook):
    """Calls hook(model, args, kwargs) before each forward; returns the handle. A copy of the cell shares the hook, which
    does nothing there."""
    owner = weakref.ref(model)

    def before(cell, args, kwargs=None):
        if owner() is cell:
            hook(cell, args, kwargs)

    return model.register_forward_pre_hook(before, **({"with_kwargs": True} if _HAS_KWARGS else {}))


def named_parameters(model):
    return [(name, parameter) for name, parameter in model.parameters_and_names()]


def statistics(tensor, as_float32):
    """Maximum, minimum, mean and norm in the tensor's own type, as the Python tool has them; None without elements."""
    if 0 in tensor.shape:
        return None
    if as_float32 or tensor.dtype in (mindspore.bool_, mindspore.bfloat16):  # they have no reductions, or no NumPy type
        tensor = tensor.astype(mindspore.float32)
    return [float(number.asnumpy()) for number in (tensor.max(), tensor.min(), tensor.mean(), tensor.norm())]
