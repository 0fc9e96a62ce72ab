# SPDX-License-Identifier: Apache-2.0
"""Saves values from inside networks, including compiled ones, with MindSpore's own TensorDump.

Files are named <save_dir>/step<N>/rank<R>/<name>_<dtype>_<number>.npy; for values in lists, tuples and dicts their
positions are appended to the names: `hidden.0`, `hidden.mask`. MindSpore has this operator for NPUs; on a CPU it
writes in the dynamic graph only, and compiling a network that saves fails with `Unsupported op [TensorDump] on CPU`.
This code is compiled with the network that calls it, and so is limited to what MindSpore's compiler can read.
"""

from __future__ import annotations

import os
from typing import Any

import mindspore as ms
from mindspore import ops

from msprobe.core.common import log

_NEXT_STEP = "<tensordump-update-step>"  # MindSpore counts a step instead of writing a file of this name


def _tensor_dump(file, tensor):
    if not isinstance(tensor, ms.Tensor):
        raise TypeError("save: data must be a tensor, or a list, a tuple or a dict of tensors")
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


def save(save_dir: str, name: str, data: Any) -> None:
    """Saves values from inside a network.

    Args:
        save_dir: the folder for the files.
        name: the beginning of their names.
        data: a tensor of any shape, or lists, tuples and dicts of tensors; None is ignored. bfloat16 is saved as float32.

    Raises TypeError for other values.
    """
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


def save_grad(save_dir: str, name: str, data: Any) -> Any:
    """Returns the tensor `data`, to be used in its place: its gradient is saved as `<name>_grad` below save_dir. Raises
    TypeError if data is not a tensor."""
    if not isinstance(data, ms.Tensor):
        raise TypeError("save_grad: data must be a tensor")
    return _GradientBorder(_file(save_dir, name + "_grad"))(data)


def step() -> None:
    """Ends a step: later values belong to the next step. Call it outside compiled networks. It raises no error itself."""
    if ms.get_context("device_target") == "CPU":
        log.warn_once("step: MindSpore counts the steps of what save() writes on NPUs only; here all of it goes to step0")
        return
    from mindspore.ops.primitive import _run_op  # MindSpore's own

    flag = ms.Tensor([1.0], ms.float32)
    ms.runtime.synchronize()
    _run_op(ops.TensorDump(), "TensorDump", (_NEXT_STEP, flag))  # what compiled networks save
    ops.tensordump(_NEXT_STEP, flag)                             # and the dynamic graph
    ms.runtime.synchronize()
