# SPDX-License-Identifier: Apache-2.0
"""seed_all as documents call it."""
import os, sys
from msprobe.pytorch import seed_all
for kw in ({}, {"mode": True}, {"seed": 1234, "mode": True, "rm_dropout": True}, {"seed": 1234, "mode": True, "rm_dropout": True, "is_enhanced": False}, {"is_gpu": False, "mode": True}):
    try: seed_all(**kw); print("OK  ", kw)
    except BaseException as e: print("FAIL", kw, repr(e)[:150])
import torch; torch.use_deterministic_algorithms(False)
