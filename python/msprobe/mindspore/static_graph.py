# SPDX-License-Identifier: Apache-2.0
"""Saving values from within networks, compiled ones included: MindSpore's own TensorDump writes them.

Files are <save_dir>/step<N>/rank<R>/<name>_<dtype>_<number>.npy; of values in lists, tuples and dicts the names go on with
their places: `hidden.0`, `hidden.mask`. MindSpore has the operator for NPUs; on a CPU it
writes in the dynamic graph only, and compiling a network that saves fails with `Unsupported op [TensorDump] on CPU`.
What stands here is compiled with the network that calls it, and so keeps to what MindSpore's compiler reads.
"""
import os

import mindspore as ms
from mindspore import ops

from msprobe.core.common import log

_NEXT_STEP = "<tensordump-update-step>"  # a file of this name is none: MindSpore counts a step


def _tensor_dump(file, tensor):
    if not isinstance(tensor, ms.Tensor):
        raise TypeError("save: what is saved has to be a tensor, or a list, a tuple or a dict of tensors")
    if tensor.dtype == ms.bfloat16:  # .npy has no such type
        tensor = tensor.astype(ms.float32)
    ops.TensorDump()(file, tensor)


def _save(file, value):
    if isinstance(value, dict):
        for key, part in value.items():
            _save(f"{file}.{key}", part)
    elif isinstance(value, (list, tuple)):
        for number, part in enumerate(value):
            _save(f"{file}.{number}", part)
    elif value is not None:
        _tensor_dump(file, value)


def _file(save_dir, name):
    return save_dir + ("" if save_dir[-1:] == os.sep else os.sep) + "{step}" + os.sep + "{rank}" + os.sep + name


def save(save_dir, name, data):
    """Saves a tensor, or those of lists, tuples and dicts; None is nothing."""
    _save(_file(save_dir, name), data)


@ms.jit_class
class _GradientBorder:
    def __init__(self, file):
        def save_gradient(gradient):
            _tensor_dump(file, gradient)
            return gradient

        self.insert = ops.InsertGradientOf(save_gradient)

    def __call__(self, tensor):
        return self.insert(tensor)


def save_grad(save_dir, name, data):
    """Returns the tensor `data`, to be used in its place: what comes back to it in the backward is saved as `<name>_grad`."""
    if not isinstance(data, ms.Tensor):
        raise TypeError("save_grad: data has to be a tensor")
    return _GradientBorder(_file(save_dir, name + "_grad"))(data)


def step():
    """Ends a step: what is saved from now on is the next one's. Called outside of compiled networks."""
    if ms.get_context("device_target") == "CPU":
        log.warn_once("step: MindSpore counts the steps of what save() writes on NPUs only; here all of it goes to step0")
        return
    from mindspore.ops.primitive import _run_op  # MindSpore's own

    flag = ms.Tensor([1.0], ms.float32)
    ms.runtime.synchronize()
    _run_op(ops.TensorDump(), "TensorDump", (_NEXT_STEP, flag))  # what compiled networks save
    ops.tensordump(_NEXT_STEP, flag)                             # and the dynamic graph
    ms.runtime.synchronize()
