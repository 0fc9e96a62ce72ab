# SPDX-License-Identifier: Apache-2.0
"""The front end for MindSpore's dynamic graph: from msprobe.mindspore import PrecisionDebugger, seed_all."""

from msprobe.core.comparing import compare, compare_distributed

from .callbacks import MsprobeInitStep, MsprobeStep
from .debugger import PrecisionDebugger
from .monitor import TrainerMon
from .randomness import seed_all
from .static_graph import save, save_grad, step

__all__ = ["MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "TrainerMon", "compare", "compare_distributed", "save",
           "save_grad", "seed_all", "step"]
