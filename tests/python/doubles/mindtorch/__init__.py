# SPDX-License-Identifier: Apache-2.0
"""The part of MSAdapter that the front end needs, with its oddities: tensors without a device are refused, the method for
hooks cannot work, types write themselves otherwise, and `torch` is a lookalike.
"""

from . import _tensor, linalg, nn, ops
from ._tensor import Tensor, is_grad_enabled, tensor
from .ops import *
from .lookalike import show_as

seeds = []  # of its generator


def manual_seed(seed):
    seeds.append(seed)


show_as("torch")
