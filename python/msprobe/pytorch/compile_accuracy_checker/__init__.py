# SPDX-License-Identifier: Apache-2.0
"""Whether what torch.compile made of a module computes what the module does."""

from .precision_checker import PrecisionChecker

__all__ = ["PrecisionChecker"]
