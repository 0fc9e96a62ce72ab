# SPDX-License-Identifier: Apache-2.0
"""The front end for PyTorch: from msprobe.pytorch import PrecisionDebugger, seed_all."""

import importlib.util
import sys

if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
    raise ImportError(f"msprobe.pytorch needs PyTorch, which {sys.executable} does not have: run a Python that does")

import torch  # noqa: F401 - the first of all: what it is decides

from msprobe.core import msadapter
from msprobe.core.comparing import compare, compare_distributed

if msadapter.is_torch():
    raise ImportError("torch is MSAdapter's in this process: use msprobe.mindspore")

from .check_trainings import check
from .debugger import PrecisionDebugger, module_dump, module_dump_end
from .monitor import TrainerMon
from .randomness import random_save, seed_all
from .unsupported import AclGraphDumper, acl_save, set_fx_dump_config, set_ge_dump_config

__all__ = [
    "AclGraphDumper", "PrecisionDebugger", "TrainerMon", "acl_save", "check", "compare", "compare_distributed", "module_dump",
    "module_dump_end", "random_save", "seed_all", "set_fx_dump_config", "set_ge_dump_config",
]
