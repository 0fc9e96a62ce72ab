# SPDX-License-Identifier: Apache-2.0
"""The form in which the extension accepts a tensor that it cannot read directly."""

from msprobe.core.describe import Record

from . import framework


def record(elements, kind, dtype, shape, requires_grad, extra=None, statistics=None, deferred=None, source=None,
           later=False):
    return Record((elements, kind, str(dtype), framework.dtype_number(dtype), tuple(int(size) for size in shape),
                   requires_grad, extra, statistics, deferred, source, later))
