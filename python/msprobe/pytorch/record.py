# SPDX-License-Identifier: Apache-2.0
"""A tensor as the extension takes it where it cannot read PyTorch's own."""

from msprobe.core.describe import Record

from . import framework


def record(elements, kind, dtype, shape, requires_grad, extra=None, statistics=None, deferred=None, source=None):
    return Record((elements, kind, str(dtype), framework.dtype_number(dtype), tuple(int(size) for size in shape),
                   requires_grad, extra, statistics, deferred, source))
