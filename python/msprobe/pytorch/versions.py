# SPDX-License-Identifier: Apache-2.0
"""Detects writes that autograd's version counters miss. Cached results for tensors are not used after such writes."""

import torch

from msprobe import _native
from msprobe.core import session, wrapping

from . import compiled, framework

_data = torch._C._TensorBase.data
_replaced = {}  # name -> the replacement in torch.Tensor
_installed = False


def install():
    """Watches for aliases: `tensor.data` returns a tensor with its own counter, through which a program can write, and
    so does a NumPy array over the same memory. Installed from the first recording to the end."""
    global _installed
    if _installed:
        return
    _installed = True
    if not _replaced:
        if "data" not in torch.Tensor.__dict__:
            _replaced["data"] = _telling_data()
        if "numpy" not in torch.Tensor.__dict__:
            _replaced["numpy"] = _telling_numpy(torch.Tensor.numpy)
    for name, replacement in _replaced.items():
        setattr(torch.Tensor, name, replacement)


def remove():
    """Removes the hooks until install() is called again. Returns whether there are hooks to install again."""
    global _installed
    if not _installed:
        return False
    _installed = False
    for name in _replaced:
        delattr(torch.Tensor, name)
    return True


def _telling_data():
    switch = session.forward_switch
    late = session.backward_switch
    is_compiling = framework.is_compiling
    get, put = _data.__get__, _data.__set__

    @compiled.leave_alone
    def getter(self):
        if (switch[0] or late[0]) and not is_compiling():
            _native.changed_unseen()
        return get(self)

    @compiled.leave_alone
    def setter(self, value):
        if (switch[0] or late[0]) and not is_compiling():
            _native.changed_unseen()
        put(self, value)

    return property(getter, setter, doc=_data.__doc__)


def _telling_numpy(function):
    @compiled.leave_alone
    def numpy(*args, **kwargs):
        _native.may_change_unseen()
        return function(*args, **kwargs)
    return wrapping.dress(numpy, function, torch.Tensor, "numpy", "torch")
