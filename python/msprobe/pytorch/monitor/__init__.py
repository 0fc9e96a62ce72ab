# SPDX-License-Identifier: Apache-2.0
"""The training monitor for PyTorch: from msprobe.pytorch import TrainerMon."""

from .trainer import TrainerMon

__all__ = ["TrainerMon"]
