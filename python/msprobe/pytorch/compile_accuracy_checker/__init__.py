# SPDX-License-Identifier: Apache-2.0
"""Checks whether a module compiled by torch.compile computes the same as the original module."""

from .precision_checker import PrecisionChecker

__all__ = ["PrecisionChecker"]
