# SPDX-License-Identifier: Apache-2.0
from . import ops


def vector_norm(x):
    return ops.sum(ops.mul(x, x))
