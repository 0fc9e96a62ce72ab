# SPDX-License-Identifier: Apache-2.0
"""Writes that autograd's version counters do not tell: results known of tensors are not used again after them."""

import torch

from msprobe import _native
from msprobe.core import session

from . import framework

_data = torch._C._TensorBase.data
_installed = False


def install():
    """`tensor.data` leads to a tensor with a counter of its own: whoever asks for it may write through it."""
    global _installed
    if _installed or "data" in torch.Tensor.__dict__:
        return
    _installed = True
    switch = session.forward_switch
    late = session.backward_switch
    is_compiling = framework.is_compiling or (lambda: False)
    get, put = _data.__get__, _data.__set__

    def getter(self):
        if (switch[0] or late[0]) and not is_compiling():
            _native.changed_unseen()
        return get(self)

    def setter(self, value):
        if (switch[0] or late[0]) and not is_compiling():
            _native.changed_unseen()
        put(self, value)

    torch.Tensor.data = property(getter, setter, doc=_data.__doc__)


def giving_alias(function):
    """Tensor.numpy: what is written into the array is not told by the tensor."""
    def numpy(*args, **kwargs):
        _native.may_change_unseen()
        return function(*args, **kwargs)
    return numpy


def remove():
    global _installed
    if _installed:
        _installed = False
        del torch.Tensor.data
