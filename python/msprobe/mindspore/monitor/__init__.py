# SPDX-License-Identifier: Apache-2.0
"""The training monitor for MindSpore's dynamic graph: from msprobe.mindspore import TrainerMon."""

from .trainer import TrainerMon

__all__ = ["TrainerMon"]
