# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the part of torch_npu that level L2 calls."""

from . import npu
