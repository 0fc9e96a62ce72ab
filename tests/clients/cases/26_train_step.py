# SPDX-License-Identifier: Apache-2.0
"""MindSpeed's train_step with try and finally: the work fails once between start() and stop(), later steps are recorded."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
from msprobe.pytorch import PrecisionDebugger
def train_step(model, fails):
    debugger = PrecisionDebugger(dump_path=os.path.join(out, "d"), level="L0", task="statistics")
    debugger.start(model)
    try:
        return train(model, torch.randn(4, 9) if fails else None)
    finally:
        debugger.stop()
        debugger.step()
model = Tiny()
for number in range(3):
    try: train_step(model, number == 1)
    except RuntimeError: print("OK   step", number, "failed")
for step in (0, 2): tree(os.path.join(out, "d", "step%d" % step))
